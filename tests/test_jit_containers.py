"""What a jitted function writes into lists and dicts: as the function that is not jitted, plainly and under every layer."""
from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

X = np.array([[1.0, 2.0], [3.0, 4.0]])
Pair = namedtuple("Pair", "first second")


def plain(function: Any) -> Any:
    """In place of jit."""
    return function


def appends(items: Any) -> Any:
    items.append(items[0] * 3)
    items[0] = items[0] + 1
    return items[0].sum()


def sets_key(entries: Any) -> Any:
    entries["b"] = entries["a"] * 3
    return entries["a"].sum()


def updates(entries: Any) -> Any:
    entries.update(c=entries["a"] * 2, a=entries["a"].exp())
    return entries.setdefault("d", entries["c"].sin())


def deletes(entries: Any) -> Any:
    del entries["a"]
    return entries.pop("b") * 2


def reorders(entries: Any) -> Any:
    entries["a"] = entries.pop("a")
    return entries["a"] * entries["b"]


def clears(items: Any) -> Any:
    kept = items[0]
    items.clear()
    return kept * 2


def pops(items: Any) -> Any:
    items.insert(0, items.pop() * items[0])
    items += [items[0] - 1]
    items.reverse()
    return items[0]


def writes_nested(tree: Any) -> Any:
    tree["inner"][0].append(tree["inner"][0][0] * 2)
    tree["inner"][1]["k"] = [tree["inner"][0][1]]
    tree["more"] = {"list": [tree["inner"][0][0].cos()]}
    return tree["inner"][0][1].sum()


def writes_in_tuple(pair: Any) -> Any:
    pair.first.append(pair.second * 2)
    return pair.first[0] * pair.second


def writes_one_of_two(first: Any, second: Any) -> Any:
    first.append(first[0] * 3)
    second[0] = second[0] + len(second)
    return first[0].sum() + len(first)


def writes_through_outer(items: Any, outer: Any) -> Any:
    outer[0].append(outer[1]["key"][0] * 5)
    outer[1]["key"][0] = items[1] + 1
    return items[0] * len(items)


def item_and_list(items: Any, x: Any) -> Any:
    items[0].mul_(2)
    items.append(x * 3)
    items[1] = x
    return x + items[0]


def shares_new(items: Any, entries: Any) -> Any:
    new = [items[0] * 2]
    items.append(new)
    entries["new"] = new
    entries["items"] = items
    return items[0].sum()


def swaps(outer: Any) -> Any:
    outer[0], outer[1] = outer[1], outer[0]
    outer[2] = outer[0]
    outer[0].append(outer[3] * 2)
    return outer[3].sum()


def joins_empty(outer: Any) -> Any:
    outer[0] = outer[1]
    return outer[2].sum()


def counts(items: Any) -> Any:
    items.append(items[1] + 1)
    items[1] = items[2] * 2
    return items[0] * items[1]


def drops_tensors(items: Any) -> Any:
    items[:] = [7, "text", None]
    return torch.ones(2)


def views(items: Any) -> Any:
    items.append(items[0][:1])
    items[0].add_(1)
    return items[1] * 2


def names(*, items: Any, **entries: Any) -> Any:
    items.append(entries["x"] * 2)
    entries["y"] = items[0]
    return items[1].sum()


def nests(items: Any) -> Any:
    inner = irtool.jit(appends)(items)
    return irtool.jit(appends)(items) + inner


def gives_list(items: Any) -> Any:
    items.append(items[0] * 2)
    return items


def one_twice(x: Any) -> Any:
    items = [x * 1]
    return items, items


def one_inside(x: Any) -> Any:
    items = [x * 1, x * 2]
    return items, (items, {"key": items})


def item_twice(x: Any) -> Any:
    items = [x * 1, x * 2]
    return items, items[0]


WRITES: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "append": (appends, lambda x: ([x * 1],)),
    "key": (sets_key, lambda x: ({"a": x * 1},)),
    "key of an ordered dict": (sets_key, lambda x: (OrderedDict(a=x * 1),)),
    "key of a dict of defaults": (sets_key, lambda x: (defaultdict(list, a=x * 1),)),
    "update": (updates, lambda x: ({"a": x * 1},)),
    "delete": (deletes, lambda x: ({"a": x * 1, "b": x * 2, "c": x * 3},)),
    "order": (reorders, lambda x: ({"a": x * 1, "b": x * 2},)),
    "clear": (clears, lambda x: ([x * 1, x * 2],)),
    "pop": (pops, lambda x: ([x * 1, x * 2, x * 3],)),
    "nested": (writes_nested, lambda x: ({"inner": [[x * 1], {}]},)),
    "in a tuple": (writes_in_tuple, lambda x: (Pair([x * 1], x * 2),)),
    "a list twice": (writes_one_of_two, one_twice),
    "two equal lists": (writes_one_of_two, lambda x: ([x * 1], [x * 1])),
    "a list inside another": (writes_through_outer, one_inside),
    "an item twice": (item_and_list, item_twice),
    "a new list twice": (shares_new, lambda x: ([x * 1], {})),
    "swapped lists": (swaps, lambda x: ([[x * 1], [x * 2], [], x * 3],)),
    "empty lists": (joins_empty, lambda x: ([[], [], x * 1],)),
    "numbers": (counts, lambda x: ([x * 1, 2],)),
    "constants": (drops_tensors, lambda x: ([x * 1],)),
    "views": (views, lambda x: ([x * 1],)),
    "jitted inside": (nests, lambda x: ([x * 1],)),
    "the list as result": (gives_list, lambda x: ([x * 1],)),
}


