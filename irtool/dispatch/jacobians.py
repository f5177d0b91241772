"""Jacobians and Hessians: rows by reverse, columns by forward differentiation, all at once or in chunks. Signatures are torch.func's."""
from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

from irtool.dispatch.batched import RANDOMNESS
from irtool.dispatch.callables import as_function
from irtool.dispatch.stack import is_floating
from irtool.dispatch.tangents import Linearized
from irtool.dispatch.transforms import (
    Function,
    as_variable,
    check_chunk_size,
    chosen_places,
    do,
    tensors,
    vjp,
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
        of_some, chosen = restricted(func, args, named, argnums, "jacrev")
        refuse_complex("jacrev", "inputs", flatten(tuple(chosen))[0])
        for place, tree in zip(chosen_places(argnums, len(args)), chosen, strict=True):
            refuse_others("jacrev", "gradients", place, flatten(tree)[0])
        outputs, back, *aux = vjp(of_some, *chosen, has_aux=has_aux)
        leaves, shape = flatten(outputs)
        refuse_complex("jacrev", "outputs", leaves)
        rows = []
        for place, leaf in enumerate(leaves):
            def row(seed: Any, place: int = place) -> Any:
                return back(unflatten(shape, [seed if i == place else do("aten::zeros_like", each) for i, each in enumerate(leaves)]))

            jacobian, inner = flatten(vmap(row, chunk_size=chunk_size)(unit_rows(leaf)))
            whole = unflatten(inner, [do("aten::reshape", each, [*leaf.shape, *each.shape[1:]]) for each in jacobian])
            rows.append(whole if isinstance(argnums, tuple) else whole[0])
        jacobian_tree = unflatten(shape, rows)
        return (jacobian_tree, aux[0]) if has_aux else jacobian_tree
    return transformed


def jacfwd(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """The Jacobian, of shape outputs + inputs, column by column by forward differentiation: as torch.func.jacfwd. A tuple gives a tuple.

    has_aux: the function returns (output, aux), and the result is (Jacobian, aux). randomness: as for vmap. Raises RunError.
    """
    func = as_function("jacfwd", func)
    check_choice("jacfwd", "randomness", randomness, RANDOMNESS)

    @wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        of_some, chosen = restricted(func, args, named, argnums, "jacfwd")
        inputs, inner = flatten(tuple(chosen))
        refuse_complex("jacfwd", "inputs", inputs)
        parts: list[list[Any]] = []
        aux: Any = None
        shape: Any = None
        for place, tree in zip(chosen_places(argnums, len(args)), chosen, strict=True):
            refuse_others("jacfwd", "tangents", place, flatten(tree)[0])
        for place, leaf in enumerate(inputs):
            def column(tangent: Any, place: int = place) -> Any:
                nonlocal aux
                linear = Linearized(of_some, chosen, has_aux, where="jacfwd")
                aux = linear.aux
                return linear(unflatten(inner, [tangent if i == place else do("aten::zeros_like", each) for i, each in enumerate(inputs)]))

            leaves, shape = flatten(vmap(column, out_dims=-1, randomness=randomness)(unit_rows(leaf)))
            refuse_complex("jacfwd", "outputs", leaves)
            parts.append([do("aten::reshape", each, [*each.shape[:-1], *leaf.shape]) for each in leaves])
        columns = [unflatten(inner, list(each)) for each in zip(*parts, strict=True)]
        jacobian_tree = unflatten(shape, [each if isinstance(argnums, tuple) else each[0] for each in columns])
        return (jacobian_tree, aux) if has_aux else jacobian_tree
    return transformed


def restricted(func: Function, args: Sequence[Any], named: dict[str, Any], argnums: Any, what: str) -> tuple[Function, list[Any]]:
    """The function of the arguments `argnums`, with the others fixed, and these arguments. Raises RunError for a missing argument."""
    places = chosen_places(argnums, len(args), f"{what}: argnums")
    operands = [tensors(arg, as_variable) if place in places else tensors(arg) for place, arg in enumerate(args)]

    def of_some(*values: Any) -> Any:
        filled = list(operands)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        return func(*filled, **named)
    return of_some, [operands[place] for place in places]


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


def unit_rows(tensor: Any) -> Any:
    """For a tensor of n elements, n tensors of its shape, stacked: number i has a 1 at element i, and zeros elsewhere."""
    size = int(np.prod(tensor.shape, dtype=np.int64))
    rows = Tensor(np.eye(size, dtype=dtype_of(tensor.dtype)))
    rows.born = next_birth()        # nobody outside refers to it: a constant of traces
    return do("aten::reshape", rows, [size, *tensor.shape])


__all__ = ["hessian", "jacfwd", "jacrev"]
