"""The interface of the compiler: whole files, and single functions whose text is given."""
from __future__ import annotations

import ast
from collections.abc import Mapping
from copy import copy

from irtool.analysis.constant_folding import fold_constants
from irtool.ir import types
from irtool.ir.awaitables import awaitables_late
from irtool.ir.defaults import DEFAULTS, spelled
from irtool.ir.errors import Error, ParseError, did_you_mean
from irtool.ir.graph import Graph
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic
from irtool.torchscript.annotations import SIMPLE, dotted, signature
from irtool.torchscript.class_definitions import interfaces_of
from irtool.torchscript.classes import meaning_of_name
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import Meaning
from irtool.torchscript.meanings import Alias, Builtin, Called, Known, Literal, Overloads, Packaged, Python
from irtool.torchscript.python_names import ARCHIVE, EXCEPTIONS, RESERVED, SPECIALS, imported_name, python_name
from irtool.torchscript.source_text import TOO_DEEP, Function, Unit, fail, joined, literal, read
from irtool.torchscript.statements import function_body


def refuse_modules(unit: Unit) -> None:
    """Raises ParseError, which names alternatives, for a file that defines modules of torch.nn: their weights are not in the source."""
    for definition in unit.place.classes.values():
        if any((dotted(base) or "").rpartition(".")[2] in ("Module", "Sequential", "ScriptModule") for base in definition.bases):
            fail(unit.place, definition, f"'{definition.name}' is a module of torch.nn, whose weights are not in the source: write "
                 f"torch.jit.script({definition.name}(...)).save('{definition.name.lower()}.pt') with torch, then irtool takes that file",
                 len("class"))


def compile_source(source: str, name: str | None = None, filename: str = "<string>", *, first_line: int = 1,
                   literals: bool = False) -> Module:
    """Compile TorchScript source, without executing any of it. Returns a Module with a graph per function, or only the one called `name`.

    Calls of other functions of the source are inlined. With `literals`, functions may read literals of the file's top level. Raises
    ParseError, with the place, for what torch would refuse.
    """
    for what, value in (("source", source), ("name", name)):
        if not isinstance(value, str) and (value is not None or what == "source"):
            raise Error(f"from_script: expected the {what} as text (str), got {type(value).__name__}")
    unit = read(source, filename, first_line)
    if name is not None and name not in unit.functions:
        raise Error(f"{filename}: no function named '{name}'{did_you_mean(name, unit.functions)}"
                    + (f", expected one of: {', '.join(unit.functions)}" if unit.functions else ""), code="E0605")
    if not unit.functions:
        refuse_modules(unit)
        raise ParseError(f"{filename}: no function definition",
                         [Diagnostic("error", "expected a function definition", unit.place, 1, 1)], code="E0605")
    compilation = Compilation()
    compilation.literals = literals
    graphs: list[Graph] = []
    errors: list[Error] = []
    for function in unit.functions.values():
        if function.name == name or name is None and not interfaces_of(function):      # only a call determines the classes of interfaces
            try:
                graphs.append(compilation.graph_of(function))
                keep_defaults(graphs[-1], function)
            except Error as error:
                errors.append(error)
    if errors:
        raise joined(errors)
    if len(graphs) == 1 and name is None:
        graphs[0].name = ""
    return Module([part for graph in graphs for part in (graph, "\n")][:-1] if len(graphs) > 1 else list(graphs), filename)


def compile_function_source(text: str, filename: str = "<string>", first_line: int = 1,
                            helpers: Mapping[str, tuple[str, str, int] | str] | None = None) -> Graph:
    """Compile the one function whose source is `text` (it may be indented and decorated), line 1 of it being `first_line` of the file.

    `helpers` are what else it may call: name -> (text, filename, first line) of a function, or the kind of an operator. The graph of a
    gradient formula returns one tuple, the last element of which is `(prim::Closure, context)`; the closure's graph is the value of its
    attribute `Subgraph`, and takes `(context, parameters...)`. Raises ParseError.
    """
    unit = read(text, filename, first_line)
    if len(unit.functions) != 1:
        raise ParseError(f"{filename}:{first_line}: expected one function definition, found {len(unit.functions)}", code="E0605")
    compilation = Compilation(helpers)
    (function,) = unit.functions.values()
    return compilation.graph_of(function)


CONSTRUCTORS = ("Dict", "Tuple", "Optional", "Union", "dict", "tuple")
"""Types that take types as arguments."""


KINDS: dict[type[ast.expr], str] = {ast.List: "list", ast.Dict: "dict", ast.Tuple: "tuple", ast.Set: "set"}
"""Displays at the top level of a file -> the types of their values."""


