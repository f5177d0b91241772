"""Transformations of functions: grad, vmap and what they make together. Signatures are torch.func's.

    irtool.grad(f, argnums=0)(x)            irtool.vmap(f, in_dims=0, out_dims=0)(xs)
    vjp(f, *primals) -> (outputs, function of cotangents)       jvp(f, primals, tangents) -> (outputs, tangents)
    jacrev(f), jacfwd(f), hessian(f)

Functions take NumPy arrays (or tensors) and see `irtool.Tensor`; results are tensors, and np.asarray makes arrays of them. Arguments and
results may be lists, tuples and dicts. Each call makes layers of its own, so transformations nest in any order.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from irtool.dispatch.autograd import Autograd
from irtool.dispatch.batched import Batched
from irtool.dispatch.stack import current, is_floating, pushed
from irtool.dispatch.trees import flatten, spread, unflatten
from irtool.ir.errors import RunError
from irtool.ops.arrays import dtype_of
from irtool.ops.tensor import Tensor

Function = Callable[..., Any]


def as_tensor(value: Any) -> Any:
    """Arrays and floats as tensors; tensors and everything else as they are."""
    if isinstance(value, np.ndarray | np.generic):
        return Tensor(value)
    if isinstance(value, float | complex):
        return Tensor(np.asarray(value, np.float32 if isinstance(value, float) else np.complex64))
    return value


def tensors(tree: Any) -> Any:
    """The same tree with tensors for arrays."""
    leaves, shape = flatten(tree)
    return unflatten(shape, [as_tensor(leaf) for leaf in leaves])


# -- gradients
class Recorded:
    """A function that ran under a tape of its own: its result, and what its gradient is asked with."""

    def __init__(self, function: Function, args: Sequence[Any], which: Sequence[int]) -> None:
        self.layer = Autograd(current())
        given = [tensors(arg) for arg in args]
        for place in which:
            if not -len(given) <= place < len(given):
                raise RunError(f"argnums names argument {place}, the function is called with {len(given)}")
        self.variables = []
        for place in which:
            leaves, shape = flatten(given[place])
            boxed = [self.layer.variable(leaf) if is_floating(leaf) else leaf for leaf in leaves]
            self.variables.append((leaves, shape, boxed))
            given[place] = unflatten(shape, boxed)
        with pushed(self.layer):
            self.result = function(*given)

    def gradients(self, outputs: Sequence[Any], seeds: Sequence[Any], unused: str) -> list[Any]:
        """Trees of gradients, one per argument asked for. unused: "zeros" or "none" for what the outputs do not depend on."""
        wanted = [each for _, _, boxed in self.variables for each in boxed]
        found = iter(self.layer.gradients(outputs, seeds, [each if self.layer.owns(each) else None for each in wanted]))
        trees = []
        for leaves, shape, _ in self.variables:
            grads = [next(found) for _ in leaves]
            if unused == "zeros":
                grads = [do("aten::zeros_like", leaf) if grad is None and is_floating(leaf) else grad
                         for grad, leaf in zip(grads, leaves, strict=True)]
            trees.append(unflatten(shape, grads))
        return trees

    def opened(self, value: Any) -> Any:
        """A result without the tape's boxes."""
        leaves, shape = flatten(value)
        return unflatten(shape, [self.layer.opened(as_tensor(leaf)) for leaf in leaves])

    def close(self) -> None:
        """From now on its tensors are of the past."""
        self.layer.is_alive = False
        self.layer.tape.clear()


def do(kind: str, *args: Any, **named: Any) -> Any:
    """An operation on the layer on top."""
    return current().call(kind, args, named)


def value_and_grad(function: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, unused: str = "zeros") -> Function:
    """A function that gives (gradient, value) as torch.func.grad_and_value does the other way round: (value, gradient).

    The function must give a scalar tensor (with has_aux: and something else, which is given beside the value). argnums: which arguments; a
    tuple gives a tuple. unused: "zeros" (as torch.func) or "none" for arguments the result does not depend on. Raises RunError.
    """
    @wraps(function)
    def transformed(*args: Any) -> Any:
        which = argnums if isinstance(argnums, tuple) else (argnums,)
        recorded = Recorded(function, args, which)
        result, aux = recorded.result if has_aux else (recorded.result, None)
        if not isinstance(result, Tensor):
            raise RunError(f"the function whose gradient is taken must give a tensor, it gave {type(result).__name__}")
        if result.ndim:
            raise RunError(f"the function whose gradient is taken must give a scalar tensor, it gave one of shape {result.shape}")
        if not is_floating(result):
            raise RunError("the function whose gradient is taken must give a floating point tensor")
        opened = recorded.opened(result)
        grads = recorded.gradients([result], [do("aten::ones_like", opened)], unused)
        value = (opened, recorded.opened(aux)) if has_aux else opened
        recorded.close()
        return value, tuple(grads) if isinstance(argnums, tuple) else grads[0]
    return transformed


