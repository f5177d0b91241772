"""Binding of arrays and literals to the inputs of a graph: the input of each key, and whether the value fits its type."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from irtool.interop.npz import Archive
from irtool.ir.defaults import defaults_of
from irtool.ir.errors import Error, did_you_mean
from irtool.ir.graph import Graph, Value
from irtool.ir.names import Names, stems
from irtool.ir.pair import LISTS, OF, read_numbers
from irtool.ir.source import Diagnostic
from irtool.ir.types import ClassType, DictType, ListType, OptionalType, SimpleType, TensorType, TupleType, Type, UnionType
from irtool.ops.array_library import np

Array = np.ndarray[Any, np.dtype[Any]]
Parts = dict[str, Any]
"""The parts of one input's value: `""` for the value itself, else the rest of the key (`.0`, `.k1`)."""

FORMS: tuple[tuple[str, Callable[[int, Value], str]], ...] = (
    ("input names", lambda i, value: value.name),
    ("input0, input1, ...", lambda i, value: f"input{i}"),
    ("0, 1, ...", lambda i, value: str(i)),
    ("arr_0, arr_1, ...", lambda i, value: f"arr_{i}"),
    ("input names without numbers", lambda i, value: next(iter([*stems(value.name)][-1:]), value.name)),
)
"""The forms of keys. All keys of a file have one form, the first that fits. `x` is the input `%x.1` if no other can be meant."""
SHORT = FORMS[-1][1]

_KINDS = {"int": "iu", "float": "f", "bool": "b", "complex": "c", "str": "U", "Device": "U", "Scalar": "biufc"}
_PYTHON: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "bool": (bool,), "complex": (complex, float, int),
                                        "str": (str,), "Device": (str,), "Scalar": (bool, int, float, complex)}


class Misfit(Exception):
    """A value that does not fit its type: what it is, and a remedy if there is one."""

    def __init__(self, actual: str, remedy: str = "", expected: str = "") -> None:
        super().__init__(actual)
        self.actual = actual
        self.remedy = remedy
        self.expected = expected


def bind(graph: Graph, archive: Archive, literals: Mapping[str, Any], cast: bool = False) -> list[Any]:
    """One value per input of the graph. Raises Error with a diagnostic for every key and every value that does not fit."""
    parts = assign(graph, archive, literals)
    problems: list[Diagnostic] = []
    values: list[Any] = []
    gradients = len(read_numbers(graph, LISTS[0])) if OF in graph.metadata and LISTS[0] in graph.metadata else 0
    for i, value in enumerate(graph.inputs):
        if i < gradients and list(parts[i]) == [""] and parts[i][""] is None:
            values.append(None)     # gradients that a reverse graph takes may be undefined
            continue
        try:
            values.append(fitted(parts[i], value.type, cast))
        except Misfit as misfit:
            if misfit.actual == "nothing" and not value.has_uses:
                values.append(None)     # an object that the graph does not read
                continue
            notes = [Diagnostic("note", misfit.remedy)] if misfit.remedy else []
            expected = misfit.expected or str(value.type)
            problems.append(Diagnostic("error", f"input {i} '%{value.name}': expected {expected}, got {misfit.actual}", notes=notes))
    if problems:
        raise Error(diagnostics=problems, code="E0403")
    return values


# -- keys
def assign(graph: Graph, archive: Archive, literals: Mapping[str, Any]) -> list[Parts]:
    """The parts of each input. Raises Error for keys that fit no input, a mixture of forms, and inputs without a value."""
    keys = list(archive.arrays)
    form = choose_form(graph.inputs, keys)
    owners = owners_of(graph.inputs, form)
    parts: list[Parts] = [{} for _ in graph.inputs]
    for key in keys:
        i, rest = owner(key, owners)
        if rest in parts[i]:
            raise Error(f"the key '{key}' is of input '%{graph.inputs[i].name}', as another key is", code="E0402")
        parts[i][rest] = archive.get(key)
    named: dict[tuple[int, str], str] = {}
    for name, value in literals.items():
        i, rest = literal_owner(name.removeprefix("%"), graph.inputs, form)
        if named.setdefault((i, rest), name) != name:
            raise Error(f"--input {name}=...: input '%{graph.inputs[i].name}' is given twice, also as '{named[i, rest]}'", code="E0402")
        if not rest:
            parts[i].clear()
        parts[i][rest] = value
    known = defaults_of(graph)
    for value, pieces in zip(graph.inputs, parts, strict=True):
        if not pieces and value.name in known:
            pieces[""] = known[value.name]
    missing = [i for i, value in enumerate(graph.inputs) if not parts[i] and needs_value(value)]
    if missing:
        names = ", ".join(f"'{form(i, graph.inputs[i])}'" for i in missing)
        notes = []
        is_module = missing[0] == 0 and isinstance(graph.inputs[0].type, ClassType)     # which is no array and no literal
        if len(missing) > is_module:
            notes.append(f"found the keys {listed(keys)}; --input NAME=VALUE adds one" if keys else "give an .npz, or --input NAME=VALUE")
        if is_module:
            notes.append(f"%{graph.inputs[0].name} is a module: --load-state FILE gives its weights")
        raise Error(diagnostics=[Diagnostic("error", f"no value for {names}; expected the inputs {signature(graph)}",
                                            notes=[Diagnostic("note", note) for note in notes])], code="E0402")
    return parts


