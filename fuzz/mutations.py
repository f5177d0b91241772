"""Small changes of texts: of characters, words, lines and blocks, and of what lines mean, so that most of a text still parses."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

Edit: TypeAlias = Callable[[random.Random, str, Sequence[str]], str]

TOKEN = re.compile(r"[%\w.]+|::|->|\s+|.", re.DOTALL)
NAME = re.compile(r"%[\w.]+")
TYPE = re.compile(r" : [^=,\n()]+(?=[ =,)])")
KIND = re.compile(r"\b(?:aten|prim|irtool)::\w+")
NUMBER = re.compile(r"-?\d[\d.]*(?:e-?\d+)?")
RESULT = re.compile(r"(?<=  )(%[\w.]+)( : [^=,\n()]*\w)(?=,| =)")
UNTYPED = re.compile(r"^( +%[\w.]+) : [^=,\n]+(?= =)", re.M)
ATTRIBUTE = re.compile(r"\[\w+=[^\]\n]*\]")

PIECES = ("%", "(", ")", "[", "]", "{", "}", ":", "=", ",", ";", "^", "#", "->", '"', "'", "\\", "\n", "\t", "\r\n", "\x00", "\x1b[31m",
          "\x07", "\u2028",
          "\udc80", "\U0001f600", "\x0b", "\xa0", "%0", "%x", "graph(", "block0():", "return ()",
          "with prim::FusionGroup_0 = graph(%a : Tensor):",
          "# graph df: of=f", "# constants: nowhere.npz sha256=00", "prim::If", "prim::Loop", "prim::Constant[value=1]()",
          "value=<Tensor>", "nan", "inf",
          "Float(2, 3)", "Tensor", "NoneType", "__torch__.Class", "Dict(str, Tensor)", "(int, Tensor)", "uses = [%1.i0]", ", scope: a/b",
          " # f.py:1:2",
          "requires_grad=1", "strides=[3, 1]", "device=cuda:0", "^Dropout(0.5, True)(%x)", "fork", "-----", "Ret %1", "let", "in",
          "%1 = Foo 2 3, %x", "---------------- stage 7 ----------------\n", "-------- stage 99999999 --------", "# ...\n", "}{", '"\\"',
          "Subgraph=<Graph>", "scalars=1", "# graph f: a=[1, 2]\n", "Ret %1", "%1 = Foo %2\nRet %1\n", "(" * 300, "!", "?", "*", "-1",
          "List[", "Tensor(dtype = Float , shape = (2, 3)", "9" * 5000, ", %", " # ", "return (")
WORDS = ("aten::mul", "aten::add", "aten::add_", "aten::t", "aten::t_", "aten::view", "aten::cat", "aten::chunk", "aten::size",
         "aten::append", "aten::pop",
         "aten::__getitem__", "aten::sum", "aten::mm", "aten::relu_", "aten::copy_", "aten::expand", "aten::select", "aten::item",
         "aten::len", "aten::dim",
         "prim::ListConstruct", "prim::ListUnpack", "prim::TupleConstruct", "prim::TupleUnpack", "prim::DictConstruct",
         "prim::ConstantChunk", "prim::If",
         "prim::Loop", "prim::Constant", "prim::Print", "prim::RaiseException", "prim::GradOf", "prim::Undefined", "prim::AutogradAdd",
         "prim::GetAttr",
         "prim::FusionGroup", "prim::DifferentiableGraph", "prim::CallFunction", "prim::NumToTensor", "prim::TupleIndex",
         "prim::unchecked_cast",
         "prim::MMTreeReduce", "irtool::custom_vjp", "aten::nothing", "onnx::Add", "prim::PythonOp", "aten::batch_norm",
         "aten::max_pool2d", "aten::conv2d")
TYPES = ("int", "float", "bool", "str", "Tensor", "Tensor?", "Tensor[]", "int[]", "float[]", "(int, Tensor)", "NoneType",
         "Dict(str, Tensor)", "Scalar", "Any",
         "Float(2, 3)", "Float(*, 3)", "Double(0)", "Long(4)", "Float()", "Half(2, -1)", "complex", "Device", "Generator?",
         "Future(Tensor)", "Function", "int[][]",
         "Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)", "Float(99999999, 99999999)", "Union(int, Tensor)", "Undefined")
NUMBERS = ("0", "1", "-1", "2", "3", "7", "64", "-2", "1.5", "1e400", "-0.0", "99999999999999999999", "9223372036854775807",
           "-9223372036854775808", "4294967296",
           "1000000000", "0.1", "nan", "2147483648", "9" * 400)
RUNS = (" ", "a", "(", "[", "%", "=", "-", ",", "[]", "1,", "%x,", "\t", "?", "()", "#", "# ", "{", '"', "\\", ":", "::", "^", "0", ".",
        "->", "*", "List[")


def at(rng: random.Random, text: str) -> int:
    """A place."""
    return rng.randrange(len(text) + 1)


def in_place_of(pattern: re.Pattern[str], words: Sequence[str], prefix: str = "") -> Edit:
    """Another word, or one from elsewhere in the text, for a match of the pattern."""
    def edit(rng: random.Random, text: str, others: Sequence[str]) -> str:
        matches = list(pattern.finditer(text))
        if not matches:
            return text
        match = rng.choice(matches)
        word = rng.choice(matches).group() if not words or rng.random() < 0.3 else prefix + rng.choice(words)
        return text[:match.start()] + word + text[match.end():]
    return edit


def cut(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """Without a span."""
    start = at(rng, text)
    return text[:start] + text[start + rng.choice((1, 1, 2, 7, 60, 400)):]


def end_early(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """The beginning alone."""
    return text[:at(rng, text)]


def insert(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """With a piece put in."""
    start = at(rng, text)
    return text[:start] + rng.choice(PIECES) + text[start:]


def stretch(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """With a long run of one piece put in: in a line, or as one."""
    start, size = at(rng, text), rng.choice((50, 50, 1000, 1000, 30_000))
    if rng.random() < 0.3:
        start = text.rfind("\n", 0, start) + 1
    return text[:start] + rng.choice(RUNS) * size + text[start:]


def words_moved(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """Two words change places, or one is dropped, doubled or borrowed."""
    tokens = TOKEN.findall(text)
    if not tokens:
        return text
    one, two, how = rng.randrange(len(tokens)), rng.randrange(len(tokens)), rng.randrange(4)
    if how == 0:
        tokens[one], tokens[two] = tokens[two], tokens[one]
    elif how == 1:
        del tokens[one]
    elif how == 2:
        tokens.insert(one, tokens[two])
    else:
        tokens[one] = rng.choice(PIECES + WORDS)
    return "".join(tokens)


def lines_moved(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """Two lines change places, or one is dropped, doubled, borrowed or indented."""
    lines = text.split("\n")
    one, two, how = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.randrange(5)
    if how == 0:
        lines[one], lines[two] = lines[two], lines[one]
    elif how == 1:
        del lines[one]
    elif how == 2:
        lines.insert(two, lines[one])
    elif how == 3:
        lines.insert(one, rng.choice(rng.choice(others).split("\n")))
    else:
        lines[one] = rng.choice(("  ", "\t", "      ")) + lines[one] if rng.random() < 0.5 else lines[one].lstrip()
    return "\n".join(lines)


def block_repeated(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """A few lines many times."""
    lines = text.split("\n")
    start = rng.randrange(len(lines))
    return "\n".join(lines[:start] + lines[start:start + rng.choice((1, 3, 8))] * rng.choice((2, 20)) + lines[start:])


def joined(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """With another text behind it, or from the middle on."""
    other = rng.choice(others)
    return text + rng.choice(("", "\n", "# graph g\n", "---\n")) + other if rng.random() < 0.5 else text[:at(rng, text)] + other[at(rng,
                                                                                                                                    other):]


def nested(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """A type that is nested, or branches in branches."""
    depth = rng.choice((2, 30, 400))
    if rng.random() < 0.7:
        head = rng.choice(("List[", "Optional[", "Dict(int, ", "("))
        word = head * depth + "int" + (")" if "(" in head else "]") * depth
        return in_place_of(TYPE, [word], " : ")(rng, text, others)
    lines = ["graph(%c : bool, %x : Tensor):"]
    for level in range(depth):
        lines += [f"{'  ' * (level + 1)}%o{level} : Tensor = prim::If(%c)", f"{'  ' * (level + 2)}block0():"]
    lines.append("  " * (depth + 2) + "-> (%x)")
    for level in reversed(range(depth)):
        lines += [f"{'  ' * (level + 2)}block1():", f"{'  ' * (level + 3)}-> (%x)"] + [f"{'  ' * (level + 2)}-> (%o{level})"] * (level > 0)
    return "\n".join([*lines, "  return (%o0)", ""])


def results_changed(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """A node with one result more, as lists of tensors had in 2018, or without its first."""
    matches = list(RESULT.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    more = f"{match[1]}.{rng.randrange(100, 1000)}{match[2]}, {match.group()}" if rng.random() < 0.7 else ""
    return text[:match.start()] + more + text[match.end():].removeprefix("" if more else ", ")


def untyped(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """The results of nodes without types, as people write them; they may define a name again."""
    return UNTYPED.sub(r"\1", text)


def newlines(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """Lines that end otherwise, or a mark in front."""
    return text.replace("\n", rng.choice(("\r\n", "\r", "\n\n", " \n", "\x0c\n"))) if rng.random() < 0.6 else rng.choice(("\ufeff",
                                                                                                                          "\x00",
                                                                                                                          "\n\n")) + text


def byte_changed(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """Any byte in place of one."""
    data = bytearray(text.encode("utf-8", "surrogateescape"))
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return data.decode("utf-8", "surrogateescape")


MEANING: tuple[Edit, ...] = (in_place_of(NAME, ()), in_place_of(NAME, ()), in_place_of(TYPE, TYPES, " : "), in_place_of(KIND, WORDS),
                             in_place_of(KIND, ()),
                             in_place_of(NUMBER, NUMBERS), in_place_of(NUMBER, NUMBERS), in_place_of(ATTRIBUTE, ()), lines_moved,
                             results_changed, untyped)
"""What lines mean: most of the text still parses."""
FORM: tuple[Edit, ...] = (cut, end_early, insert, insert, stretch, words_moved, words_moved, lines_moved, lines_moved, block_repeated,
                          joined, nested,
                          newlines, byte_changed)
"""Anything at all."""


def mutated(rng: random.Random, text: str, others: Sequence[str]) -> str:
    """A few changes, of meaning rather than form."""
    edits = MEANING if rng.random() < 0.6 else MEANING + FORM
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3, 5))):
        text = rng.choice(edits)(rng, text, others)
    return text[:400_000]
