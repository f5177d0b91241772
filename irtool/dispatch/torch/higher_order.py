"""Control flow by name: `torch.cond`, `while_loop`, `scan` and `map`, with torch's signatures, under every layer.

If the condition has a concrete value, Python branches or loops. If a layer hides it (a batch, a trace), the layers run the control flow
(`Layer.branch`, `Layer.repeat`): a batch computes both branches and selects, a trace records an If or a Loop. Functions may read tensors
of surrounding functions (`irtool.dispatch.closure_conversion`). As in torch, they must not write into these, nor into their arguments
(`irtool.dispatch.write_guard`). Dicts are matched by key.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irtool.dispatch.autograd import Autograd
from irtool.dispatch.batched import Batched
from irtool.dispatch.callables import as_function
from irtool.dispatch.control_flow import as_condition, is_undecided, truth
from irtool.dispatch.lasting_functions import Lasting
from irtool.dispatch.stack import Boxed, Layer, current
from irtool.dispatch.traced_numbers import Number
from irtool.dispatch.tracer import Tracer
from irtool.dispatch.transforms import tensors
from irtool.dispatch.trees import aligned, flatten, unflatten
from irtool.dispatch.write_guard import without_writes
from irtool.ir.arguments import called, check_flag, with_article
from irtool.ir.errors import RunError
from irtool.ops.array_library import np
from irtool.ops.nested_tensors import map_tensors
from irtool.ops.tensor import Tensor, next_birth, torch
from irtool.ops.tensor_facts import DTYPES

Function = Callable[..., Any]
Step = Callable[[list[Any], list[Any]], tuple[list[Any], Any]]
"""From the carried values and slices: the next carried values, and the tree of the step's results."""
BRANCHES = ("cond: true_fn", "cond: false_fn")
LOOP = ("while_loop: cond_fn", "while_loop: body_fn")


