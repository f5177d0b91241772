"""Tensors in text: `{1}`, ` 1  2 [ CPUDoubleType{2} ]`, `<Tensor>`. They are decoded to Python numbers, without NumPy."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.type_model import DTYPE_WORDS, DTYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Number = int | float | complex | bool
INTEGERS = frozenset(("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"))
NUMBER_DTYPES = frozenset((None, "float64", "int64", "bool", "complex128"))
"""The dtypes that a Python number has when it becomes a tensor."""
NUMBER_CHARACTERS = frozenset("0123456789+-.enaif")
MAX_ELEMENTS = 1_000_000
"""Texts that claim more elements are refused: torch prints at most ten."""


SPELLED = 100
"""Files of text contain all digits of tensors with at most this many elements; the arrays of larger ones are in a file beside it."""

SINGLE_DIGITS = 6
"""A single element is printed with at most this many digits."""

_FOUR_DIGITS = re.compile(r"-?\d+\.\d{4}(?:e[+-]?\d+)?|-?\d\.?(?:e[+-]?\d+)")


class TensorLiteral:
    """The text of a tensor attribute, decoded on first use.

    `data` is the tensor's array if it is known (from a file of constants), and then replaces the text. Two literals are equal if their
    texts and arrays are; arrays of more than 100 elements equal only themselves.
    """

    __slots__ = ("text", "data", "_dtype", "_shape", "_known", "_numbers")
    text: str
    data: object | None

    def __init__(self, text: str, dtype: str | None = None, shape: tuple[int, ...] | None = None, data: object | None = None) -> None:
        self.text = text
        self.data = data
        self._dtype = dtype
        self._shape = shape
        self._known = False
        self._numbers: list[Number] | None = None

    @staticmethod
    def element(number: Number, dtype: str) -> TensorLiteral:
        """The tensor without dimensions, with all digits of the number.

        For dtypes of Python numbers, the text is ` 2.5 [ CPUDoubleType{} ]`, since `{2.5}` would be a number (`is_number`).
        """
        if isinstance(number, complex):
            text = f"({number.real!r},{number.imag!r})"
        else:
            text = repr(int(number) if isinstance(number, bool) else number)
        if dtype in NUMBER_DTYPES:
            return TensorLiteral(f"{text} [ CPU{DTYPE_WORDS[dtype]}Type{{}} ]", dtype, ())
        return TensorLiteral(f"{{{text}}}", dtype, ())

    @staticmethod
    def scalar(value: Number) -> TensorLiteral:
        """`{1}`: a tensor of one element, printed with 6 digits as torch does; a run of more warns (`is_rounded`)."""
        if isinstance(value, complex):
            return TensorLiteral(f"{{({value.real:g},{value.imag:g})}}")
        if isinstance(value, (bool, int)):
            return TensorLiteral(f"{{{int(value)}}}")
        return TensorLiteral(f"{{{value:g}}}")

    @property
    def has_data(self) -> bool:
        """Are the elements known: does the text contain whole numbers (`<Tensor>` does not), or is there an array?"""
        return self.data is not None or not self.text.startswith("<") and not self.lacks_imaginary_parts

    @property
    def lacks_imaginary_parts(self) -> bool:
        """Has the text only the real parts of complex elements? So torch prints several; of one it prints `{(1.5,2)}`."""
        text = self.text
        if self.data is not None or text[:1] in ("{", "<") or not (self.dtype or "").startswith("complex") or 0 in (self.shape or ()):
            return False
        return not any(word.startswith("(") and not word.endswith(".,.)") for word in text[:text.find("[")].split())

    @property
    def dtype(self) -> str | None:
        """torch's dtype name (`float32`) if the text says it; else None, as for `{1}`."""
        self._read_tag()
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes; `()` for `{1}` unless the value's type says more; None for `<Tensor>`."""
        self._read_tag()
        return self._shape

    @property
    def strides(self) -> tuple[int, ...] | None:
        """The strides of the array, in elements, if it is a view that is not dense in row-major order; else None."""
        data: Any = self.data
        flags = getattr(data, "flags", None)        # none without NumPy
        if flags is None or flags.c_contiguous:
            return None
        return tuple([stride // data.itemsize for stride in data.strides])

    def memory(self) -> Any:
        """The array, or the memory of a view, from its first element to its last one, as one row."""
        data: Any = self.data
        strides = self.strides
        if strides is None:
            return data
        from numpy.lib.stride_tricks import as_strided

        return as_strided(data, (_span(data.shape, strides),), (data.itemsize,))

    def __reduce__(self) -> tuple[Callable[..., TensorLiteral], tuple[object, ...]]:
        shape = self._shape if self.strides is None else self.shape
        return _restored, (self.text, self._dtype, shape, self.memory(), self.strides)

    @property
    def is_number(self) -> bool:
        """Is the literal a Python number, as in a trace of `x * 2`? Not `{2}` of another dtype, nor ` 2 [ CPULongType{} ]`."""
        return self.data is None and self.text.startswith("{") and self.shape == () and self.dtype in NUMBER_DTYPES

    @property
    def is_exact(self) -> bool:
        """Are all digits of its one element known? A dump of several elements is rounded."""
        return self.text.startswith("{") or self.shape == () and self.has_data

    @property
    def is_quantized(self) -> bool:
        """Is the literal a dump of a quantized tensor (whose numbers are the dequantized ones)?"""
        return "qscheme: " in self.text

    @property
    def is_rounded(self) -> bool:
        """May the tensor have more digits than the text? torch prints four after the point; of a single element, six in all.

        Whole numbers are printed exactly, and irtool writes texts with all digits.
        """
        text = self.text
        if not self.has_data or self.data is not None:
            return False
        if text.startswith("{"):
            return any("." in part and sum(c.isdigit() for c in part.partition("e")[0].lstrip("-0.")) >= SINGLE_DIGITS
                       for part in text[1:-1].strip("() ").split(","))
        words = _apart(text[:text.find("[")]).split()
        fractions = [word for word, following in zip(words, [*words[1:], ""], strict=False)
                     if "." in word and ".,." not in word and following != "*"]
        return bool(fractions) and all(_FOUR_DIGITS.fullmatch(word) for word in fractions)

    def with_type(self, dtype: str | None, shape: tuple[int, ...] | None) -> TensorLiteral:
        """The literal with the dtype and shape of the value's type, if the text does not say them."""
        if dtype is None and shape is None:
            return self
        is_braced = self.text.startswith("{")
        if is_braced and shape is not None and _product(shape) != 1:
            shape = None
        return TensorLiteral(self.text, self.dtype or dtype, self.shape if shape is None or not is_braced else shape, self.data)

    def numbers(self) -> list[Number]:
        """The elements in row-major order: those of the array if it is known, else those of the text, with 4 to 6 digits.

        Raises UnsupportedError for `<Tensor>` and for complex elements without imaginary parts, Error for a text that contradicts itself.
        """
        if self.data is not None:
            array: Any = self.data
            elements: list[Number] = array.ravel().tolist()
            return elements
        if self._numbers is None:
            self._numbers = self._read_numbers()
        return self._numbers

    def item(self) -> Number:
        """The only element. Raises Error if there is not exactly one."""
        elements = self.numbers()
        if len(elements) != 1:
            raise Error(f"tensor '{_short(self.text)}' has {len(elements)} elements, expected 1", code="E0113")
        return elements[0]

    # -- reading
    def _read_tag(self) -> None:
        if self._known:
            return
        self._known = True
        text = self.text
        if text.startswith("{"):
            if self._shape is None:
                self._shape = ()
            return
        opening = text.find("[")
        if opening < 0 or text.startswith("<"):
            return
        brace = text.find("{", opening)
        close = text.find("}", brace)
        if brace < 0 or close < 0:
            return
        if self._dtype is None:
            self._dtype = _tag_dtype(text[opening + 1:brace])
        if self._shape is None:
            dims = text[brace + 1:close]
            parts = [part.strip() for part in dims[:400].split(",")]
            if len(dims) < 400 and all(part.isascii() and (part.isdigit() or not part) for part in parts):
                self._shape = tuple(map(int, filter(None, parts)))

    def _read_numbers(self) -> list[Number]:
        text = self.text
        if text.startswith("<"):
            raise UnsupportedError("the text has no data for this tensor ('<Tensor>'): "
                                   "--constants=FILE.npz takes the numbers from beside it", code="E0405")
        if self.lacks_imaginary_parts:
            raise UnsupportedError(f"the text has only the real parts of this complex tensor ('{_short(text)}'): "
                                   "--constants=FILE.npz takes the numbers from beside it", code="E0405")
        if text.startswith("{"):
            return [self._cast(_number(text[1:-1].strip(), text), 1.0)]
        shape = self.shape
        if shape is None or "indices:" in text:
            raise Error(f"tensor '{_short(text)}' cannot be read", code="E0113")
        count = _product(shape)
        if count > MAX_ELEMENTS:
            raise Error(f"tensor '{_short(text)}' claims {count} elements, but shows a few", code="E0113")
        numbers = _Dump(shape).read(text[:text.find("[")], text)
        if len(numbers) != count:
            raise Error(f"tensor '{_short(text)}' shows {len(numbers)} elements, expected {count}", code="E0113")
        return [self._cast(value, scale) for value, scale in numbers]

    def _cast(self, value: Number, scale: float) -> Number:
        dtype = self.dtype
        if dtype is None:
            return value
        if dtype == "bool":
            if value not in (0, 1):
                raise Error(f"tensor '{_short(self.text)}' of dtype bool has the element {value}, expected 0 or 1", code="E0113")
            return bool(value)
        if scale != 1.0 and not isinstance(value, complex):
            value = value * scale
        if dtype in INTEGERS and not isinstance(value, complex):
            return self._whole(value, dtype)
        if dtype.startswith("complex"):
            return complex(value)
        return value if isinstance(value, complex) else float(value)

    def _whole(self, value: int | float, dtype: str) -> int:
        """A number as an element of a dtype of whole numbers. Raises Error if it is none, as in a text that was edited."""
        bits = int(dtype.lstrip("quint"))
        least = 0 if "u" in dtype else -1 << bits - 1
        if not least <= value < least + (1 << bits) or int(value) != value:
            raise Error(f"tensor '{_short(self.text)}' of dtype {dtype} has the element {value}, which is none of that dtype", code="E0113")
        return int(value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, TensorLiteral) and self.text == other.text and self._data_key() == other._data_key()

    def __hash__(self) -> int:
        return hash((self.text, self._data_key()))

    def _data_key(self) -> object:
        """Equal for equal arrays, if they are small."""
        data: Any = self.data
        if data is None:
            return None
        is_small = hasattr(getattr(data, "dtype", None), "newbyteorder") and data.size <= SPELLED      # not so without NumPy
        return (data.dtype.name, data.shape, self.strides, data.tobytes()) if is_small else id(data)

    def __repr__(self) -> str:
        return f"TensorLiteral({_short(self.text)!r})"


def _restored(text: str, dtype: str | None, shape: tuple[int, ...] | None, memory: Any, strides: tuple[int, ...] | None) -> TensorLiteral:
    return TensorLiteral(text, dtype, shape, memory if strides is None else view_of(memory, shape or (), strides))


def view_of(memory: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The view of memory, one row, that its strides in elements describe. Raises ValueError if it is not just this memory."""
    from numpy.lib.stride_tricks import as_strided

    if len(strides) != len(shape) or 0 in shape or memory.size != _span(shape, strides) or \
            _product(shape) * memory.itemsize >= 1 << 63:       # of repeated elements, more than an array can count
        raise ValueError("sizes and strides do not fit the memory")
    return as_strided(memory, shape, [stride * memory.itemsize for stride in strides])


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _tag_dtype(tag: str) -> str | None:
    """`Variable[CPUFloatType]`, `CPULongTensor`, `QuantizedCPUQUInt8Type` -> torch's dtype name."""
    tag = tag.strip().removeprefix("Variable[").removesuffix("]").removesuffix("Type").removesuffix("Tensor")
    best = ""
    for word in DTYPES:
        if tag.endswith(word) and len(word) > len(best):
            best = word
    return DTYPES.get(best)


def _number(token: str, text: str) -> Number:
    """One printed number; complex ones are `(re,im)`."""
    if token.startswith("(") and token.endswith(")"):
        real, comma, imaginary = token[1:-1].partition(",")
        if comma:
            return complex(float(_number(real, text).real), float(_number(imaginary, text).real))
    if token and all(c in NUMBER_CHARACTERS for c in token) and len(token) < 400:
        try:
            return int(token) if token != "-0" else -0.0        # only floats print a negative zero
        except ValueError:
            pass
        try:
            return float(token)
        except ValueError:
            pass
    raise Error(f"expected a number in tensor '{_short(text)}', found '{_short(token)}'", code="E0113")


def _apart(body: str) -> str:
    """Separates a negative number that fills its column from the text before it: `Columns 1 to 8-1.5e+06`."""
    if "-" not in body:
        return body
    return "".join(" -" if c == "-" and body[i - 1:i].isdecimal() else c for i, c in enumerate(body))


class _Dump:
    """Reads the dump of elements: rows, in blocks of columns if they are wide, in slices `(1,.,.) =` from three dimensions on."""

    __slots__ = ("rows", "columns", "first", "last", "base", "place", "scale", "elements")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.columns = shape[-1] if shape else 1
        self.rows = shape[-2] if len(shape) > 1 else 1
        self.first, self.last = 0, max(self.columns, 1)
        """The columns of the current block."""
        self.base = -self.rows * self.columns if len(shape) > 2 else 0
        """The row-major number of the current slice's first element; from three dimensions on, there is no slice at first."""
        self.place = 0
        self.scale = 1.0
        self.elements: dict[int, tuple[Number, float]] = {}

    def read(self, body: str, text: str) -> list[tuple[Number, float]]:
        """The numbers with their scale, by row-major position."""
        tokens = _apart(body).split()
        i = 0
        while i < len(tokens):
            token = tokens[i]
            following = tokens[i + 1] if i + 1 < len(tokens) else ""
            if token == "Columns" and len(tokens) > i + 3 and tokens[i + 2] == "to":
                self.block(int(_number(tokens[i + 1], text).real) - 1, int(_number(tokens[i + 3], text).real))
                i += 4
            elif token.endswith(",.,.)") and following == "=":
                self.base += self.rows * self.columns
                self.block(0, self.columns)
                i += 2
            elif following == "*":
                self.scale = float(_number(token, text).real)
                i += 2
            else:
                self.put(_number(token, text))
                i += 1
        return [self.elements[place] for place in sorted(self.elements)]

    def block(self, first: int, last: int) -> None:
        self.first, self.last, self.place, self.scale = first, max(last, first + 1), 0, 1.0

    def put(self, value: Number) -> None:
        row, column = divmod(self.place, self.last - self.first)
        self.elements[self.base + row * self.columns + self.first + column] = (value, self.scale)
        self.place += 1
