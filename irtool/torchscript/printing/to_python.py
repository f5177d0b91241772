"""Graphs as TorchScript source that people read: `to_script(graph)`.

Compiling the source makes a graph that computes the same (`torch` reads it as the code of an archive, irtool as any source).

Note [order]: a node whose single result is used once, in the same block, and has no name of its own, gets no line: it waits, and becomes
part of the expression that uses it. The list of waiting nodes has the order of the graph. An expression takes its operands from the end of
that list, as far as they are there in the order in which Python evaluates them; all other waiting nodes are assigned to temporaries first.
So all nodes run in the order of the graph, whatever they write or print, and no alias analysis is needed.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irtool.ir.attribute import TensorLiteral
from irtool.ir.constants import INT_MAX, NOT_CONSTANT, constant, is_constant, is_none
from irtool.ir.defaults import defaults_of
from irtool.ir.effects import IF_KINDS, LOOP_KINDS
from irtool.ir.errors import Error, UnsupportedError
from irtool.ir.graph import Block, Graph, Node, Value
from irtool.ir.module import Module
from irtool.ir.rounded import warn_of_rounded
from irtool.ir.schema import is_tensor_like
from irtool.ir.structure_kinds import CHUNKS, CONTEXT_KINDS, UNPACKS
from irtool.ir.types import Type
from irtool.ir.verify import explained
from irtool.torchscript.printing.call_expressions import FREE, expression, form_of, free_text
from irtool.torchscript.printing.gradient_functions import function_source, gradient_functions, uses
from irtool.torchscript.printing.legal_names import Names, identifier
from irtool.torchscript.printing.literals import annotation, joined, literal, type_key

MAX_INLINE = 60
"""A longer expression gets a line of its own."""
MAX_BLOCKS = 90
"""Python accepts at most 100 levels of indentation."""
CONTEXTS = frozenset(f"__torch__.torch.autograd.grad_mode.{name}" for name in ("no_grad", "enable_grad", "set_grad_enabled"))
APART = CHUNKS | {"prim::isinstance"}
"""Kinds that get a line of their own: an `if isinstance(...)` would be decided while compiling."""


def to_script(graph: Graph | Module, name: str | None = None) -> str:
    """TorchScript source of a graph, as `def name(...)`, or of all graphs of a module.

    A graph without a name is called `graph`. Tensor constants whose numbers the text omits are `CONSTANTS.c0`, `CONSTANTS.c1`, ...
    Warns (RoundedWarning) of constants that the text has with a few digits, since the source does not show it.
    Raises UnsupportedError, which names what has no source: classes, Python operators, kinds with blocks other than If and Loop.
    """
    source = Source()
    if not isinstance(graph, Module | Graph):
        raise Error(f"to_script: expected a Module or a Graph, got {type(graph).__name__}", code="E0001")
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise Error(f"to_script: name={str(name)[:40]!r}; expected the name of a function", code="E0001")
    if isinstance(graph, Module) and name is not None:
        graph = graph.graph()
    for each in graph.graphs if isinstance(graph, Module) else [graph]:
        warn_of_rounded(each)
    if isinstance(graph, Module):
        for function_name, each in zip(graph.names(), graph.graphs, strict=True):
            source.function(each, function_name)
    else:
        source.function(graph, name or graph.name or "graph")
    return source.text()


class Source:
    """The functions of one file."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.names = Names()
        self.constants: list[str] = []
        self.helpers: dict[Graph, str] = {}
        self.depth = 0

    def text(self) -> str:
        """The file."""
        return "\n".join(self.functions)

    def function(self, graph: Graph, wanted: str) -> str:
        """Print a graph as a function, after the functions that it calls; returns its name."""
        name = self.names.fresh(identifier(wanted, "graph"))
        with explained(graph):
            self.prepare(graph)
            printer = Printer(self, graph)
            self.functions.append(printer.function(name))
        return name

    def has_constant(self, value: Value) -> bool:
        """Is the value of a constant stored beside the text, although the text could contain it?"""
        return False

    def constant(self, value: Value) -> str:
        """The name of a constant that is stored beside the text."""
        self.constants.append(value.name)
        return f"CONSTANTS.c{len(self.constants) - 1}"

    def call_of(self, name: str) -> str:
        """The text of a call of a function of the file, without arguments."""
        return name

    def prepare(self, graph: Graph) -> None:
        """Print the functions that the graph calls, so that no value gets the name of one."""
        for node in graph.walk():
            held = node.attributes.get("Subgraph")
            if held is not None and isinstance(held.value, Graph):
                if node.kind == "prim::Closure":
                    self.prepare(held.value)
                else:
                    self.helper(node, held.value)

    def library(self, name: str) -> None:
        """Add a function that torch's gradients call, and the functions that it calls, unless they have been added."""
        if name.startswith("AD_") and name in gradient_functions() and name not in self.names.used:
            for each in uses(name):
                self.library(each)
            self.names.used.add(name)
            self.functions.append(function_source(name))

    def helper(self, node: Node, graph: Graph) -> str:
        """The function for a graph that a node owns."""
        function_name = self.helpers.get(graph)
        if function_name is None:
            self.depth += 1
            if self.depth > MAX_BLOCKS:
                raise UnsupportedError(f"{node.kind} contains graphs nested too deeply to be written as TorchScript", code="E0606")
            function_name = self.helpers[graph] = self.function(graph, node.kind.rpartition("::")[2])
            self.depth -= 1
        return function_name


