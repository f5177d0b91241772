"""The dialects of the text, as one table: in which forms torch has printed graphs, and what each form spells differently."""
from __future__ import annotations

from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Dialect:
    """How PyTorch spelled IR in one period. Immutable; compare by identity.

    Where details changed within the period, the fields say what the *last* weeks of the period printed.
    """

    __slots__ = ("name", "dates", *(
        # the frame of a graph
        "braces", "input_separator", "semicolons", "uses_lists", "stages", "scopes",
        # operators
        "qualified_kinds", "attribute_arguments", "literal_operands", "none_kind", "undefined_kind", "any_defined_kind",
        "cast_namespace", "device_constants",
        # types
        "typed", "bare_sizes", "tensor_word", "string_word", "number_word", "none_word", "python_dicts",
        "shape_style", "partial_shapes", "unranked_dtypes", "undefined_word", "tensor_options",
        # attribute values
        "float_style", "string_style", "tensor_tag", "structured_values"))
    name: str
    dates: str
    braces: bool
    """`{` after a header and `}` at the end, instead of `:`."""
    input_separator: str
    """What stands between graph inputs: `, ` or a new line, with or without a comma."""
    semicolons: bool
    """`return (%1);`"""
    uses_lists: bool
    """`, uses = [[%0.i0]];` after each node."""
    stages: bool
    """`---- stage 1 ----` markers may stand between inputs and between nodes."""
    scopes: bool
    """`, scope: A/B[c]` may follow the operands."""
    qualified_kinds: bool
    """`aten::mul` rather than `mul`."""
    attribute_arguments: bool
    """Arguments that are no tensors are attributes (`aten::add[alpha={1}](%a, %b)`) rather than operands."""
    literal_operands: bool
    """Constants may stand among the operands: `aten::add(7, 8)`, as a branch of torch printed that was never merged."""
    none_kind: str
    """The node that makes None: `prim::Undefined`, `prim::None` or `prim::Constant`."""
    undefined_kind: str
    """The node that makes an undefined tensor: `prim::Undefined`, from 2019-03 `prim::AutogradZero`."""
    any_defined_kind: str
    """The node that asks whether a gradient is there: `prim::AnyDefined`, from 2019-03 `prim::AutogradAnyNonZero`."""
    cast_namespace: str
    """The namespace of the nodes that make a number of a tensor, such as `aten::Int`: "aten", "prim", or empty where that node is
    `prim::TensorToNum`."""
    device_constants: str
    """A device is the number list `int[] = prim::Constant[value=[0, -1]]` ("list") or the text `"cpu"` ("string")."""
    typed: bool
    """Values have types: `%1 : Float(2, 3)` rather than `%1`."""
    bare_sizes: bool
    """`(2, 3)` is a tensor of these sizes and `()` one of rank 0, not a tuple."""
    tensor_word: str
    """The type of a tensor of which nothing more is known."""
    string_word: str
    """The type of a string."""
    number_word: str
    """The type of an int or float."""
    none_word: str
    """The type of None."""
    python_dicts: bool
    """`Dict[str, List[int]]` rather than `Dict(str, int[])`."""
    shape_style: str
    """Strides: none ("plain"), `2!` ("marks"), `2:3` ("colon"), `strides=[3, 1]` ("named")."""
    partial_shapes: str
    """A tensor with a dtype whose sizes are not all known: "none" (just a tensor), "rank" (`Float(*, *)`), "any" (`Float(2, *)`)."""
    unranked_dtypes: bool
    """A tensor with a dtype of which not even the rank is known has a type: `FloatTensor`."""
    undefined_word: str
    """The type of an undefined tensor; if it begins with `[`, a suffix of the type; if it is empty, such tensors have the type of any."""
    tensor_options: bool
    """`requires_grad=0, device=cpu` in tensor types."""
    float_style: str
    """Floats as C++ prints them with 6 digits ("short6"), or with 17 digits, and integral ones as `1.` ("long17")."""
    string_style: str
    """"raw", "escaped" (only newline, tab, vertical tab), "quoted" (that, in quotes) or "c" (all C escapes, in quotes)."""
    tensor_tag: str
    """What follows a small tensor's numbers, with `{}` for the scalar word: `CPU{}Type`."""
    structured_values: bool
    """Tuples, dicts, None, nested lists are attribute values."""

    def __init__(self, name: str, dates: str, base: Dialect | None = None, **fields: object) -> None:
        put = object.__setattr__
        if base is not None:
            for field in Dialect.__slots__:
                put(self, field, getattr(base, field))
        for field, value in fields.items():
            put(self, field, value)
        put(self, "name", name)
        put(self, "dates", dates)

    @property
    def is_of_2018(self) -> bool:
        """Do gradients and loops have the form of early 2018? So it is in all texts whose arguments are attributes."""
        return self.attribute_arguments

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"dialect {self.name} is immutable")

    def __copy__(self) -> Dialect:
        return self

    def __deepcopy__(self, memo: object) -> Dialect:
        return self

    def __reduce__(self) -> tuple[Callable[[str], Dialect], tuple[str]]:
        return dialect, (self.name,)

    def __repr__(self) -> str:
        return f"<Dialect {self.name}>"


