"""Statements: assignments, `if`, loops, returns. `statements(e, list) -> Flow` compiles them in order and returns how control leaves them.

If only one branch of an `if` leaves (returns, breaks, continues, raises), the statements after the `if` are compiled into the other
branch; if only the run decides whether it leaves, a flag guards them. Variables without a value in a branch that leaves are
`prim::Uninitialized` there.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import irtool.torchscript.loop_statements as loop_statements
from irtool.ir import types
from irtool.ir.graph import Block, Node, Value
from irtool.ir.types import Type, UnionType
from irtool.torchscript.annotations import annotation, type_name
from irtool.torchscript.assignment import assign, augmented, delete, set_variable
from irtool.torchscript.branches import RESULT, Jump, join, jump_of, names_after, unified
from irtool.torchscript.conditions import condition, refine
from irtool.torchscript.emitter import Emitter
from irtool.torchscript.environment import BREAKS, CONTINUES, FALLS, RETURNS, THROWS, Branch, Environment, Flow
from irtool.torchscript.exceptions import raise_exception
from irtool.torchscript.expressions import EXPRESSIONS, meaning_of, value_of
from irtool.torchscript.instances import entered, left
from irtool.torchscript.meanings import Context
from irtool.torchscript.python_names import CONTEXTS
from irtool.torchscript.source_text import unsupported
from irtool.torchscript.syntax import check_syntax


class FallOff(ast.Return):
    """The end of a function: returns None unless a return came before."""


class Step(ast.stmt):
    """A statement made by the compiler, which runs a function."""

    def __init__(self, at: ast.AST, action: Callable[[], None]) -> None:
        super().__init__()
        self.action = action
        ast.copy_location(self, at)


def function_body(e: Emitter, body: Sequence[ast.stmt]) -> None:
    """Compile the statements of a function; its result becomes the graph's."""
    check_syntax(e, body, {ast.If, *STATEMENTS, *EXPRESSIONS})
    end = FallOff(value=None)
    ast.copy_location(end, e.function.definition)
    flow = statements(e, [*body, end])
    result = e.env.find(RESULT)
    if not isinstance(result, Value):       # the function always raises
        why = e.env.error_of(RESULT)
        if why is not None:
            e.fail(why[1], why[0], len("if"))
        wanted = e.declared_return
        result = e.none() if wanted is None or flow.skip is False else e.uninitialized(wanted)
    e.graph.block.add_output(result)


def statements(e: Emitter, body: Sequence[ast.stmt]) -> Flow:
    """Compile statements in order; those after a statement that always leaves are skipped."""
    for i, statement in enumerate(body):
        e.at(statement)
        if isinstance(statement, ast.If):
            flow, done = if_statement(e, statement, body[i + 1:])
            if flow.exits and not done:
                check_unreached(e, later_rounds(body[i + 1:]))
            if done or flow.exits:
                return flow
            continue
        compiler = STATEMENTS.get(type(statement))
        if compiler is None:
            unsupported(e.place, statement)
        flow = compiler(e, statement) or FALLS
        if flow.exits:
            check_unreached(e, body[i + 1:] if isinstance(statement, ast.Break | ast.Continue) else later_rounds(body[i + 1:]))
            return flow
        if not flow.falls:
            return guarded(e, statement, flow, body[i + 1:])
    return FALLS


