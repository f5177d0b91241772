"""`irtool show`: look at a graph: a page, a picture, a tree."""
from __future__ import annotations

from irtool.cli import inputs as graph_inputs
from irtool.cli.command import Arguments, Choice, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.cli.options import INPUTS, OUTPUT, cotangents_option, input_options, output_option
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from irtool.cli.console import Console
    from irtool.drawing.page import Page
    from irtool.ir.graph import Graph, Node
    from irtool.ir.module import Module
    from irtool.passmanager import PassManager, PassRecord

FORMS = {".html": "page", ".svg": "svg", ".dot": "dot"}


@command("show", epilog="""
  irtool show graph.ir
  irtool show graph.ir --passes=O1 --inputs inputs.npz -o page.html
  irtool show model.pt:forward -o picture.svg
  irtool show loss.py:loss --passes=differentiate -o gradient.html
""")
@argument("file", metavar="FILE", default="-", help="IR text, FILE.pt[:METHOD] or FILE.py[:FUNCTION] (-: standard input, the default)")
@option("-p", "--passes", metavar="PIPELINE", multiple=True, group="Passes", help="passes to run first; a page shows what each one did")
@option("--inputs", metavar="FILE.npz", group=INPUTS, help="run on these arrays; a page shows the values")
@input_options
@cotangents_option
@option("--svg", is_flag=True, group=OUTPUT, help="make a picture (SVG)")
@option("--dot", is_flag=True, group=OUTPUT, help="print DOT, for Graphviz")
@option("--scene", metavar="NAME", group=OUTPUT, help="the part to show in a picture: a graph, or 'f | df' of a pair (default: the first)")
@option("--types", metavar="FORM", type=Choice("short", "full", "none"), default="short", group=OUTPUT,
        help="types: f32[4,8] (short, the default), as IR has them (full), or none; without it the text of a page has full ones")
@option("--open", is_flag=True, group=OUTPUT, help="show the file of -o in this machine's browser")
@output_option
def show(arguments: Arguments, console: Console) -> int:
    """Show the graphs: as a tree on the terminal, or as FILE.html, FILE.svg or FILE.dot (`-o`)."""
    from irtool.cli.commands.opt import alone, pipeline
    from irtool.passmanager import PassManager

    form = form_of(arguments)
    if arguments.open and arguments.output == "-":
        raise UsageError("--open shows a file: add -o FILE.html")
    if arguments.scene and form != "svg":
        raise UsageError("--scene chooses what a picture shows: add --svg or -o FILE.svg")
    manager = PassManager(pipeline(arguments.passes, console), verify=True)
    module = graph_inputs.read_module(arguments, console, is_needed=bool(arguments.inputs or arguments.input))
    if not module.graphs:
        raise Error(f"{module.filename}: no graph in this file", code="E0102")
    if arguments.graph:
        module = alone(module, arguments.graph)
    if form == "page":
        console.save(arguments.output, paged(module, manager, arguments, console).html())
        return opened(arguments, console)
    if arguments.inputs or arguments.input:
        raise UsageError("values are shown on a page: add -o FILE.html")
    manager.run(module)
    if form == "tree":
        tree(module, arguments, console)
    else:
        console.save(arguments.output, picture(module, form, arguments))
    return opened(arguments, console)


def opened(arguments: Arguments, console: Console) -> int:
    """Open the file that was written, if the user asked; 0."""
    if arguments.open:
        import webbrowser
        from pathlib import Path

        address = Path(arguments.output).resolve().as_uri()
        if not webbrowser.open(address):
            console.err(f"note: no browser was found; open {address}")
    return 0


def form_of(arguments: Arguments) -> str:
    """The kind of output: page, svg, dot or tree. Raises UsageError."""
    by_name = next((form for ending, form in FORMS.items() if arguments.output.endswith(ending)), "")
    asked = [form for form in ("svg", "dot") if getattr(arguments, form)]
    if len(asked) > 1:
        raise UsageError("--svg and --dot exclude each other")
    if asked and by_name and asked[0] != by_name:
        raise UsageError(f"--{asked[0]} and -o {arguments.output} exclude each other")
    if not asked and not by_name and arguments.output != "-":
        raise UsageError(f"-o {arguments.output}: expected an ending of {', '.join(FORMS)}", code="E0708")
    return by_name or (asked[0] if asked else "tree")


