"""Which dialect a graph is written in, from words that only some dialects have."""
from __future__ import annotations

import re

from irtool.ir.dialect import DIALECTS, Dialect

SAMPLE = 1 << 15
"""The number of characters of a graph with braces that are searched."""

SHORT_SAMPLE = 1 << 12
"""The same for a header, and for the rest of a graph of 2019 or later."""

OPEN = re.compile(r"\)[ \t\r]*([{:])[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")
TYPED = re.compile(r"%[^\s,:()=%]+ ?: ?[A-Z(a-z]")
DOTTED = re.compile(r"%\d+\.\d+ : ")
BARE_SIZES = re.compile(r"%[^\s%]+ : \((?:\d|\))")
BARE_SCALARS = re.compile(r"= [A-Z]\w*!? [^%\n=]*\(%")
"""`Dropout 0.2 True(%1)`, in text from which the list of uses was removed."""

LITERAL = re.compile(r'(?:= [a-z]\w*::\w+(?:\[[^\n\]]*\])?|return |-> )\((?:%[^\s,()]+, )*'
                     r'(?:-?\d|-?inf\b|(?:nan|True|False|None)\b|["\'\[])')
PRINTED = re.compile(r"= prim::Print\((?:%[^\s,()]+, )*[A-Za-z]")
"""A string without quotes."""

QUALIFIED = re.compile(r"= \^?[a-z]\w*::?\w")
UNQUALIFIED = re.compile(r"= [A-Za-z]\w*[(\[]")
SCALAR_TYPES = re.compile(r" : (?:int|float|bool|string|str|number|Number|Scalar|Tensor|Device|Future|World|Tuple)\b| : \((?!\d)")
ATTRIBUTE_ARGUMENTS = re.compile(r"= aten::(?!ATen\b)\w+\[")
SCALAR_OPERAND = re.compile(r"= aten::(?:add|sub)_?\(%[^\s,()]+, %[^\s,()]+, %")
"""`alpha` as an operand."""

COLON_STRIDES = re.compile(r"\w\((?:\d+|\*):\d")
OPTIONS = re.compile(r"\b(?:requires_grad=[01]|device=\w)")
UNTYPED = re.compile(r"^[ \t]*%[^\s,:()=%]+ = |graph\([^)]*%[^\s,:()%]+[,)]", re.M)
SLASHED = re.compile(r"%[^\s,()=%]*(?:::|/)")
OLD_WORDS = re.compile(r" : (?:string|None|Number|Dynamic)\b|Dict\[|= prim::(?:Float|Int|Bool|None)\(")
FLOAT_CONSTANT = re.compile(r"float = prim::Constant\[value=(-?\d[\d.]*(?:e[+-]\d+)?)\]")
SOURCE = re.compile(r"\) # [^\n]*:\d+:\d+$", re.M)
MODERN_WORDS = re.compile(r"strides=\[|NoneType|\bstr\b = |value=-?\d+\.\]|\d\.\d{12}")
SHORT_STRING = re.compile(r" : string\b")


def detect(text: str, start: int, fallback: Dialect | None = None) -> Dialect:
    """The dialect of the graph whose text begins at `start`; `fallback` is the dialect of the graph before it in the file."""
    match = OPEN.search(text, start)
    if match is None:
        return fallback or DIALECTS["G"]
    begin = match.end() - 1
    sample = text[start:min(begin, start + SHORT_SAMPLE)] + text[begin:begin + SAMPLE]      # a header may be long
    following = sample.find("\ngraph(")
    if following > 0:
        sample = sample[:following]
    braces = match[1] == "{"
    name = _with_braces(sample) if braces else _with_colon(sample[:2 * SHORT_SAMPLE])
    if name is None and fallback is not None and fallback.braces == braces:
        return fallback
    return DIALECTS[name or ("C1" if braces else "G")]


def _with_braces(sample: str) -> str | None:
    if ", uses = [" in sample:
        if not TYPED.search(sample):
            return "A0"
        return "A1" if DOTTED.search(sample) or BARE_SIZES.search(sample) else "A2"
    if BARE_SCALARS.search(sample) and not TYPED.search(sample):
        return "A0"
    if LITERAL.search(sample) or PRINTED.search(sample):
        return "X1"
    if QUALIFIED.search(sample):
        if ATTRIBUTE_ARGUMENTS.search(sample):
            return "C1"
        return "C2" if SCALAR_TYPES.search(sample) or SCALAR_OPERAND.search(sample) else None
    if not UNQUALIFIED.search(sample):
        return None
    if "Dynamic" in sample or re.search(r"^ +block\d+\(", sample, re.M):
        return "B3"
    return "B2" if ", scope: " in sample else "B1"


def _with_colon(sample: str) -> str | None:
    if COLON_STRIDES.search(sample):
        return "F2" if OPTIONS.search(sample) else "F1"
    if SLASHED.search(sample):
        return "H"
    if OPTIONS.search(sample) or "strides=[" in sample:
        return "G"
    if UNTYPED.search(sample):
        return "T"
    if (OLD_WORDS.search(sample) or has_short_floats(sample)) and not MODERN_WORDS.search(sample):
        return "E" if SOURCE.search(sample) or not SHORT_STRING.search(sample) and "] : " in sample else "D"
    return None


def has_short_floats(sample: str) -> bool:
    """Is there a float constant that today's printer (17 digits, and a dot after integral floats) would print differently?"""
    for text in FLOAT_CONSTANT.findall(sample):
        try:
            value = float(text)
        except ValueError:
            continue
        if text != (f"{value:.0f}." if value.is_integer() and abs(value) < 1e10 else f"{value:.17g}"):
            return True
    return False
