"""Transformations of functions: grad, vjp and vmap. Signatures are torch.func's.

    irtool.grad(f, argnums=0)(x)            irtool.vmap(f, in_dims=0, out_dims=0)(xs)
    vjp(f, *primals) -> (outputs, function of cotangents)

Transformed functions take NumPy arrays or tensors; the function itself sees `irtool.Tensor`s. Results are tensors, which np.asarray
converts to arrays. Graphs, modules of one graph and executors are functions too (`irtool.dispatch.callables`). Arguments and results may
be lists, tuples and dicts; arguments by name are passed on unchanged. Each call pushes new layers, so transformations nest in any order.
Tangents are in `irtool.dispatch.tangents`, Jacobians in `irtool.dispatch.jacobians`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from irtool.dispatch.autograd import Autograd
from irtool.dispatch.backend import BACKEND
from irtool.dispatch.batched import RANDOMNESS, Batched
from irtool.dispatch.callables import as_function, may_vary
from irtool.dispatch.closure_conversion import Lifted
from irtool.dispatch.custom_functions import gradient_per_argument
from irtool.dispatch.gradients_off import mode_kept
from irtool.dispatch.lent_arguments import Lent
from irtool.dispatch.stack import current, is_floating, pushed
from irtool.dispatch.traced_numbers import Number
from irtool.dispatch.trees import aligned, flatten, spread, unflatten
from irtool.ir.arguments import called, check_choice, check_flag, check_function, is_whole, with_article
from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of, generator
from irtool.ops.tensor import Tensor
from irtool.ops.tensor_facts import DTYPES

Function = Callable[..., Any]


def as_tensor(value: Any) -> Any:
    """An array as a tensor; any other value unchanged."""
    if type(value) is Number and isinstance(value.value, np.generic):
        return value.tensor()
    return Tensor(value) if isinstance(value, np.ndarray | np.generic) else value


def becomes_tensor(value: Any) -> bool:
    """Is a value one that `as_tensor` makes a tensor of?"""
    return isinstance(value, np.ndarray | np.generic) or type(value) is Number and isinstance(value.value, np.generic)


def as_variable(value: Any) -> Any:
    """An array, float or complex number as a tensor; any other value unchanged."""
    if type(value) is Number and isinstance(value.value, float):
        return value.tensor(None if isinstance(value.value, np.generic) else "float32")
    if isinstance(value, float | complex) and not isinstance(value, np.generic):
        return Tensor(np.asarray(value, np.float32 if isinstance(value, float) else np.complex64))
    return as_tensor(value)


def tensors(tree: Any, convert: Callable[[Any], Any] = as_tensor) -> Any:
    """A tree with its leaves converted, by default arrays to tensors."""
    leaves, shape = flatten(tree)
    return unflatten(shape, [convert(leaf) for leaf in leaves])


def do(kind: str, *args: Any, **named: Any) -> Any:
    """Run an operation on the layer on top."""
    return current().call(kind, args, named)


def refuse_whole(where: str, place: int, leaves: Sequence[Any]) -> None:
    """Raises RunError for the argument at a place, a tree of these tensors, none of which is of floating point numbers."""
    if leaves and not any(map(is_floating, leaves)):
        raise RunError(f"{where}: only tensors of floating point numbers have gradients, argument {place} is "
                       f"{dtype_of(leaves[0].dtype).name}")


def chosen_places(argnums: Any, count: int, what: str = "argnums") -> list[int]:
    """The positions of the arguments that `argnums`, an int or a tuple of ints, names. Raises RunError for a missing or repeated one."""
    wanted = argnums if isinstance(argnums, tuple) else (argnums,)
    if not wanted:
        raise RunError("argnums must be non-empty")
    for place in wanted:
        if not isinstance(place, int) or isinstance(place, bool):
            raise RunError(f"argnums must be an int or a tuple of ints, got {argnums!r}")
        if not -count <= place < count:
            raise RunError(f"{what} names argument {place}, the function is called with {count}")
    places = [place % count for place in wanted]
    if len(set(places)) < len(places):
        raise RunError(f"argnums elements must be unique, got {argnums}")
    return places


def check_chunk_size(where: str, chunk_size: Any) -> None:
    """Raises RunError for a value that is neither None nor a positive int."""
    if chunk_size is not None and not (is_whole(chunk_size) and chunk_size > 0):
        raise RunError(f"{where}: chunk_size should be None or greater than 0. (got {chunk_size!r})")


def described(value: Any) -> str:
    """A description of a value for messages: tensors by their shape."""
    return f"a tensor of shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__


def keys_of(shape: Any) -> str:
    """The keys of a dict, for messages."""
    return f", with the keys {', '.join(map(repr, shape))}" if isinstance(shape, dict) else ""


def with_aux(result: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    """(output, aux) of a function's result; aux is None without has_aux. Raises RunError if has_aux is set and the result is no pair."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RunError(f"{what}: with has_aux the function must give a tuple (output, aux), it gave {described(result)}"
                       f"{f' of {len(result)}' if isinstance(result, tuple) else ''}")
    return result


