"""Archives, literals, binding to inputs: what goes in comes out, and everything else is a message."""
from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import irtool
from irtool.interop.binding import bind
from irtool.interop.literal import DTYPES, literal_text, parse_literal
from irtool.interop.npz import Archive, decode, encode
from irtool.ops.arrays import seeded


def load_nothing(path: str) -> Any:
    raise irtool.Error(f"no file {path}")


def literal(text: str) -> Any:
    return parse_literal(text, load_nothing)


def saved(**members: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **members)
    return stream.getvalue()


def header(types: str) -> irtool.Graph:
    """A graph with inputs of these types, all read."""
    names = [part.partition(":")[0].strip().lstrip("%") for part in types.split(", %")]
    reads = ", ".join(f"%{name}" for name in names)
    return irtool.parse(f"graph({types}):\n  %out : Any[] = prim::ListConstruct({reads})\n  return (%out)\n").graph()


def problem(graph: irtool.Graph, archive: Archive, literals: dict[str, Any] | None = None, cast: bool = False) -> str:
    with pytest.raises(irtool.Error) as raised:
        bind(graph, archive, literals or {}, cast)
    return str(raised.value)


class TestArchive:
    @given(arrays.arrays(st.sampled_from(["float32", "float64", "int64", "uint8", "bool", "complex64", "float16"]),
                         arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)))
    @settings(max_examples=60, deadline=None)
    def test_arrays_come_back_bit_for_bit(self, array: Any) -> None:
        back = decode(encode(Archive({"file": array, "x.1": array.T})), "f.npz")
        for key, original in (("file", array), ("x.1", array.T)):
            assert back.arrays[key].dtype == original.dtype and back.arrays[key].tobytes() == original.tobytes()
            assert back.arrays[key].shape == original.shape and back.arrays[key].flags.writeable

    def test_numpy_reads_what_we_write_and_the_other_way(self) -> None:
        data = encode(Archive({"a": np.arange(3), "self": np.float32(2)}))
        with np.load(io.BytesIO(data)) as file:
            assert sorted(file.files) == ["a", "self"] and file["a"].tolist() == [0, 1, 2]
        assert decode(saved(a=np.arange(3)), "f").arrays["a"].tolist() == [0, 1, 2]

    def test_equal_archives_give_equal_bytes(self) -> None:
        assert encode(Archive({"a": np.arange(3)})) == encode(Archive({"a": np.arange(3)}))

    def test_structured_values_and_none(self) -> None:
        archive = Archive()
        for key, value in {"output0": [1, 2.5, "s", True], "output1": (np.ones(2), None), "output2": {"k": 3}, "output3": [],
                           "output4": None}.items():
            archive.put(key, value, shape=(2, 3))
        data = encode(archive)
        back = decode(data, "f.npz")
        assert list(back.arrays) == ["output0.0", "output0.1", "output0.2", "output0.3", "output1.0", "output1.1", "output2.k0",
                                     "output2.v0", "output3", "output4"]
        assert back.none == {"output1.1", "output4"} and back.arrays["output4"].shape == (2, 3)
        assert zipfile.ZipFile(io.BytesIO(data)).namelist()[-1] == "none.npy"

    def test_bfloat16_is_stored_as_float32_and_named(self) -> None:
        archive = Archive()
        archive.put("output0", np.float32([1.5]), is_bfloat16=True)
        back = decode(encode(archive), "f.npz")
        assert back.bfloat16 == {"output0"} and back.arrays["output0"].dtype == np.float32

    def test_raw_bfloat16_is_widened(self) -> None:
        raw = (np.float32([1.5, -2.0]).view(np.uint32) >> 16).astype(np.uint16).view("V2")
        back = decode(saved(x=raw), "f.npz")
        assert back.arrays["x"].tolist() == [1.5, -2.0] and back.bfloat16 == {"x"}

    def test_big_endian_and_fortran_order(self) -> None:
        array = np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3))
        back = decode(saved(x=array), "f.npz").arrays["x"]
        assert back.tolist() == array.tolist() and back.dtype == np.float32 and back.flags.f_contiguous

    @pytest.mark.parametrize("data, text", [
        (b"", "not an .npz"),
        (b"hello", "not an .npz"),
        (saved(x=np.ones(3))[:-30], "not an .npz"),
        (saved(x=np.array([{}], dtype=object)), "'x': an array of Python objects is refused"),
        (saved(x=np.zeros(2, "i4,f4")), "dtype"),
        (saved(x=np.array(["2020"], "M8[D]")), "dtype"),
        (saved(none=np.array(["y"])), "'none' lists 'y'"),
    ])
    def test_damage_is_an_error_that_names_the_file(self, data: bytes, text: str) -> None:
        with pytest.raises(irtool.Error) as raised:
            decode(data, "in.npz")
        assert str(raised.value).startswith("in.npz:") and text in str(raised.value)

    def test_an_npy_says_how_to_give_it(self) -> None:
        stream = io.BytesIO()
        np.save(stream, np.ones(2))
        with pytest.raises(irtool.Error, match="--input NAME=@x.npy"):
            decode(stream.getvalue(), "x.npy")

    @given(st.data())
    @settings(max_examples=150, deadline=None)
    def test_damaged_bytes_never_crash(self, data: st.DataObject) -> None:
        good = bytearray(saved(x=np.arange(6.0).reshape(2, 3), none=np.array(["x"])))
        for _ in range(data.draw(st.integers(1, 4))):
            good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
        try:
            decode(bytes(good[:data.draw(st.integers(len(good) // 2, len(good)))]), "f.npz")
        except irtool.Error:
            pass

    def test_a_header_that_lies_about_its_size_allocates_nothing(self) -> None:
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**6)})
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("x.npy", stream.getvalue())
        with pytest.raises(irtool.Error, match="damaged"):
            decode(archive.getvalue(), "f.npz")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2**63, 2**63 - 1) | st.floats() | st.text()
    | st.complex_numbers(allow_nan=False, allow_infinity=False)
    | st.sampled_from(sorted(set(DTYPES.values()) - {"bfloat16"})).flatmap(lambda name: arrays.arrays(
        name, arrays.array_shapes(min_dims=0, min_side=0),
        elements={"allow_nan": False, "allow_infinity": False} if name.startswith("complex") else None)),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple), max_leaves=6)