def form(tree: Any, seen: dict[int, int]) -> Any:
    """A tree with words for its tensors; each list and dict has a number, which is the same where it is the same one."""
    if isinstance(tree, list | dict):
        number = seen.setdefault(id(tree), len(seen))
        parts = [(key, form(each, seen)) for key, each in tree.items()] if isinstance(tree, dict) else [form(each, seen) for each in tree]
        return type(tree).__name__, number, parts
    if isinstance(tree, tuple):
        return type(tree).__name__, [form(each, seen) for each in tree]
    return f"tensor{list(tree.shape)}" if isinstance(tree, irtool.Tensor) else tree


def tensors_of(tree: Any) -> list[Any]:
    """The tensors of a tree."""
    if isinstance(tree, list | tuple | dict):
        return [leaf for each in (tree.values() if isinstance(tree, dict) else tree) for leaf in tensors_of(each)]
    return [tree] if isinstance(tree, irtool.Tensor) else []


def program(name: str, make: Callable[[Any], Any], forms: list[Any]) -> Callable[[Any], Any]:
    """A function of x that calls one of WRITES, made by `make`, twice; it returns a number and all tensors. It appends what became of the
    containers to `forms`."""
    write, build = WRITES[name]
    function = make(write)

    def run(x: Any) -> Any:
        found = []
        for factor in (1, 2):
            arguments = build(x * factor)
            result = function(*arguments)
            forms.append(form(arguments, {}))
            found += tensors_of(arguments) + tensors_of(result)
        return sum((place + 1) * each.sin().sum() for place, each in enumerate(found)), found
    return run


def own_number(function: Any) -> Any:
    """The number that a program returns."""
    return lambda x: function(x)[0]


LAYERS: dict[str, Callable[[Any], Any]] = {
    "none": lambda run: run(torch.tensor(X[0])),
    "vmap": lambda run: irtool.vmap(run)(X),
    "grad": lambda run: irtool.grad(run, has_aux=True)(X[0]),
    "jvp": lambda run: irtool.jvp(own_number(run), (X[0],), (X[1],)),
    "jacrev": lambda run: irtool.jacrev(lambda x: run(x)[1])(X[0]),
    "hessian": lambda run: irtool.hessian(own_number(run))(X[0]),
    "linearize": lambda run: irtool.linearize(own_number(run), X[0])[1](X[1]),
    "trace": lambda run: irtool.run(irtool.trace(lambda x: (run(x)[0], *run(x)[1]), [X[0]]), [X[1]]),
    "jit": lambda run: [jitted(x) for jitted in [irtool.jit(run)] for x in X],
    "no_grad": lambda run: irtool.grad(lambda x: without_gradient(run, x), has_aux=True)(X[0]),
    "vmap of grad": lambda run: irtool.vmap(irtool.grad(run, has_aux=True))(X),
    "grad of vmap": lambda run: irtool.grad(lambda x: irtool.vmap(run)(x)[0].sum())(X),
    "jit of vmap of grad": lambda run: irtool.jit(irtool.vmap(irtool.grad(run, has_aux=True)))(X),
    "vmap of jit": lambda run: irtool.vmap(irtool.jit(run))(X),
    "grad of jit": lambda run: irtool.grad(irtool.jit(run), has_aux=True)(X[0]),
    "jit of jit": lambda run: irtool.jit(irtool.jit(run))(X[0]),
    "trace of grad of jit": lambda run: irtool.run(irtool.trace(irtool.grad(irtool.jit(own_number(run))), [X[0]]), [X[1]]),
}


def without_gradient(run: Any, x: Any) -> Any:
    """What a program gives in `torch.no_grad()`, with x."""
    with torch.no_grad():
        _, found = run(x)
    return (x * x).sum(), found


def numbers(tree: Any) -> Any:
    """The elements of the tensors of results, with their dtypes."""
    if isinstance(tree, list | tuple):
        return [numbers(each) for each in tree]
    array = tree.array if isinstance(tree, irtool.Tensor) else tree
    return str(array.dtype), np.round(array, 9).tolist()


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", WRITES)
def test_jitted_functions_write_into_containers_as_others(name: str, layer: str) -> None:
    expected, found = [], []        # type: ignore[var-annotated]
    right = LAYERS[layer](program(name, plain, expected))
    assert numbers(LAYERS[layer](program(name, irtool.jit, found))) == numbers(right)
    assert found == expected


