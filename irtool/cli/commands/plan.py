"""`irtool plan`: the plan that the executor makes of a graph for a spec of inputs, and the steps of making it."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, Choice, Converted, command, option
from irtool.cli.converters import positions
from irtool.cli.execution import options_of, requiring
from irtool.cli.exit_errors import UsageError
from irtool.cli.options import INPUTS, graph_argument, input_options, inputs_argument, plan_options, types_option
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.console import Console
    from irtool.execute.backends import Program
    from irtool.execute.compilation import ExecutionPlan
    from irtool.execute.executor import Executor
    from irtool.ir.graph import Graph

PRINTING = "Printing"


@command("plan", epilog="""
Inputs of equal dtypes and ranks share a plan: sizes and values are not in the spec.

  irtool plan graph.ir --spec 'Float(*, *, requires_grad=1, device=cpu), Float(*, *)'
  irtool plan graph.ir inputs.npz --phases
  irtool plan loss.ir inputs.npz --backward-plan --defined 0
""")
@graph_argument
@inputs_argument
@input_options
@option("--spec", metavar="TYPES", group=INPUTS, help="types instead of inputs: 'Float(*, *, requires_grad=1), Tensor[Undefined]'")
@option("--phases", is_flag=True, group=PRINTING, help="print the graph after each pass")
@option("--backward-plan", is_flag=True, group=PRINTING, help="print df, the graph of gradients, and its plan")
@option("--defined", metavar="0,2", type=Converted(positions), group=PRINTING,
        help="the cotangents of df that are defined, by position (default: those of real outputs)")
@option("--print-after-all", is_flag=True, group=PRINTING, help="print the program of the plan after each pass on it")
@option("--source", is_flag=True, group=PRINTING, help="print the compiled function")
@option("--memory", is_flag=True, group=PRINTING, help="print the memory that the plan needs")
@option("--chrome-trace", is_flag=True, group=PRINTING, help="run the plan, and print when each instruction ran, for chrome://tracing")
@option("--time", metavar="FORM", type=Choice("text", "json"), bare="text", group=PRINTING,
        help="run the plan, and print how long each instruction took")
@option("--state", is_flag=True, group=PRINTING, help="print all plans, recursively, as JSON")
@types_option
@plan_options
def plan(arguments: Arguments, console: Console) -> int:
    """Make the plan, then print the parts of it that the options name."""
    from irtool.execute.device.device_executor import new_executor
    from irtool.ir.graph import Graph

    module = graph_inputs.read_module(arguments, console)
    target = graph_inputs.chosen(module, arguments.graph, None)
    if not isinstance(target, Graph):
        raise UsageError("a plan is made of one graph: add --graph NAME")
    if arguments.defined is not None and not arguments.backward_plan:
        raise UsageError("--defined says which gradients df is given: it needs --backward-plan")
    phases: list[tuple[str, str]] = []
    options = options_of(arguments, lambda name, graph: phases.append((name, str(graph))) if arguments.phases else None)
    executor = new_executor(target, options)
    values = values_of(target, arguments, console)
    if arguments.chrome_trace or arguments.time:
        timed_run(executor, values, arguments, console)
        return 0
    wrt = flagged(target, arguments, values)
    if executor.profile is not None:
        profiled_runs(executor, values, wrt, arguments, console)
    plan = executor.plan_for(*values, wrt=wrt)
    count = len(phases)
    for name, text in phases[:count]:
        console.out(f"# after {name}\n{text}", "ir")
    if arguments.backward_plan:
        show_backward(executor, plan, values, wrt, arguments, console)
    elif not (arguments.source or arguments.memory or arguments.state or arguments.print_after_all):
        console.out(f"# spec: {plan.spec or 'any'}\n# key: {plan.spec.key if plan.spec is not None else '-'}\n{plan.shown}", "ir")
    is_compiled = not arguments.no_optimize and arguments.backend == "numpy"
    if is_compiled and not arguments.backward_plan:
        show_reasons(executor, plan, values, console)
    shows_code = arguments.source or arguments.memory or arguments.print_after_all
    if shows_code or arguments.threads > 1 and is_compiled and not arguments.backward_plan:
        show_code(plan, values, arguments, console)
    if arguments.state:
        import json

        from irtool.execute.debug_state import debug_state

        console.out(json.dumps({"schema": 1, **debug_state(executor)}, indent=1) + "\n")
    return 0


def timed_run(executor: Executor, values: list[Any], arguments: Arguments, console: Console) -> None:
    """Print the times of a run of the plan without gradients. Raises UsageError if no function is compiled for NumPy."""
    from irtool.execute.fallbacks import NotLowered, why
    from irtool.execute.plan.compiled import Plan

    code = executor.plan_for(*values).code.plan
    if not isinstance(code, Plan):
        raise UsageError("--chrome-trace and --time are for plans on NumPy; with --no-optimize or another backend there is none")
    try:
        if arguments.chrome_trace:
            from irtool.cli.show.chrome_trace import plan_trace

            console.out(plan_trace(code.intervals(values, arguments.seed)) + "\n")
        else:
            from irtool.cli.show.instruction_table import show_times
            from irtool.execute.plan.timing import instruction_times

            show_times(instruction_times(code, values, arguments.seed), arguments.time, console)
    except NotLowered as reason:
        raise UsageError(why(reason, executor.graph)) from None


def profiled_runs(executor: Executor, values: list[Any], wrt: list[int], arguments: Arguments, console: Console) -> None:
    """Run until profiling is complete, and show the profile."""
    profile = executor.profile
    assert profile is not None
    while profile.left:
        executor.record(values, wrt, seed=arguments.seed)
    if profile.profiled is not None and not arguments.backward_plan:
        console.out(f"# profiled\n{profile.profiled.graph}", "ir")


# -- inputs
def values_of(graph: Graph, arguments: Arguments, console: Console) -> list[Any]:
    """The inputs of the plan: those of the command line, or smallest values of the types in `--spec`."""
    from irtool.interop.binding import bind
    from irtool.ir.arguments import signature
    from irtool.ir.graph import counted

    if arguments.spec is None:
        archive, literals = graph_inputs.read_values(arguments, console)
        if not archive.arrays and not literals and graph.inputs:
            raise UsageError("a plan needs inputs, or --spec with a type for each of them")
        return bind(graph, archive, literals, arguments.cast)
    if arguments.inputs or arguments.input:
        raise UsageError("--spec and inputs exclude each other")
    types = spec_types(arguments.spec)
    if len(types) != len(graph.inputs):
        raise UsageError(f"--spec: {counted(len(types), 'type')}, the graph has {counted(len(graph.inputs), 'input')} ({signature(graph)})",
                         code="E0805")
    from irtool.execute.argument_spec import samples

    return samples(graph, types)


def spec_types(text: str) -> list[Any]:
    """The types of `--spec`, separated by commas. Raises UsageError."""
    from irtool.ir.types import TypeSyntaxError, parse_type

    words, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            words.append(text[start:place])
            start = place + 1
    words.append(text[start:])
    try:
        return [parse_type(word.strip()) for word in words if word.strip()]
    except TypeSyntaxError as error:
        raise UsageError(f"--spec: {error}", code="E0805") from None


def flagged(graph: Graph, arguments: Arguments, values: list[Any]) -> list[int]:
    """Positions of the inputs that need gradients."""
    from irtool.ir.types import TensorType

    if arguments.spec is not None and arguments.requires_grad is None and not arguments.no_grad:
        return [i for i, type in enumerate(spec_types(arguments.spec)) if isinstance(type, TensorType) and type.requires_grad is True]
    return requiring(graph, arguments, values, bool(arguments.backward_plan))


# -- outputs
def show_backward(executor: Executor, plan: ExecutionPlan, values: list[Any], wrt: list[int], arguments: Arguments,
                  console: Console) -> None:
    """Show df of each node with a gradient, and its plan for the cotangents that are defined."""
    from irtool.execute.differentiable import GraphEntry
    from irtool.execute.plan.compiled import Plan
    from irtool.execute.recording import as_arrays
    from irtool.ir.graph import counted

    recorded = executor.record(values, wrt, seed=arguments.seed)
    pieces = set(plan.differentiables.values())
    steps = [entry for entry in recorded.tape.tape if isinstance(entry, GraphEntry) and entry.owner in pieces]
    if not steps:
        raise Error("the plan has no node with a gradient: nothing in it depends on an input that needs one", code="E0506")
    for number, step in enumerate(steps):
        pair = step.owner.pair
        name = f"df{number}" if len(steps) > 1 else "df"
        chosen = arguments.defined if arguments.defined is not None else tuple(
            place for place, index in enumerate(pair.input_vjps) if index < pair.real_outputs)
        wrong = [place for place in chosen if place >= len(pair.input_vjps)]
        if wrong:
            raise UsageError(f"--defined: {name} takes {counted(len(pair.input_vjps), 'gradient')}, there is no {wrong[0]}", code="E0805")
        zeros = step.zeros([pair.input_vjps[place] for place in chosen])
        operands = [as_arrays(each) for each in step.arguments(zeros, recorded.tape.below.apply)]
        backward = step.owner.backward.plan_for(*operands)
        console.out(f"# graph {name}:\n{pair.df}# spec: {backward.spec or 'any'}\n# graph {name}_plan:\n{backward.graph}", "ir")
        if arguments.threads > 1 and isinstance(backward.code.plan, Plan):
            backward.code.plan.compile(operands)
            show_threads(f"{name}_plan ", backward.code.plan, console)


def show_code(plan: ExecutionPlan, values: list[Any], arguments: Arguments, console: Console) -> None:
    """Show the compiled functions for these inputs, and the memory that they need."""
    from irtool.ir.graph import counted

    codes = [(f"f{i} ", each.run) for i, each in enumerate(plan.differentiables.values())] or [("", plan.code)]
    for label, code in codes:
        compiled = code.plan
        if compiled is None and not arguments.no_optimize:
            continue        # `show_reasons` prints why
        if compiled is None:
            raise UsageError("--no-optimize compiles nothing, so there is neither source nor memory to show")
        if not label or len(codes) == 1 and len(code.graph.inputs) == len(values):
            compiled.compile(values)
        if arguments.print_after_all:
            show_programs(label, compiled, values, console)
        if arguments.source:
            console.out(f"# {label}source\n{compiled.source or '# not compiled: the interpreter runs it' + chr(10)}", "python")
            for _, group in compiled.groups:
                console.out(f"# group of {counted(len(list(group.graph.block)), 'node')}: {'; '.join(group.chosen.values())}\n")
            for node, way in compiled.loops:
                console.out(f"# loop{f' of line {node.line}' if node.line else ''}: {way}\n")
        if arguments.memory:
            console.out(f"# {label}memory\n{compiled.memory}\n")
        if arguments.threads > 1:
            show_threads(label, compiled, console)


def show_programs(label: str, compiled: Program, values: list[Any], console: Console) -> None:
    """Show the program after each of PLAN_PASSES."""
    from irtool.execute.fallbacks import NotLowered

    if len(compiled.graph.inputs) != len(values):
        console.err(f"note: {label}takes values that the rest of the graph computes: its programs are not shown")
        return
    try:
        programs = compiled.programs(values)
    except NotLowered:
        return          # `show_reasons` prints why
    before = ""
    for name, text in programs:
        console.out(f"# {label}after {name}: unchanged\n" if text == before else f"# {label}after {name}\n{text}")
        before = text


def show_reasons(executor: Executor, plan: ExecutionPlan, values: list[Any], console: Console) -> None:
    """Show why the interpreter runs the graph, if it does."""
    from irtool.execute.fallbacks import why
    from irtool.execute.plan.compiled import Plan

    code = plan.code
    reason = executor.why_no_plan(values)
    if reason is not None:
        console.err(why(reason, executor.graph))
    elif not plan.differentiables and isinstance(code.plan, Plan):
        said = code.plan.why_not(values)
        if said is not None:
            console.err(said)


def show_threads(label: str, compiled: Program, console: Console) -> None:
    """Show which instructions run at the same time, and why."""
    console.out(f"# {label}threads\n" + "".join([f"{line}\n" for line in compiled.beside]))
