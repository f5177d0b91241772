"""The code of an archive: files of classes and functions under `__torch__`, each read and compiled on first use.

`__torch__.a.b.C` is the class or function `C` of the file `code/__torch__/a/b.py`; all references are full names.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from irtool.ir import types
from irtool.ir.attribute import Attribute, TensorLiteral
from irtool.ir.awaitables import FORK, fork_late
from irtool.ir.errors import Error, did_you_mean
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.source import SourceFile
from irtool.ir.types import ClassType, NamedTupleType, Type
from irtool.ops.quantized import Packed
from irtool.torchscript.annotations import annotation, dotted
from irtool.torchscript.built_in_classes import SOURCES, packed_class
from irtool.torchscript.class_definitions import ClassDefinition
from irtool.torchscript.classes import class_of_unit
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Meaning
from irtool.torchscript.front import Compilation
from irtool.torchscript.meanings import Called, Enumeration, Packaged, Structure
from irtool.torchscript.source_text import Function, Unit, fail, read

ROOT = "__torch__"
CONSTANTS = "CONSTANTS"


class Library:
    """The classes and functions of one archive, by full name."""

    def __init__(self, code: Callable[[str], str | None], filename: str, constants: Callable[[], Sequence[Any]], version: int,
                 source: SourceFile | None = None) -> None:
        """code: returns the text of a file (`__torch__/a/b`), or None; constants: the values of `CONSTANTS.c0` and so on; version: that
        of the file's format, which determines what operators mean; source: of messages, the place of a node."""
        self.code = code
        self.filename = filename
        self.constants = constants
        self.version = version
        self.source = source
        self.compilation = Compilation()
        self._units: dict[str, Unit | None] = {}
        self._classes: dict[str, Structure | Enumeration | ClassDefinition | None] = {}
        self._settled: set[Graph] = set()

    def unit(self, path: str) -> Unit | None:
        """The file of a module (`__torch__.a.b`), or None. Raises ParseError."""
        if path not in self._units:
            text = SOURCES[path] if path in SOURCES else self.code(path.replace(".", "/"))
            unit = self._units[path] = None if text is None else read(text, f"{self.filename}:code/{path.replace('.', '/')}.py", 1, self)
            if unit is not None:
                unit.place.module = path
        return self._units[path]

    def class_called(self, name: str) -> Structure | Enumeration | ClassDefinition | None:
        """The class of a full name, or None. Raises ParseError."""
        name = name.removeprefix("InterfaceType<").removesuffix(">")
        if name not in self._classes:
            path, _, last = name.rpartition(".")
            unit = self.unit(path) if path.partition(".")[0] == ROOT else None
            known = self._classes[name] = class_of_unit(last, unit.place) if unit is not None else None
            if isinstance(known, ClassDefinition):
                self._declare(known)
        return self._classes[name]

    def instances_of(self, interface: Type, method: str) -> list[Type]:
        """The classes that the code has mentioned so far and that have the interface's method, with as many parameters."""
        wanted = self.definition(interface)
        count, is_module = len(wanted.methods[method].definition.args.args), "ModuleInterface" in map(dotted, wanted.definition.bases)
        return [each.type for each in self._classes.values() if isinstance(each, ClassDefinition) and not each.is_interface
                and each.is_module == is_module and method in each.methods and len(each.methods[method].definition.args.args) == count]

    def structure_named(self, type: NamedTupleType) -> str | None:
        """The full name of a named tuple's class, if the code has mentioned it so far."""
        return next((name for name, known in self._classes.items() if isinstance(known, Structure) and known.type.key == type.key), None)

    def title_of(self, type: NamedTupleType) -> str:
        """The name of a named tuple's class without its module; empty if several classes have the same fields."""
        titles = {name.rpartition(".")[2] for name, known in self._classes.items()
                  if isinstance(known, Structure) and known.type.key == type.key}
        return titles.pop() if len(titles) == 1 else ""

    def _declare(self, definition: ClassDefinition) -> None:
        """Read the attributes, all of which the class body declares."""
        definition.is_begun = True
        place = definition.place
        for each in definition.definition.body:
            if isinstance(each, ast.AnnAssign):
                name = each.target.id if isinstance(each.target, ast.Name) else _key(each.target)
                if name is None:
                    continue
                if each.value is not None and isinstance(each.annotation, ast.Subscript) and dotted(each.annotation.value) == "Final":
                    definition.constants[name] = each.value
                else:
                    definition.declared[name] = each.annotation
            elif isinstance(each, ast.Assign) and len(each.targets) == 1:
                target = each.targets[0]
                key = _key(target)
                if key is not None:
                    definition.declared[key] = each.value
                elif isinstance(target, ast.Name) and isinstance(each.value, ast.List):
                    definition.lists[target.id] = [str(item.value) for item in each.value.elts if isinstance(item, ast.Constant)]
        if not definition.declared and not definition.is_module and "__init__" in definition.methods:
            definition.is_begun = False     # before torch 1.5, `__init__` declared the attributes
            return
        missing = next((name for name in definition.lists.get("__parameters__", ()) if name not in definition.declared), None)
        if missing is not None:
            fail(place, definition.definition, f"'{missing}' is a parameter that the class does not declare", len("class"), "E0711")
        definition.attributes = _Attributes(definition, lambda node: annotation(node, place))

    def member(self, path: str) -> Meaning:
        """The meaning of a dotted name under `__torch__`: a class, a function, or a module of the code."""
        known = self.class_called(path)
        if known is not None:
            return known
        function = self.function_called(path)
        return Packaged(path, self) if function is None else Called(function)

    def function_called(self, path: str) -> Function | None:
        """The function of a full name, or None. Raises ParseError."""
        module, _, last = path.rpartition(".")
        unit = self.unit(module)
        return None if unit is None else unit.functions.get(last)

    def constant(self, e: Emitter, node: ast.Attribute) -> Value:
        """`CONSTANTS.c0`."""
        values = self.constants()
        number = int(node.attr[1:]) if node.attr[:1] == "c" and node.attr[1:].isdecimal() and len(node.attr) < 12 else -1
        if not 0 <= number < len(values):
            e.fail(node, f"'{node.attr}' is no constant of the archive, which has {len(values)}")
        value = values[number]
        if isinstance(value, str | int | float | complex) or value is None or is_plain_tuple(value):
            return e.constant(value)
        if isinstance(value, Packed):
            held = Node("prim::Constant", (), {"value": Attribute("<Packed>", value)})
            return e.shared_constant(("archive", number), held, value.type)
        if not hasattr(value, "strides"):
            e.fail(node, f"the constant {node.attr} is a {type(value).__name__}, which is not supported yet")
        literal = TensorLiteral("<Tensor>", str(value.dtype), tuple(value.shape), value)
        return e.shared_constant(("archive", number), Node("prim::Constant", (), {"value": Attribute("<Tensor>", literal)}), types.TENSOR)

    def method(self, type: Type, name: str) -> Graph:
        """The graph of a method, in which calls are not inlined. Raises Error."""
        methods = self.definition(type).methods
        if name not in methods:
            raise Error(f"'{type}' has no method '{name}'{did_you_mean(name, methods)}", code="E0604")
        return self._graph(methods[name])

    def function(self, name: str) -> Graph | None:
        """The graph of the function of a full name, in which calls are not inlined; None if there is none. Raises ParseError."""
        module, _, last = name.rpartition(".")
        unit = self.unit(module) if module.partition(".")[0] == ROOT else None
        return self._graph(unit.functions[last]) if unit is not None and last in unit.functions else None

    def _graph(self, function: Function) -> Graph:
        graph = self.compilation.graph_of(function)
        graph.source = self.source
        return graph

    def callee(self, node: Node) -> Graph | None:
        """The graph of the function or method of the archive that a node calls; None if it calls none, or it is not known which."""
        if node.kind == "prim::CallFunction":
            return self.function(str(node.inputs[0].node.attributes["name"].value))
        is_known = node.kind == "prim::CallMethod" and isinstance(node.inputs[0].type, ClassType)
        return self.method(node.inputs[0].type, str(node.attributes["name"].value)) if is_known else None

    def settle(self, graph: Graph) -> None:
        """Let each fork of a graph run in the branches that wait for it."""
        if graph not in self._settled:
            self._settled.add(graph)
            for node in [node for node in graph.walk() if node.kind == FORK]:
                fork_late(node, self.callee)

    def definition(self, type: Type) -> ClassDefinition:
        """The class of an instance. Raises Error."""
        known = self.class_called(str(type))
        if not isinstance(known, ClassDefinition):
            raise Error(f"{self.filename}: '{type}' is no class of the archive's code", code="E0711")
        return known