def cond(pred: Any, true_fn: Function, false_fn: Function, operands: Sequence[Any] = ()) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`, as torch.cond. pred: a bool, a number, or a tensor of one element.

    Both functions return tensors in the same tree, of the same shapes and dtypes. Raises RunError if both run and do not, for a `pred` of
    several elements, and for operands that are no tensors, unless `pred` is a number.
    """
    functions = [as_function("cond", true_fn), as_function("cond", false_fn)]
    arguments = operands_of("cond", "operands", operands)
    condition = one_condition("cond: pred", pred)
    if not is_undecided(condition):
        which = 0 if bool(condition) else 1
        if not isinstance(condition, Tensor):       # torch, too, only calls the function then
            return called(BRANCHES[which], functions[which], arguments)
        check_leaves("cond: operands", arguments, "tensors", Tensor)
        return without_writes(BRANCHES[which], functions[which], are_apart=True)(arguments)
    check_leaves("cond: operands", arguments, "tensors", Tensor)
    leaves, shape = flatten(list(arguments))
    lasting = Lasting(functions, current())
    shapes: list[Any] = []
    facts: dict[int, list[Any]] = {}

    def as_branch(which: int) -> Function:
        def run(*values: Any) -> list[Any]:
            with lasting.called(which, values[len(leaves):]) as function:
                tree = without_writes(BRANCHES[which], function, are_apart=True)(unflatten(shape, list(values[:len(leaves)])))
            if not shapes:
                shapes.append(flatten(tree)[1])
            facts[which] = results = leaves_as("cond: true_fn and false_fn give", shapes[0], tree)
            refuse_other_facts("cond: When merging two branches' output in torch.cond, expected same", *facts.values())
            return results
        return run
    results = current().branch(as_condition(condition, current().apply), as_branch(0), as_branch(1), [*leaves, *lasting.tensors])
    lasting.is_later = True
    return unflatten(shapes[0], results)


def while_loop(cond_fn: Function, body_fn: Function, carried_inputs: Sequence[Any]) -> Any:
    """`carried = body_fn(*carried)` while `cond_fn(*carried)` holds, as torch.while_loop; returns the final carried values, in a tuple.

    carried_inputs: a tuple of tensors and ints, in lists and dicts too; body_fn returns a tuple of the same tree, shapes and dtypes. In a
    trace an int becomes a tensor of int64 without dimensions. Raises RunError for other trees, and a condition of several elements.
    """
    functions = [as_function("while_loop", cond_fn), as_function("while_loop", body_fn)]
    condition_of, body = without_writes(LOOP[0], functions[0]), without_writes(LOOP[1], functions[1], are_apart=True)
    leaves, shape = flatten(operands_of("while_loop", "carried_inputs", carried_inputs))
    check_leaves("while_loop: carried_inputs", leaves, "tensors and ints", Tensor | int | np.integer)
    tracer = loop_writer(current())
    if tracer is not None:
        leaves = [traced(tracer, each) for each in leaves]
    is_first = True
    while True:
        condition = one_condition("while_loop: cond_fn", condition_of(unflatten(shape, leaves)))
        if is_undecided(condition):
            return copied(unflatten(shape, undecided_rounds(condition, functions, leaves, shape)))
        if not bool(condition):
            return copied(unflatten(shape, leaves)) if is_first else unflatten(shape, leaves)
        is_first = False
        leaves = carried_again(body(unflatten(shape, leaves)), shape, leaves)


def undecided_rounds(condition: Any, functions: list[Function], leaves: list[Any], shape: Any) -> list[Any]:
    """The final carried values of a loop whose condition is undecided. functions: that of the condition, and the body."""
    lasting, count = Lasting(functions, current()), len(leaves)

    def round(*values: Any) -> list[Any]:
        apply = current().apply
        with lasting.called(1, values[count:]) as body:
            following = without_writes(LOOP[1], body)(unflatten(shape, list(values[:count])))
        carried = carried_again(following, shape, values[:count])
        with lasting.called(0, values[count:]) as condition_of:
            after = one_condition("while_loop: cond_fn", without_writes(LOOP[0], condition_of)(unflatten(shape, carried)))
        return [as_condition(truth(after, apply), apply), *[as_before(new, old) for new, old in zip(carried, values, strict=False)]]
    args = [*leaves, *lasting.tensors]
    results: list[Any] = current().repeat(None, as_condition(condition, current().apply), round, args, count)
    lasting.is_later = True
    return results


def scan(combine_fn: Function, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """(final carry, all y stacked along a new dimension) of `carry, y = combine_fn(carry, x)` for each slice x, as torch's scan.

    x: a slice of each tensor of `xs` (a tree) along `dim`. The results are stacked along `dim` too, along the first dimension if they have
    too few. reverse: begin with the last slice; the order of the results stays that of the slices. Raises RunError for tensors of different
    extents along `dim`, for no tensors, and for a carry whose tree changes.
    """
    check_flag("scan", "reverse", reverse)
    combine = without_writes("scan: combine_fn", as_function("scan", combine_fn), are_apart=True)
    leaves, shape = flatten(tensors(xs))
    dim = place_of(dim, leaves)
    count = extent("scan: xs", leaves, dim)
    start, carry_shape = flatten(tensors(init))

    def step(carry: list[Any], parts: list[Any]) -> tuple[list[Any], Any]:
        results = combine((unflatten(carry_shape, carry), unflatten(shape, parts)))
        if not isinstance(results, list | tuple) or len(results) != 2:
            raise RunError(f"scan: combine_fn gives {type(results).__name__}, expected a tuple of the next carry and the step's result")
        following = leaves_as("scan: init and the carry that combine_fn gives are", carry_shape, results[0])
        refuse_other_facts("scan: Expected init and carry to have same", carry, following)
        return following, results[1]
    carry, stacks, y_shape = in_steps("scan: steps give", step, start, leaves, dim, range(count)[::-1] if reverse else range(count))
    stacks = [each.movedim(0, dim) if 0 < dim < each.ndim else each for each in stacks]
    return unflatten(carry_shape, carry), unflatten(y_shape, stacks)


def map_slices(f: Function, xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each slice x of the tensors of `xs` (a tree) along the first dimension, stacked: torch's map. Raises RunError."""
    function = without_writes("map: f", as_function("map", f))
    leaves, shape = flatten(tensors(xs))
    count = extent("map: xs", leaves, 0)

    def step(carry: list[Any], parts: list[Any]) -> tuple[list[Any], Any]:
        return [], function((unflatten(shape, parts), *args))
    _, stacks, result_shape = in_steps("map: steps give", step, [], leaves, 0, range(count))
    return unflatten(result_shape, stacks)


def in_steps(what: str, step: Step, carry: list[Any], leaves: list[Any], dim: int, places: range) -> tuple[list[Any], list[Any], Any]:
    """The final carry, the results stacked in order of their places, and their tree. In a trace, steps after the first are a Loop."""
    def parts(place: int) -> list[Any]:
        return [leaf.select(dim, place) for leaf in leaves]
    carry, tree = step(carry, parts(places[0]))
    first, shape = flatten(tree)

    def next_step(carry: list[Any], parts: list[Any]) -> tuple[list[Any], list[Any]]:
        carry, tree = step(carry, parts)
        return carry, leaves_as(what, shape, tree)
    if loop_writer(current()) is not None and len(places) > 1:
        return *traced_steps(next_step, carry, first, leaves, dim, places), shape
    results = {places[0]: first}
    for place in places[1:]:
        carry, results[place] = next_step(carry, parts(place))
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
        following, results = step(list(rest[:carry_count]), [leaf.index_select(dim, index).squeeze(dim) for leaf in leaves])
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


def check_leaves(what: str, tree: Any, expected: str, kinds: Any) -> None:
    """Raise RunError for a leaf of another class; a traced number is of the class of its value."""
    for leaf in flatten(tree)[0]:
        if not isinstance(leaf.value if type(leaf) is Number else leaf, kinds):
            raise RunError(f"{what}: expected tuples, lists and dicts that only consist of {expected}, got "
                           f"{with_article(leaf.__class__.__name__)}")


def one_condition(what: str, value: Any) -> Any:
    """A condition. Raises RunError for a tensor of several elements, and for a value that is neither tensor nor number."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise RunError(f"{what} is a tensor of shape {list(value.shape)}, expected one element")
        return value
    if isinstance(value, bool | int | float) or type(value).__module__ == "numpy":
        return bool(value)
    raise RunError(f"{what} is a {type(value).__name__}, expected a bool or a tensor of one element")


def copied(tree: Any) -> Any:
    """A tree with copies of its tensors: after no round they are the operands, which later writes must not change."""
    return map_tensors(lambda each: each.clone(), tree)


def carried_again(results: Any, shape: Any, before: Sequence[Any]) -> list[Any]:
    """The leaves of a round's results. Raises RunError if they have not the tree, dtypes and shapes of the carried values `before`."""
    if not isinstance(results, list | tuple):
        raise RunError(f"while_loop: body_fn gives a {type(results).__name__}, expected a tuple of as many values as are carried")
    leaves = leaves_as("while_loop: carried_inputs and what body_fn gives are", list(shape), list(results))
    refuse_other_facts("while_loop: Expected body_fn_output and carried_inputs to have same", leaves, before)
    check_leaves("while_loop: what body_fn gives", leaves, "tensors and ints", Tensor | int | np.integer)
    return leaves


def as_before(new: Any, old: Any) -> Any:
    """A result of a round; a number is converted to a tensor if the carried value was one."""
    return torch.scalar_tensor(new, dtype=old.dtype) if isinstance(old, Tensor) and not isinstance(new, Tensor) else new


def leaves_as(what: str, shape: Any, tree: Any) -> list[Any]:
    """The leaves of a tree in the order of a shape: dicts by key. Raises RunError for a tree of another shape."""
    found = flatten(tree)[1]
    leaves = aligned(tree, shape) if found == shape else None
    if leaves is None:
        raise RunError(f"{what} {words(shape)} and {words(found)}, expected the same lists, tuples and dicts of tensors")
    return leaves


def refuse_other_facts(what: str, first: Sequence[Any], second: Sequence[Any] = ()) -> None:
    """Raise RunError if tensors at one place differ in dtype or shape: where one is in another run, its operators may do something else."""
    for one, other in zip(first, second, strict=False):
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            if one.dtype != other.dtype:
                raise RunError(f"{what} dtype but got {DTYPES[one.dtype]} and {DTYPES[other.dtype]}")
            if sizes_now(one) != sizes_now(other):
                raise RunError(f"{what} shape but got {sizes_now(one)} and {sizes_now(other)}")


def sizes_now(tensor: Any) -> list[int]:
    """The sizes of a tensor in this run, which are no decision of a trace."""
    if isinstance(tensor, Boxed):
        sizes = sizes_now(tensor.value)
        if isinstance(tensor.layer, Batched):
            del sizes[tensor.known]
        return sizes
    return list(tensor.shape)


def words(shape: Any) -> str:
    """A tree as text, for messages."""
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{key!r}: {words(each)}" for key, each in shape.items()) + "}"
    if isinstance(shape, list | tuple):
        return f"({', '.join(map(words, shape))})"
    return "tensor"


def place_of(dim: int, leaves: list[Any]) -> int:
    """A dimension of the first tensor, counted from its front. Raises RunError, in torch's words, if a tensor has too few dimensions."""
    ranks = [leaf.ndim if isinstance(leaf, Tensor) else 0 for leaf in leaves]
    if ranks and not -ranks[0] <= dim < ranks[0]:
        raise RunError(f"scan: Dimension out of range (expected to be in range of [{-ranks[0]}, {ranks[0] - 1}], but got {dim})")
    place = dim % ranks[0] if ranks else dim
    if any(rank <= place for rank in ranks):
        raise RunError("scan: All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    return place


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
