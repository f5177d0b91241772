"""`irtool ops`: the operators, and which facets of each are stated."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.errors import UsageError
from irtool.ir.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ops.op import Op

FACETS = (      # (heading, attribute of Op): stated or not
    ("kernel", "kernel"),
    ("promotion", "promote"),
    ("gradient", "formulas"),
    ("batch", "batch"),
    ("samples", "samples"),
)


@command("ops")
@argument("name", metavar="NAME", required=False, help="an operator: aten::add, aten::add.Tensor or add; without it all are listed")
@option("--matrix", is_flag=True, help="the table of operators and facets (what is printed without NAME)")
@option("--json", is_flag=True, help="a JSON object")
@option("--not-batched", is_flag=True, help="the operators that vmap does not take, and why")
def ops(arguments: Arguments, console: Console) -> int:
    """The op x facet matrix, or one operator."""
    from irtool.ops import OPS

    chosen: dict[str, Op] = dict(sorted(OPS.items()))
    if arguments.name is not None:
        name = arguments.name if "::" in arguments.name else f"aten::{arguments.name}"
        known = called(name, chosen)
        if name.endswith("_") and (derived_from := called(name[:-1], chosen)):
            console.err(f"note: {name} runs the kernel of {name[:-1]} and stores the result")
            known.update(derived_from)
        if not known:
            raise UsageError(unknown(name, chosen))
        chosen = known
    if arguments.json:
        import json

        rows = [{"name": name, "family": op.family, **{heading: is_stated(op, attribute, name) for heading, attribute in FACETS},
                 "doc": op.doc} for name, op in chosen.items()]
        console.out(json.dumps({"schema": 1, "ops": rows}, indent=1) + "\n")
    elif arguments.not_batched:
        console.out(not_batched(chosen))
    elif arguments.name is not None and not arguments.matrix:
        console.out("\n".join(explained(op) for op in dict.fromkeys(chosen.values())))
    else:
        console.out(matrix(chosen))
    return 0


def called(name: str, ops: dict[str, Op]) -> dict[str, Op]:
    """The operators of a kind, or one overload."""
    return {key: op for key, op in ops.items() if name in (key, key.partition(".")[0])}


def unknown(name: str, ops: dict[str, Op]) -> str:
    """Why there is nothing to say about an operator."""
    from irtool.ir.effects import is_known_prim

    if is_known_prim(name):
        return f"'{name}' has no kernel: control flow, constants and containers are the interpreter's own"
    return f"no operator '{name}' has a kernel{did_you_mean(name, {key.partition('.')[0] for key in ops})}"


def is_stated(op: Op, attribute: str, name: str | None = None) -> bool:
    """Does the stanza say something about this facet (of one overload)? Batching has rules of its own."""
    if attribute == "batch":
        from irtool.dispatch.batching import find

        return any(find(each) is not None for each in ((name,) if name is not None else op.names))
    if attribute in ("formulas", "samples"):
        stated = getattr(op, attribute)
        return name in stated if name is not None else bool(stated)
    return getattr(op, attribute) is not None


def mark(op: Op, attribute: str, name: str) -> str:
    """`x` for what is stated, `-` for what is declared not to exist, `!` for a gradient declared unsupported, `.` for nothing said."""
    if attribute == "batch":
        from irtool.dispatch.batching import why_not

        return "x" if is_stated(op, attribute, name) else "." if why_not(name) is None else "-"
    if attribute == "formulas" and name not in op.formulas:
        return "-" if name in op.no_gradient else "!" if name in op.unsupported else "."
    return "x" if is_stated(op, attribute, name) else "."


def matrix(ops: dict[str, Op]) -> str:
    """A row per operator, a column per facet (x stated, - declared to have none, ! declared unsupported, . nothing said), and the sums."""
    width = max((len(name) for name in ops), default=0)
    rows = [f"{'operator':<{width}}  {'family':<16}" + "  ".join(heading for heading, _ in FACETS)]
    for name, op in ops.items():
        marks = "  ".join(f"{mark(op, attribute, name):^{len(heading)}}" for heading, attribute in FACETS)
        rows.append(f"{name:<{width}}  {op.family:<16}{marks}".rstrip())
    sums = "  ".join(f"{sum(is_stated(op, attribute, name) for name, op in ops.items()):^{len(heading)}}" for heading, attribute in FACETS)
    kinds = len({name.partition(".")[0] for name in ops})
    rows.append(f"{f'{len(ops)} overloads of {kinds} kinds':<{width + 18}}{sums}".rstrip())
    return "\n".join(rows) + "\n"


def not_batched(ops: dict[str, Op]) -> str:
    """A line per operator that vmap does not take, with the reason, by reason."""
    from irtool.dispatch.batching import find, why_not

    reasons = {name: why_not(name) for name in ops if find(name) is None and why_not(name) is not None}
    width = max(map(len, reasons), default=0)
    return "".join(f"{name:<{width}}  {reason}\n" for name, reason in sorted(reasons.items(), key=lambda item: (item[1] or "", item[0])))


def explained(op: Op) -> str:
    """One stanza in words."""
    from irtool.dispatch.batching import find, why_not

    out = [*op.schemas, "", op.doc, "", f"family: {op.family}"]
    out += [f"{heading}: {'stated' if is_stated(op, attribute) else 'not stated'}" for heading, attribute in FACETS[1:]]
    out += [f"no gradient of {name}: {reason}" for name, reason in op.no_gradient.items()]
    out += [f"gradient of {name} not supported: {reason}" for name, reason in op.unsupported.items()]
    out += [f"no batching rule of {name}: {reason}" for name in op.names if (reason := why_not(name)) and find(name) is None]
    return "\n".join(out) + "\n"
