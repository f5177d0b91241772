"""Types: every spelling PyTorch ever had is read and given back; relations agree with torch's."""
from __future__ import annotations

import copy
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irtool.ir.dialect import DIALECTS, dialect
from irtool.ir.errors import Error
from irtool.ir.types import (
    ANY,
    FLOAT,
    INT,
    NONE,
    TENSOR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    NamedTupleType,
    OptionalType,
    RRefType,
    SimpleType,
    TensorType,
    TupleType,
    TypeSyntaxError,
    TypeVar,
    UnionType,
    contiguous_strides,
    dict_of,
    is_subtype,
    join,
    list_of,
    named_tuple_of,
    optional,
    parse_type,
    read_type,
    same,
    spell,
    tensor_type,
    tuple_of,
    union_of,
)

EVERY_FORM = {
    "Tensor": TensorType, "Dynamic": TensorType, "UNKNOWN_TYPE": TensorType, "Undefined": TensorType, "UndefinedTensor": TensorType,
    "AutogradZeroTensor": TensorType, "Tensor[AutogradZero]": TensorType, "Float(2)[Undefined]": TensorType, "FloatTensor": TensorType,
    "Float": TensorType, "Float()": TensorType, "Float(2!, 3)": TensorType, "Float(2:3, 3:1)": TensorType, "Float(*, *)": TensorType,
    "Float(SS(-1), 2)": TensorType, "(80, 10)": TensorType, "Tensor(requires_grad=0)": TensorType, "Tensor()": TensorType,
    "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)": TensorType, "Long(requires_grad=0, device=cuda:0)": TensorType,
    "Float(2, 3, device=cpu, requires_grad=1)": TensorType, "QUInt8(2)": TensorType, "Float8_e4m3fn(2)": TensorType,
    "ProfiledTensor(dtype = Float , shape = (2, 3)": TensorType, "Tensor(dtype = Long , shape = ()": TensorType,
    "int": SimpleType, "string": SimpleType, "str": SimpleType, "Scalar": SimpleType, "number": SimpleType, "Number": SimpleType,
    "None": SimpleType, "NoneType": SimpleType, "Device": SimpleType, "Generator": SimpleType, "Handle": SimpleType,
    "Tuple": SimpleType, "World": SimpleType, "Any": SimpleType, "Function": SimpleType, "Capsule": SimpleType, "SymInt": SimpleType,
    "int[]": ListType, "int[2]": ListType, "Tensor?[]": ListType, "Union(int, str)[]": ListType, "List[int]": ListType,
    "int?": OptionalType, "int[]?": OptionalType, "Optional[int]": OptionalType,
    "()": TupleType, "(Tensor)": TupleType, "(int, (Tensor, Tensor?))": TupleType, "Tuple[int, Tensor]": TupleType,
    "NamedTuple(a : int, b : Tensor)": NamedTupleType, "NamedTuple(a : (int, str) = (1, ,), b : str = a=b c)": NamedTupleType,
    "Dict(str, int[])": DictType, "Dict[str, List[int]]": DictType,
    "Dict[str, Tuple[Tensor, Tensor]]": DictType, "Union(int, str)": UnionType, "Future[int]": FutureType, "Future(int)": FutureType,
    "RRef[Tensor]": RRefType, "Await(int)": AwaitType, "Enum<__torch__.Color>": EnumType, "InterfaceType<Foo>": InterfaceType,
    "UserType<Foo>": ClassType, "ClassType<Foo>": ClassType, "__torch__.a.b.___torch_mangle_4.Foo": ClassType,
    "__torch__.a.<locals>.Foo": ClassType, "Bottom": ClassType, "t": TypeVar, "tVal": TypeVar,
}


@pytest.mark.parametrize("text", EVERY_FORM)
def test_every_form_is_read_and_kept(text: str) -> None:
    type = parse_type(text)
    assert isinstance(type, EVERY_FORM[text])
    assert type.text == str(type) == text
    assert parse_type(text) is type
    assert copy.deepcopy(type) is type
    assert pickle.loads(pickle.dumps(type)) is type
    assert read_type(f"x: {text} = rest", 3)[1] == 3 + len(text)


