"""Jacobians and Hessians: rows by reverse, columns by forward differentiation, all at once or in chunks. Signatures are torch.func's."""
from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from itertools import pairwise
from typing import Any

from irtool.dispatch.batched import RANDOMNESS
from irtool.dispatch.callables import as_function
from irtool.dispatch.stack import is_floating
from irtool.dispatch.tangents import Linearized
from irtool.dispatch.transforms import (
    Function,
    as_variable,
    check_chunk_size,
    check_differentiable,
    chosen_places,
    do,
    pulled_back,
    tensors,
    vmap,
)
from irtool.dispatch.trees import flatten, unflatten
from irtool.ir.arguments import check_choice, with_article
from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_of
from irtool.ops.tensor import Tensor, next_birth


def jacrev(func: Function, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """The Jacobian, of shape outputs + inputs, row by row by reverse differentiation: as torch.func.jacrev. A tuple gives a tuple.

    has_aux: the function returns (output, aux), and the result is (Jacobian, aux). chunk_size: rows computed at one time. Raises RunError.
    """
    func = as_function("jacrev", func)
    check_chunk_size("jacrev", chunk_size)

    @wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        places, chosen = chosen_arguments(args, argnums, "jacrev", "gradients")
        outputs, back, aux = pulled_back(func, args, has_aux, places=places, named=named)
        check_differentiable(outputs)
        leaves, shape = flatten(outputs)
        refuse_complex("jacrev", "outputs", leaves)
        rows = []
        for place, leaf in enumerate(leaves):
            def row(seed: Any, place: int = place) -> Any:
                seeds = [seed if i == place else do("aten::zeros_like", each) for i, each in enumerate(leaves)]
                pulled = back(unflatten(shape, seeds))
                return tuple([pulled[each] for each in places])

            jacobian, inner = flatten(vmap(row, chunk_size=chunk_size)(unit_rows(leaf)))
            whole = unflatten(inner, [do("aten::reshape", each, [*leaf.shape, *each.shape[1:]]) for each in jacobian])
            rows.append(whole if isinstance(argnums, tuple) else whole[0])
        jacobian_tree = unflatten(shape, rows)
        return (jacobian_tree, aux) if has_aux else jacobian_tree
    return transformed


def jacfwd(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """The Jacobian, of shape outputs + inputs, column by column by forward differentiation: as torch.func.jacfwd. A tuple gives a tuple.

    has_aux: the function returns (output, aux), and the result is (Jacobian, aux). randomness: as for vmap. Raises RunError.
    """
    func = as_function("jacfwd", func)
    check_choice("jacfwd", "randomness", randomness, RANDOMNESS)

    @wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        places, chosen = chosen_arguments(args, argnums, "jacfwd", "tangents")
        inputs, inner = flatten(tuple(chosen))
        ends = np.cumsum([0, *[int(np.prod(leaf.shape, dtype=np.int64)) for leaf in inputs]]).tolist()
        aux: Any = None

        def column(*tangents: Any) -> Any:
            nonlocal aux
            linear = Linearized(func, args, has_aux, where="jacfwd", places=places, named=named)
            aux = linear.aux
            return linear(unflatten(inner, list(tangents)))

        rows = [unit_rows(leaf, start, ends[-1]) for leaf, start in zip(inputs, ends, strict=False)]
        leaves, shape = flatten(vmap(column, out_dims=-1, randomness=randomness)(*rows))
        refuse_complex("jacfwd", "outputs", leaves)
        columns = []
        for leaf in leaves:
            parts = [do("aten::narrow", leaf, -1, start, end - start) if len(inputs) > 1 else leaf for start, end in pairwise(ends)]
            columns.append(unflatten(inner, [do("aten::reshape", part, [*leaf.shape[:-1], *each.shape])
                                             for part, each in zip(parts, inputs, strict=True)]))
        jacobian_tree = unflatten(shape, [each if isinstance(argnums, tuple) else each[0] for each in columns])
        return (jacobian_tree, aux) if has_aux else jacobian_tree
    return transformed


def chosen_arguments(args: Sequence[Any], argnums: Any, where: str, what: str) -> tuple[list[int], list[Any]]:
    """The places of the arguments that `argnums` names, and these arguments as tensors. Raises RunError for a missing argument, and for one
    that has no `what`, gradients or tangents."""
    places = chosen_places(argnums, len(args), f"{where}: argnums")
    chosen = [tensors(args[place], as_variable) for place in places]
    refuse_complex(where, "inputs", flatten(tuple(chosen))[0])
    for place, tree in zip(places, chosen, strict=True):
        refuse_others(where, what, place, flatten(tree)[0])
    return places, chosen


def refuse_others(where: str, what: str, place: int, leaves: Sequence[Any]) -> None:
    """Raises RunError for an argument that has anything but tensors of floating point numbers in it: a Jacobian has no rows for it."""
    for leaf in leaves:
        if not is_floating(leaf):
            named = f"a tensor of {dtype_of(leaf.dtype).name}" if isinstance(leaf, Tensor) else with_article(type(leaf).__name__)
            raise RunError(f"{where}: only tensors of floating point numbers have {what}, argument {place} has {named} in it")


def refuse_complex(what: str, which: str, leaves: Sequence[Any]) -> None:
    """Raises RunError, in torch's words, for a complex tensor among the inputs or outputs: its Jacobian is no matrix of complex numbers."""
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor) and dtype_of(leaf.dtype).kind == "c":
            raise RunError(f"{what}: Expected all {which} to be real but received complex tensor at flattened input idx: {place}")


def hessian(func: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """Second derivatives, of shape outputs + inputs + inputs: forward over reverse, as torch.func.hessian. A tuple gives nested tuples."""
    func = as_function("hessian", func)
    return jacfwd(jacrev(func, argnums), argnums)


def unit_rows(tensor: Any, start: int = 0, count: int | None = None) -> Any:
    """`count` tensors of the shape of a tensor, stacked: number `start` + i has a 1 at element i; all else is zeros. By default one per
    element."""
    size = int(np.prod(tensor.shape, dtype=np.int64))
    count = size if count is None else count
    rows = Tensor(np.eye(count, size, -start, dtype=dtype_of(tensor.dtype)))
    rows.born = next_birth()        # nobody outside refers to it: a constant of traces
    return do("aten::reshape", rows, [count, *tensor.shape])


__all__ = ["hessian", "jacfwd", "jacrev"]
