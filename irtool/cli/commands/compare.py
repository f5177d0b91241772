"""`irtool compare`: two graphs on the same inputs, up to the first value that differs."""
from __future__ import annotations

from irtool.cli.command import Arguments, Converted, argument, command, option
from irtool.cli.converters import seed, tolerance
from irtool.cli.options import types_option
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ir.graph import Node


@command("compare", epilog="""
Nodes are aligned by kind and attributes. Exit code 0: all corresponding values agree, 1: one pair does not.

  irtool compare before.ir after.ir inputs.npz
""")
@argument("a", metavar="A.ir", help="the correct graph")
@argument("b", metavar="B.ir", help="the graph to compare with it")
@argument("inputs", metavar="INPUTS.npz", required=False, help="arrays by input name or position; without them inputs are made from types")
@option("--rtol", metavar="X", type=Converted(tolerance), help="relative tolerance (default: by dtype)")
@option("--atol", metavar="X", type=Converted(tolerance), help="absolute tolerance")
@option("--seed", metavar="N", type=Converted(seed), default=0, help="seed of inputs that are made, and of random operators (0)")
@types_option
@option("--json", is_flag=True, help="print a JSON object")
def compare(arguments: Arguments, console: Console) -> int:
    """Run both graphs, and name the first value that differs, with the nodes that compute it."""
    from irtool.checking.divergence import diverging
    from irtool.cli.validating import bound, read_verified
    from irtool.ir.arguments import signature
    from irtool.ir.graph import counted
    from irtool.ops.made_inputs import NoInputs, input_sets

    (_, first), (_, second) = (read_verified(path, console) for path in (arguments.a, arguments.b))
    a, b = first.graph(), second.graph()
    if len(a.inputs) != len(b.inputs):
        raise Error(f"{arguments.a} takes {counted(len(a.inputs), 'input')} ({signature(a)}), "
                    f"{arguments.b} {len(b.inputs)} ({signature(b)})", code="E0402")
    try:
        sets = [list(bound(arguments.inputs, console)(a))] if arguments.inputs else list(input_sets(a, arguments.seed))[:3]
    except NoInputs as error:
        raise Error(f"{arguments.a} takes {signature(a)}: {error}; name a file of inputs", code="E0402") from None
    compared = 0
    for inputs in sets:
        divergence, count = diverging(a, b, inputs, rtol=arguments.rtol, atol=arguments.atol, seed=arguments.seed)
        compared += count
        if divergence is not None:
            break
    else:
        divergence = None
    if arguments.json:
        import json

        report = None if divergence is None else {
            "value": divergence.value.name, "other": divergence.other.name, "reason": divergence.reason,
            "history": [str(node).strip() for node in divergence.history]}
        console.out(json.dumps({"schema": 1, "is_equal": divergence is None, "compared": compared, "divergence": report}, indent=1) + "\n")
    elif divergence is None:
        console.out(f"{counted(compared, 'value')} agree{'s' * (compared == 1)}\n")
    else:
        console.tell(f"%{divergence.other.name} of {arguments.b} is not %{divergence.value.name} of {arguments.a}: {divergence.reason}\n")
        console.out(f"in {arguments.b}, it is computed by\n" + history([divergence.other.node])
                    + f"in {arguments.a}, it is computed from\n" + history(divergence.history), "ir")
    return int(divergence is not None)


def history(nodes: list[Node]) -> str:
    """A line per node."""
    return "".join(f"  {str(node).strip()}\n" for node in nodes)
