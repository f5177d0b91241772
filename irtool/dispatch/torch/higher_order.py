"""Control flow by name: `torch.cond`, `while_loop`, `scan` and `map`, with torch's signatures, under every layer.

If the condition has a concrete value, Python branches or loops. If a layer hides it (a batch, a trace), the layers run the control flow
(`Layer.branch`, `Layer.repeat`): a batch computes both branches and selects, a trace records an If or a Loop. Functions may read tensors
of surrounding functions (`irtool.dispatch.closure_conversion`). As in torch, they must not write into their arguments.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.dispatch.autograd import Autograd
from irtool.dispatch.callables import as_function
from irtool.dispatch.closure_conversion import Lifted
from irtool.dispatch.control_flow import as_condition, is_undecided, truth
from irtool.dispatch.stack import Boxed, Layer, current
from irtool.dispatch.tracer import Tracer
from irtool.dispatch.transforms import tensors
from irtool.dispatch.trees import flatten, unflatten
from irtool.ir.arguments import check_flag
from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.tensor import Tensor, next_birth, torch

Function = Callable[..., Any]


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`, as torch.cond. pred: a bool, a number, or a tensor of one element.

    Both functions return tensors in the same tree, of the same shapes and dtypes. Raises RunError if they do not, and for a `pred` of
    several elements.
    """
    functions = [as_function("cond", true_fn), as_function("cond", false_fn)]
    arguments = operands_of("cond", "operands", operands)
    condition = one_condition("cond: pred", pred)
    if not is_undecided(condition):
        return functions[0 if bool(condition) else 1](*arguments)
    leaves, shape = flatten(list(arguments))
    lifted = Lifted(functions)
    shapes: dict[int, Any] = {}

    def as_branch(which: int) -> Function:
        def run(*values: Any) -> list[Any]:
            results, result_shape = flatten(lifted.function(which, values[len(leaves):])(*unflatten(shape, list(values[:len(leaves)]))))
            shapes[which] = result_shape
            same_tree("cond: true_fn and false_fn give", *shapes.values())
            return results
        return run
    results = current().branch(as_condition(condition, current().apply), as_branch(0), as_branch(1), [*leaves, *lifted.tensors])
    return unflatten(next(iter(shapes.values())), results)


def while_loop(cond_fn: Function, body_fn: Function, carried_inputs: Sequence[Any]) -> Any:
    """`carried = body_fn(*carried)` while `cond_fn(*carried)` holds, as torch.while_loop; returns the final carried values, in a tuple.

    carried_inputs: a tuple of tensors and ints, in lists and dicts too; body_fn returns a tuple of the same tree, shapes and dtypes. In a
    trace an int becomes a tensor of int64 without dimensions. Raises RunError for other trees, and a condition of several elements.
    """
    condition_of, body = as_function("while_loop", cond_fn), as_function("while_loop", body_fn)
    leaves, shape = flatten(operands_of("while_loop", "carried_inputs", carried_inputs))
    tracer = loop_writer(current())
    if tracer is not None:
        leaves = [traced(tracer, each) for each in leaves]
    while True:
        condition = one_condition("while_loop: cond_fn", condition_of(*unflatten(shape, leaves)))
        if is_undecided(condition):
            return unflatten(shape, undecided_rounds(condition, condition_of, body, leaves, shape))
        if not bool(condition):
            return unflatten(shape, leaves)
        leaves = carried_again(body(*unflatten(shape, leaves)), shape)


def undecided_rounds(condition: Any, condition_of: Function, body: Function, leaves: list[Any], shape: Any) -> list[Any]:
    """The final carried values of a loop whose condition is undecided."""
    lifted, count = Lifted([condition_of, body]), len(leaves)

    def round(*values: Any) -> list[Any]:
        around, apply = values[count:], current().apply
        carried = carried_again(lifted.function(1, around)(*unflatten(shape, list(values[:count]))), shape)
        after = one_condition("while_loop: cond_fn", lifted.function(0, around)(*unflatten(shape, carried)))
        return [as_condition(truth(after, apply), apply), *[as_before(new, old) for new, old in zip(carried, values, strict=False)]]
    args = [*leaves, *lifted.tensors]
    return current().repeat(None, as_condition(condition, current().apply), round, args, count)


