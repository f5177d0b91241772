"""torch's dtypes by name: their integer codes, as `prim::dtype` returns them, and classes."""
from __future__ import annotations

CODES: dict[str, int] = {name: code for code, name in enumerate((
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64", "complex128", "bool",
    "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
    "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64"))}
"""c10::ScalarType."""
NAMES = {code: name for name, code in CODES.items()}
"""The name of each code."""


def dtype_code(name: str | None) -> int | None:
    """torch's number of a dtype; None for a dtype without a number."""
    return CODES.get(name) if name is not None else None


def is_float_dtype(name: str) -> bool:
    """Is the dtype a floating-point one (complex ones are not)?"""
    return name.startswith(("float", "bfloat"))


def is_complex_dtype(name: str) -> bool:
    """Is the dtype complex?"""
    return name.startswith("complex")