def test_parts_of_a_tensor_type() -> None:
    type = parse_type("Float(2, *, strides=[3, 1], requires_grad=1, device=cuda:0)")
    assert isinstance(type, TensorType)
    assert (type.dtype, type.sizes, type.strides, type.requires_grad, type.device) == ("float32", (2, None), (3, 1), True, "cuda:0")
    assert type.rank == 2 and type.shape is None and type.undefined is None
    old = parse_type("Double(2:3, 3:1)")
    assert isinstance(old, TensorType) and (old.dtype, old.shape, old.strides) == ("float64", (2, 3), (3, 1))
    assert isinstance(marked := parse_type("Float(2!, 3)"), TensorType) and marked.marks == (True, False)
    assert isinstance(bare := parse_type("(80, 10)"), TensorType) and bare.shape == (80, 10) and bare.dtype is None


def test_empty_parenthesis_depends_on_the_dialect() -> None:
    assert isinstance(parse_type("()"), TupleType)
    scalar = parse_type("()", dialect("A1"))
    assert isinstance(scalar, TensorType) and scalar.shape == ()
    assert parse_type("()") is not scalar


def test_rank_of_empty_and_options_only_parentheses() -> None:
    for text, rank in {"Float()": 0, "Long(device=cpu)": 0, "Tensor()": 0, "Tensor(device=cpu)": None, "FloatTensor(device=cpu)": None,
                       "Float": None}.items():
        type = parse_type(text)
        assert isinstance(type, TensorType) and type.rank == rank, text


@pytest.mark.parametrize(("text", "offset"), [
    ("", 0), ("(int", 4), ("Float(2", 7), ("Float(2,", 8), ("Float(2 3)", 8), ("Float(2, foo=1)", 9), ("Dict(int)", 9), ("[]", 0),
    ("int]", 3), ("int[x]", 4), ("2", 0), ("NamedTuple(int)", 14), ("Float(strides=[1, 2])", 6), ("Float(2, requires_grad=7)", 9),
    ("Float(" + "9" * 100_000 + ")", 6), ("(" * 100_000 + ")" * 100_000, 101), ("int" + "[]" * 100_000, 205), ("Enum<", 4),
    ("Dict[" * 100_000, 505), ("int[AutogradZero]", 17), ("Float(2, 3, strides=[3])", 12),
])
def test_what_is_no_type_is_an_error_with_a_place(text: str, offset: int) -> None:
    with pytest.raises(TypeSyntaxError) as error:
        parse_type(text)
    assert error.value.offset == offset


def test_one_key_for_all_spellings_of_a_type() -> None:
    for group in [("Tensor", "Dynamic", "UNKNOWN_TYPE"), ("str", "string"), ("Scalar", "Number", "number"), ("None", "NoneType"),
                  ("Dict(str, int[])", "Dict[str, List[int]]"), ("Float(2:3, 3:1)", "Float(2, 3, strides=[3, 1])"),
                  ("Future[int]", "Future(int)"), ("int", "ScalarType", "SymInt"), ("Float", "FloatTensor"),
                  ("Undefined", "UndefinedTensor", "Tensor[AutogradZero]"), ("UserType<Foo>", "Foo"),
                  ("Union(int, str)", "Union(str, int)")]:
        assert len({parse_type(text).key for text in group}) == 1, group
        assert all(same(parse_type(a), parse_type(b)) for a, b in itertools.product(group, group))
    assert not same(parse_type("Float(2!, 3)"), parse_type("Float(2, 3)"))
    assert not same(INT, FLOAT)


def test_constructors_write_todays_spelling() -> None:
    assert str(list_of(optional(INT))) == "int?[]"
    assert optional(optional(INT)) is optional(INT) and optional(NONE) is NONE
    assert str(tuple_of([INT, TENSOR])) == "(int, Tensor)" and str(tuple_of([])) == "()"
    assert str(dict_of(INT, list_of(TENSOR))) == "Dict(int, Tensor[])"
    assert str(union_of([INT, FLOAT])) == "Union(int, float)"
    assert str(named_tuple_of(["a"], [INT])) == "NamedTuple(a : int)"
    assert str(tensor_type("float32", (2, 3), (3, 1), False, "cpu")) == "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"
    assert tensor_type() is TENSOR
    assert str(tensor_type("int64")) == "LongTensor"
    assert str(tensor_type("int64", ())) == "Long()"
    assert contiguous_strides((2, 0, 3)) == (3, 3, 1)


