"""Types as people write them: `f32[4,8]` for `Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)`."""
from __future__ import annotations

from irtool.ir.type_model import OptionalType, TensorType, TupleType, Type, WrapperType
from irtool.ir.types import ListType

WORDS = {"float": "f", "uint": "u", "int": "i", "complex": "c"}


def short_type(type: Type) -> str:
    """A short spelling, without strides, device and requires_grad; `?` is an unknown size."""
    if isinstance(type, TensorType):
        word = short_dtype(type.dtype) if type.dtype is not None else "Tensor"
        if type.sizes is None:
            return word if type.dtype is None else f"{word}[...]"
        return f"{word}[{','.join(['?' if size is None else str(size) for size in type.sizes])}]"
    if isinstance(type, ListType):
        return f"{short_type(type.element)}[]"
    if isinstance(type, OptionalType):
        return f"{short_type(type.element)}?"
    if isinstance(type, TupleType) and type.elements:
        return f"({', '.join(map(short_type, type.elements))})"
    if isinstance(type, WrapperType):
        return type.text
    return type.text.rpartition(".")[2] if type.text.startswith("__torch__.") else type.text


def short_dtype(name: str) -> str:
    """`f32` for `float32`, `bf16` for `bfloat16`."""
    if name == "bfloat16":
        return "bf16"
    for word, letter in WORDS.items():
        if name.startswith(word) and name[len(word):].isdecimal():
            return letter + name[len(word):]
    return name