def choose_form(inputs: Sequence[Value], keys: Sequence[str]) -> Callable[[int, Value], str]:
    """The first form in which every key belongs to an input. Raises Error."""
    fitting: list[int] = []
    for _, form in FORMS:
        owners = owners_of(inputs, form)
        known = [key for key in keys if owner(key, owners)[0] >= 0]
        if len(known) == len(keys):
            return form
        fitting.append(len(known))
    best = fitting.index(max(fitting))
    owners = owners_of(inputs, FORMS[best][1])
    surplus = [key for key in keys if owner(key, owners)[0] < 0]
    for key in surplus:
        check_choice(key, inputs)
    mixed = [key for key in surplus if any(owner(key, owners_of(inputs, form))[0] >= 0 for _, form in FORMS)]
    expected = [FORMS[best][1](i, value) for i, value in enumerate(inputs)]
    if mixed and fitting[best]:
        message = f"keys of two forms: {listed(mixed)} beside {listed([key for key in keys if key not in surplus])}"
    else:
        message = f"no input is called {listed(surplus)}{did_you_mean(surplus[0], [value.name for value in inputs])}"
    raise Error(diagnostics=[Diagnostic("error", message, notes=[Diagnostic("note", f"expected {listed(expected)} (or input0, input1, ...; "
                                                                            f"or 0, 1, ...), found {listed(keys)}")])], code="E0402")


def owners_of(inputs: Sequence[Value], form: Callable[[int, Value], str]) -> dict[str, int]:
    """Key -> position of its input."""
    if form is SHORT:
        names = Names(inputs)
        short = {name: places[0] for name, places in names.short.items() if len(places) == 1}
        # `xs.1` is an element of `xs`
        containers = {inputs[place].name for place in short.values() if holds_elements(inputs[place].type)}
        return {**short, **{name: place for name, place in names.exact.items() if name not in containers}}
    return {form(i, value): i for i, value in enumerate(inputs)}


def check_choice(key: str, inputs: Sequence[Value]) -> None:
    """Raises Error for a key that no input has as its name, and that may mean several inputs."""
    names = Names(inputs)
    for stem in (key, *stems(key)):
        if len(names.places(stem)) > 1:
            raise Error(names.choice(stem), code="E0402")


def owner(key: str, owners: Mapping[str, int]) -> tuple[int, str]:
    """The position of the input to which a key belongs (-1: none), and the rest of the key: `xs.0.1` is input `xs`, `.0.1`."""
    if key in owners:
        return owners[key], ""
    name = key
    while "." in name:
        name = name.rpartition(".")[0]
        if name in owners:
            return owners[name], key[len(name):]
    return -1, ""


def literal_owner(name: str, inputs: Sequence[Value], form: Callable[[int, Value], str]) -> tuple[int, str]:
    """The position of the input that a literal names: in the form of the file's keys, else by name, else by position. Raises Error."""
    for shape in (form, *(other for _, other in FORMS)):
        i, rest = owner(name, owners_of(inputs, shape))
        if i >= 0:
            return i, rest
    check_choice(name, inputs)
    raise Error(f"--input {name}=...: no such input{did_you_mean(name, [value.name for value in inputs])}; "
                f"the graph has {listed([value.name for value in inputs])}", code="E0402")


def needs_value(value: Value) -> bool:
    """Does the input need a value? Not if it may be None, and not an object that the graph does not read."""
    return not may_be_absent(value.type) and (value.has_uses or not isinstance(value.type, ClassType))


def may_be_absent(type: Type) -> bool:
    """Is None a value of the type, so that no key is needed?"""
    if isinstance(type, UnionType):
        return any(map(may_be_absent, type.elements))
    return isinstance(type, OptionalType) or type.key in ("None", "Generator", "Any")


