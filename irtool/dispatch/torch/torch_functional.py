"""`torch.nn.functional` for Python: the functions that TorchScript source calls by these names, and what TorchScript cannot say."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from types import FunctionType
from typing import Any

from irtool.ir.errors import Error, RunError
from irtool.ops.array_library import np
from irtool.ops.composed.reductions import reduction_number
from irtool.ops.tensor import Tensor, call

COMPOSED = "irtool.ops.composed."


def do(name: str, *args: Any) -> Any:
    """Run an operator."""
    return call(f"aten::{name}", args, {})


def reduced(loss: Any, reduction: str) -> Any:
    """The elements of a loss, or their mean or sum."""
    number = reduction_number(reduction)
    return loss if number == 0 else do("mean" if number == 1 else "sum", loss)


def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *, margin: float = 1.0, swap: bool = False,
                                      distance_function: Callable[[Any, Any], Any] | None = None, reduction: str = "mean") -> Any:
    """The loss max(0, d(anchor, positive) - d(anchor, negative) + margin), for a distance d of two tensors (by default Euclidean)."""
    reduction_number(reduction)
    if margin <= 0:
        raise RunError(f"margin must be greater than 0, got {margin}")
    anchor, positive, negative = map(of_array, (anchor, positive, negative))
    ranks = anchor.dim(), positive.dim(), negative.dim()
    if len(set(ranks)) > 1:
        raise RunError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                       f"anchor {ranks[0]}D, positive {ranks[1]}D, and negative {ranks[2]}D inputs")
    distance = distance_function or (lambda a, b: do("pairwise_distance", a, b))
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = do("minimum", far, distance(positive, negative))
    return reduced(do("clamp_min", margin + near - far, 0), reduction)


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """The functions of torch.nn.functional that are no operators, by name."""
    from irtool.ops.composed import functional, functional_nets, several_forms
    from irtool.torchscript.nn_functional import HELPERS, INDICES

    python = {name: speaking(each) for module in (functional, functional_nets, several_forms) for name, each in vars(module).items()
              if isinstance(each, FunctionType) and each.__module__ == module.__name__ and not name.startswith(HELPERS)}
    choices = {name: choosing(python[name], python[with_indices], position) for name, (position, with_indices) in INDICES.items()}
    pools = {**python, **choices, "adaptive_avg_pool3d": lambda input, output_size: do("adaptive_avg_pool3d", input, output_size)}
    sized = {name: with_input_sizes(pools[name], rank) for rank in (2, 3) for name in
             (f"adaptive_avg_pool{rank}d", f"adaptive_max_pool{rank}d", f"adaptive_max_pool{rank}d_with_indices")}
    return python | choices | sized | {"triplet_margin_with_distance_loss": triplet_margin_with_distance_loss}


def with_input_sizes(pool: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """An adaptive pool in whose sizes None stands for the input's, which TorchScript does not take."""
    @wraps(pool)
    def pooled(input: Any, output_size: Any, *args: Any, **named: Any) -> Any:
        if isinstance(output_size, list | tuple) and len(output_size) == rank <= getattr(input, "ndim", 0):
            output_size = [own if size is None else size for size, own in zip(output_size, input.shape[-rank:])]
        return pool(input, output_size, *args, **named)
    return pooled


def speaking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `irtool.ops.composed`, which takes arrays, too, and whose exceptions become RunError: those of `raise` statements,
    which are Python's as TorchScript has them, and those for operands that are no tensors."""
    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        try:
            return function(*map(of_array, args), **{name: of_array(each) for name, each in named.items()})
        except Error:
            raise
        except (ValueError, RuntimeError, AssertionError, NotImplementedError, AttributeError, TypeError) as error:
            last = error.__traceback__
            while last is not None and last.tb_next is not None:
                last = last.tb_next
            if last is None or not str(last.tb_frame.f_globals.get("__name__")).startswith(COMPOSED):
                raise
            is_of_operands = isinstance(error, AttributeError | TypeError)
            raise RunError(f"{function.__name__}: {error}" if is_of_operands else str(error)) from error
    return checked


def of_array(value: Any) -> Any:
    """A tensor of an array; any other value unchanged."""
    return Tensor(value) if isinstance(value, np.ndarray) else value


def choosing(alone: Callable[..., Any], with_indices: Callable[..., Any], position: int) -> Callable[..., Any]:
    """A function with the argument `return_indices`, at a position, which chooses between two functions."""
    @wraps(alone)
    def chosen(*args: Any, **named: Any) -> Any:
        asked = args[position] if len(args) > position else named.get("return_indices", False)
        return (with_indices if asked else alone)(*args, **named)
    return chosen