SPELLINGS = {        # today's text: C1, C2, D, F1
    "Tensor": ("Dynamic", "Tensor", "Tensor", "Tensor"),
    "str": ("string", "string", "string", "str"),
    "Scalar": ("Number", "Scalar", "Scalar", "Scalar"),
    "NoneType": ("None", "None", "None", "None"),
    "int?": ("int?", "int?", "int?", "int?"),
    "(int, Tensor)": ("(int, Dynamic)", "(int, Tensor)", "(int, Tensor)", "(int, Tensor)"),
    "Dict(str, int[])": ("Dict(string, int[])", "Dict[str, List[int]]", "Dict[str, List[int]]", "Dict(str, int[])"),
    "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)": ("Float(2, 3)", "Float(2, 3)", "Float(2, 3)", "Float(2:3, 3:1)"),
    "Float(2, 3, strides=[1, 2])": ("Float(2!, 3!)", "Float(2!, 3!)", "Float(2!, 3!)", "Float(2:1, 3:2)"),
    "Float(2, *)": ("Dynamic", "Float(*, *)", "Float(*, *)", "Float(2, *)"),
    "FloatTensor": ("Dynamic", "Tensor", "Tensor", "FloatTensor"),
    "Tensor[AutogradZero]": ("Dynamic", "UndefinedTensor", "UndefinedTensor", "Tensor[AutogradZero]"),
    "Tensor(requires_grad=0)": ("Dynamic", "Tensor", "Tensor", "Tensor"),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_spelling_for_a_dialect(text: str) -> None:
    type = parse_type(text)
    assert tuple(str(spell(type, dialect(name))) for name in ("C1", "C2", "D", "F1")) == SPELLINGS[text]
    assert spell(type, dialect("G")) is type


LEAVES = st.sampled_from(["Tensor", "int", "float", "bool", "str", "string", "Scalar", "Device", "Any", "Float(2, 3)", "Float(*, 3)",
                          "Long(requires_grad=0, device=cpu)", "Double(2:3, 3:1)", "None", "Dynamic", "__torch__.A.B", "t",
                          "Float(2, 3, strides=[3, 1])", "Tensor[AutogradZero]"])
TYPES = st.recursive(LEAVES, lambda inner: st.one_of(
    inner.map(lambda t: t + "[]"), inner.map(lambda t: t + "?"), st.lists(inner, max_size=3).map(lambda ts: "(" + ", ".join(ts) + ")"),
    st.tuples(inner, inner).map(lambda kv: f"Dict({kv[0]}, {kv[1]})"), inner.map(lambda t: f"Future[{t}]"),
    st.lists(inner, min_size=1, max_size=3).map(lambda ts: "Union(" + ", ".join(ts) + ")"),
    inner.map(lambda t: f"NamedTuple(a : {t}, b : int)")), max_leaves=6)


@given(TYPES)
def test_any_type_keeps_its_text(text: str) -> None:
    type = parse_type(text)
    assert type.text == text
    assert is_subtype(type, type) and join(type, type) is type and is_subtype(type, ANY)
    assert same(parse_type(type.key), type)


@given(TYPES, st.sampled_from(sorted(DIALECTS)))
def test_spelling_twice_changes_nothing_more(text: str, name: str) -> None:
    there = spell(parse_type(text), dialect(name))
    assert spell(there, dialect(name)) is there


@given(TYPES)
def test_todays_spelling_is_the_same_type(text: str) -> None:
    assert same(spell(parse_type(text), dialect("G")), parse_type(text))


@given(TYPES, TYPES)
def test_join_is_above_both(a: str, b: str) -> None:
    one, other = parse_type(a), parse_type(b)
    both = join(one, other)
    if both is not None:
        assert is_subtype(one, both) and is_subtype(other, both)
    if is_subtype(one, other):
        assert both is other


@given(st.text(alphabet="Float(2, 3)[]?TensorDict:!*=<>\n %", max_size=40))
def test_any_text_is_a_type_or_an_error(text: str) -> None:
    try:
        assert parse_type(text).text == text
    except TypeSyntaxError as error:
        assert 0 <= error.offset <= len(text)


def test_subtypes() -> None:
    def under(a: str, b: str) -> bool:
        return is_subtype(parse_type(a), parse_type(b))

    assert under("Float(2, 3)", "Tensor") and under("Float(2, 3)", "Float(*, 3)") and not under("Tensor", "Float(2, 3)")
    assert under("Dynamic", "Tensor") and under("None", "int?") and under("int", "int?") and not under("int?", "int")
    assert under("int", "Scalar") and under("complex", "Number") and not under("bool", "Scalar") and not under("int", "float")
    assert under("(int, Float(2))", "(Scalar, Tensor)") and not under("int[]", "Scalar[]") and under("Float(2)[]", "Tensor[]")
    assert under("Union(int, float)", "Scalar") and under("int", "Union(int, str)") and under("int?", "Union(int, NoneType)")
    assert under("NamedTuple(a : int)", "(int)") and not under("(int)", "NamedTuple(a : int)")
    assert under("int[]", "list") and under("(int)", "Tuple") and under("Tensor[AutogradZero]", "Tensor")


def test_joins() -> None:
    def text(a: str, b: str) -> str | None:
        found = join(parse_type(a), parse_type(b))
        return None if found is None else found.text

    assert text("Float(2, 3)", "Float(2, 4)") == "Float(2, *)"
    assert text("Float(2, 3)", "Long(2)") == "Tensor"
    assert text("int", "None") == "int?" and text("int?", "None") == "int?" and text("int", "float") is None
    assert text("(int, Float(2))", "(None, Float(3))") == "(int?, Float(*))"
    assert text("Float(2)[]", "Float(3)[]") == "Float(*)[]" and text("int[]", "float[]") is None


def test_unknown_dialect_lists_the_choices() -> None:
    with pytest.raises(Error, match="no dialect 'Z9', expected one of: A0, .*2018-06 = C1"):
        dialect("Z9")
    assert dialect("2018-06") is DIALECTS["C1"] and pickle.loads(pickle.dumps(DIALECTS["C1"])) is DIALECTS["C1"]
    with pytest.raises(AttributeError):
        DIALECTS["C1"].braces = False


TORCH_TYPES = [
    "Tensor", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "Float(2, 3)", "Float(*, 3)", "Long(2, 3)", "int", "float",
    "bool", "complex", "str", "Scalar", "NoneType", "Any", "int?", "Tensor?", "int[]", "float[]", "Tensor[]", "int[]?", "Scalar[]",
    "(int, Tensor)", "(int, Float(2, 3))", "(Scalar, Tensor)", "Dict(str, int)", "Dict(str, Tensor)", "Union(int, str)",
    "Union(int, float)", "Union(int, str, NoneType)", "Device", "Future(int)", "Future(Scalar)", "(int, Tensor)?", "(int?, Tensor)",
    "int?[]", "Scalar?", "Generator", "Capsule", "RRef(int)"]


@pytest.mark.oracle
def test_relations_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    theirs = {text: next(torch._C.parse_ir(f"graph(%a : {text}):\n  return (%a)").inputs()).type() for text in TORCH_TYPES}
    for a, b in itertools.product(TORCH_TYPES, TORCH_TYPES):
        one, other = parse_type(a), parse_type(b)
        assert is_subtype(one, other) == theirs[a].isSubtypeOf(theirs[b]), (a, b)
        try:
            unified = str(torch._C.unify_type_list([theirs[a], theirs[b]]))
        except RuntimeError:
            unified = None
        joined = join(one, other)
        assert (joined is None) == (unified is None), (a, b)
        if joined is not None and unified is not None and "Float" not in a + b and "Long" not in a + b:
            assert parse_type(unified).key == joined.key