def scan(combine_fn: Function, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """(final carry, all y stacked along a new first dimension) of `carry, y = combine_fn(carry, x)` for each slice x, as torch's scan.

    x: a slice of each tensor of `xs` (a tree) along `dim`. reverse: begin with the last slice; the order of the results stays that of the
    slices. Raises RunError for tensors of different extents along `dim`, for no tensors, and for a carry whose tree changes.
    """
    check_flag("scan", "reverse", reverse)
    combine = as_function("scan", combine_fn)
    leaves, shape = flatten(tensors(xs))
    count = extent("scan: xs", leaves, dim)
    start, carry_shape = flatten(tensors(init))

    def step(carry: list[Any], parts: list[Any]) -> tuple[list[Any], list[Any], Any]:
        results = combine(unflatten(carry_shape, carry), unflatten(shape, parts))
        if not isinstance(results, list | tuple) or len(results) != 2:
            raise RunError(f"scan: combine_fn gives {type(results).__name__}, expected a tuple of the next carry and the step's result")
        following, following_shape = flatten(results[0])
        same_tree("scan: init and the carry that combine_fn gives are", carry_shape, following_shape)
        ys, y_shape = flatten(results[1])
        return following, ys, y_shape
    carry, stacks, y_shape = in_steps(step, start, leaves, dim, range(count)[::-1] if reverse else range(count))
    return unflatten(carry_shape, carry), unflatten(y_shape, stacks)


def map_slices(f: Function, xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each slice x of the tensors of `xs` (a tree) along the first dimension, stacked: torch's map. Raises RunError."""
    function = as_function("map", f)
    leaves, shape = flatten(tensors(xs))
    count = extent("map: xs", leaves, 0)

    def step(carry: list[Any], parts: list[Any]) -> tuple[list[Any], list[Any], Any]:
        return [], *flatten(function(unflatten(shape, parts), *args))
    _, stacks, result_shape = in_steps(step, [], leaves, 0, range(count))
    return unflatten(result_shape, stacks)


def in_steps(step: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any], Any]], carry: list[Any], leaves: list[Any], dim: int,
             places: range) -> tuple[list[Any], list[Any], Any]:
    """The final carry, the results stacked in order of their places, and their tree. In a trace, steps after the first are a Loop."""
    def parts(place: int) -> list[Any]:
        return [leaf.select(dim, place) for leaf in leaves]
    carry, first, shape = step(carry, parts(places[0]))
    if loop_writer(current()) is not None and len(places) > 1:
        return *traced_steps(step, carry, first, leaves, dim, places), shape
    results = {places[0]: first}
    for place in places[1:]:
        carry, results[place], _ = step(carry, parts(place))
    return carry, [stacked([results[place][which] for place in sorted(results)]) for which in range(len(first))], shape


def traced_steps(step: Function, carry: list[Any], first: list[Any], leaves: list[Any], dim: int,
                 places: range) -> tuple[list[Any], list[Any]]:
    """The same from the second step on, as a loop that carries the place, and scatters results into tensors for all places."""
    count, carry_count = len(places), len(carry)
    stacks = [torch.select_scatter(torch.zeros([count, *each.shape], dtype=each.dtype), each, 0, places[0]) for each in first]

    def goes_on(place: Any, *rest: Any) -> Any:
        return place >= 0 if places.step < 0 else place < count

    def body(place: Any, *rest: Any) -> tuple[Any, ...]:
        index = place.reshape([1])
        following, results, _ = step(list(rest[:carry_count]), [leaf.index_select(dim, index).squeeze(dim) for leaf in leaves])
        return (place + places.step, *following,
                *[whole.index_copy(0, index, each.unsqueeze(0)) for whole, each in zip(rest[carry_count:], results, strict=True)])
    _, *rest = while_loop(goes_on, body, (places[1], *carry, *stacks))
    return rest[:carry_count], rest[carry_count:]


