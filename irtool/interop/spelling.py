"""Constants in full precision in the text itself: ` 0.3333333333333333 0.25 [ CPUDoubleType{2} ]`, which is read back bit for bit."""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from irtool.interop.constant_archives import places
from irtool.interop.npz import Array
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.errors import Error
from irtool.ir.graph import Node
from irtool.ir.module import Module
from irtool.ir.tensor_literal import SPELLED
from irtool.ir.type_model import DTYPE_WORDS, contiguous_strides, tensor_text
from irtool.ir.types import TensorType, parse_type
from irtool.ops.array_library import has_elements, np
from irtool.ops.structure import tensor_of


def spell(module: Module) -> list[str]:
    """Write the arrays of small constants into their text. Returns the keys of constants whose arrays need an archive.

    Small views stay in the line above their graph, which has their strides, unless the module needs an archive anyway.
    """
    constants: dict[bool, list[tuple[str, Node, str]]] = {False: [], True: []}
    for key, node, name in places(module):
        constants[_is_small_view(node.attributes[name].value)].append((key, node, name))
    rest = _spell(constants[False])
    return rest + _spell(constants[True]) if rest else []


def _is_small_view(literal: object) -> bool:
    return isinstance(literal, TensorLiteral) and literal.strides is not None and prod(literal.shape or ()) <= SPELLED


def _spell(constants: Iterable[tuple[str, Node, str]]) -> list[str]:
    rest = []
    for key, node, name in constants:
        literal = node.attributes[name].value
        if not isinstance(literal, TensorLiteral) or literal.data is None:
            continue
        array: Any = literal.data
        if name == "value":
            forget_strides(node, array.shape)
        text = exact_text(array) if literal.dtype != "bfloat16" and name == "value" else None
        if text is None or not reads_back(text, node, array):
            rest.append(key)
        else:
            node.set_attribute(name, Attribute(text, TensorLiteral(text, literal.dtype, array.shape)))
    return rest


def forget_strides(node: Node, shape: tuple[int, ...]) -> None:
    """Remove strides from a constant's type, since neither a text nor an archive keeps the order of elements in memory."""
    type = node.output.type
    if isinstance(type, TensorType) and type.strides is not None and type.strides != contiguous_strides(shape):
        text = tensor_text(type.dtype, type.sizes, contiguous_strides(shape), type.requires_grad, type.device)
        node.output.type = parse_type(text)


def exact_text(array: Array) -> str | None:
    """The dump of an array with all digits; None if the text cannot represent it."""
    word = DTYPE_WORDS.get(array.dtype.name)
    if array.size > SPELLED or array.dtype.kind not in "biuf" or word is None or not has_elements(array):
        return None
    numbers = [digits(each) for each in array.ravel()]
    # here each has four digits by chance; a further digit says that these are all
    if TensorLiteral(" ".join(numbers) + " [").is_rounded:
        first = next(i for i, each in enumerate(numbers) if "." in each)
        mantissa, e, exponent = numbers[first].partition("e")
        numbers[first] = f"{mantissa}0{e}{exponent}"
    texts = np.array(numbers, object).reshape(array.shape)
    tag = f"[ CPU{word}Type{{{','.join(map(str, array.shape))}}} ]"
    if array.ndim < 3 or not array.size:
        return "".join(f" {each}" for each in numbers) + " " + tag
    slices = []
    for slice_at in np.ndindex(array.shape[:-2]):
        label = "".join(f"{at + 1}," for at in reversed(slice_at))
        slices.append(f"({label}.,.) =" + "".join(f" {each}" for each in texts[slice_at].ravel()))
    return " ".join(slices) + " " + tag


def digits(number: Any) -> str:
    """The shortest decimal for a number in its precision."""
    return str(int(number)) if number.dtype.kind == "b" else str(number)


def reads_back(text: str, node: Node, array: Array) -> bool:
    """Is the text read as this array, bit for bit?"""
    try:
        again = np.asarray(tensor_of(TensorLiteral(text), node.output.type))
    except (Error, ValueError, OverflowError):
        return False
    return again.dtype == array.dtype and again.shape == array.shape and again.tobytes() == array.tobytes()