@pytest.mark.parametrize("name", WRITES)
def test_containers_that_are_arguments_of_a_surrounding_jitted_function(name: str) -> None:
    write, build = WRITES[name]
    inner = irtool.jit(write)
    outer = irtool.jit(lambda *arguments: inner(*arguments))
    for _ in range(2):
        expected, found = build(torch.tensor(X)), build(torch.tensor(X))
        right, result = write(*expected), outer(*found)
        assert form(found, {}) == form(expected, {})
        assert numbers(tensors_of((found, result))) == numbers(tensors_of((expected, right)))


def test_named_arguments() -> None:
    def run(x: Any, make: Any = plain) -> Any:
        items = [x * 1]
        result = make(names)(items=items, x=x)
        return result, items
    assert numbers(irtool.grad(lambda x: run(x, irtool.jit), has_aux=True)(X)) == numbers(irtool.grad(run, has_aux=True)(X))


@pytest.mark.parametrize("layer", ["none", "grad", "vmap", "jit"])
def test_a_function_that_raises_has_written(layer: str) -> None:
    @irtool.jit
    def fails(items: Any, entries: Any) -> Any:
        items.append(items[0] * 3)
        items[0].mul_(2)
        entries["new"] = [items[1]]
        raise ValueError("after the writes")

    def run(x: Any) -> Any:
        items, entries = [x * 1], {}        # type: ignore[var-annotated]
        with pytest.raises(ValueError, match="after the writes"):
            fails(items, entries)
        assert form((items, entries), {}) == ("tuple", [("list", 0, ["tensor[2]"] * 2), ("dict", 1, [("new", ("list", 2, ["tensor[2]"]))])])
        return (items[0] + items[1] * entries["new"][0]).sum(), items

    result = LAYERS[layer](run)
    if layer == "none":
        assert numbers(result[1]) == [("float64", [2.0, 4.0]), ("float64", [3.0, 6.0])]
    elif layer == "grad":
        assert numbers(result[0]) == ("float64", [20.0, 38.0])


def test_views_in_lists_are_of_the_callers_memory() -> None:
    jitted = irtool.jit(lambda items: items.append(items[0][:1]))
    for _ in range(2):
        items = [torch.tensor(X[0])]
        jitted(items)
        items[0].add_(1)
        assert items[1].tolist() == [2.0]


def written_with_arrays(items: Any, entries: Any, x: Any) -> Any:
    """Writes into containers that hold arrays: they are tensors in the function."""
    assert all(isinstance(each, irtool.Tensor) for each in (items[0], items[1][0], entries["a"], entries["pair"][0]))
    assert entries["items"] is items
    items.append(items[0].exp() * x)
    items.insert(0, entries["a"] * x)
    items[2].append(x)
    entries["new"] = [items, entries["pair"], (entries["a"],)]
    return (items[0] * items[-1]).sum()


@pytest.mark.parametrize("layer", ["grad", "vmap", "jit", "vmap of grad", "jit of jit"])
def test_containers_of_arrays(layer: str) -> None:
    """Arrays that stay are the caller's arrays afterwards, and what is written is there."""
    jitted = irtool.jit(written_with_arrays)
    array, other = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    checked = []

    def run(x: Any) -> Any:
        nested = [other]
        items = [array, nested]
        pair = (array, "text")
        entries = {"a": other, "pair": pair, "items": items}
        result = jitted(items, entries, x)
        assert items[1] is array and items[2] is nested and nested[0] is other and len(items) == 4 and len(nested) == 2
        assert nested[1] is x
        assert list(entries) == ["a", "pair", "items", "new"] and entries["a"] is other and entries["pair"] is pair
        assert entries["items"] is items and entries["new"][0] is items and entries["new"][1] is pair and entries["new"][2][0] is other
        checked.append(True)
        return result + items[3].sum(), [items[0], items[3]]

    LAYERS[layer](run)
    assert checked
    if layer == "grad":
        gradient, (first, last) = LAYERS[layer](run)
        x, e = X[0], np.exp(array)
        np.testing.assert_allclose(gradient.array, 2 * other * e * x + e)
        np.testing.assert_allclose(first.array, other * x)
        np.testing.assert_allclose(last.array, e * x)


def test_containers_of_arrays_that_are_only_read_stay() -> None:
    array = np.array([1.0, 2.0])
    items = [array, {"b": array}]
    irtool.grad(lambda x: irtool.jit(lambda given, y: (given[0] * given[1]["b"] * y).sum())(items, x))(X[0])
    assert items[0] is array and items[1]["b"] is array


def test_a_list_that_holds_itself() -> None:
    @irtool.jit
    def writes(items: Any) -> Any:
        items[1][0] = items[0] * 2
        return items[0].sum()

    for more in ([], [np.ones(2)]):
        def run(x: Any, more: Any = more) -> Any:
            items = [x * 1, None, *more]
            items[1] = items
            result = writes(items)
            assert items[1] is items and items[0].shape == [2]
            return result
        assert irtool.grad(run)(X[0]).tolist() == [2.0, 2.0]