class Printer:
    """Prints one graph as one function."""

    def __init__(self, source: Source, graph: Graph) -> None:
        self.source = source
        self.graph = graph
        self.names = Names()
        self.names.used = set(source.names.used)
        self.texts: dict[Value, str] = {}
        """The text for a read of a value: a name, or a constant."""
        self.waiting: list[tuple[Value, str]] = []
        """See Note [order]."""
        self.waits: set[Value] = set()
        self.lines: list[str] = []
        self.depth = 1
        self.contexts: list[tuple[Value, int]] = []
        """The objects of the surrounding `with` statements, and the first line of each."""

    # -- lines
    def line(self, text: str) -> None:
        """Add a statement at the current depth."""
        self.lines.append("  " * self.depth + text)

    def assign(self, targets: Sequence[str], texts: Sequence[str], kinds: Sequence[str] = ()) -> None:
        """`x, y = a, b`; a target with an annotation gets a line of its own. Assignments of a name to itself are left out."""
        if any(kinds):
            for target, text, kind in zip(targets, texts, kinds, strict=True):
                self.line(f"{target}: {kind} = {text}" if kind else f"{target} = {text}")
            return
        pairs = [(target, text) for target, text in zip(targets, texts, strict=True) if target != text]
        if pairs:
            self.line(f"{', '.join([pair[0] for pair in pairs])} = {', '.join([pair[1] for pair in pairs])}")

    # Choose a name for a value.
    def name(self, value: Value, otherwise: str = "_") -> str:
        """Give a value its name."""
        text = self.texts[value] = self.names.of(value, otherwise)
        return text

    def text(self, value: Value) -> str:
        """The text for a read of a value that does not wait. Raises UnsupportedError for a constant without source."""
        text = self.texts.get(value)
        if text is None:
            text = self.texts[value] = self.constant(value)
        return text

    def constant(self, value: Value) -> str:
        """The text of a constant, or of a constant list that only one node reads."""
        node = value.node
        if node.kind in FREE:
            return free_text(self, node)
        form = form_of(node.kind)
        if form is not None:
            return form(self, node)
        if is_none(value):
            return "ops.prim.AutogradZero()" if is_tensor_like(value.type) else "None"
        if self.source.has_constant(value):
            return self.source.constant(value)
        content = constant(value)
        if content is NOT_CONSTANT:
            raise UnsupportedError(f"%{value.name} of {node.kind} cannot be written as TorchScript", code="E0606")
        try:
            return literal(content, value.type)
        except UnsupportedError:
            if not isinstance(content, TensorLiteral):
                raise
        return self.source.constant(value)

    def take(self, values: Sequence[Value]) -> list[str]:
        """The texts of values, which the expression reads in this order. See Note [order]."""
        wanted = [value for value in values if value in self.waits]
        ready = 0
        while ready < len(wanted) and self.waiting[-1 - ready][0] is wanted[-1 - ready]:
            ready += 1
        taken = dict(self.waiting[len(self.waiting) - ready:])
        del self.waiting[len(self.waiting) - ready:]
        self.waits.difference_update(taken)
        if ready < len(wanted):
            self.settle()
        return [taken[value] if value in taken else self.text(value) for value in values]

    def settle(self) -> None:
        """Assign all waiting expressions to temporaries."""
        waiting, self.waiting = self.waiting, []
        self.waits.clear()
        for value, text in waiting:
            self.line(f"{self.name(value)} = {text}")

    def helper(self, node: Node, graph: Graph) -> str:
        """The function for a graph that a node owns."""
        return self.source.call_of(self.source.helper(node, graph))

    def call_by_name(self, name: str) -> str:
        """The text of a call of a function that the text does not contain: one of torch's own, which is added, or one that the reader
        must define."""
        self.source.library(name)
        return self.source.call_of(name)

    # -- the function
    def function(self, name: str, skip: int = 0) -> str:
        """The whole definition, without its first `skip` parameters."""
        parameters = self.parameters(self.graph.inputs[skip:], {} if skip else defaults_of(self.graph))
        result = self.result_type()
        self.block(self.graph.block)
        self.give_results()
        head = f"def {name}({', '.join(parameters)}){result}:"
        if len(head) > 100:
            head = f"def {name}(" + (",\n  " + "  " * self.depth).join(parameters) + f"){result}:"
        return "\n".join([head, *self.lines, ""])

    def parameters(self, values: Sequence[Value], known: Mapping[str, object]) -> list[str]:
        """Parameters with their types and, at the end, their defaults."""
        parameters: list[str] = []
        names = [value.name for value in values]
        for i, value in enumerate(values):
            parameters.append(f"{self.name(value, f'argument_{i}')}: {self.annotation(value.type)}")
            if known and all(name in known for name in names[i:]):
                parameters[-1] += f" = {literal(known[value.name], value.type)}"
        return parameters

    def result_type(self) -> str:
        """The arrow and the type of the result; empty for a function that makes a closure, whose type has no spelling."""
        return "" if any(is_closure(node) for node in self.graph.block) else " -> " + self.returned(self.graph.outputs)

    def give_results(self) -> None:
        """The return statement."""
        texts = self.take(self.graph.outputs)
        self.settle()
        self.line("return " + (texts[0] if len(texts) == 1 else f"({', '.join(texts)})" if texts else "None"))

    def block(self, block: Block) -> None:
        """The nodes of a block; expressions that its results need may still wait."""
        if self.depth > MAX_BLOCKS:
            raise UnsupportedError(f"blocks nested more than {MAX_BLOCKS} deep cannot be written as TorchScript", code="E0606")
        for node in block:
            self.node(node)

    def node(self, node: Node) -> None:
        """Print one node: its lines, or nothing yet if it waits."""
        if node.kind in IF_KINDS:
            self.branch(node)
        elif node.kind in LOOP_KINDS:
            self.loop(node)
        elif node.kind in ("prim::GradOf", "GradOf"):
            self.region(node)
        elif node.kind in CONTEXT_KINDS and is_context(node):
            self.context(node)
        elif is_free(node) or is_part_of_closure(node):
            return
        elif is_closure(node):
            self.closure(node)
        elif node.kind in UNPACKS:
            if node.outputs and node.outputs[0] not in self.texts:
                self.statement(node, joined(self.take(node.inputs)), True)
        elif node.kind == "aten::_set_item" and not any(value.has_uses for value in node.outputs):
            self.set_item(node)
        else:
            text = expression(self, node)
            if node.kind not in APART and len(node.outputs) == 1 and len(text) <= self.room(node) and may_wait(node.outputs[0]):
                self.waiting.append((node.outputs[0], text))
                self.waits.add(node.outputs[0])
            else:
                self.statement(node, text, node.kind in CHUNKS)

    def room(self, node: Node) -> int:
        """The longest text of a node that may still become part of another expression."""
        uses = node.outputs[0].uses
        return 2 * MAX_INLINE if len(uses) == 1 and uses[0].user is self.graph.block.return_node else MAX_INLINE

    def statement(self, node: Node, text: str, unpacks: bool = False) -> None:
        """A line for a node, after all waiting expressions."""
        self.settle()
        if not any(value.has_uses for value in node.outputs) and not unpacks:
            self.line(text)
        else:
            names = joined([self.name(value) for value in node.outputs], "," if unpacks else "")
            self.line(f"{names} = {text}")

    def set_item(self, node: Node) -> None:
        """`l[i] = v`."""
        whole, index, value = node.inputs
        if whole in self.waits or index in self.waits:      # Python evaluates the value first
            self.settle()
        text = self.take([value])[0]
        self.settle()
        self.line(f"{self.text(whole)}[{self.text(index)}] = {text}")

    # -- control flow
    def branch(self, node: Node) -> None:
        """`if`; its results are assigned at the end of both branches."""
        if len(node.blocks) != 2 or any(len(block.outputs) != len(node.outputs) for block in node.blocks):
            raise UnsupportedError(f"{node.kind} whose blocks do not fit cannot be written as TorchScript", code="E0606")
        condition = self.take(node.inputs)[0]
        self.settle()
        names = [self.name(value) for value in node.outputs]
        self.line(f"if {condition}:")
        for i, block in enumerate(node.blocks):
            if i:
                if not names and not any(not is_free(each) for each in block):
                    break
                self.line("else:")
            self.inside(block, names, [self.kind_needed(value, as_) for value, as_ in zip(block.outputs, node.outputs, strict=True)],
                        block.outputs)

    def inside(self, block: Block, names: Sequence[str], kinds: Sequence[str], results: Sequence[Value]) -> None:
        """The lines of a nested block, then its results assigned to names."""
        self.depth += 1
        start = len(self.lines)
        self.block(block)
        texts = self.take(results)
        self.settle()
        self.assign(names, texts, kinds)
        if len(self.lines) == start:
            self.line("pass")
        self.depth -= 1

    def context(self, node: Node) -> None:
        """`with torch.no_grad():` from `prim::Enter` to `prim::Exit`; the nodes that make the object are not printed."""
        if node.kind == "prim::Enter":
            manager = node.inputs[0]
            mode = next((use.user.inputs[1] for use in manager.uses if use.user.kind == "prim::SetAttr" and
                         use.user.attributes["name"].value == "mode"), None)
            self.settle()
            self.line(f"with {self.manager(manager.type.text, self.text(mode) if mode is not None else '')}:")
            self.contexts.append((manager, len(self.lines)))
            self.depth += 1
        elif node.kind == "prim::Exit":
            if not self.contexts or self.contexts[-1][0] is not node.inputs[0]:
                raise UnsupportedError(f"{node.kind} of a context that is not the innermost one cannot be written as TorchScript",
                                       code="E0606")
            _, start = self.contexts.pop()
            self.settle()
            if len(self.lines) == start:
                self.line("pass")
            self.depth -= 1

    def annotation(self, type: Type) -> str:
        """The text of a type. Raises UnsupportedError for classes."""
        return annotation(type)

    def returned(self, outputs: Sequence[Value]) -> str:
        """The annotation of a function's result."""
        if len(outputs) == 1:
            return self.annotation(outputs[0].type)
        return f"Tuple[{', '.join([self.annotation(value.type) for value in outputs])}]" if outputs else "None"

    def kind_needed(self, value: Value, target: Value) -> str:
        """The annotation without which a target assigned from `value` would not have its type; empty if none is needed."""
        written = "None" if is_none(value) else type_key(value.type)
        return "" if written == type_key(target.type) else self.annotation(target.type)

    def fork(self, kind: str) -> str:
        """The text of a call that starts an asynchronous function."""
        return "torch.jit.fork" if kind == "prim::fork" else "torch.jit._awaitable"

    def manager(self, name: str, mode: str) -> str:
        """The expression for the object of a `with`: an instance of the class of that name."""
        return f"torch.{name.rpartition('.')[2]}({mode})"

    def closure(self, pair: Node) -> None:
        """A nested function, whose value is the pair of a `prim::Closure` and the tuple of its captures."""
        closure, context = (value.node for value in pair.inputs)
        held = closure.attributes.get("Subgraph")
        graph = held.value if held is not None else None
        if not isinstance(graph, Graph) or not graph.inputs or context.kind != "prim::TupleConstruct":
            raise UnsupportedError(f"{closure.kind} whose context is not made beside it cannot be written as TorchScript", code="E0606")
        self.settle()
        captured = [self.text(value) for value in context.inputs]
        inner = Printer(self.source, graph)
        inner.names.used |= self.names.used
        inner.depth = self.depth + 1
        for use in graph.inputs[0].uses:
            if use.user.kind != "prim::TupleUnpack" or len(use.user.outputs) != len(captured):
                raise UnsupportedError(f"{closure.kind} that does not take its context apart cannot be written as TorchScript",
                                       code="E0606")
            inner.texts.update(zip(use.user.outputs, captured, strict=True))
        name = self.names.of(pair.outputs[0], "closure")
        text = inner.function(name, skip=1)
        self.lines.append("  " * self.depth + text.rstrip("\n"))
        self.texts[pair.outputs[0]] = name

    def region(self, node: Node) -> None:
        """`prim::GradOf`: its block runs if one of its gradients is defined; else its results are undefined."""
        texts = self.take(node.inputs)
        self.settle()
        names = [self.name(value) for value in node.outputs]
        self.line(f"if ops.prim.AutogradAnyNonZero({', '.join(texts)}):")
        self.inside(node.blocks[0], names, [""] * len(names), node.blocks[0].outputs)
        if names:
            self.line("else:")
            self.depth += 1
            self.assign(names, ["ops.prim.AutogradZero()"] * len(names))
            self.depth -= 1

    def loop(self, node: Node) -> None:
        """`for` if only the count ends the loop, `while` if only the condition does, else a `while` that counts."""
        block = node.blocks[0]
        if len(block.inputs) != len(node.inputs) - 1 or len(block.outputs) != len(node.outputs) + 1 != len(block.inputs):
            raise UnsupportedError(f"{node.kind} whose block does not fit cannot be written as TorchScript", code="E0606")
        trips, condition, *initial = node.inputs
        index, *carried = block.inputs
        again, *following = block.outputs
        kinds = [self.kind_needed(value, as_) for value, as_ in zip(initial, carried, strict=True)]
        is_for = is_true(condition) and is_true(again)
        limited = not is_endless(trips)
        counts = not is_for and (index.has_uses or limited)
        if not is_for and trips in self.waits:
            self.settle()
        read = [*initial, trips] if is_for else [condition, *initial]
        texts = self.take(read)
        self.settle()
        names = []
        for inner, outer in zip(carried, node.outputs, strict=True):
            names.append(self.name(outer if inner.has_id_name else inner))
            self.texts[inner] = self.texts[outer] = names[-1]
        if is_for:
            self.assign(names, texts[:-1], kinds)
            count = f"int({texts[-1]})" if is_tensor_like(trips.type) else texts[-1]
            self.line(f"for {self.name(index, 'i')} in range({count}):")
            self.inside(block, names, [""] * len(names), following)
            return
        names.insert(0, self.names.fresh("_"))
        kinds.insert(0, "")
        if not counts:
            self.assign(names, texts, kinds)
            self.line(f"while {names[0]}:")
            self.inside(block, names, [""] * len(names), block.outputs)
            return
        counter = self.name(index, "i")
        self.assign([counter, *names], ["0", *texts], ["", *kinds])
        limit = f"torch.lt({counter}, {self.text(trips)}) and " if limited else ""
        self.line(f"while {limit}{names[0]}:")
        self.inside(block, names, [""] * len(names), block.outputs)
        self.depth += 1
        self.line(f"{counter} = torch.add({counter}, 1)")
        self.depth -= 1


