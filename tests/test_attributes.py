"""Attributes: lists are split right whatever is in them; texts and values agree with each other and with torch."""
from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irtool
from irtool.ir.attribute import Attribute, AttributeSyntaxError, Opaque, parse_value, read_attributes, split_attributes
from irtool.ir.dialect import DIALECTS, dialect
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Graph
from irtool.ir.tensor_dump import dump_text, literal_of
from irtool.ir.tensor_literal import TensorLiteral
from irtool.ir.types import Type, list_of, parse_type

LISTS = [
    ("", []),
    ("value=1", ["1"]),
    ("dim=1,chunks=2", ["1", "2"]),
    ("a=[1, 2], b=[[1], []], c=0", ["[1, 2]", "[[1], []]", "0"]),
    ('value="a, b=c](%1)"', ['"a, b=c](%1)"']),
    (r'value="q\"uote\'", name="x"', [r'"q\"uote\'"', '"x"']),
    ('value="say "hi", you", b=1', ['"say "hi", you"', "1"]),        # late 2018: inner quotes are not escaped
    ('value="C:\\", b=1', ['"C:\\"', "1"]),                           # late 2018: nor are backslashes
    ("name=aten::add", ["aten::add"]),
    ("code=a\n\tb, c, n=2", ["a\n\tb, c", "2"]),                      # mid 2018: bare strings, with real newlines
    ("code=x[0), n=2", ["x[0)", "2"]),
    ("alpha={1}, beta={-0.5}", ["{1}", "{-0.5}"]),
    ("value= 1  1  1  1 [ CPUDoubleTensor{2,2} ], b=2", [" 1  1  1  1 [ CPUDoubleTensor{2,2} ]", "2"]),
    ("value=[ CPUFloatType{0} ]", ["[ CPUFloatType{0} ]"]),
    ("value=(1,.,.) =   0  0   0  0 [ CPUFloatType{1,2,2} ], b=2", ["(1,.,.) =   0  0   0  0 [ CPUFloatType{1,2,2} ]", "2"]),
    ("value=0.001 *  1.0000  2.0000 [ Variable[CPUFloatType]{2} ]", ["0.001 *  1.0000  2.0000 [ Variable[CPUFloatType]{2} ]"]),
    ("value= 1  2 [ QuantizedCPUQUInt8Type{2}, qscheme: per_tensor_affine, scale: 0.1, zero_point: 0 ], b=3",
     [" 1  2 [ QuantizedCPUQUInt8Type{2}, qscheme: per_tensor_affine, scale: 0.1, zero_point: 0 ]", "3"]),
    ("value=<Tensor>, is_zero=1", ["<Tensor>", "1"]),
    ("Subgraph=<Graph>, tes=[<Tensors>]", ["<Graph>", "[<Tensors>]"]),
    ("types=[Float(2, 3, strides=[3, 1], device=cpu), Tensor(requires_grad=0)]",
     ["[Float(2, 3, strides=[3, 1], device=cpu), Tensor(requires_grad=0)]"]),
    ("profiled_type=ProfiledTensor(dtype = Float , shape = (2, 3), n=1", ["ProfiledTensor(dtype = Float , shape = (2, 3)", "1"]),
    ("types=[ProfiledTensor(dtype = Float , shape = (2, 3), Tensor], n=1",
     ["[ProfiledTensor(dtype = Float , shape = (2, 3), Tensor]", "1"]),
    ('value={"a": 1, "b, c=": [2]}, b=annotate(List[int], []), c=annotate(Dict[str, int],{})',
     ['{"a": 1, "b, c=": [2]}', "annotate(List[int], [])", "annotate(Dict[str, int],{})"]),
    ("value=object(0x7f00), b=__torch__.Color.RED", ["object(0x7f00)", "__torch__.Color.RED"]),
]


@pytest.mark.parametrize(("text", "values"), LISTS)
def test_a_list_is_split_where_its_values_end(text: str, values: list[str]) -> None:
    pairs = split_attributes(text)
    assert [value for _, value in pairs] == values
    line = f"%1 = prim::X[{text}](%0)"
    assert read_attributes(line, line.index("[") + 1) == (pairs, len(line) - 5)