def stacked(values: list[Any]) -> Any:
    """The results of steps stacked along a new first dimension. Raises RunError for a result that is no tensor."""
    if not all(isinstance(each, Tensor) for each in values):
        raise RunError(f"a step gives {type(values[0]).__name__}, expected tensors")
    return torch.stack(values)


def operands_of(where: str, name: str, values: Any) -> Any:
    """A tuple or list of arguments, with arrays converted to tensors. Raises RunError for any other value."""
    if not isinstance(values, list | tuple):
        raise RunError(f"{where}: expected {name} in a tuple, got {type(values).__name__}")
    return tensors(values)


def one_condition(what: str, value: Any) -> Any:
    """A condition. Raises RunError for a tensor of several elements, and for a value that is neither tensor nor number."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise RunError(f"{what} is a tensor of shape {list(value.shape)}, expected one element")
        return value
    if isinstance(value, bool | int | float) or type(value).__module__ == "numpy":
        return bool(value)
    raise RunError(f"{what} is a {type(value).__name__}, expected a bool or a tensor of one element")


def carried_again(results: Any, shape: Any) -> list[Any]:
    """The leaves of a round's results. Raises RunError if their tree is not that of the carried values."""
    if not isinstance(results, list | tuple):
        raise RunError(f"while_loop: body_fn gives a {type(results).__name__}, expected a tuple of as many values as are carried")
    leaves, result_shape = flatten(type(shape)(results))
    same_tree("while_loop: carried_inputs and what body_fn gives are", shape, result_shape)
    return leaves


def as_before(new: Any, old: Any) -> Any:
    """A result of a round; a number is converted to a tensor if the carried value was one."""
    return torch.scalar_tensor(new, dtype=old.dtype) if isinstance(old, Tensor) and not isinstance(new, Tensor) else new


def same_tree(what: str, *shapes: Any) -> None:
    """Raise RunError if trees differ."""
    if any(each != shapes[0] for each in shapes):
        raise RunError(f"{what} {' and '.join(map(words, shapes))}, expected the same lists, tuples and dicts of tensors")


def words(shape: Any) -> str:
    """A tree as text, for messages."""
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{key!r}: {words(each)}" for key, each in shape.items()) + "}"
    if isinstance(shape, list | tuple):
        return f"({', '.join(map(words, shape))})"
    return "tensor"


def extent(what: str, leaves: list[Any], dim: int) -> int:
    """The number of slices of tensors along a dimension. Raises RunError if tensors lack the dimension, or differ in it."""
    if not leaves or not all(isinstance(leaf, Tensor) and leaf.ndim for leaf in leaves):
        raise RunError(f"{what}: expected tensors of at least one dimension")
    extents = {leaf.size(dim) for leaf in leaves}
    if len(extents) != 1 or not min(extents):
        raise RunError(f"{what}: extents along dimension {dim} are {sorted(extents)}, expected one that is not 0")
    return int(min(extents))


def loop_writer(layer: Layer | None) -> Tracer | None:
    """The topmost trace that is still recording, if a loop can be recorded there: not for second derivatives, which need single rounds."""
    tapes = 0
    while layer is not None and not isinstance(layer, Tracer):
        tapes += isinstance(layer, Autograd)
        layer = layer.inner
    return layer if tapes < 2 else None


def traced(tracer: Tracer, value: Any) -> Any:
    """A constant as a value of the trace, so that a loop can carry it without decisions."""
    if type(value) in (bool, int):
        value = Tensor(np.array(value))
        value.born = next_birth()       # nobody else refers to its elements
    return Boxed(tracer, value, tracer.operand(value)) if type(value) is Tensor else value
