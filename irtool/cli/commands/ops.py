"""`irtool ops`: the table of operators, and of the facets that their stanzas state."""
from __future__ import annotations

from irtool.cli.command import Arguments, Choice, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import did_you_mean
from irtool.ir.graph import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.ops.op import Op

FACETS = (      # (heading, attribute of Op)
    ("kernel", "kernel"),
    ("promotion", "promote"),
    ("gradient", "formulas"),
    ("batch", "batch_rules"),
    ("samples", "samples"),
)


@command("ops")
@argument("name", metavar="NAME", required=False, help="an operator: aten::add, aten::add.Tensor or add; without it, all are listed")
@option("--matrix", is_flag=True, help="the table of operators and facets (the default without NAME)")
@option("--family", metavar="FAMILY", help="only the operators of this family")
@option("--missing", metavar="FACET", type=Choice(*(heading for heading, _ in FACETS)),
        help="only operators that lack this facet, except those declared to have none; kernel: operators of torch that cannot run")
@option("--not-batched", is_flag=True, help="the operators that vmap does not support, and why")
@option("--json", is_flag=True, help="print a JSON object")
def ops(arguments: Arguments, console: Console) -> int:
    """Show the table of operators and facets, or one operator."""
    from irtool.ir.extensions import import_operator
    from irtool.ops import OPS

    import_operator()
    if arguments.missing == "kernel":
        if arguments.family is not None:
            raise UsageError("--missing kernel: only operators with a kernel have a --family", code="E0804")
        return show_without_kernel(arguments, console)
    chosen: dict[str, Op] = dict(sorted(OPS.items()))
    if arguments.name is not None:
        name = arguments.name if "::" in arguments.name else f"aten::{arguments.name}"
        known = called(name, chosen)
        if name.endswith("_") and (derived_from := called(name[:-1], chosen)):
            console.err(f"note: {name} runs the kernel of {name[:-1]} and stores the result")
            known.update(derived_from)
        if not known:
            raise UsageError(unknown(name, chosen), code="E0806")
        chosen = known
    chosen = filtered(chosen, arguments.family, arguments.missing)
    if not chosen:
        console.err(f"note: no operator {selection(arguments)}")
    if arguments.json:
        import json

        rows = [{"name": name, "family": op.family, **{heading: is_stated(op, attribute, name) for heading, attribute in FACETS},
                 "doc": op.doc} for name, op in chosen.items()]
        console.out(json.dumps({"schema": 1, "ops": rows}, indent=1) + "\n")
    elif arguments.not_batched:
        show_not_batched(chosen, console)
    elif arguments.name is not None and not arguments.matrix:
        console.out("\n".join(explained(op) for op in dict.fromkeys(chosen.values())))
    else:
        show_matrix(chosen, console)
    return 0


def show_without_kernel(arguments: Arguments, console: Console) -> int:
    """Show the overloads of torch that have no kernel. Those of `prim::` are the interpreter's own, or belong to torch's executors."""
    from irtool.ir.schema import declared_kinds, schemas
    from irtool.ops.call import find_overload

    wanted = arguments.name if arguments.name is None or "::" in arguments.name else f"aten::{arguments.name}"
    names = [schema.name for kind in declared_kinds() if not kind.startswith("prim::") for schema in schemas(kind)
             if wanted in (None, kind, schema.name) and find_overload(schema.name) is None]
    if wanted is not None and not names and not schemas(wanted.partition(".")[0]):
        raise UsageError(f"torch has no operator '{wanted}'{did_you_mean(wanted, declared_kinds())}", code="E0806")
    if arguments.json:
        import json

        lacking = {heading: False for heading, _ in FACETS}
        rows = [{"name": name, "family": "", **lacking, "doc": ""} for name in names]
        console.out(json.dumps({"schema": 1, "ops": rows}, indent=1) + "\n")
        return 0
    console.out("".join(f"{name}\n" for name in names))
    console.err(f"{counted(len(names), 'overload')} of {counted(len({name.partition('.')[0] for name in names}), 'kind')} without a kernel")
    return 0


def selection(arguments: Arguments) -> str:
    """The conditions by which the command chose operators, for a message."""
    return " ".join([*([f"called {arguments.name}"] if arguments.name is not None else []),
                     *([f"of the family {arguments.family}"] if arguments.family is not None else []),
                     *([f"without {arguments.missing}"] if arguments.missing is not None else [])])


def filtered(ops: dict[str, Op], family: str | None, missing: str | None) -> dict[str, Op]:
    """The operators of a family that lack a facet (None: all). Raises UsageError for an unknown family."""
    if family is not None:
        from irtool.ops import OPS

        families = {op.family for op in OPS.values()}
        if family not in families:
            choices = did_you_mean(family, families) or f", expected one of: {', '.join(sorted(families))}"
            raise UsageError(f"--family: no family '{family}'{choices}", code="E0806")
        ops = {name: op for name, op in ops.items() if op.family == family}
    if missing is not None:
        attribute = dict(FACETS)[missing]
        ops = {name: op for name, op in ops.items() if mark(op, attribute, name) in ".!"}
    return ops