def later_rounds(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Of the statements after one that always leaves those that torch compiles all the same: the first one of each further round of an
    unrolled loop."""
    return [each for i, step in enumerate(body) if isinstance(step, Step) for each in body[i:i + 2]]


def check_unreached(e: Emitter, body: Sequence[ast.stmt]) -> None:
    """Compile statements that never run, as torch does, for the errors in them; they are not kept."""
    if body:
        e.discard(lambda block: continue_in(e, Branch(block, Environment(e.env), e.env), body))


def check_after_jumps(e: Emitter, first: Branch, second: Branch, rest: Sequence[ast.stmt]) -> None:
    """Check the statements after an `if` of which a branch breaks or continues, and the other one leaves too: torch compiles them. Not if
    a name that the branches assign has no type here."""
    arms = [arm for arm in (first, second) if arm.flow.returned is not True and not arm.flow.throws]
    held: dict[str, Type] = {}
    for name in dict.fromkeys([*first.assigned(), *second.assigned()]) if arms else ():
        values = [meaning for arm in arms if isinstance(meaning := arm.env.find(name), Value)]
        type = values[0].type if len(values) == len(arms) == 1 else unified(e, name, *values) if len(values) == 2 else None
        if name != RESULT and type is None:
            return
        if type is not None:
            held[name] = type

    def compile(block: Block) -> None:
        with e.inside(block, Environment(e.env, continues=e.env)):
            for name, type in held.items():
                e.env.set(name, e.uninitialized(type))
            statements(e, rest)

    if arms:
        e.discard(compile)


# ---------------------------------------------------------------- if
def if_statement(e: Emitter, statement: ast.If, rest: Sequence[ast.stmt]) -> tuple[Flow, bool]:
    """Compile an `if`. Returns how control leaves it, and whether the statements after it have been compiled too."""
    test = condition(e, statement.test)
    e.at(statement)
    if test.known is not None:      # the dead branch is not compiled
        refine(e, test.when_true if test.known else test.when_false)
        flow = statements(e, statement.body if test.known else statement.orelse)
        if not flow.falls and not flow.exits:
            return guarded(e, statement, flow, rest), True
        if flow.jumps:          # as after a lone break
            check_unreached(e, rest)
        return flow, flow.jumps
    node = e.node("prim::If", (test.as_value(e),), ())
    first = branch(e, node, statement.body, test.when_true)
    second = branch(e, node, statement.orelse, test.when_false)
    leaving, staying = (first, second) if first.flow.exits else (second, first)
    jump = jump_of(e, statement, first, second)
    done = False
    if leaving.flow.exits and not leaving.flow.throws and staying.flow.falls and rest:
        done = True
        continue_in(e, staying, rest, jump)
    flow = join(e, statement, node, first, second)
    if flow.exits and not done and rest:
        check_after_jumps(e, first, second, rest)
    if not done:
        names_after(e, jump)
    if not done and not flow.falls and not flow.exits:
        return guarded(e, statement, flow, rest), True
    return flow, done


def branch(e: Emitter, node: Node, body: Sequence[ast.stmt], refinements: dict[str, Type]) -> Branch:
    """Compile statements into a new block of a node."""
    arm = Branch(node.add_block(), Environment(e.env), e.env)
    with e.inside(arm.block, arm.env):
        refine(e, refinements)
        arm.flow = statements(e, body)
    return arm


def continue_in(e: Emitter, branch: Branch, rest: Sequence[ast.stmt], jump: Jump | None = None) -> None:
    """Compile the statements after an `if` at the end of one of its branches; `jump`: what the other one leaves of names."""
    branch.env = Environment(branch.env, continues=branch.outer)
    with e.inside(branch.block, branch.env):
        names_after(e, jump)
        branch.flow = statements(e, rest)


def guarded(e: Emitter, statement: ast.stmt, flow: Flow, rest: Sequence[ast.stmt]) -> Flow:
    """Compile the statements after one that may have left: they run only if it did not."""
    if not rest:
        return flow
    e.at(statement)
    assert isinstance(flow.skip, Value)
    node = e.node("prim::If", (flow.skip,), ())
    gone = Branch(node.add_block(), Environment(e.env), e.env)
    gone.flow = Flow(True, flow.go, flow.returned)
    staying = Branch(node.add_block(), Environment(e.env), e.env)
    continue_in(e, staying, rest)
    return join(e, statement, node, gone, staying)


# ---------------------------------------------------------------- return, assert
def return_statement(e: Emitter, statement: ast.stmt) -> Flow:
    """`return value`; the types of all returns are unified."""
    assert isinstance(statement, ast.Return)
    implicit = isinstance(statement, FallOff)
    declared = e.declared_return
    if implicit and declared is not None and declared.key != "None":
        e.fail(e.function.definition, "Function was not annotated as having type None, but does not return along all paths", len("def"))
    value = e.none() if statement.value is None else e.as_value(meaning_of(e, statement.value, declared), statement.value)
    e.at(statement)
    if declared is not None:
        value = e.converted(value, declared)
        if not types.is_subtype(value.type, declared):
            e.fail(statement, f"Return value was annotated as having type {type_name(declared)} but is actually of type "
                              f"{e.type_name(value)}")
        if (declared.key == "Any" or isinstance(declared, UnionType)) and not types.same(value.type, declared):
            value = e.cast(value, declared)     # values of other branches may have an unrelated type
    else:
        merged = value.type if e.merged_return is None else types.join(e.merged_return, value.type)
        if merged is None:
            assert e.merged_return is not None
            e.fail(statement, f"Previous return statement returned a value of type {type_name(e.merged_return)} but this return "
                              f"statement returns a value of type {e.type_name(value)}")
        e.merged_return = merged
    e.env.set(RESULT, value)
    return RETURNS


def break_statement(e: Emitter, statement: ast.stmt) -> Flow:
    return BREAKS


def continue_statement(e: Emitter, statement: ast.stmt) -> Flow:
    return CONTINUES


def raise_statement(e: Emitter, statement: ast.stmt) -> Flow:
    assert isinstance(statement, ast.Raise)
    raise_exception(e, statement)
    return THROWS


def assert_statement(e: Emitter, statement: ast.stmt) -> Flow | None:
    """`assert c, m`: an If whose other branch raises; types that the condition implies hold from here on."""
    assert isinstance(statement, ast.Assert)
    test = condition(e, statement.test)
    e.at(statement)
    message = statement.msg
    if test.known is True:
        refine(e, test.when_true)
        return None
    node = e.node("prim::If", (test.as_value(e),), ())
    node.add_block()
    other = node.add_block()
    with e.inside(other, Environment(e.env)):
        text = e.constant("AssertionError: ") if message is None else assertion_message(e, message)
        e.node("prim::RaiseException", (text, e.none()), ())
    refine(e, test.when_true)
    return THROWS if test.known is False else None


def assertion_message(e: Emitter, message: ast.expr) -> Value:
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        return e.constant("AssertionError: " + message.value)
    text = value_of(e, message)
    if text.type.key != "str":
        text = e.operator(message, "aten::str", [text])
    return e.operator(message, "aten::add", [e.constant("AssertionError: "), text])


# ---------------------------------------------------------------- other statements
def expression_statement(e: Emitter, statement: ast.stmt) -> None:
    assert isinstance(statement, ast.Expr)
    if not isinstance(statement.value, ast.Constant) or statement.value.value is ...:       # neither a docstring nor a number
        meaning_of(e, statement.value)


def assign_statement(e: Emitter, statement: ast.stmt) -> None:
    """`a = b = value`."""
    assert isinstance(statement, ast.Assign)
    meaning = meaning_of(e, statement.value)
    for target in statement.targets:
        assign(e, target, meaning, statement)


def annotated_statement(e: Emitter, statement: ast.stmt) -> None:
    """`name: type = value`."""
    assert isinstance(statement, ast.AnnAssign)
    assert statement.value is not None      # check_syntax
    declared = annotation(statement.annotation, e.place)
    assign(e, statement.target, meaning_of(e, statement.value, declared), statement, declared)


def function_statement(e: Emitter, statement: ast.stmt) -> None:
    """A nested `def`: a closure."""
    assert isinstance(statement, ast.FunctionDef)
    from irtool.torchscript.nested_functions import closure

    set_variable(e, statement.name, closure(e, statement), statement)


def with_statement(e: Emitter, statement: ast.stmt) -> Flow:
    """`with torch.no_grad():`; however control leaves the body, the contexts are exited in order."""
    assert isinstance(statement, ast.With)
    objects: list[tuple[Value, bool]] = []
    for item in statement.items:
        if item.optional_vars is not None and not isinstance(item.optional_vars, ast.Name):
            e.fail(item.optional_vars, "with statements give what they enter one name only")
        held = meaning_of(e, item.context_expr)
        if isinstance(held, Value):
            result = entered(e, item.context_expr, held)
            objects.append((held, True))
            if item.optional_vars is not None:
                assign(e, item.optional_vars, result, statement)
            continue
        if not isinstance(held, Context) or held.object is None:
            e.fail(item.context_expr, "With item expression must return an object: an instance of a class of the file, or a context "
                                      f"manager of torch ({', '.join(sorted(CONTEXTS))})")
        e.at(statement)
        e.node("prim::Enter", (held.object,), (types.NONE,))
        if item.optional_vars is not None:
            assign(e, item.optional_vars, held.object if held.name.endswith("record_function") else e.none(), statement)
        objects.append((held.object, False))
    flow = statements(e, statement.body)
    e.at(statement)
    for manager, is_instance in reversed(objects):
        if is_instance:
            left(e, statement, manager)
        else:
            e.node("prim::Exit", (manager,), (types.TENSOR,))
    return flow


def step_statement(e: Emitter, statement: ast.stmt) -> None:
    assert isinstance(statement, Step)
    statement.action()


def nothing(e: Emitter, statement: ast.stmt) -> None:
    """`pass`."""


def while_statement(e: Emitter, statement: ast.stmt) -> Flow:
    assert isinstance(statement, ast.While)
    return loop_statements.while_loop(e, statement)


def for_statement(e: Emitter, statement: ast.stmt) -> Flow:
    assert isinstance(statement, ast.For)
    return loop_statements.for_loop(e, statement)


def _augmented(e: Emitter, statement: ast.stmt) -> None:
    assert isinstance(statement, ast.AugAssign)
    augmented(e, statement)


def _delete(e: Emitter, statement: ast.stmt) -> None:
    assert isinstance(statement, ast.Delete)
    delete(e, statement)


STATEMENTS: dict[type[ast.stmt], Callable[[Emitter, ast.stmt], Flow | None]] = {
    ast.Expr: expression_statement, ast.Assign: assign_statement, ast.AnnAssign: annotated_statement, ast.AugAssign: _augmented,
    ast.Return: return_statement, FallOff: return_statement, ast.Break: break_statement, ast.Continue: continue_statement,
    ast.Raise: raise_statement, ast.Assert: assert_statement, ast.Pass: nothing, ast.While: while_statement, ast.For: for_statement,
    ast.With: with_statement, Step: step_statement, ast.FunctionDef: function_statement, ast.Delete: _delete,
}
