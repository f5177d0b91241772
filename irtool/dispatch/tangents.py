"""Tangents of functions: jvp and linearize, by a tape that is walked back twice. Signatures are torch.func's.

    jvp(f, primals, tangents) -> (outputs, tangents)        linearize(f, *primals) -> (outputs, function of tangents)
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.dispatch.autograd import Autograd
from irtool.dispatch.callables import as_function
from irtool.dispatch.lent_arguments import Lent
from irtool.dispatch.stack import current, is_floating, pushed
from irtool.dispatch.transforms import Function, as_tensor, as_variable, described, do, pulled_back, tensors
from irtool.dispatch.trees import aligned, flatten, unflatten
from irtool.ir.errors import RunError
from irtool.ops.arrays import dtype_of
from irtool.ops.tensor import Tensor
from irtool.ops.tensor_facts import DTYPES


class Linearized:
    """A function at a point, and its tangents. Its vjp is linear in the cotangent: differentiating the vjp with respect to the cotangent
    gives the jvp. places: the primals that have tangents, by default all; named: the arguments by name."""

    def __init__(self, func: Function, primals: Sequence[Any], has_aux: bool = False, strict: bool = False, where: str = "jvp",
                 places: Sequence[int] | None = None, named: dict[str, Any] | None = None) -> None:
        self.where = where
        self.outer = outer = Autograd(current(), is_for_tangents=True)
        lent = Lent()

        def taken(value: Any) -> Any:
            return lent.lend(as_tensor(value))
        with pushed(outer):
            operands = [primal if places is None or place in places else tensors(primal, taken) for place, primal in enumerate(primals)]
            outputs, back, aux = pulled_back(func, operands, has_aux, "none", where, places, tensors(named or {}, taken))
            leaves, self.shape = flatten(outputs)
            self.dual = [outer.variable(do("aten::ones_like", leaf)) for leaf in leaves]      # not zeros: a formula may test for those
            pulled = back(unflatten(self.shape, self.dual))
        lent.hand_back(outer)
        chosen = range(len(primals)) if places is None else places
        self.pulled, self.wanted = flatten(tuple([pulled[place] for place in chosen]))
        self.points = flatten([tensors(primals[place], as_variable) for place in chosen])[0]
        self.leaves = [lent.returned(outer, leaf) for leaf in leaves]
        self.outputs = unflatten(self.shape, self.leaves)
        aux_leaves, aux_shape = flatten(aux)        # None without has_aux
        self.aux = unflatten(aux_shape, [lent.returned(outer, each) for each in aux_leaves])
        if strict and all(each is None for each in self.pulled):
            raise RunError("jvp: the output of the function is independent of the inputs. This is not allowed with strict=True")

    def __call__(self, tangents: Sequence[Any]) -> Any:
        """The tangents of the outputs, for tangents in the trees of the primals. Raises RunError if they do not fit."""
        seeds = aligned(tuple(tensors(each, as_variable) for each in tangents), self.wanted)
        if seeds is None:
            raise RunError(f"expected {len(self.wanted)} tangents, got {len(tangents)}" if len(tangents) != len(self.wanted) else
                           "tangents must form the same tree as the primals")
        for seed, point in zip(seeds, self.points, strict=True):
            if isinstance(point, Tensor) and not isinstance(seed, Tensor | None):
                raise RunError(f"a tangent is {described(seed)}, its primal a tensor of shape {point.shape}")
            if isinstance(seed, Tensor) and isinstance(point, Tensor):
                self.check(seed, point)
        # torch computes the tangents in the wider dtype, so they are not converted on the way
        self.outer.keeps_dtypes = any(is_wider(*pair) for pair in zip(seeds, self.points, strict=True))
        pairs = [(one, seed) for one, seed in zip(self.pulled, seeds, strict=True) if one is not None]
        rows = self.outer.gradients([one for one, _ in pairs], [seed for _, seed in pairs], self.dual)
        return unflatten(self.shape, [do("aten::zeros_like", leaf) if row is None else row
                                      for row, leaf in zip(rows, self.leaves, strict=True)])

    def check(self, seed: Any, point: Any) -> None:
        """Raises RunError, in torch's words where torch raises, for a tangent that does not fit its primal."""
        if seed.shape != point.shape:
            raise RunError(f"a tangent has shape {seed.shape}, its primal {point.shape}")
        if not is_floating(point):
            return
        if self.where == "linearize" and seed.dtype != point.dtype:
            raise RunError(f"linearize: tangent with dtype {DTYPES[seed.dtype]} in flattened pytree doesn't match the dtype "
                           f"{DTYPES[point.dtype]} of the corresponding primal.")
        if not is_floating(seed):
            raise RunError(f"{self.where}: Expected tangent to be floating point or complex, but got: {DTYPES[seed.dtype]}")
        if dtype_of(seed.dtype).kind == "c" and dtype_of(point.dtype).kind != "c":
            raise RunError(f"{self.where}: a tangent is of {DTYPES[seed.dtype]}, its primal of {DTYPES[point.dtype]}, which is real")


def is_wider(seed: Any, point: Any) -> bool:
    """Has a tangent a dtype of more bits than its primal?"""
    return is_floating(seed) and is_floating(point) and dtype_of(seed.dtype).itemsize > dtype_of(point.dtype).itemsize


def jvp(func: Function, primals: Sequence[Any], tangents: Sequence[Any], *, strict: bool = False, has_aux: bool = False) -> Any:
    """(outputs, their tangents), with has_aux (outputs, tangents, aux): as torch.func.jvp.

    strict: raise RunError for an output that does not depend on the primals; else its tangents are zeros.
    """
    if isinstance(primals, list):
        raise RunError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    if not isinstance(primals, tuple) or not isinstance(tangents, list | tuple):
        raise RunError(f"jvp: expected a tuple of primals and one of tangents, got {type(primals).__name__} and {type(tangents).__name__}")
    if len(primals) != len(tangents) != len(flatten(primals)[0]):
        raise RunError(f"expected {len(primals)} tangents, got {len(tangents)}")
    func = as_function("jvp", func)
    linear = Linearized(func, primals, has_aux, strict)
    moved = linear(tangents)
    linear.outer.is_alive = False
    return (linear.outputs, moved, linear.aux) if has_aux else (linear.outputs, moved)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """(outputs, function of tangents): as torch.func.linearize. func runs once; the returned function may be called many times."""
    func = as_function("linearize", func)
    linear = Linearized(func, primals, where="linearize")
    return linear.outputs, lambda *tangents: linear(tangents)


__all__ = ["jvp", "linearize"]