def is_context(node: Node) -> bool:
    """Does the node make, enter or exit an object that switches gradients on or off, in one block?"""
    operands = node.outputs if node.kind == "prim::CreateObject" else node.inputs
    if not operands:        # of text by hand
        return False
    manager = operands[0]
    if manager.node.kind != "prim::CreateObject" or manager.type.text not in CONTEXTS:
        return False
    return all(use.user.owner is manager.node.owner and use.user.kind in CONTEXT_KINDS for use in manager.uses)


def is_closure(node: Node) -> bool:
    """Is the value the pair of a closure and its context?"""
    return node.kind == "prim::TupleConstruct" and len(node.inputs) == 2 and node.inputs[0].node.kind == "prim::Closure"


def is_part_of_closure(node: Node) -> bool:
    """Is the node printed with its closure: the closure itself, its context, or the unpacking of the context inside?"""
    if node.kind == "prim::Closure":
        return all(is_closure(use.user) for use in node.outputs[0].uses)
    if node.kind == "prim::TupleConstruct":
        return bool(node.outputs[0].uses) and all(is_closure(use.user) and use.slot == 1 for use in node.outputs[0].uses)
    return False


def is_true(value: Value) -> bool:
    """Is the value the constant True, or the tensor `{1}` of 2018?"""
    return is_constant(value) and number_of(value) == 1


