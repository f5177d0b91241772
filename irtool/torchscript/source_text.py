"""Source text -> function definitions, by Python's `ast` and without execution; errors have the user's file, line and column.

`read(text, filename)` parses a whole file and returns a `Unit` with its functions; constructs that TorchScript does not have are refused
with torch's words when the statement or expression is compiled.
"""
from __future__ import annotations

import ast

from irtool.ir.errors import Error, ParseError
from irtool.ir.source import Diagnostic, SourceFile
from irtool.torchscript.repair import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from irtool.ir.types import Type
    from irtool.torchscript.library import Library

NAMES = {       # torch's names for the constructs that it refuses
    ast.FunctionDef: "function definitions", ast.AsyncFunctionDef: "async function definitions", ast.ClassDef: "class definitions",
    ast.For: "for loops", ast.AsyncFor: "async for loops", ast.With: "with statements", ast.AsyncWith: "async with statements",
    ast.Delete: "del statements", ast.Raise: "raise statements", ast.Assert: "assertions", ast.Import: "import statements",
    ast.ImportFrom: "import statements", ast.Global: "global variables", ast.Nonlocal: "nonlocal variables",
    ast.Break: "break statements", ast.Continue: "continue statements", ast.Try: "try blocks", ast.AnnAssign: "annotated assignments",
}
START_TOKENS = {
    ast.FunctionDef: "def", ast.AsyncFunctionDef: "async def", ast.ClassDef: "class", ast.For: "for", ast.AsyncFor: "async for",
    ast.With: "with", ast.AsyncWith: "async with", ast.Delete: "del", ast.Raise: "raise", ast.Assert: "assert", ast.Import: "import",
    ast.ImportFrom: "from", ast.Global: "global", ast.Nonlocal: "nonlocal", ast.Break: "break", ast.Continue: "continue", ast.Try: "try",
}
TOO_DEEP = "statements or expressions are nested too deeply"


class Place(SourceFile):
    """The file, or the given part of it, that contains a function."""

    __slots__ = ("classes", "aliases", "known_types", "unit", "library", "module")

    def __init__(self, name: str, text: str, first_line: int = 1) -> None:
        super().__init__(name, text, first_line)
        self.classes: dict[str, ast.ClassDef] = {}
        """Classes of the file's top level, by name."""
        self.aliases: dict[str, ast.expr] = {}
        """The expressions assigned to names of the top level: `Sizes = List[int]`."""
        self.known_types: dict[str, object] = {}
        """The types that `classes` and `aliases` define, by name."""
        self.unit: Unit | None = None
        """The definitions of the file, if all of it was read."""
        self.library: Library | None = None
        """The archive whose code the file is part of, if any."""
        self.module = "__torch__"
        """The module of its classes, in their full names."""

    def diagnostic(self, node: ast.AST, message: str, width: int = 0, severity: str = "error") -> Diagnostic:
        """A diagnostic at a syntax node (or at its first `width` characters)."""
        line = getattr(node, "lineno", 1) + self.first_line - 1
        text = self.line(line)
        column = self._column(text, getattr(node, "col_offset", 0))
        end = column + width
        if not width:
            same_line = getattr(node, "end_lineno", None) == getattr(node, "lineno", 1)
            end = self._column(text, getattr(node, "end_col_offset", 0)) if same_line else len(text) + 1
        return Diagnostic(severity, message, self, line, column, max(end, column + 1))

    def where(self, node: ast.AST) -> str:
        """The source comment of an IR node: `model.py:12:4`, columns from 0 as torch counts them."""
        line = getattr(node, "lineno", 1) + self.first_line - 1
        return f"{self.name}:{line}:{self._column(self.line(line), getattr(node, 'col_offset', 0)) - 1}"

    def _column(self, text: str, offset: int) -> int:
        """The column, from 1 and in code points, of a byte offset of the parsed text."""
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode("utf-8", "ignore")) + 1


class Function:
    """A function definition and its place; for a method, also the class."""

    __slots__ = ("definition", "place", "unit", "owner")

    def __init__(self, definition: ast.FunctionDef, place: Place, unit: Unit, owner: Type | None = None) -> None:
        self.definition = definition
        self.place = place
        self.unit = unit
        self.owner = owner

    @property
    def name(self) -> str:
        return self.definition.name


class Unit:
    """The definitions of a file: functions by name, names of imported modules, literal constants."""

    __slots__ = ("place", "functions", "modules", "constants", "overloads")

    def __init__(self, place: Place) -> None:
        self.place = place
        place.unit = self
        self.functions: dict[str, Function] = {}
        self.modules: dict[str, str] = {
            "torch": "torch", "math": "math", "cmath": "cmath", "F": "torch.nn.functional", "warnings": "warnings",
            "collections": "collections", "OrderedDict": "collections.OrderedDict"}
        """Name in the file -> full name (`F` -> `torch.nn.functional`)."""
        self.constants: dict[str, ast.expr] = {}
        """Module-level `NAME = literal`."""
        self.overloads: dict[str, list[ast.FunctionDef]] = {}
        """Declarations by `torch.jit._overload`: their parameters, with the body of the function of that name."""