def kind_of(node: ast.expr) -> str:
    """The type of what an expression at the top level of a file gives, as far as that is known without executing it."""
    try:
        return type(literal(node)).__name__
    except ValueError:
        return KINDS.get(type(node), "object")


class Compilation:
    """Functions compiled together, each once; it also refuses recursion."""

    def __init__(self, helpers: Mapping[str, tuple[str, str, int] | str] | None = None) -> None:
        self.graphs: dict[int, Graph] = {}
        self.active: list[ast.FunctionDef] = []
        self.compiled: list[Function] = []
        """The functions compiled so far, kept alive because `graphs` has the ids of their definitions as keys."""
        self.for_instances: dict[tuple[object, ...], Function] = {}
        """Functions whose parameters are interfaces, compiled for the classes of arguments; by definition and classes."""
        self.unchecked: list[Function] = []
        """Methods that no call has compiled yet; torch compiles them all."""
        self.literals = False
        """May functions read literals of the file's top level? torch refuses it."""
        self.helpers = dict(helpers or {})
        self._declared: dict[str, Overloads] = {}
        self._helper_functions: dict[str, Function] = {}

    def graph_of(self, function: Function) -> Graph:
        """The graph of a function. Raises ParseError."""
        key = id(function.definition)
        graph = self.graphs.get(key)
        if graph is None:
            self.compiled.append(function)
            self.active.append(function.definition)
            try:
                graph = self.graphs[key] = self._compile(function)
            except RecursionError:
                fail(function.place, function.definition, TOO_DEEP, 3, "E0608")
            finally:
                self.active.pop()
        while self.unchecked and not self.active:
            self.graph_of(self.unchecked.pop())
        return graph

    def _compile(self, function: Function) -> Graph:
        emitter = Emitter(function, self)
        declare_parameters(emitter, function)
        function_body(emitter, function.definition.body)
        finish(emitter.graph)
        awaitables_late(emitter.graph)
        return emitter.graph

    def is_active(self, function: Function) -> bool:
        """Is the function being compiled?"""
        return any(function.definition is each for each in self.active)

    def global_name(self, name: str, unit: Unit) -> Meaning | None:
        """The meaning of a name outside of all functions."""
        if unit.place.library is not None and name in ("__torch__", "CONSTANTS"):
            return Packaged(name, unit.place.library)
        if name in RESERVED and name not in self.helpers:
            return python_name(name)
        if name in unit.overloads and name in unit.functions:
            return self._overloads(name, unit)
        if name in unit.functions:
            return Called(unit.functions[name])
        if name in self.helpers:
            helper = self.helpers[name]
            return Builtin(helper) if isinstance(helper, str) else Called(self._helper(name, helper))
        if name in unit.modules:
            return imported_name(unit.modules[name])
        named = meaning_of_name(name, unit.place)
        if named is not None:
            return named
        if name in unit.constants:
            value = unit.constants[name]
            if isinstance(value, ast.Attribute | ast.Name):
                return Alias(value)
            return Literal(value) if isinstance(value, ast.Constant) else Python(kind_of(value))
        if any(name in known for known in (SPECIALS, ARCHIVE, EXCEPTIONS, SIMPLE, CONSTRUCTORS)):
            return python_name(name)
        return None

    def _overloads(self, name: str, unit: Unit) -> Overloads:
        """A function under each of its declared overloads; parameters and defaults that an overload omits are those of the function."""
        if name not in self._declared:
            body = unit.functions[name].definition
            declared = [copy(each) for each in unit.overloads[name]]
            for each in declared:
                each.body, each.decorator_list, each.args = body.body, body.decorator_list, _merged(each.args, body.args, unit)
            self._declared[name] = Overloads(name, [Function(each, unit.place, unit) for each in declared])
        return self._declared[name]

    def _helper(self, name: str, source: tuple[str, str, int]) -> Function:
        helper = self._helper_functions.get(name)
        if helper is None:
            unit = read(*source)
            helper = self._helper_functions[name] = next(iter(unit.functions.values()))
        return helper