def is_endless(trips: Value) -> bool:
    """Does this trip count mean that only the condition ends the loop?"""
    return is_constant(trips) and number_of(trips) in (INT_MAX, 2 ** 31 - 1)


def number_of(value: Value) -> object:
    """A constant number, or the number in a constant tensor."""
    number = constant(value)
    return number.item() if isinstance(number, TensorLiteral) and number.has_data and len(number.numbers()) == 1 else number


def is_free(node: Node) -> bool:
    """May the node be printed wherever its result is read? It may if it is a constant, or a list of constants that one node of its block
    reads."""
    if node.kind in FREE:
        return True
    if len(node.outputs) != 1:
        return False
    value = node.outputs[0]
    if is_constant(value):
        return True
    if node.kind in ("prim::ListConstruct", "prim::TupleConstruct") and value.has_id_name and len(node.inputs) < 20:
        return all(map(is_constant, node.inputs)) and (not value.has_uses or may_wait(value))
    return False


def may_wait(value: Value) -> bool:
    """Has the value one use, in its own block, and no name that a user chose (a block's result may have one)?"""
    if value.use_count != 1:
        return False
    user = value.uses[0].user
    if user.owner is not value.node.owner:
        return False
    return value.has_id_name or user.owner is not None and user is user.owner.return_node