def holds_elements(type: Type) -> bool:
    """Is a value of the type a list, a tuple or a dict, whose elements have keys of their own?"""
    return isinstance(type.element if isinstance(type, OptionalType) else type, ListType | TupleType | DictType)


def signature(graph: Graph) -> str:
    """`%x : Float(2, 3), %n : int`."""
    return ", ".join(f"%{value.name} : {value.type}" for value in graph.inputs)


def listed(words: Iterable[str], most: int = 12) -> str:
    """The words in quotes; of many, only the first."""
    words = list(words)
    return ", ".join(f"'{word}'" for word in words[:most]) + (f", ... ({len(words)} in all)" if len(words) > most else "") or "none"


# -- values
def fitted(parts: Parts, type: Type, cast: bool) -> Any:
    """The value made of `parts`, checked against a type. Raises Misfit."""
    if isinstance(type, OptionalType):
        if not parts or parts.get("", 0) is None:
            return None
        return fitted(parts, type.element, cast)
    if not parts:
        if may_be_absent(type):
            return None
        raise Misfit("nothing")
    if isinstance(type, TensorType):
        return fitted_tensor(sole(parts), type, cast)
    if isinstance(type, ListType):
        return fitted_list(parts, type, cast)
    if isinstance(type, TupleType):
        return fitted_tuple(parts, type, cast)
    if isinstance(type, DictType):
        return fitted_dict(parts, type, cast)
    if isinstance(type, UnionType):
        return fitted_union(parts, type, cast)
    if isinstance(type, SimpleType) and type.key in _KINDS:
        return fitted_number(sole(parts), type.key, cast)
    if type.key in ("None", "Any"):
        return sole(parts)
    raise Misfit("an array: no value of this type can be given from outside")


def sole(parts: Parts) -> Any:
    """The value itself. Raises Misfit if there are only elements."""
    if list(parts) != [""]:
        raise Misfit(f"elements ({listed(key.lstrip('.') for key in parts if key)})")
    return parts[""]


def fitted_tensor(value: Any, type: TensorType, cast: bool) -> Any:
    """An array of the declared dtype, rank and sizes."""
    if value is None:
        if type.undefined:
            return None
        raise Misfit("None")
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        if isinstance(value, int):
            converted(value, "int")     # else NumPy would make an array of objects
        value = np.array(value, dtype_name(type.dtype) if type.dtype and type.sizes in (None, ()) else None)
    if not isinstance(value, np.ndarray):
        raise Misfit(kind_of(value))
    if value.dtype.kind == "U":
        raise Misfit("a string")
    sizes = type.sizes
    if sizes is not None and (len(sizes) != value.ndim or any(a not in (None, b) for a, b in zip(sizes, value.shape))):
        raise Misfit(kind_of(value))
    if type.dtype is None:
        return value
    return cast_array(value, type.dtype, cast)


def cast_array(value: Array, name: str, cast: bool) -> Array:
    """The array in the dtype called `name`. Raises Misfit, with the remedy, if it has another dtype and `cast` is not set."""
    from irtool.ops.arrays import astype, to_bfloat16

    dtype = np.dtype(dtype_name(name))
    if name == "bfloat16" and (cast or value.dtype == dtype):
        rounded = to_bfloat16(astype(value, dtype))
        if not cast and not np.array_equal(rounded, value, equal_nan=True):
            raise Misfit(f"{kind_of(value)} with digits that bfloat16 has not", "round them, or add --cast")
        return rounded
    if value.dtype == dtype:
        return value
    if not cast:
        raise Misfit(kind_of(value), f"save it as {dtype}, array.astype(\"{dtype}\"), or add --cast")
    return astype(value, dtype)


def dtype_name(name: str) -> str:
    """The NumPy dtype for torch's dtype of this name."""
    from irtool.ops.arrays import dtype_named

    return dtype_named(name).name


def fitted_number(value: Any, kind: str, cast: bool) -> Any:
    """A Python int, float, bool, complex or str."""
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise Misfit(kind_of(value))
        letter = value.dtype.kind
        if letter not in _KINDS[kind]:
            if not cast or "U" in (letter, _KINDS[kind]):
                raise Misfit(kind_of(value), f"save it as a 0-d array of {kind}, or add --cast" if letter != "U" else "")
            return converted(value.item(), kind)
        return value.item() if letter != "u" else converted(value.item(), "int")
    is_number = not (isinstance(value, bool) and kind in ("int", "float", "complex"))
    if not is_number or not isinstance(value, _PYTHON[kind]):
        raise Misfit(kind_of(value))
    return converted(value, kind if kind in ("float", "complex") else "int" if type(value) is int else "")