def called(name: str, ops: dict[str, Op]) -> dict[str, Op]:
    """The operators of a kind, or one overload."""
    return {key: op for key, op in ops.items() if name in (key, key.partition(".")[0])}


def unknown(name: str, ops: dict[str, Op]) -> str:
    """The message for an unknown operator."""
    from irtool.ir.effects import is_known_prim
    from irtool.ir.schema import schema_named, schemas

    if (schema_named(name) if "." in name else schemas(name)) and not name.startswith("prim::"):
        return f"'{name}' has no kernel, and cannot run; `irtool ops --missing=kernel` lists such operators of torch"
    if is_known_prim(name):
        return f"'{name}' has no kernel: control flow, constants and containers are the interpreter's own"
    kind = name.partition(".")[0]
    near = [key for key in ops if key.partition(".")[0] == kind] or {key.partition(".")[0] for key in ops}
    return f"no operator '{name}' has a kernel{did_you_mean(name, near)}"


def is_stated(op: Op, attribute: str, name: str | None = None) -> bool:
    """Does the stanza state a facet (of one overload)? A pointwise overload needs no batching rule."""
    if attribute == "batch_rules":
        from irtool.dispatch.batch_rules import rule_of

        return any(rule_of(each) is not None for each in ((name,) if name is not None else op.names))
    if attribute in ("formulas", "samples"):
        stated = getattr(op, attribute)
        return name in stated if name is not None else bool(stated)
    return getattr(op, attribute) is not None


def mark(op: Op, attribute: str, name: str) -> str:
    """The sign of a facet: `x` stated, `-` declared not to exist, `!` a gradient declared unsupported, `.` missing."""
    if attribute == "batch_rules":
        from irtool.dispatch.batch_rules import why_no_rule

        return "x" if is_stated(op, attribute, name) else "." if why_no_rule(name) is None else "-"
    if attribute == "formulas" and name not in op.formulas:
        return "-" if name in op.no_gradient else "!" if name in op.unsupported else "."
    return "x" if is_stated(op, attribute, name) else "."


LEGEND = "x stated   - declared to have none   ! declared unsupported   . nothing said"


def show_matrix(ops: dict[str, Op], console: Console) -> None:
    """Show a row per operator, a column per facet, with a sign each (LEGEND), and the sums."""
    heads = ["operator", "family", *(heading for heading, _ in FACETS)]
    rows = [[name, op.family, *(mark(op, attribute, name) for _, attribute in FACETS)] for name, op in ops.items()]
    sums = [str(sum(is_stated(op, attribute, name) for name, op in ops.items())) for _, attribute in FACETS]
    total = f"{counted(len(ops), 'overload')} of {counted(len({name.partition('.')[0] for name in ops}), 'kind')}"
    if console.is_terminal():
        from irtool.cli.show.tables import draw, marks, table

        facets = heads[2:]
        cells = [(row[0], row[1], marks(row[2:], facets)) for row in rows]
        draw(console, table(cells, (*heads[:2], "  ".join(facets)), (total, "", marks(sums, facets))), LEGEND)
    else:
        console.out(plain_matrix(rows, heads, total, sums))


def plain_matrix(rows: list[list[str]], heads: list[str], total: str, sums: list[str]) -> str:
    """The same as plain lines."""
    width = max((len(row[0]) for row in rows), default=0)

    def line(first: str, rest: list[str]) -> str:
        return f"{first:<{width + 18}}{'  '.join(f'{cell:^{len(head)}}' for cell, head in zip(rest, heads[2:]))}".rstrip() + "\n"
    return "".join([line(f"{row[0]:<{width}}  {row[1]}", row[2:]) for row in [heads, *rows]]) + line(total, sums)


def show_not_batched(ops: dict[str, Op], console: Console) -> None:
    """Show the operators that vmap does not support, grouped by reason."""
    from irtool.dispatch.batch_rules import rule_of, why_no_rule

    reasons = {name: reason for name in ops if rule_of(name) is None and (reason := why_no_rule(name)) is not None}
    rows = sorted(reasons.items(), key=lambda item: (item[1], item[0]))
    if console.is_terminal():
        from irtool.cli.show.tables import columns, draw

        draw(console, columns(rows))
        return
    width = max(map(len, reasons), default=0)
    console.out("".join(f"{name:<{width}}  {reason}\n" for name, reason in rows))


def explained(op: Op) -> str:
    """One stanza as text."""
    from irtool.dispatch.batch_rules import rule_of, why_no_rule

    out = [*op.schemas, "", op.doc, "", f"family: {op.family}"]
    out += [f"{heading}: {'stated' if is_stated(op, attribute) else 'not stated'}" for heading, attribute in FACETS[1:]]
    out += [f"no gradient of {name}: {reason}" for name, reason in op.no_gradient.items()]
    out += [f"gradient of {name} not supported: {reason}" for name, reason in op.unsupported.items()]
    out += [f"gradient of {name} for its argument '{argument}' not supported: {reason}" for name, reasons in op.refused.items()
            for argument, reason in reasons.items()]
    out += [f"no batching rule of {name}: {reason}" for name in op.names if (reason := why_no_rule(name)) and rule_of(name) is None]
    return "\n".join(out) + "\n"
