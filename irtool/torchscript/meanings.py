"""Objects that only the compiler knows: modules, functions, methods bound to a value, iterables that are never values."""
from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from irtool.ir.graph import Value
from irtool.ir.types import EnumType, NamedTupleType, Type
from irtool.torchscript.source_text import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.torchscript.library import Library


class Sugared:
    """A meaning of an expression that is no value of the graph. `what` is torch's name for it in messages."""

    __slots__ = ()
    what = "value"


class Namespace(Sugared):
    """`torch`, `torch.nn.functional`, `math`."""

    __slots__ = ("path",)
    what = "module"

    def __init__(self, path: str) -> None:
        self.path = path


class Packaged(Namespace):
    """A module of an archive's code: `__torch__.torch.nn`."""

    __slots__ = ("library",)

    def __init__(self, path: str, library: Library) -> None:
        super().__init__(path)
        self.library = library


class NewObject(Sugared):
    """`Class.__new__`: a call makes an instance without attributes."""

    __slots__ = ("type",)
    what = "class"

    def __init__(self, type: Type) -> None:
        self.type = type


class Builtin(Sugared):
    """An operator, perhaps bound to a value as its method."""

    __slots__ = ("kind", "receiver")
    what = "builtin"

    def __init__(self, kind: str, receiver: Value | None = None) -> None:
        self.kind = kind
        self.receiver = receiver


class Special(Sugared):
    """`range`, `len`, `isinstance`, `annotate`: each is compiled by a function of its own, which is looked up by name."""

    __slots__ = ("name", "receiver")
    what = "builtin"

    def __init__(self, name: str, receiver: Value | None = None) -> None:
        self.name = name
        self.receiver = receiver


class Called(Sugared):
    """A function of the source (or of irtool's own templates), by name."""

    __slots__ = ("function",)
    what = "function"

    def __init__(self, function: object) -> None:
        self.function = function


class Nothing(Sugared):
    """The result of a function without a result."""

    __slots__ = ()
    what = "None"


class Method(Sugared):
    """A method of a class of the source, bound to an instance."""

    __slots__ = ("function", "receiver")
    what = "method"

    def __init__(self, function: Function, receiver: Value) -> None:
        self.function = function
        self.receiver = receiver


class ClosureValue(Sugared):
    """A nested function. `pair` is the value `(closure, context)`."""

    __slots__ = ("pair",)
    what = "closure"

    def __init__(self, pair: Value) -> None:
        self.pair = pair


class ExceptionClass(Sugared):
    """`ValueError`; together with a message, the exception itself."""

    __slots__ = ("name", "message")
    what = "exception"

    def __init__(self, name: str, message: Value | None = None) -> None:
        self.name = name
        self.message = message


class Context(Sugared):
    """`torch.no_grad`; together with arguments, the object that `with` enters."""

    __slots__ = ("name", "object")
    what = "context manager"

    def __init__(self, name: str, object: Value | None = None) -> None:
        self.name = name
        self.object = object


class TypeValue(Sugared):
    """A type named in an expression: `List[int]` of `annotate(List[int], [])`."""

    __slots__ = ("type",)
    what = "type"

    def __init__(self, type: Type) -> None:
        self.type = type


class Structure(Sugared):
    """The class of a named tuple; a call makes a tuple. `defaults` are those of its last fields, None for a field without one."""

    __slots__ = ("name", "type", "defaults")
    what = "type"

    def __init__(self, name: str, type: NamedTupleType, defaults: Sequence[ast.expr | None]) -> None:
        self.name = name
        self.type = type
        self.defaults = tuple(defaults)


class Enumeration(Sugared):
    """The class of an enumeration: its type, and the value of each member."""

    __slots__ = ("name", "type", "members")
    what = "enum class"

    def __init__(self, name: str, type: EnumType, members: Mapping[str, object]) -> None:
        self.name = name
        self.type = type
        self.members = dict(members)


class SliceValue(Sugared):
    """`slice(...)`: start, stop, step; None for an omitted one."""

    __slots__ = ("bounds",)
    what = "slice"

    def __init__(self, bounds: Sequence[Value | None]) -> None:
        self.bounds = list(bounds)


class Choice(Sugared):
    """Two functions, between which a bool argument of the call decides (`return_indices`)."""

    __slots__ = ("position", "argument", "if_true", "if_false")
    what = "function"

    def __init__(self, position: int, argument: str, if_true: Sugared, if_false: Sugared) -> None:
        self.position = position
        self.argument = argument
        self.if_true = if_true
        self.if_false = if_false


class Dispatch(Sugared):
    """A method of a value that is an instance of one of several classes. `methods`: those of the classes, in their order."""

    __slots__ = ("receiver", "methods")
    what = "method"

    def __init__(self, receiver: Value, methods: Sequence[Function]) -> None:
        self.receiver = receiver
        self.methods = methods


class Overloads(Sugared):
    """Functions of one name that differ by the types of their arguments; the first that accepts the arguments is called."""

    __slots__ = ("name", "functions", "are_known")
    what = "function"

    def __init__(self, name: str, functions: Sequence[object], are_known: bool = False) -> None:
        self.name = name
        self.functions = tuple(functions)
        self.are_known = are_known
        """Are they irtool's own, with declared results, so that only the one that is called need be compiled?"""


class Range(Sugared):
    """`range(...)`: start, stop, step; None for an omitted one."""

    __slots__ = ("start", "stop", "step")
    what = "range"

    def __init__(self, start: Value | None, stop: Value, step: Value | None) -> None:
        self.start = start
        self.stop = stop
        self.step = step


class Zip(Sugared):
    """`zip(...)` and `enumerate(...)`: several iterables. For a counter, the iterable is None, with the first number."""

    __slots__ = ("parts", "start")
    what = "zip"

    def __init__(self, parts: Sequence[Value | Sugared | None], start: Value | None = None) -> None:
        self.parts = tuple(parts)
        self.start = start


class Python(Sugared):
    """A name of the file that functions cannot use."""

    __slots__ = ("kind",)
    what = "python value"

    def __init__(self, kind: str) -> None:
        self.kind = kind


class Literal(Sugared):
    """A module-level literal of the source."""

    __slots__ = ("node",)

    def __init__(self, node: ast.expr) -> None:
        self.node = node


class Alias(Sugared):
    """Another name in the source for the meaning of `node`: `red = Color.RED`."""

    __slots__ = ("node",)

    def __init__(self, node: ast.expr) -> None:
        self.node = node


class Known(Sugared):
    """A number known to the compiler: `math.pi`, `torch.float32`."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value