@settings(max_examples=200, deadline=None)
@given(VALUES | st.integers())      # an archive holds no list of larger ones
def test_the_literal_of_a_value_gives_the_value_back(value: Any) -> None:
    archives = []
    for each in (value, literal(literal_text(value))):
        archives.append(Archive())
        archives[-1].put("x", each if not isinstance(each, int) or abs(each) < 2**63 else str(each))
    for key, array in archives[0].arrays.items():
        again = archives[1].arrays[key]
        assert again.dtype == array.dtype and again.shape == array.shape and repr(again.tolist()) == repr(array.tolist())


class TestLiteral:
    @pytest.mark.parametrize("text, value", [
        ("3", 3), ("-2", -2), ("2.5", 2.5), ("1e-3", 1e-3), ("true", True), ("False", False), ("none", None), ("inf", float("inf")),
        ("[1, 2, 3]", [1, 2, 3]), ("[]", []), ("(1, 2.5)", (1, 2.5)), ("[[1], [2]]", [[1], [2]]), ('"a\\n"', "a\n"), ("'x'", "x"),
        ('{"a": 1, 2: none}', {"a": 1, 2: None}), ("1+2j", 1 + 2j), ("123456789012345678901234567890", 123456789012345678901234567890),
    ])
    def test_python_values(self, text: str, value: Any) -> None:
        assert literal(text) == value and type(literal(text)) is type(value)

    @pytest.mark.parametrize("text, dtype, value", [
        ("2x3xf32=0", "float32", [[0, 0, 0], [0, 0, 0]]),
        ("2xf32=1,2", "float32", [1, 2]),
        ("2x2xi64=[[1, 2], [3, 4]]", "int64", [[1, 2], [3, 4]]),
        ("f64=2.5", "float64", 2.5),
        ("0x3xf32=0", "float32", []),
        ("3xbool=true", "bool", [True, True, True]),
        ("2xbf16=[1.001, 2]", "float32", [1.0, 2]),
        ("1xfloat16=nan", "float16", None),
        ("2xc64=1j", "complex64", [1j, 1j]),
    ])
    def test_tensors(self, text: str, dtype: str, value: Any) -> None:
        array = literal(text)
        assert array.dtype == dtype
        if value is not None:
            assert array.tolist() == value

    def test_random_ones_follow_the_seed(self) -> None:
        with seeded(3):
            first = literal("4xf32=randn")
        with seeded(3):
            assert (literal("4xf32=randn") == first).all()
        with seeded(4):
            assert (literal("4xf32=randn") != first).any()

    def test_lists_of_tensors(self) -> None:
        value = literal("[2xf32=1, 3xi64=[1, 2, 3]]")
        assert [array.shape for array in value] == [(2,), (3,)]

    @pytest.mark.parametrize("text, complaint", [
        ("", "expected a value"),
        ("2x3xf33=0", "unknown dtype 'f33' (did you mean"),
        ("2x3xf32=", "expected a value"),
        ("2x3xf32=1,2", "2 elements for shape (2, 3): expected 6, or 1 for all"),
        ("100000x100000xf32=0", "larger than 1 GiB"),
        ("99999999999999999999999x9xf32=0", "larger than 1 GiB"),
        ("9" * 5000 + "xf32=0", "too many digits"),
        ("9" * 5000, "too long"),
        ("[" * 100000, "nested deeper"),
        ("[1, 2", "expected ','"),
        ("[1 2]", "expected ','"),
        ("1 2", "unexpected '2'"),
        ("hello", "text goes into quotes"),
        ("tru", "did you mean 'true'"),
        ("'abc", "no closing"),
        ("2xi64=1.5", "elements are integers"),
        ("2xu8=300", "not uint8 elements"),
        ("2xf32=[none, 1]", "elements of a tensor are numbers"),
        ("__import__('os')", "is no value"),
        ("[@x.npy]", "not inside a list"),
        ("{[1]: 2}", "a key is"),
    ])
    def test_what_is_no_literal_says_why(self, text: str, complaint: str) -> None:
        with pytest.raises(irtool.Error) as raised:
            literal(text)
        assert complaint in str(raised.value)

    @given(st.text(alphabet="0123456789xf[](){},:.='\"@-+ejntrue \\", max_size=20))
    @settings(max_examples=300, deadline=None)
    def test_any_text_gives_a_value_or_an_error(self, text: str) -> None:
        try:
            literal(text)
        except irtool.Error:
            pass