_A0 = Dialect(
    "A0", "before 2017-09-05", braces=True, input_separator=", ", semicolons=True, uses_lists=True, stages=True, scopes=False,
    qualified_kinds=False, attribute_arguments=True, literal_operands=False,
    none_kind="Undefined", undefined_kind="Undefined", any_defined_kind="AnyDefined", cast_namespace="",
    device_constants="list", typed=False, bare_sizes=False, tensor_word="UNKNOWN_TYPE",
    string_word="string", number_word="Number", none_word="None", python_dicts=False,
    shape_style="plain", partial_shapes="none", unranked_dtypes=False, undefined_word="", tensor_options=False,
    float_style="short6", string_style="raw", tensor_tag="CPU{}Tensor", structured_values=False)
_A1 = Dialect("A1", "2017-09-05", _A0, typed=True, bare_sizes=True, shape_style="marks")
_A2 = Dialect("A2", "2017-09-05 to 2017-11-14", _A1, bare_sizes=False, input_separator="\n      ")
_B1 = Dialect("B1", "2017-11-15 to 2018-03-16", _A2, uses_lists=False)
_B2 = Dialect("B2", "2017-12-04 to 2018-03-16", _B1, scopes=True)
_B3 = Dialect("B3", "2018-02-02 to 2018-03-16", _B2, tensor_word="Dynamic")
_C1 = Dialect("C1", "2018-03-16 to 2018-07", _B3, qualified_kinds=True, none_kind="prim::Undefined", undefined_kind="prim::Undefined",
              any_defined_kind="prim::AnyDefined")
_C2 = Dialect(
    "C2", "2018-06-21 to 2019-02-12", _C1, attribute_arguments=False, none_kind="prim::None", cast_namespace="prim",
    device_constants="string", tensor_word="Tensor", number_word="Scalar", python_dicts=True,
    partial_shapes="rank", undefined_word="UndefinedTensor", string_style="c", tensor_tag="CPU{}Type")
_X1 = Dialect("X1", "a branch, 2018-08", _C2, literal_operands=True)
_X2 = Dialect("X2", "a branch, 2018-11", _C2)
_D = Dialect("D", "2019-02-13 to 2019-05-30", _C2, braces=False, input_separator=",\n      ", semicolons=False, stages=False,
             none_kind="prim::Constant", undefined_kind="prim::AutogradZero", any_defined_kind="prim::AutogradAnyNonZero",
             tensor_tag="Variable[CPU{}Type]")
_E = Dialect("E", "2019-05-31 to 2020-04-20", _D, string_word="str", python_dicts=False, partial_shapes="any",
             unranked_dtypes=True, undefined_word="[AutogradZero]", float_style="long17", structured_values=True,
             shape_style="plain", tensor_tag="CPU{}Type", cast_namespace="aten")
_F1 = Dialect("F1", "2020-04-21 to 2020-10-05", _E, shape_style="colon")
_F2 = Dialect("F2", "2020-07-17 to 2020-10-05", _F1, tensor_options=True)
_G = Dialect("G", "2020-10-06 to today", _F2, shape_style="named", none_word="NoneType")
_H = Dialect("H", "2022 to today, ONNX", _G)
_T = Dialect("T", "2019-02-16 to today, written by hand", _G)

DIALECTS: dict[str, Dialect] = {d.name: d for d in (_A0, _A1, _A2, _B1, _B2, _B3, _C1, _C2, _D, _E, _F1, _F2, _G, _H, _X1, _X2, _T)}
"""Every dialect by name, oldest first, the branches and hand-written text last."""

ALIASES: dict[str, str] = {"2018-06": "C1", "2019-02": "D", "2020-04": "F1", "2.13": "G"}
"""Dates and versions that stand for a dialect on the command line."""

LATEST: Dialect = _G
"""What today's torch prints."""


def dialect(name: str) -> Dialect:
    """The dialect of that name or alias. Raises Error that lists the choices."""
    row = DIALECTS.get(ALIASES.get(name, name))
    if row is None:
        choices = ", ".join(DIALECTS) + "; " + ", ".join(f"{alias} = {target}" for alias, target in ALIASES.items())
        raise Error(f"no dialect '{name}', expected one of: {choices}", code="E0805")
    return row