def is_plain_tuple(value: Any) -> bool:
    """Is the value a tuple of numbers, strings, None and such tuples?"""
    return isinstance(value, tuple) and all(each is None or isinstance(each, str | int | float | complex) or is_plain_tuple(each)
                                            for each in value)


class _Attributes(dict[str, Type]):
    """The types of attributes, read from annotations on first use, since classes refer to each other and to themselves."""

    def __init__(self, definition: ClassDefinition, read: Callable[[ast.expr], Type]) -> None:
        super().__init__()
        self.definition = definition
        self.read = read

    def __contains__(self, name: object) -> bool:
        return name in self.definition.declared

    def __missing__(self, name: str) -> Type:
        type = self[name] = self.read(self._declared(name))
        return type

    def _declared(self, name: str) -> ast.expr:
        """The annotation in the class body. Before torch 1.6, packed parameters of quantized modules were declared as tensors."""
        declared = self.definition.declared[name]
        packed = packed_class(self.definition.place.module, self.definition.name) if name == "_packed_params" else None
        return declared if packed is None or dotted(declared) != "Tensor" else ast.copy_location(ast.Constant(packed), declared)

    def get(self, name: str, default: Any = None) -> Any:
        """As dict.get."""
        return self[name] if name in self else default


def _key(target: ast.expr) -> str | None:
    """The name in `__annotations__["0"]`."""
    if isinstance(target, ast.Subscript) and dotted(target.value) == "__annotations__" and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return None