# -- gradients
class Recorded:
    """One run of a function under a new tape: its result, and the tape's variables for its arguments."""

    def __init__(self, function: Function, args: Sequence[Any], which: Sequence[int], named: dict[str, Any] | None = None,
                 where: str = "grad") -> None:
        self.layer = Autograd(current())
        self.lent = lent = Lent()

        def taken(value: Any) -> Any:
            return lent.lend(as_tensor(value))
        operands = [tensors(arg, as_variable if place in which else taken) for place, arg in enumerate(args)]
        self.variables = []
        for place in which:
            leaves, shape = flatten(operands[place])
            if (other := next((each for each in leaves if not isinstance(each, Tensor)), leaves)) is not leaves:
                raise RunError(f"{where}: argument {place} has {with_article(type(other).__name__)} in it; expected tensors, floats and "
                               "complex numbers, or lists, tuples and dicts of these, in arguments that gradients are taken for")
            refuse_whole(where, place, leaves)
            boxed = [lent.lend_variable(leaf, self.layer.variable(leaf)) if is_floating(leaf) else lent.lend(leaf) for leaf in leaves]
            self.variables.append((leaves, shape, [self.layer.snapshot(each) for each in boxed]))       # against writes
            operands[place] = unflatten(shape, boxed)
        with mode_kept(self.layer), pushed(self.layer):
            self.result = called(where, function, operands, tensors(named or {}, taken))
        lent.hand_back(self.layer)

    def gradients(self, outputs: Sequence[Any], seeds: Sequence[Any], unused: str) -> list[Any]:
        """Trees of gradients, one per argument in `which`. unused: "zeros" or "none", for tensors that the outputs do not depend on."""
        wanted = [each for _, _, boxed in self.variables for each in boxed]
        gradients = iter(self.layer.gradients(outputs, seeds, [each if self.layer.owns(each) else None for each in wanted]))
        trees = []
        for leaves, shape, _ in self.variables:
            grads = [next(gradients) for _ in leaves]
            if unused == "zeros":
                grads = [do("aten::zeros_like", leaf) if grad is None and is_floating(leaf) else grad
                         for grad, leaf in zip(grads, leaves, strict=True)]
            trees.append(unflatten(shape, grads))
        return trees

    def opened(self, value: Any) -> Any:
        """A result with the tape's boxes opened; an argument is the caller's tensor."""
        leaves, shape = flatten(value)
        return unflatten(shape, [self.lent.returned(self.layer, as_tensor(leaf)) for leaf in leaves])

    def close(self) -> None:
        """End the run: later uses of the tape's tensors are errors."""
        self.layer.is_alive = False
        self.layer.tape.clear()