def picture(module: Module, form: str, arguments: Arguments) -> str:
    """The module as SVG or DOT. Raises UsageError for an unknown scene."""
    if form == "dot":
        from irtool.drawing.dot import dot

        return dot(module, arguments.types)
    from irtool.drawing.scenes import Scenes
    from irtool.drawing.svg import picture as svg
    from irtool.ir.errors import did_you_mean

    scenes = Scenes(module, arguments.types)
    name = arguments.scene or scenes.roots[0]
    if name not in scenes.scenes:
        raise UsageError(f"--scene: there is no '{name}'{did_you_mean(name, scenes.scenes)}; expected one of: {', '.join(scenes.roots)}",
                         code="E0805")
    return svg(scenes.scenes[name]) + "\n"


def tree(module: Module, arguments: Arguments, console: Console) -> None:
    """Print the tree."""
    from irtool.cli.show.tree import Rows, drawn, plain

    rows = Rows(module, arguments.types)
    if console.paints:
        from irtool.cli.show.tables import draw

        draw(console, drawn(rows))
    else:
        console.save(arguments.output, plain(rows))


def paged(module: Module, manager: PassManager, arguments: Arguments, console: Console) -> Page:
    """The page of a module, before and after each pass."""
    from irtool.drawing.page import Page
    from irtool.passmanager import Observer

    page = Page(module.filename, arguments.types if "types" in arguments.given else None)

    class Pages(Observer):
        """Adds the module after each pass."""

        def after(self, record: PassRecord, module: Module) -> None:
            if record.changed:
                page.add(record.step.name, module, values_of(module, arguments, console))
            else:
                page.add_unchanged(record.step.name)

    for step in manager.steps:
        if step.name == "differentiate":        # a page links nodes of df with those of f that they come from
            step.options.setdefault("origins", True)
    page.add("as it was read", module, values_of(module, arguments, console))
    manager.run(module, Pages())
    return page


def values_of(module: Module, arguments: Arguments, console: Console) -> dict[str, dict[str, Any]]:
    """Facts about each value of a run on the inputs, by its key in the page; empty without inputs. Of a gradient pair, df runs too."""
    if not (arguments.inputs or arguments.input):
        return {}
    from irtool.cli.show.value_statistics import Statistics
    from irtool.drawing.scenes import Keys
    from irtool.execute.pairs import Forward, sole_scalar
    from irtool.interpret import run
    from irtool.ir.graph import Graph
    from irtool.ops.arrays import seeded
    from irtool.torchscript.library_calls import opened

    target = graph_inputs.chosen(module, None, None)
    keys = Keys(module)
    collected: dict[str, dict[str, Any]] = {}

    def watched(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
        """Run twice, and collect the facts of the second run: the first one also loads operators."""
        ready = opened(graph)
        run(ready, inputs, seed=arguments.seed)
        statistics = Statistics()
        statistics.start(graph, inputs)
        outputs = run(ready, inputs, seed=arguments.seed, observer=statistics)
        statistics.finish()
        for value, facts in statistics.facts.items():
            owner = value.node.graph
            name = keys.graphs[graph] if owner is ready else keys.graphs.get(owner) if owner is not None else None
            if name is not None:
                collected[f"{name} %{value.name}"] = facts
        return outputs

    with seeded(arguments.seed):
        if isinstance(target, Graph):
            inputs = graph_inputs.read_with_cotangents(target, arguments, console, 0)[0]
            watched(target, inputs)
            for node, text in planned_times(target, inputs, arguments, console).items():
                for value in node.outputs:
                    if (key := keys.value(value)) in collected:
                        collected[key]["lines"].append(text)
            return collected
        inputs, cotangents = graph_inputs.read_with_cotangents(target.f, arguments, console, target.real_outputs)
        forward = Forward(target, inputs, watched)
        fitted = cotangents.fitted(forward.outputs) if cotangents.parts else sole_scalar(forward.outputs)
        if fitted is not None:
            forward.backward(fitted)
        else:
            console.err("note: only values of f are shown: gradients need vjp0, vjp1, ... among the inputs")
    return collected


def planned_times(graph: Graph, inputs: Sequence[Any], arguments: Arguments, console: Console) -> dict[Node, str]:
    """The time of each node in the plan, except nodes that the plan merged or replaced. Empty if there is no plan."""
    from irtool.execute.executor import compile
    from irtool.execute.fallbacks import NotLowered, why
    from irtool.execute.plan.compiled import Plan
    from irtool.execute.plan.timing import instruction_times, times_by_node

    executor = compile(graph)
    values = executor.accepted(inputs)
    code = executor.plan_for(*values).code.plan
    if not isinstance(code, Plan):
        return {}
    try:
        return times_by_node(instruction_times(code, values, arguments.seed), graph)
    except NotLowered as reason:
        console.err(why(reason, graph))
        return {}