def grad(function: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, unused: str = "zeros") -> Function:
    """A function that gives the gradient of a scalar function; with has_aux (gradient, aux). As torch.func.grad; see value_and_grad."""
    inner = value_and_grad(function, argnums, has_aux, unused)

    @wraps(function)
    def transformed(*args: Any) -> Any:
        value, found = inner(*args)
        return (found, value[1]) if has_aux else found
    return transformed


def vjp(function: Function, *primals: Any, has_aux: bool = False, unused: str = "zeros") -> Any:
    """(outputs, function of cotangents): as torch.func.vjp. The function gives one gradient per primal, a tuple of them for several."""
    recorded = Recorded(function, primals, range(len(primals)))
    result, aux = recorded.result if has_aux else (recorded.result, None)
    leaves, shape = flatten(result)

    def back(cotangents: Any) -> Any:
        given, other = flatten(tensors(cotangents))
        if len(given) != len(leaves):
            raise RunError(f"expected {len(leaves)} cotangents, got {len(given)}")
        for each, leaf in zip(given, leaves, strict=True):
            if isinstance(each, Tensor) and isinstance(leaf, Tensor) and each.shape != leaf.shape:
                raise RunError(f"a cotangent has shape {each.shape}, its output {leaf.shape}")
        found = recorded.gradients(leaves, given, unused)
        return found[0] if len(found) == 1 else tuple(found)

    opened = recorded.opened(result)
    return (opened, back, recorded.opened(aux)) if has_aux else (opened, back)


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """(outputs, their tangents): as torch.func.jvp, by differentiating the vjp with respect to its cotangent, in which it is linear."""
    if len(primals) != len(tangents):
        raise RunError(f"expected {len(primals)} tangents, got {len(tangents)}")
    outer = Autograd(current())
    with pushed(outer):
        outputs, back = vjp(function, *primals, unused="none")
        leaves, shape = flatten(outputs)
        dual = [outer.variable(do("aten::zeros_like", leaf)) for leaf in leaves]
        found = back(unflatten(shape, dual))
    pulled, _ = flatten(found if len(primals) > 1 else (found,))
    seeds, _ = flatten(tensors(list(tangents)))
    pairs = [(one, seed) for one, seed in zip(pulled, seeds, strict=True) if one is not None]
    rows = outer.gradients([one for one, _ in pairs], [seed for _, seed in pairs], dual)
    outputs = unflatten(shape, [outer.opened(leaf) for leaf in leaves])
    moved = [do("aten::zeros_like", outer.opened(leaf)) if row is None else row for row, leaf in zip(rows, leaves, strict=True)]
    outer.is_alive = False
    return outputs, unflatten(shape, moved)


def custom_vjp(forward: Function, backward: Function) -> Function:
    """A function with a gradient of one's own, under every transformation.

    forward(*args) gives (output, saved); backward(gradient, saved) one gradient per argument (None where there is none), a list of them.
    What is saved of arguments and output can be differentiated again.
    """
    @wraps(forward)
    def transformed(*args: Any) -> Any:
        return current().custom_vjp(forward, backward, [tensors(arg) for arg in args])[0]
    return transformed