def value_and_grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, unused: str = "zeros") -> Function:
    """A function that returns (value, gradient): the order is the reverse of torch.func.grad_and_value.

    func must return a scalar tensor; with has_aux (scalar, aux), and the value is then (scalar, aux). argnums: the arguments to
    differentiate for; a tuple gives a tuple of gradients, each in the argument's tree, shapes and dtypes. unused: gradients of arguments
    that the result does not depend on are "zeros", as in torch.func, or None ("none"). Raises RunError.
    """
    func = as_function("grad", func)
    check_choice("grad", "unused", unused, ("zeros", "none"))
    check_flag("grad", "has_aux", has_aux)

    @wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        recorded = Recorded(func, args, chosen_places(argnums, len(args)), named)
        result, aux = with_aux(recorded.result, has_aux, "grad")
        if not isinstance(result, Tensor):
            raise RunError(f"the function whose gradient is taken must give a tensor, it gave {described(result)}")
        if result.ndim:
            raise RunError(f"the function whose gradient is taken must give a scalar tensor, it gave one of shape {result.shape}")
        if dtype_of(result.dtype).kind == "c":
            raise RunError(f"grad can be implicitly created only for real scalar outputs but got {DTYPES[result.dtype]}")
        opened = recorded.opened(result)
        grads = recorded.gradients([result], [do("aten::ones_like", opened)], unused)
        value = (opened, recorded.opened(aux)) if has_aux else opened
        recorded.close()
        return value, tuple(grads) if isinstance(argnums, tuple) else grads[0]
    return transformed


def grad_and_value(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """A function that returns (gradient, value), as torch.func.grad_and_value; with has_aux (gradient, (value, aux))."""
    inner = value_and_grad(func, argnums, has_aux)

    @wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        return inner(*args, **named)[::-1]
    return transformed


def grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, unused: str = "zeros") -> Function:
    """A function that returns the gradient of a scalar function; with has_aux (gradient, aux). As torch.func.grad; see value_and_grad."""
    inner = value_and_grad(func, argnums, has_aux, unused)

    @wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        value, gradient = inner(*args, **named)
        return (gradient, value[1]) if has_aux else gradient
    return transformed


def vjp(func: Function, *primals: Any, has_aux: bool = False, unused: str = "zeros") -> Any:
    """(outputs, function of cotangents), with has_aux (outputs, function, aux): as torch.func.vjp.

    The function takes cotangents in the tree of the outputs, and returns a tuple with a gradient per primal, in its shape and dtype; None
    for a number or index among the inputs of a graph. Raises RunError.
    """
    func = as_function("vjp", func)
    pulled = pulled_back(func, primals, has_aux, unused)
    check_differentiable(pulled[0])
    return pulled if has_aux else pulled[:2]