@pytest.mark.parametrize("text", ["value", "value=", "=1", "a=1, b", "a=1, ", "a=[1", "a b=1", '"x"'])
def test_a_damaged_list_is_an_error_or_one_text(text: str) -> None:
    try:
        pairs = split_attributes(text)
    except AttributeSyntaxError as error:
        assert 0 <= error.offset <= len(text)
    else:
        assert ", ".join(f"{n}={v}" for n, v in pairs) == text


def test_a_list_that_does_not_end_is_an_error() -> None:
    for text in ("value=1", 'value="a', "value=[1", "value=1]"):
        with pytest.raises(AttributeSyntaxError):
            read_attributes(text, 0)


VALUES = st.recursive(
    st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.none(), st.text(max_size=12),
              st.complex_numbers(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple),
                            st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3)), max_leaves=8)


def plain(value: object) -> object:
    """What a value is after a trip through text: a scalar bool is an int, a float keeps its kind, a complex loses no bit."""
    return int(value) if isinstance(value, bool) else value


@given(VALUES)
def test_todays_text_of_a_value_gives_it_back(value: object) -> None:
    text = Attribute.of(value).text
    back = Attribute(text).value
    if isinstance(value, float):        # 1e16 prints without a dot: the type knows
        assert Attribute(text).as_type(parse_type("float")) == value
    elif not _holds_numbers(value):
        assert back == plain(value)
    assert split_attributes(f"value={text}, n=1") == [("value", text), ("n", "1")]
    assert read_attributes(f"value={text}](", 0) == ([("value", text)], len(text) + 6)


def _holds_numbers(value: object) -> bool:
    """Big integral floats come back as ints, infinities in complex numbers as nan: compared elsewhere."""
    if isinstance(value, (list, tuple)):
        return any(_holds_numbers(v) for v in value)
    if isinstance(value, dict):
        return any(_holds_numbers(v) for v in value.values())
    return isinstance(value, (float, complex))


@given(st.lists(st.tuples(st.from_regex(r"[a-z_]\w{0,4}", fullmatch=True), st.one_of(
    VALUES.map(lambda v: Attribute.of(v).text), st.sampled_from([v for _, vs in LISTS for v in vs if "\n" not in v])), ), max_size=4))
def test_joining_gives_the_list_back(pairs: list[tuple[str, str]]) -> None:
    text = ", ".join(f"{name}={value}" for name, value in pairs)
    assert ", ".join(f"{name}={value}" for name, value in split_attributes(text)) == text