def _merged(declared: ast.arguments, body: ast.arguments, unit: Unit) -> ast.arguments:
    """The parameters of an overload: those it declares, then the others of the function. Raises ParseError where the two do not agree."""
    own, every, place = declared.args, body.args, unit.place
    if len(own) > len(every):
        fail(place, own[len(every)], "Overload must have no more parameters than the implementation function")
    for i, (one, other) in enumerate(zip(own, every, strict=False)):
        if one.arg != other.arg:
            fail(place, one, f"Overload parameters must have the same names. Found {one.arg} and {other.arg} on argument {i}")
    defaults = _defaults_by_name(body)
    for name, default in _defaults_by_name(declared).items():
        if name not in defaults or not _same_default(default, defaults[name]):
            fail(place, default, "Default parameters on overloads do not affect the runtime so they must equal to the default parameter on "
                                 f"the implementation function. Found on parameter {name}")
    for extra in every[len(own):]:
        if extra.arg not in defaults:
            fail(place, extra, f"Expected to find default parameter on argument{extra.arg} because it is not defined on the overloaded "
                               "declaration")
        if extra.annotation is None:
            fail(place, extra, "Parameters not specified on the overloaded declaration must have a type annotation in the implementation "
                               f"function. Did not find type for param {extra.arg}")
    merged = copy(declared)
    merged.args, merged.defaults = [*own, *every[len(own):]], body.defaults
    return merged


def _defaults_by_name(arguments: ast.arguments) -> dict[str, ast.expr]:
    named = arguments.args[len(arguments.args) - len(arguments.defaults):]
    return {each.arg: default for each, default in zip(named, arguments.defaults, strict=True)}


def _same_default(one: ast.expr, other: ast.expr) -> bool:
    try:
        return literal(one) == literal(other)
    except ValueError:
        return ast.dump(one) == ast.dump(other)     # a name, such as that of a dtype


def default_value(node: ast.expr, unit: Unit) -> object:
    """The value of a default. Raises ValueError if it is neither a literal, nor a number of a module, nor made of these."""
    if isinstance(node, ast.Call) and dotted(node.func) == "float" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
        return float(str(node.args[0].value))
    root, _, rest = (dotted(node) or "").partition(".")
    named = python_name(f"{unit.modules[root]}.{rest}") if root in unit.modules else None
    if isinstance(named, Known):
        return named.value
    try:
        return literal(node)
    except ValueError:
        return evaluated(node, unit)


CONSTANT_EXPRESSIONS = frozenset("""
prim::Constant prim::ListConstruct prim::TupleConstruct prim::DictConstruct aten::device aten::neg aten::add aten::sub aten::Complex
aten::complex aten::Float
""".split())
"""Kinds of nodes that make the value of a default: `(1.5, inf)`, `torch.device("cpu")`, `CONSTANTS.c0`."""


def evaluated(node: ast.expr, unit: Unit) -> object:
    """The value of an expression, compiled as the result of a function, as torch does. Raises ValueError if it does more than make a
    constant."""
    from irtool.interpret import run

    result = ast.copy_location(ast.Return(node), node)
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    definition = ast.FunctionDef(name="default", args=arguments, body=[result], decorator_list=[], returns=None, type_comment=None)
    try:
        graph = Compilation().graph_of(Function(ast.copy_location(definition, node), unit.place, unit))
        if any(each.kind not in CONSTANT_EXPRESSIONS for each in graph.walk()):
            raise ValueError("no constant")
        (value,) = run(graph, [])
    except Error as error:
        raise ValueError(error.message) from None
    return value


def declared_default(node: ast.expr, unit: Unit) -> object:
    """As `default_value`, but raises ParseError."""
    try:
        return default_value(node, unit)
    except ValueError:
        fail(unit.place, node, "expected a literal, or a number of torch")


def keep_defaults(graph: Graph, function: Function) -> None:
    """Store the parameters' defaults in the graph's metadata, if they are literals or numbers of torch (`torch.float32`)."""
    parameters = signature(function)
    values: dict[str, object] = {}
    for value, node, count in zip(graph.inputs, parameters.defaults, parameters.repeats, strict=True):
        if node is None:
            continue
        try:
            default = default_value(node, function.unit)
        except ValueError:
            continue
        values[value.name] = (default,) * count if count and isinstance(default, int | float) else default
    if values:
        graph.metadata[DEFAULTS] = spelled(values)


def declare_parameters(emitter: Emitter, function: Function) -> None:
    """The graph's inputs."""
    parameters = signature(function)
    emitter.declared_return = parameters.result
    for name, type, inferred in zip(parameters.names, parameters.types, parameters.inferred, strict=True):
        value = emitter.graph.block.add_input(emitter.numbered(name), types.spell(type, emitter.graph.dialect))
        if inferred:
            emitter.inferred.add(value)
        emitter.env.set(name, value)


def finish(graph: Graph) -> None:
    """Fold numbers and what they decide, and remove unused nodes, as `torch.jit.script` does (runCleanupPasses of ir_emitter.cpp)."""
    fold_constants(graph, immutable_types=True)
    graph.forget_names()
