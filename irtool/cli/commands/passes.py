"""`irtool passes`: the passes, and the types, defaults and examples of their options."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command, option
from irtool.cli.exit_errors import UsageError
from irtool.cli.options import types_option
from irtool.ir.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console
    from irtool.passes import Pass, PassOption


@command("passes")
@argument("name", metavar="NAME", required=False, help="a pass or a preset; without it, all passes are listed")
@types_option
@option("--json", is_flag=True, help="print a JSON object")
def passes(arguments: Arguments, console: Console) -> int:
    """List all passes and presets, or explain one."""
    from irtool.passes import BY_NAME, all_passes, pass_called
    from irtool.pipelines import PRESETS

    name = arguments.name
    entry = None if name is None or name in PRESETS else pass_called(name)
    if name is not None and entry is None and name not in PRESETS:
        raise UsageError(f"unknown pass '{name}'{did_you_mean(name, [*BY_NAME, *PRESETS])}", code="E0806")
    chosen = tuple(all_passes()) if name is None else () if entry is None else (entry,)
    presets = PRESETS if name is None else {key: lines for key, lines in PRESETS.items() if key == name}
    if arguments.json:
        import json

        rows = [as_dict(entry) for entry in chosen]
        texts = {key: ",".join(line for line, _ in lines) for key, lines in presets.items()}
        console.out(json.dumps({"schema": 1, "passes": rows, "presets": texts}, indent=1) + "\n")
        return 0
    if name is None:
        show_list([(entry.name, entry.summary) for entry in chosen],
                  [(key, [line for line, _ in lines]) for key, lines in presets.items()], console)
    elif chosen:
        console.out(explained(chosen[0]), "ir")
    else:
        console.out(f"{name}, a preset:\n\n" + "".join(two_columns(line, why) + "\n" for line, why in presets[name]))
    return 0


def show_list(summaries: list[tuple[str, str]], presets: list[tuple[str, list[str]]], console: Console) -> None:
    """Show passes and presets; on a terminal long summaries wrap in their column."""
    if console.is_terminal():
        from irtool.cli.show.tables import columns, draw

        draw(console, columns(summaries), "\nPresets:", columns((key, ", ".join(steps)) for key, steps in presets))
        return
    console.out("".join(two_columns(name, summary) + "\n" for name, summary in summaries))
    console.out("\nPresets:\n")
    console.out("".join(two_columns(key, ",".join(steps)) + "\n" for key, steps in presets))


def two_columns(left: str, right: str, width: int = 24) -> str:
    """One row of a list."""
    return f"  {left:<{width}}{right}" if len(left) < width else f"  {left}\n  {'':<{width}}{right}"


def explained(entry: Pass) -> str:
    """The text about one pass: its docstring, then its options."""
    out = [entry.name, "", dedented(entry.function.__doc__ or ""), ""]
    if entry.options:
        out.append("Options:")
        for option in entry.options:
            takes = "" if option.values is None else f"  # {option.values.expected}"
            out.append(two_columns(f"{option.name}: {option.type} = {shown_default(option)}", f"{example(entry, option)}{takes}", 40))
    else:
        out += ["No options.", "", f"  irtool opt --passes={entry.name} graph.ir"]
    if entry.takes_module:
        out += ["", "Works on the whole module."]
    if entry.repeats:
        out += ["", f"A second run may change the graph again: {entry.repeats}"]
    origin = entry.function.__code__.co_filename
    return "\n".join([*out, "", f"From {origin}", ""])


def dedented(text: str) -> str:
    """A docstring without indentation."""
    lines = text.strip("\n").rstrip().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    return "\n".join([lines[0].strip(), *(line[margin:] for line in lines[1:])])


def shown_default(option: PassOption) -> str:
    """The default as a pipeline writes it."""
    from irtool.pipelines import spelled

    if option.is_required:
        return "(required)"
    return "(none)" if option.default is None or option.default == () else spelled(option.default)


EXAMPLES = {"bool": "false", "int": "4", "float": "0.5", "str": "name", "tuple[int, ...]": "0,1", "tuple[str, ...]": "a,b",
            "tuple[bool, ...]": "1,0"}


def example(entry: Pass, option: PassOption) -> str:
    """An example of one option, as typed in a shell."""
    if option.type == "bool" and not option.default:
        return f"--passes='{entry.name}{{{option.name}}}'"
    value = EXAMPLES.get(option.type.removesuffix(" | None"), "...") if option.values is None else option.values.example
    return f"--passes='{entry.name}{{{option.name}={value}}}'"


def as_dict(entry: Pass) -> dict[str, object]:
    """A pass as JSON data."""
    options = [{"name": option.name, "type": option.type, "default": option.default, "required": option.is_required,
                "example": example(entry, option)} for option in entry.options]
    return {"name": entry.name, "summary": entry.summary, "on": "module" if entry.takes_module else "graph", "options": options,
            "repeats": entry.repeats or None}