@given(st.text(alphabet='ab=,[](){}"\\ 1.-<>:\n', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    parse_value(text)
    for read in (split_attributes, lambda t: read_attributes(t, 0)):
        try:
            read(text)
        except AttributeSyntaxError as error:
            assert 0 <= error.offset <= len(text)


@pytest.mark.parametrize(("text", "value"), [
    ("1", 1), ("-2", -2), ("1.", 1.0), ("0.10000000000000001", 0.1), ("1e-05", 1e-05), ("inf", math.inf), ("-inf", -math.inf),
    ("0.+3.j", 3j), ("-1.5-2.j", -1.5 - 2j), ('"a\\n\\"b\\""', 'a\n"b"'), ("aten::add", "aten::add"), ("None", None), ("True", True),
    ("[]", []), ("[1, 2.5]", [1, 2.5]), ('["a", "b"]', ["a", "b"]), ("[a, b]", ["a", "b"]), ("(1,)", (1,)), ("()", ()),
    ('(7, 2.5, "hi", None)', (7, 2.5, "hi", None)), ("[[1, 2], [3]]", [[1, 2], [3]]), ('{"a": 1}', {"a": 1}), ("{}", {}),
    ("annotate(List[int], [])", []), ("annotate(Dict[str, int],{})", {}), ("<Graph>", Opaque("<Graph>")),
    ("object(0x7f)", Opaque("object(0x7f)")), ("[<Tensors>]", Opaque("[<Tensors>]")), ("9" * 5000, Opaque("9" * 5000)),
])
def test_values_by_text(text: str, value: object) -> None:
    found = parse_value(text)
    assert found == value and type(found) is type(value)


E_ACUTE = r'"\0)+\/.)"'        # as every torch from 1.1 to 2.13 prints it


def test_bytes_from_0x80_on_are_octal_of_signed_chars() -> None:
    assert Attribute.of("é").text == E_ACUTE and parse_value(E_ACUTE) == "é"
    assert parse_value(Attribute.of("é€\x01").text) == "é€\x01"


def test_types_are_values() -> None:
    (one, other) = Attribute("[Tensor(requires_grad=0), Float(2)]").value  # type: ignore[misc]
    assert (str(one), str(other)) == ("Tensor(requires_grad=0)", "Float(2)")
    assert isinstance(Attribute("Float(2, 3)").value, Type)
    two = Attribute("[ProfiledTensor(dtype = Float , shape = (2, 3), Tensor]").value
    assert isinstance(two, list) and [str(t) for t in two] == ["ProfiledTensor(dtype = Float , shape = (2, 3)", "Tensor"]


@pytest.mark.parametrize(("text", "type", "value"), [
    ("1", "float", 1.0), ("1", "bool", True), ("0", "bool", False), ("1", "int", 1), ("{1}", "int", 1), ("{2}", "float", 2.0),
    ("{2.5}", "Scalar", 2.5), ("{2}", "Scalar", 2), ("1", "str", "1"), ("Float", "string", "Float"), ("aten::add", "str", "aten::add"),
    ("[0, -1]", "Device", "cpu"), ("[1, 2]", "Device", "cuda:2"), ('"cuda:0"', "Device", "cuda:0"), ("[1, 2]", "float[]", [1.0, 2.0]),
    (" 0 -1 [ CPULongTensor{2} ]", "int[]", [0, -1]), ("None", "int?", None), ("1", "float?", 1.0), ("(1, 2)", "(float, int)", (1.0, 2)),
    ('{"a": 1}', "Dict(str, float)", {"a": 1.0}), ("10000000000000000", "float", 1e16), ("1", "complex", 1 + 0j),
    ("[1, 0]", "bool[]", [True, False]), ("__torch__.Color.RED", "Enum<__torch__.Color>", Opaque("__torch__.Color.RED")),
    ("(__torch__.C.A,)", "(Enum<__torch__.C>)", (Opaque("__torch__.C.A"),)),
    ("[(__torch__.C.A,)]", "(Enum<__torch__.C>)[]", [(Opaque("__torch__.C.A"),)]),
    ("((__torch__.C.A, __torch__.C.B), 1)", "((Enum<__torch__.C>, Enum<__torch__.C>), int)",
     ((Opaque("__torch__.C.A"), Opaque("__torch__.C.B")), 1)),
    ('(torch.device("cuda:1"), (torch.device("cpu"),))', "(Device, (Device))", ("cuda:1", ("cpu",))),
])
def test_the_type_decides_what_the_text_leaves_open(text: str, type: str, value: object) -> None:
    found = Attribute(text).as_type(parse_type(type))
    assert found == value and found.__class__ is value.__class__


@pytest.mark.parametrize(("text", "dtype", "shape", "numbers"), [
    ("{1}", None, (), [1]), ("{-0.5}", None, (), [-0.5]), ("{(0,1)}", None, (), [1j]), ("{-inf}", None, (), [-math.inf]),
    (" 1  1  1  1 [ CPUDoubleTensor{2,2} ]", "float64", (2, 2), [1.0] * 4), ("-1  2 [ Variable[CPUType]{2} ]", None, (2,), [-1, 2]),
    ("-1  2 [ Variable[CPULongType]{2} ]", "int64", (2,), [-1, 2]), (" 1  0 [ CPUBoolType{2} ]", "bool", (2,), [True, False]),
    ("[ CPUFloatType{0,3} ]", "float32", (0, 3), []), ("0.001 *  1.0000  2.0000 [ CPUFloatType{2} ]", "float32", (2,), [0.001, 0.002]),
    ("    nan  1.5000 [ CPUHalfType{2} ]", "float16", (2,), [math.nan, 1.5]),
    ("(1,.,.) =   1  2   3  4  (2,.,.) =   5  6   7  8 [ CPULongType{2,2,2} ]", "int64", (2, 2, 2), [1, 2, 3, 4, 5, 6, 7, 8]),
    ("Columns 1 to 8       0    1e+06    2e+06    3e+06    4e+06    5e+06    6e+06    7e+06  Columns 9 to 10   8e+06    9e+06"
     " [ CPUFloatType{1,10} ]", "float32", (1, 10), [i * 1e6 for i in range(10)]),
    ("Columns 1 to 2  1  2  4  5 Columns 3 to 3  3  6 [ CPULongType{2,3} ]", "int64", (2, 3), [1, 2, 3, 4, 5, 6]),
    (" 1  2 [ QuantizedCPUQUInt8Type{2}, qscheme: per_tensor_affine, scale: 0.1, zero_point: 0 ]", "quint8", (2,), [1.0, 2.0]),
    ("{(1.5,2)}", None, (), [1.5 + 2j]), ("[ CPUComplexFloatType{0} ]", "complex64", (0,), []),
    ("(1.0,2.5) [ CPUComplexDoubleType{} ]", "complex128", (), [1 + 2.5j]),
])
def test_tensor_dumps(text: str, dtype: str | None, shape: tuple[int, ...], numbers: list[object]) -> None:
    literal = Attribute(text).value
    assert isinstance(literal, TensorLiteral)
    assert (literal.dtype, literal.shape) == (dtype, shape)
    assert repr(literal.numbers()) == repr(numbers)
    assert literal.text == text and literal.is_quantized == ("Quantized" in text)


def test_the_type_tells_what_a_one_element_tensor_is() -> None:
    literal = Attribute("{1}").as_type(parse_type("Double(1, 1)"))
    assert isinstance(literal, TensorLiteral)
    assert (literal.dtype, literal.shape, literal.item()) == ("float64", (1, 1), 1.0)


def test_a_tensor_without_data_says_so_when_it_is_read() -> None:
    literal = Attribute("<Tensor>").value
    assert isinstance(literal, TensorLiteral) and not literal.has_data and literal.shape is None and literal.dtype is None
    with pytest.raises(UnsupportedError, match="has no data"):
        literal.numbers()


@pytest.mark.parametrize("text", [" 1  3 [ CPUComplexFloatType{2} ]", " 1.5000  2.0000 [ CPUComplexDoubleType{2} ]",
                                  "(1,.,.) =   1  2   3  4 [ CPUComplexFloatType{1,2,2} ]",
                                  "0.001 *  1.0000  2.0000 [ CPUComplexHalfType{2} ]"])
def test_complex_elements_without_imaginary_parts_are_not_known(text: str) -> None:
    literal = Attribute(text).value
    assert isinstance(literal, TensorLiteral) and literal.text == text
    assert not literal.has_data and not literal.is_rounded
    with pytest.raises(UnsupportedError, match="only the real parts"):
        literal.numbers()


@pytest.mark.parametrize(("numbers", "shape", "dtype", "text"), [
    ([1], (), "int64", "{1}"), ([0.1], (1, 1), "float64", "{0.1}"), ([3 + 1j], (), "complex64", "{(3,1)}"), ([], (0, 3), "float32",
     "[ CPUFloatType{0,3} ]"), ([True, False], (2,), "bool", " 1  0 [ CPUBoolType{2} ]"), (list(range(11)), (11,), "int64", "<Tensor>"),
    ([0.001, 0.002], (2,), "float32", "0.001 *  1.0000  2.0000 [ CPUFloatType{2} ]"),
    ([1e-3, 2.0, 4.0, 1e6], (2, 2), "float32", " 1.0000e-03  2.0000e+00  4.0000e+00  1.0000e+06 [ CPUFloatType{2,2} ]"),
    ([1, 2, 3, 4], (1, 2, 2), "int64", "(1,.,.) =   1  2   3  4 [ CPULongType{1,2,2} ]"),
    ([i * 1e6 for i in range(10)], (1, 10), "float32", "Columns 1 to 8       0    1e+06    2e+06    3e+06    4e+06    5e+06    6e+06"
     "    7e+06  Columns 9 to 10   8e+06    9e+06 [ CPUFloatType{1,10} ]"),
])
def test_dumps_are_written_as_torch_writes_them(numbers: list[float], shape: tuple[int, ...], dtype: str, text: str) -> None:
    literal = literal_of(numbers, shape, dtype)
    assert literal.text == text and Attribute(text).value.__class__ is TensorLiteral
    assert (literal.dtype, literal.shape) == (dtype, shape)


@pytest.mark.parametrize("text", [
    " 1  2 [ CPULongType{3} ]", " 1 [ CPULongType{1000000,1000000} ]", " 1  x [ CPULongType{2} ]", " 1 * [ CPULongType{2} ]",
    "[ SparseCPULongType{} indices:  0  1 [ CPULongType{1,2} ] values:  1  2 [ CPULongType{2} ] size: [2] ]"])
def test_a_dump_that_does_not_add_up_is_an_error(text: str) -> None:
    with pytest.raises(Error):
        TensorLiteral(text).numbers()


def test_attributes_compare_by_text() -> None:
    assert Attribute("1") == Attribute("1", 1) and Attribute("1") != Attribute("1.") and Attribute("0.") != Attribute("-0.")
    assert len({Attribute("1"), Attribute("1")}) == 1
    one, other = Graph(), Graph()
    assert Attribute("<Graph>", one) == Attribute("<Graph>", one) and Attribute("<Graph>", one) != Attribute("<Graph>", other)


@pytest.mark.parametrize(("value", "type", "texts"), [       # texts: C1, C2, D, F1, G
    (1.0, None, ["1", "1", "1", "1.", "1."]), (0.1, None, ["0.1", "0.1", "0.1", "0.10000000000000001", "0.10000000000000001"]),
    (-0.0, None, ["-0", "-0", "-0", "-0.", "-0."]), (1e16, None, ["1e+16", "1e+16", "1e+16", "10000000000000000", "10000000000000000"]),
    (True, None, ["1"] * 5), ([True], None, ["[1]", "[1]", "[1]", "[True]", "[True]"]), ("a\nb", None, ["a\nb", *[r'"a\nb"'] * 4]),
    ([], "int[]", ["[]", "[]", "[]", "annotate(List[int], [])", "annotate(List[int], [])"]), ([1, 2], "int[]", ["[1, 2]"] * 5),
    ([1], "float[]", ["[1]", "[1]", "[1]", "[1.]", "[1.]"]), (parse_type("Float(2, 3, strides=[3, 1])"), None,
     ["Float(2, 3)", "Float(2, 3)", "Float(2, 3)", "Float(2:3, 3:1)", "Float(2, 3, strides=[3, 1])"]),
    ({}, "Dict(str, int[])", ["{}", "{}", "{}", "annotate(Dict[str, List[int]],{})", "annotate(Dict[str, List[int]],{})"]),
])
def test_spelling_for_a_dialect(value: object, type: str | None, texts: list[str]) -> None:
    wanted = None if type is None else parse_type(type)
    assert [Attribute.of(value, dialect(name), wanted).text for name in ("C1", "C2", "D", "F1", "G")] == texts


def test_arguments_as_attributes() -> None:
    old = DIALECTS["C1"]
    assert Attribute.argument(1, parse_type("Scalar"), old).text == "{1}"
    assert Attribute.argument(0.5, parse_type("Scalar?"), old).text == "{0.5}"
    assert Attribute.argument(1, parse_type("int"), old).text == "1"
    assert Attribute.argument([2, 3], list_of(parse_type("int")), old).text == "[2, 3]"
    assert Attribute.argument(True, parse_type("bool"), old).text == "1"


@pytest.mark.parametrize("value", [object(), {1, 2}, 10 ** 5000], ids=["object", "set", "gigantic"])
def test_what_cannot_be_spelled_is_an_error(value: object) -> None:
    with pytest.raises(Error):
        Attribute.of(value)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_is_bounded() -> None:
    assert parse_value("[" * 50 + "1" + "]" * 50) == nested(50)
    for text in ("[" * 10_000, "[" * 10_000 + "]" * 10_000, "(" * 10_000, '{"a": ' * 5_000 + "1" + "}" * 5_000):
        parse_value(text)
    with pytest.raises(Error):
        Attribute.of(nested(1000))


TEXTS = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=10)


@pytest.mark.oracle
@settings(deadline=None)
@given(st.one_of(st.integers(-2**63, 2**63 - 1), st.floats(), TEXTS,
                 st.lists(st.integers(-2**63, 2**63 - 1), min_size=1, max_size=3), st.lists(st.floats(), min_size=1, max_size=3),
                 st.lists(st.booleans(), min_size=1, max_size=3), st.tuples(st.integers(0, 9), st.floats())))
def test_todays_spelling_is_torchs(value: object) -> None:
    torch = pytest.importorskip("torch")
    graph = torch._C.Graph()
    constant = graph.insertConstant(value)
    line = str(graph).split("\n")[1]
    text = line[line.index("[value=") + 7:line.rindex("]()")]
    assert constant is not None
    if not any(isinstance(v, float) and math.isnan(v) for v in (value if isinstance(value, (list, tuple)) else [value])):
        assert Attribute.of(value).text == text


@pytest.mark.oracle
def test_tensor_dumps_of_torch_are_read() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    for shape in [(2,), (3,), (2, 2), (1, 10), (2, 5), (5, 2), (2, 2, 2), (1, 1, 10), (2, 1, 2, 2), (10,), (1, 2, 5)]:
        for scale in (1.0, 1e-3, 1e6, 1.5e10):
            tensor = torch.randn(shape) * scale
            for made in (tensor, tensor.long(), tensor > 0, tensor.double(), tensor.bfloat16()):
                graph = torch._C.Graph()
                node = graph.create("prim::Constant")
                node.t_("value", made)
                graph.insertNode(node)
                line = str(graph).split("\n")[1]
                literal = TensorLiteral(line[line.index("[value=") + 7:line.rindex("]()")])
                dtype = str(made.dtype).removeprefix("torch.")
                assert literal.dtype == dtype and literal.shape == shape
                assert dump_text(made.flatten().tolist(), shape, dtype) == literal.text
                read = torch.tensor(literal.numbers(), dtype=torch.float64).reshape(shape)
                assert torch.allclose(read, made.double(), rtol=1e-2, atol=scale * 1e-3), (literal.text, made)


INSTANCES = ((), (1,), 3, [()], (1, ()), {"a": ()}, ((), 2))
"""Values, of which each list of types below has some."""


@pytest.mark.parametrize(("types", "which"), [
    ("()", [0]), ("int, ()", [0, 2]), ("(int, ())", [4]), ("()[]", [3]), ("Dict(str, ())", [5]), ("((), int)", [6]), ("(int)", [1]),
])
def test_types_of_empty_tuples(types: str, which: list[int]) -> None:
    text = f"graph(%x : Any):\n  %1 : bool = prim::isinstance[types=[{types}]](%x)\n  return (%1)\n"
    module = irtool.parse(text)
    assert str(module) == text
    irtool.verify(module.graph())
    for ways in ({"interpret": True}, {}, {}):
        assert [i for i, value in enumerate(INSTANCES) if irtool.run(module, [value], **ways) == [True]] == which
    again = irtool.from_script(irtool.to_script(module))
    assert [i for i, value in enumerate(INSTANCES) if irtool.run(again, [value]) == [True]] == which


@pytest.mark.parametrize("types", ["1", "1, ()", "(1, ())", "x y"])
def test_other_values_are_no_types(types: str) -> None:
    with pytest.raises(irtool.VerifyError, match="a list of types"):
        irtool.verify(irtool.parse(f"graph(%x : Any):\n  %1 : bool = prim::isinstance[types=[{types}]](%x)\n  return (%1)\n").graph())