class TestBinding:
    GRAPH = "%x : Float(2, 3), %w : Float(3)"

    @pytest.mark.parametrize("keys", [("x", "w"), ("input0", "input1"), ("0", "1"), ("arr_0", "arr_1")])
    def test_keys_of_any_one_form(self, keys: tuple[str, str]) -> None:
        x, w = bind(header(self.GRAPH), Archive({keys[1]: np.zeros(3, "f"), keys[0]: np.ones((2, 3), "f")}), {})
        assert x.shape == (2, 3) and w.shape == (3,)

    def test_names_win_over_positions(self) -> None:
        first, second = bind(header("%1 : Float(2), %0 : Float(3)"), Archive({"0": np.zeros(3, "f"), "1": np.ones(2, "f")}), {})
        assert first.shape == (2,) and second.shape == (3,)

    def test_values_of_every_kind(self) -> None:
        graph = header("%n : int, %f : float, %b : bool, %s : str, %l : int[], %t : (Tensor, int), %d : Dict(str, Tensor), %o : Tensor?, "
                       "%u : Tensor[], %z : Scalar")
        archive = Archive({"n": np.array(3), "f": np.array(2.5), "b": np.array(True), "s": np.array("hi"), "l": np.array([1, 2]),
                           "t.0": np.ones(2), "t.1": np.array(4), "d.k0": np.array("a"), "d.v0": np.ones(1), "u.0": np.ones(1),
                           "u.1": np.ones(2), "z": np.array(7)})
        n, f, b, s, numbers, t, d, o, u, z = bind(graph, archive, {})
        assert (n, f, b, s, numbers, o, z) == (3, 2.5, True, "hi", [1, 2], None, 7)
        assert type(b) is bool and type(n) is int and t[1] == 4 and list(d) == ["a"] and [len(each) for each in u] == [1, 2]

    def test_unions(self) -> None:
        graph = header("%a : Union(Tensor, int), %b : Union(Tensor, int), %c : Union(float[], NoneType), "
                       "%d : Union(float[], int, NoneType)")
        a, b, c, d = bind(graph, Archive({"a": np.array(1), "b": np.array([1]), "d.0": np.array(2.5)}), {})
        assert (a, type(a), b.tolist(), c, d) == (1, int, [1], None, [2.5])

    def test_literals_replace_and_add(self) -> None:
        x, w = bind(header(self.GRAPH), Archive({"x": np.zeros((2, 3), "f")}), {"w": literal("3xf32=1"), "%x": literal("2x3xf32=2")})
        assert x.sum() == 12 and w.sum() == 3

    def test_positions_name_literals_too(self) -> None:
        x, w = bind(header(self.GRAPH), Archive(), {"input1": literal("3xf32=1"), "x": literal("2x3xf32=2")})
        assert x.sum() == 12 and w.sum() == 3

    def test_empty_lists(self) -> None:
        archive = Archive({"l": np.empty(0), "d": np.empty(0)})
        assert bind(header("%l : Tensor[], %d : Dict(str, int)"), archive, {}) == [[], {}]

    def test_none_listed_in_the_file(self) -> None:
        assert bind(header("%x : Tensor?"), Archive({"x": np.zeros(2)}, none=["x"]), {}) == [None]

    def test_a_wrong_shape_names_input_and_expectation(self) -> None:
        archive = Archive({"x": np.zeros((2, 3), "f"), "w": np.zeros((3, 2))})
        assert problem(header("%x : Float(2, 3), %w : Float(2, 3)"), archive) \
            == "error: input 1 '%w': expected Float(2, 3), got float64 (3, 2) [E0403]"

    def test_a_wrong_dtype_prints_the_remedy_and_cast_takes_it(self) -> None:
        archive = Archive({"x": np.zeros((2, 3)), "w": np.zeros(3, "f")})
        text = problem(header(self.GRAPH), archive)
        assert "input 0 '%x': expected Float(2, 3), got float64 (2, 3)" in text
        assert 'note: save it as float32, array.astype("float32"), or add --cast' in text
        assert bind(header(self.GRAPH), archive, {}, cast=True)[0].dtype == np.float32

    def test_bfloat16_inputs_are_float32_arrays_of_such_values(self) -> None:
        graph = header("%x : BFloat16(1)")
        assert bind(graph, Archive({"x": np.float32([1.5])}), {})[0].tolist() == [1.5]
        assert "digits that bfloat16 has not" in problem(graph, Archive({"x": np.float32([1.001])}))
        assert bind(graph, Archive({"x": np.array([1.001])}), {}, cast=True)[0].tolist() == [1.0]

    def test_all_problems_at_once(self) -> None:
        text = problem(header(self.GRAPH), Archive({"x": np.zeros(2, "f"), "w": np.zeros(2, "f")}))
        assert text.count("error:") == 2

    @pytest.mark.parametrize("keys, complaint", [
        (["x"], "no value for 'w'; expected the inputs %x : Float(2, 3), %w : Float(3)"),
        (["x", "w", "v"], "no input is called 'v'"),
        (["x", "input1"], "keys of two forms: 'input1' beside 'x'"),
        (["input0", "input1", "input2"], "no input is called 'input2'"),
        ([], "no value for 'x', 'w'"),
    ])
    def test_missing_surplus_and_mixed_keys(self, keys: list[str], complaint: str) -> None:
        text = problem(header(self.GRAPH), Archive({key: np.zeros(3, "f") for key in keys}))
        assert complaint in text and "found" in text or not keys

    def test_an_unknown_literal(self) -> None:
        assert "no such input" in problem(header(self.GRAPH), Archive(), {"q": 1})

    @pytest.mark.parametrize("type, value", [
        ("int", np.array(2.5)), ("int", np.array([1])), ("int", True), ("int", "s"), ("float", np.array(3)), ("bool", np.array(1)),
        ("str", np.array(1)), ("Tensor", np.array("s")), ("Tensor", None), ("int[]", np.zeros((2, 2), int)), ("int[]", np.array([1.5])),
        ("(int, int)", (1,)), ("Dict(str, int)", np.ones(2)), ("Tensor", [1]), ("Future(int)", np.array(1)), ("Long()", np.array(1.5)),
        ("Float(*, 3)", np.zeros((2, 2), "f")), ("Float(*, 3)", np.zeros(3, "f")),
    ])
    def test_values_that_do_not_fit(self, type: str, value: Any) -> None:
        assert f"input 0 '%x': expected {type}, got" in problem(header(f"%x : {type}"), Archive(), {"x": value})

    def test_objects_nothing_reads_need_no_value(self) -> None:
        graph = irtool.parse("graph(%self : __torch__.Net, %x : Tensor):\n  return (%x)\n").graph()
        assert bind(graph, Archive({"x": np.ones(1)}), {})[0] is None


def test_the_examples_files_are_what_their_script_writes(tmp_path: Path) -> None:
    import runpy

    examples = Path(__file__).parent.parent / "examples"
    module = runpy.run_path(str(examples / "make_inputs.py"))
    module["main"].__globals__["HERE"] = tmp_path
    module["main"]()
    for name in ("mlp_inputs.npz", "mlp_expected.npz"):
        assert decode((tmp_path / name).read_bytes(), name).arrays.keys() == decode((examples / name).read_bytes(), name).arrays.keys()
        for key, array in decode((examples / name).read_bytes(), name).arrays.items():
            np.testing.assert_allclose(decode((tmp_path / name).read_bytes(), name).arrays[key], array, rtol=1e-6)