def converted(value: Any, kind: str) -> Any:
    """A number as a Python number of another kind. Raises Misfit if that cannot represent it."""
    try:
        number = {"int": int, "float": float, "bool": bool, "complex": complex}.get(kind, lambda same: same)(value)
    except (ValueError, OverflowError, TypeError):      # an int from nan, inf or 1j; a float from 10**400
        raise Misfit(kind_of(value)) from None
    if kind == "int" and not -2**63 <= number < 2**63:
        raise Misfit(f"{kind_of(value)}, which needs more than 64 bits")
    return number


def children(parts: Parts) -> dict[str, Parts]:
    """The parts of each element, by the word after the dot."""
    out: dict[str, Parts] = {}
    for key, value in parts.items():
        word, dot, rest = key.removeprefix(".").partition(".")
        out.setdefault(word, {})[dot + rest] = value
    return out


def elements_of(parts: Parts) -> list[Parts]:
    """The elements in order. Raises Misfit if a number is missing."""
    if list(parts) == [""]:
        value = parts[""]
        if isinstance(value, list | tuple):
            return [{"": element} for element in value]
        if isinstance(value, np.ndarray) and value.shape == (0,):
            return []
        raise Misfit(kind_of(value))
    if "" in parts:
        raise Misfit("a value beside elements")
    elements = children(parts)
    for i in range(len(elements)):
        if str(i) not in elements:
            raise Misfit(f"elements {listed(elements)}")
    return [elements[str(i)] for i in range(len(elements))]


def fitted_list(parts: Parts, type: ListType, cast: bool) -> list[Any]:
    """A list; a list of numbers may also be a 1-d array."""
    whole = parts.get("")
    if isinstance(whole, np.ndarray) and whole.ndim == 1 and not isinstance(type.element, TensorType) and len(parts) == 1:
        parts = {"": [np.asarray(element) for element in whole]}
    return [fitted(element, type.element, cast) for element in elements_of(parts)]


def fitted_tuple(parts: Parts, type: TupleType, cast: bool) -> tuple[Any, ...]:
    """A tuple with as many elements as its type."""
    elements = elements_of(parts)
    if len(elements) != len(type.elements):
        raise Misfit(f"{len(elements)} elements")
    return tuple(fitted(element, wanted, cast) for element, wanted in zip(elements, type.elements))


def fitted_dict(parts: Parts, type: DictType, cast: bool) -> dict[Any, Any]:
    """A dict, from a literal or from keys `.k0`, `.v0`, `.k1`, ..."""
    whole = parts.get("")
    if isinstance(whole, np.ndarray) and whole.shape == (0,):
        return {}
    if isinstance(whole, dict):
        pairs = [({"": key}, {"": value}) for key, value in whole.items()]
    elif "" in parts:
        raise Misfit(kind_of(whole))
    else:
        elements = children(parts)
        count = len(elements) // 2
        if any(f"{side}{i}" not in elements for i in range(count) for side in "kv") or len(elements) % 2:
            raise Misfit(f"elements {listed(elements)}")
        pairs = [(elements[f"k{i}"], elements[f"v{i}"]) for i in range(count)]
    fitting = [(fitted(key, type.key_type, cast), fitted(value, type.value_type, cast)) for key, value in pairs]
    if any(isinstance(key, np.ndarray) for key, _ in fitting):
        raise Misfit("a dict: from outside its keys are numbers or strings")
    return dict(fitting)


def fitted_union(parts: Parts, type: UnionType, cast: bool) -> Any:
    """The first alternative that fits; a value that may be a number (a 0-d array) becomes one rather than a tensor."""
    value = parts.get("")
    is_number = "" in parts and not getattr(value, "ndim", 0)
    for alternative in sorted(type.elements, key=lambda each: is_number and isinstance(each, TensorType)):
        try:
            return fitted(parts, alternative, cast)
        except Misfit:
            continue
    raise Misfit(kind_of(value) if "" in parts else f"elements {listed(parts)}")


def kind_of(value: Any) -> str:
    """A description of a value, for messages: `float64 (3, 2)`."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}" if value.dtype.kind != "U" else "a string" if not value.ndim else "strings"
    return "None" if value is None else f"the {type(value).__name__} {str(value)[:40]}"