def check_differentiable(outputs: Any) -> None:
    """Raises RunError for a tree of outputs with a tensor in it that has no gradient."""
    for leaf in flatten(outputs)[0]:
        if not is_floating(leaf):
            raise RunError("vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                           f"{DTYPES[leaf.dtype]}")


def pulled_back(func: Function, primals: Sequence[Any], has_aux: bool = False, unused: str = "zeros", where: str = "vjp",
                places: Sequence[int] | None = None, named: dict[str, Any] | None = None) -> tuple[Any, Function, Any]:
    """As `vjp`, for a function whose results may also be integers, which have no gradient; the third result is None without has_aux.
    where: the name of the transformation, for messages. places: the primals that get gradients, by default all that may vary. named: the
    arguments by name."""
    if places is None:
        places = [place for place, primal in enumerate(primals) if may_vary(func, place, primal)]
    recorded = Recorded(func, primals, places, named, where)
    result, aux = with_aux(recorded.result, has_aux, where)
    leaves, shape = flatten(result)
    if not leaves:
        raise RunError(f"{where}(f, *primals): Expected f to be a function that has non-empty output (got output = [])")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RunError(f"{where}: the function must give tensors, it gave {type(leaf).__name__}")

    def back(cotangents: Any, *, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """torch's options have no effect: a tape is kept as long as this function, and a gradient can always be differentiated."""
        aligned_cotangents = aligned(tensors(cotangents), shape)
        if aligned_cotangents is None:
            count = len(flatten(cotangents)[0])
            raise RunError(f"expected {len(leaves)} cotangents, got {count}" if count != len(leaves) else
                           f"cotangents must form the same tree as the outputs{keys_of(shape)}")
        for each, leaf in zip(aligned_cotangents, leaves, strict=True):
            if not isinstance(each, Tensor | int | float | complex | None):
                raise RunError(f"a cotangent is {described(each)}, its output a tensor of shape {leaf.shape}")
            if isinstance(each, Tensor) and each.shape != leaf.shape:
                raise RunError(f"a cotangent has shape {each.shape}, its output {leaf.shape}")
        by_place = dict(zip(places, recorded.gradients(leaves, aligned_cotangents, unused), strict=True))
        return tuple([by_place.get(place) for place in range(len(primals))])

    return recorded.opened(result), back, recorded.opened(aux) if has_aux else None


def custom_vjp(forward: Function, backward: Function) -> Function:
    """A function with a user's gradient, which all transformations use.

    forward(*args) returns (output, saved); backward(gradient, saved) returns a list with a gradient, or None, per argument. Saved arguments
    and outputs can be differentiated again. Tensors of surrounding functions that the two read get no gradient. A trace records both
    functions (`irtool.ir.custom`).
    """
    check_function("custom_vjp: forward", forward)
    check_function("custom_vjp: backward", backward)

    pair = with_gradient(forward, backward)

    @wraps(forward)
    def transformed(*args: Any) -> Any:
        layer, values = current(), [tensors(arg) for arg in args]
        lifted = Lifted([forward, backward] if layer is not BACKEND else [])
        if not lifted.tensors:
            return layer.custom_vjp(*pair, values)[0]
        count = len(values)

        @wraps(forward)
        def ahead(*args: Any) -> tuple[Any, Any]:
            output, saved = with_gradient(lifted.function(0, args[count:]), backward)[0](*args[:count])
            return output, (saved, list(args[count:]))

        @wraps(backward)
        def back(gradient: Any, saved: Any) -> Any:
            gradients = with_gradient(forward, lifted.function(1, saved[1]))[1](gradient, saved[0])
            return [*gradient_per_argument(gradients, count), *[None] * len(saved[1])]
        return layer.custom_vjp(ahead, back, [*values, *lifted.tensors])[0]
    return transformed


def with_gradient(forward: Function, backward: Function) -> tuple[Function, Function]:
    """The two functions as layers call them. They raise RunError for a result of another form."""
    @wraps(forward)
    def ahead(*args: Any) -> tuple[Any, Any]:
        pair = called("custom_vjp", forward, args)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise RunError(f"custom_vjp: forward must give a tuple (output, saved), it gave {described(pair)}")
        return pair

    @wraps(backward)
    def back(gradient: Any, saved: Any) -> Any:
        return tensors(called("custom_vjp: backward", backward, (gradient, saved)))
    return ahead, back


# -- batches
def vmap(func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Function:
    """The function run for every place of a dimension at once: as torch.func.vmap.

    in_dims: the dimension to hide of each argument, None for an argument that is the same for all places; an int for all arguments, or one
    per argument (trees as the arguments). out_dims: the position of the dimension in each result; None for a result without it.
    randomness: "error", "same" or "different" random numbers for the places. chunk_size: the number of places run at one time.
    Raises RunError for extents that differ, no argument to batch, or a result that is no tensor and has a position.
    """
    func = as_function("vmap", func)
    if isinstance(in_dims, list):
        raise RunError("vmap: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
                       f"{type(in_dims)}.")
    check_chunk_size("vmap", chunk_size)
    check_choice("vmap", "randomness", randomness, RANDOMNESS)

    @wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        if not args:
            raise RunError("vmap: the function is called without arguments, there is nothing to batch")
        leaves, shape = flatten([tensors(arg) for arg in args])
        dims = spread(list(in_dims) if isinstance(in_dims, tuple) else in_dims, list(args), "in_dims")
        length = extent_of(leaves, dims)

        def once(args_of_chunk: list[Any], size: int) -> tuple[list[Any], list[Any], Any]:
            """The results of one chunk, the position of the dimension in each, and their tree."""
            layer, lent = Batched(current(), size, randomness=randomness), Lent()

            def taken(value: Any) -> Any:
                return lent.lend_as_it_is(as_tensor(value))
            boxed = [lent.lend_as_it_is(leaf) if dim is None else lent.lend(leaf, layer.box(leaf, dim), dim)
                     for leaf, dim in zip(args_of_chunk, dims, strict=True)]
            with pushed(layer):
                result = called("vmap", func, unflatten(shape, boxed), tensors(named, taken))
            lent.hand_back(layer)
            results, out_shape = flatten(result)
            wanted = tuple(out_dims) if isinstance(out_dims, list) else out_dims
            if isinstance(wanted, tuple) and len(wanted) == 1 and not isinstance(result, list | tuple | dict):
                wanted = wanted[0]
            places = spread(wanted, result, "out_dims")
            opened = [unhidden(layer, lent.tied(layer, leaf), dim) for leaf, dim in zip(results, places, strict=True)]
            layer.is_alive = False
            return opened, places, out_shape

        if chunk_size is None or chunk_size >= length or randomness == "same" and current().unrolls:
            # in a graph, chunks could not draw the same numbers again; all places at once draw them once
            results, _, out_shape = once(leaves, length)
            return unflatten(out_shape, results)
        return in_chunks(once, leaves, dims, length, chunk_size, randomness)
    return transformed


def in_chunks(once: Callable[[list[Any], int], tuple[list[Any], list[Any], Any]], leaves: Sequence[Any], dims: Sequence[int | None],
              length: int, chunk_size: int, randomness: str) -> Any:
    """Run `chunk_size` places at a time, and concatenate the results. Random numbers that are the `same` are so for all chunks."""
    outcomes = []
    random = generator()
    state = random.bit_generator.state
    for start in range(0, length, chunk_size):
        size = min(chunk_size, length - start)
        chunk = [leaf if dim is None else do("aten::narrow", leaf, dim, start, size) for leaf, dim in zip(leaves, dims, strict=True)]
        if randomness == "same":
            random.bit_generator.state = state
        outcomes.append(once(chunk, size))
    first, places, shape = outcomes[0]
    chunks = zip(*[results for results, _, _ in outcomes], strict=True)
    return unflatten(shape, [one if place is None else do("aten::cat", list(pieces), place)
                             for one, place, pieces in zip(first, places, chunks, strict=True)])


def extent_of(leaves: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The extent of the dimensions to hide. Raises RunError if they differ, or if there is none."""
    extent: int | None = None
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            raise RunError(f"vmap: in_dims names dimension {dim} of an argument that is no tensor, but {described(leaf)}")
        sizes = leaf.shape
        if not -len(sizes) <= dim < len(sizes):
            raise RunError(f"vmap: in_dims names dimension {dim} of a tensor of shape {sizes}")
        if extent is not None and sizes[dim] != extent:
            raise RunError(f"vmap: the dimensions to hide have extents {extent} and {sizes[dim]}")
        extent = sizes[dim]
    if extent is None:
        raise RunError("vmap: in_dims says None for every argument, there is nothing to batch")
    return extent


def unhidden(layer: Batched, value: Any, dim: Any) -> Any:
    """A result as the layer below sees it, with the hidden dimension at `dim`. Raises RunError for a result that is no tensor, unless
    `dim` is None: that is the same for all places."""
    if not isinstance(value, Tensor):
        if dim is None:
            return value
        raise RunError(f"vmap: the function must give tensors, it gave {type(value).__name__}; say None in out_dims for what is no tensor")
    if dim is None:
        if layer.owns(value):
            raise RunError("vmap: out_dims says None for a result that is batched")
        return value
    whole = layer.whole(value)
    place = dim % whole.ndim if -whole.ndim <= dim < whole.ndim else None
    if place is None:
        raise RunError(f"vmap: out_dims names dimension {dim} of a result of shape {whole.shape}")
    return whole if place == 0 else layer.below.call("aten::movedim", (whole, 0, place), {})


__all__ = ["custom_vjp", "grad", "grad_and_value", "value_and_grad", "vjp", "vmap"]
