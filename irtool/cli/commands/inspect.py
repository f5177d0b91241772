"""`irtool inspect`: the content of an archive, or of a file of weights."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.console import Console


@command("inspect", epilog="""
  irtool inspect model.pt
  irtool inspect model.pt --json
""")
@argument("file", metavar="FILE", help="a TorchScript archive, or weights")
@option("--json", is_flag=True, help="print a JSON object")
def inspect(arguments: Arguments, console: Console) -> int:
    """Show the content of an archive: compiles its methods, and runs none."""
    from irtool.archives.inspection import inspected, inspected_weights
    from irtool.cli.conversion import content_in, mapped, may_be_weights
    from irtool.cli.opener import archive_at
    from irtool.interop.npz import Archive

    name = arguments.file
    if name == "-":
        name = console.stdin_name
        data = console.read_bytes("-", lambda first: b"\0" in first and not may_be_weights(first))
        read = content_in(bytearray(data), name)
    else:
        place = archive_at(name)
        if place is None:
            console.read_bytes(name, lambda first: True)        # raises an error if there is no such file
        elif place[1]:
            raise UsageError(f"inspect is of whole archives, not of the method '{place[1]}'")
        name = name if place is None else place[0]
        read = None if place is None else content_in(*mapped(name))
    if read is None:
        raise Error(f"{name}: expected an archive, or weights", code="E0711")
    content = inspected_weights(read, name) if isinstance(read, Archive) else inspected(read)
    if arguments.json:
        import json

        console.out(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    else:
        console.tell(shown(content))
    return 0


def shown(content: dict[str, Any]) -> str:
    """The content as aligned text."""
    written = f", written by {content['producer']}" if content["producer"] else ""
    version = f", format version {content['format_version']}" if content["format_version"] else ""
    out = [f"{content['file']}: {content['kind']}{version}{written}"]
    out += ["", "classes"] if content["classes"] else []
    for each in content["classes"]:
        out.append(f"  {each['name']}")
        out += [f"    def {name}" for name in each["methods"]]
        width = max(map(len, each["attributes"]), default=0)
        out += [f"    {name:{width}}  {type}" for name, type in each["attributes"].items()]
    weights = content["weights"]
    total = sum(each["bytes"] for each in weights)
    out += ["", f"weights: {len(weights)}, {total:,} bytes"]
    rows = [(each["name"], each["dtype"], "x".join(map(str, each["shape"])) or "()", f"{each['bytes']:,}",
             {True: "parameter", False: "buffer", None: ""}[each["is_parameter"]]) for each in weights]
    widths = [max(map(len, column)) for column in zip(*rows)] if rows else []
    out += ["  " + "  ".join([name.ljust(widths[0]), dtype.ljust(widths[1]), shape.rjust(widths[2]), size.rjust(widths[3]), kind]).rstrip()
            for name, dtype, shape, size, kind in rows]
    operators = content["operators"]
    out += ["", f"operators: {sum(each['count'] for each in operators)}"] if content["classes"] else []
    width = max((len(each["name"]) for each in operators), default=0)
    for each in operators:
        lacks = [*["no kernel"] * (not each["has_kernel"]), *["no gradient"] * (each["gradient"] == "missing")]
        out.append(f"  {each['count']:5}  {each['name']:{width}}  {', '.join(lacks)}".rstrip())
    out += ["", *(f"problem: {each}" for each in content["problems"])] if content["problems"] else []
    if content["extra_files"]:
        out += ["", "extra files", *(f"  {name}  {size:,} bytes" for name, size in content["extra_files"].items())]
    return "\n".join(out) + "\n"