def fail(place: Place, node: ast.AST, message: str, width: int = 0, code: str = "E0601") -> NoReturn:
    """Raise a ParseError at a syntax node."""
    raise ParseError(message, [place.diagnostic(node, message, width)], code)


def unsupported(place: Place, node: ast.AST, reason: str = "") -> NoReturn:
    """Refuse a construct with torch's words: `try blocks aren't supported`."""
    kind = type(node)
    what = NAMES.get(kind, kind.__name__)
    fail(place, node, f"{what} {reason + ' ' if reason else ''}aren't supported", len(START_TOKENS.get(kind, " ")), "E0603")


def read(text: str, filename: str = "<string>", first_line: int = 1, library: Library | None = None) -> Unit:
    """Parse a file (of an archive, if there is a library). Raises ParseError for text that is not Python."""
    place = Place(filename, text, first_line)
    place.library = library
    unit = Unit(place)
    if library is None and _is_indented(text):
        tree = _parse("if True:\n" + text, place, 1)
        ast.increment_lineno(tree, -1)
        wrapper, *rest = tree.body
        if rest:
            fail(place, rest[0], "unindent does not match any outer indentation level", code="E0602")
        body = wrapper.body if isinstance(wrapper, ast.If) else []
    else:
        body = _parse(text, place, 0, library is not None).body
    for statement in body:
        if library is not None:
            _check(statement, unit)
        _enter(statement, unit)
    return unit


def _check(statement: ast.stmt, unit: Unit) -> None:
    """Raise a ParseError for statements that no file of an archive has at its top level."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        if statement.name in (unit.place.classes if isinstance(statement, ast.ClassDef) else unit.functions):
            fail(unit.place, statement, f"'{statement.name}' is defined twice", len("def"))
    elif isinstance(statement, ast.Import) and all(each.name.partition(".")[0] == "__torch__" for each in statement.names):
        return
    elif not (isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "op_version_set"):
        fail(unit.place, statement, "the code of an archive has classes and functions alone; nothing else is run")


def _is_indented(text: str) -> bool:
    """Is the text a part of a class or of a function?"""
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return first[:1] in (" ", "\t")


def _parse(text: str, place: Place, added: int = 0, is_archive: bool = False) -> ast.Module:
    """The syntax tree; `added` lines precede the text."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")         # a warning about "\\d" in a string is not irtool's to report
        try:
            return parse(text, place.name) if is_archive else ast.parse(text, place.name)
        except SyntaxError as error:
            line = max((error.lineno or 1) - added, 1) + place.first_line - 1
            column = max(error.offset or 1, 1)
            end = (error.end_offset or 0) if error.end_lineno == error.lineno else 0
            message = f"invalid syntax: {error.msg}" if "syntax" not in str(error.msg) else str(error.msg)
            raise ParseError(message, [Diagnostic("error", message, place, line, column, end)], code="E0602") from None
        except (RecursionError, MemoryError):
            raise ParseError(TOO_DEEP, [Diagnostic("error", TOO_DEEP, place, place.first_line, 1)], code="E0608") from None
        except ValueError as error:             # a NUL byte
            raise ParseError(str(error), [Diagnostic("error", str(error), place, place.first_line, 1)], code="E0602") from None


def _enter(statement: ast.stmt, unit: Unit) -> None:
    """Record the definition of one statement of the file's top level."""
    if isinstance(statement, ast.FunctionDef):
        if any(ast.unparse(each).endswith("jit._overload") for each in statement.decorator_list):
            unit.overloads.setdefault(statement.name, []).append(statement)
        else:
            unit.functions[statement.name] = Function(statement, unit.place, unit)
    elif isinstance(statement, ast.ClassDef):
        unit.place.classes[statement.name] = statement
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            unit.modules[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
    elif isinstance(statement, ast.ImportFrom) and not statement.level:
        for alias in statement.names:
            unit.modules[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        unit.constants[statement.targets[0].id] = unit.place.aliases[statement.targets[0].id] = statement.value
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        unit.constants[statement.target.id] = statement.value


def literal(node: ast.expr) -> object:
    """The value of a literal. Raises ValueError for other expressions."""
    try:
        return ast.literal_eval(node)
    except (TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None


def joined(errors: list[Error]) -> ParseError:
    """Several errors as one."""
    return ParseError("", [diagnostic for error in errors for diagnostic in error.coded()][:20])