# -- batches
def vmap(function: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error") -> Function:
    """The function done for every place of a dimension at once: as torch.func.vmap.

    in_dims: which dimension of each argument is hidden, None for none: an int for all, or one per argument (trees as the arguments).
    out_dims: where the dimension goes in each result. randomness: "error", "same" or "different". Raises RunError for extents that
    differ, no argument to batch, or a result that is no tensor.
    """
    @wraps(function)
    def transformed(*args: Any) -> Any:
        if not args:
            raise RunError("vmap: the function is called without arguments, there is nothing to batch")
        leaves, shape = flatten([tensors(arg) for arg in args])
        dims = spread(in_dims if isinstance(in_dims, int | None) else list(in_dims), list(args), "in_dims")
        length = extent_of(leaves, dims)
        layer = Batched(current(), length, randomness=randomness)
        boxed = [leaf if dim is None else layer.box(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]
        with pushed(layer):
            result = function(*unflatten(shape, boxed))
        found, out_shape = flatten(result)
        places = spread(out_dims if not isinstance(out_dims, list) else tuple(out_dims), result, "out_dims")
        opened = [unhidden(layer, leaf, dim) for leaf, dim in zip(found, places, strict=True)]
        layer.is_alive = False
        return unflatten(out_shape, opened)
    return transformed


def extent_of(leaves: Sequence[Any], dims: Sequence[int | None]) -> int:
    """The extent of the dimensions to hide. Raises RunError when they differ, or when there is none."""
    found: int | None = None
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            raise RunError(f"vmap: in_dims names dimension {dim} of an argument that is no tensor, but {type(leaf).__name__}")
        sizes = leaf.shape
        if not -len(sizes) <= dim < len(sizes):
            raise RunError(f"vmap: in_dims names dimension {dim} of a tensor of shape {sizes}")
        if found is not None and sizes[dim] != found:
            raise RunError(f"vmap: the dimensions to hide have extents {found} and {sizes[dim]}")
        found = sizes[dim]
    if found is None:
        raise RunError("vmap: in_dims says None for every argument, there is nothing to batch")
    return found


def unhidden(layer: Batched, value: Any, dim: Any) -> Any:
    """A result as the layer below sees it, with the hidden dimension at `dim`. Raises RunError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise RunError(f"vmap: the function must give tensors, it gave {type(value).__name__}")
    if dim is None:
        if layer.owns(value):
            raise RunError("vmap: out_dims says None for a result that is batched")
        return value
    whole = layer.whole(value)
    place = dim % whole.ndim if -whole.ndim <= dim < whole.ndim else None
    if place is None:
        raise RunError(f"vmap: out_dims names dimension {dim} of a result of shape {whole.shape}")
    return whole if place == 0 else layer.below.call("aten::movedim", (whole, 0, place), {})


# -- Jacobians
def jacrev(function: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """The Jacobian, of shape outputs + inputs, row by row by reverse differentiation: as torch.func.jacrev. A tuple gives a tuple."""
    @wraps(function)
    def transformed(*args: Any) -> Any:
        of_some, chosen = restricted(function, args, argnums, "jacrev")
        outputs, back = vjp(of_some, *chosen)
        leaves, shape = flatten(outputs)
        rows = []
        for place, leaf in enumerate(leaves):
            size = int(np.prod(leaf.shape, dtype=np.int64))
            basis = unit_rows(leaf, size)

            def row(seed: Any, place: int = place) -> Any:
                found = back(unflatten(shape, [seed if i == place else do("aten::zeros_like", each) for i, each in enumerate(leaves)]))
                return found if isinstance(argnums, int) or len(chosen) > 1 else (found,)

            jacobian, inner = flatten(vmap(row)(basis))
            rows.append(unflatten(inner, [do("aten::reshape", each, [*leaf.shape, *each.shape[1:]]) for each in jacobian]))
        return unflatten(shape, rows)
    return transformed


def jacfwd(function: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """The Jacobian, of shape outputs + inputs, column by column by forward differentiation: as torch.func.jacfwd. A tuple gives a tuple."""
    @wraps(function)
    def transformed(*args: Any) -> Any:
        of_some, chosen = restricted(function, args, argnums, "jacfwd")
        found = []
        for place, given in enumerate(chosen):
            if not isinstance(given, Tensor):
                raise RunError("jacfwd: each argument must be one tensor")

            def of_one(value: Any, place: int = place) -> Any:
                return of_some(*chosen[:place], value, *chosen[place + 1:])

            def column(tangent: Any, given: Any = given, of_one: Function = of_one) -> Any:
                return jvp(of_one, (given,), (tangent,))[1]

            size = int(np.prod(given.shape, dtype=np.int64))
            leaves, shape = flatten(vmap(column, out_dims=-1)(unit_rows(given, size)))
            found.append([do("aten::reshape", each, [*each.shape[:-1], *given.shape]) for each in leaves])
        if isinstance(argnums, int):
            return unflatten(shape, found[0])
        return unflatten(shape, [tuple(each) for each in zip(*found, strict=True)])
    return transformed


def restricted(function: Function, args: Sequence[Any], argnums: int | tuple[int, ...], what: str) -> tuple[Function, list[Any]]:
    """A function of some of its arguments, the others fixed, and those arguments. Raises RunError for one that is not there."""
    given = [tensors(arg) for arg in args]
    wanted = (argnums,) if isinstance(argnums, int) else argnums
    for place in wanted:
        if not -len(given) <= place < len(given):
            raise RunError(f"{what}: argnums names argument {place}, the function is called with {len(given)}")
    places = [place % len(given) for place in wanted]

    def of_some(*values: Any) -> Any:
        filled = list(given)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        return function(*filled)
    return of_some, [given[place] for place in places]


def hessian(function: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """Second derivatives, outputs + inputs + inputs: forward over reverse, as torch.func.hessian. A tuple gives tuples in a tuple."""
    return jacfwd(jacrev(function, argnums), argnums)


def unit_rows(tensor: Any, size: int) -> Any:
    """One tensor of its shape per element, with a one there and zeros elsewhere."""
    eye = Tensor(np.eye(size, dtype=dtype_of(tensor.dtype)))
    return do("aten::reshape", eye, [size, *tensor.shape])


__all__ = ["custom_vjp", "grad", "hessian", "jacfwd", "jacrev", "jvp", "value_and_grad", "vjp", "vmap"]
