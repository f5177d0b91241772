"""`irtool` as a click group, which imports a subcommand's module only when it is called."""
from __future__ import annotations

import sys

import click

from irtool.cli.command import HELP_NAMES, Command, Program, help_option, in_our_words, option, print_help, write_groups
from irtool.cli.commands import COMMANDS, load
from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console

EXAMPLES = """
  irtool opt --passes=dce,cse graph.ir
  irtool run graph.ir inputs.npz
  irtool COMMAND --help
"""


class Commands(Program, click.Group):
    """The subcommands in the table of `irtool.cli.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        return load(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing:
            raise UsageError(f"no such command: {name}{did_you_mean(name, COMMANDS)}", code="E0802")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            print_help(ctx)
            ctx.exit(2)
        if args[:1] == ["help"]:                # irtool help opt
            args = [*args[1:2], "--help"]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise in_our_words(error, ctx) from None

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return help_option(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands by heading; imports none of them."""
        formatter.write_usage(ctx.command_path, "COMMAND [options] ...", prefix="usage: ")
        formatter.write(f"\n{self.help}\n")
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, (group, summary) in COMMANDS.items():
            groups.setdefault(group, []).append((name, summary))
        groups["Options"] = [record for param in self.get_params(ctx) if (record := param.get_help_record(ctx)) is not None]
        write_groups(formatter, groups)
        formatter.write(EXAMPLES)


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": list(HELP_NAMES)},
             help="Read, rewrite and run PyTorch-JIT IR text.")
@option("--version", is_flag=True, help="print the version (--version --json: of everything it uses)")
@option("--json", is_flag=True, help="with --version: print a JSON object")
@click.pass_context
def cli(ctx: click.Context, version: bool, json: bool) -> int:
    """Without a subcommand, print the version."""
    console: Console = ctx.obj
    if ctx.invoked_subcommand is not None:
        if version or json:
            raise UsageError(f"unexpected argument '{ctx.invoked_subcommand}'", code="E0804")
        return 0
    if not version:
        raise UsageError("missing command", code="E0804")
    console.out(versions() if json else version_line())
    return 0


def version_line() -> str:
    """The output of `irtool --version`."""
    from irtool import __version__

    return f"irtool {__version__}\n"


def versions() -> str:
    """`irtool --version --json`: of all that it uses, and the plugins."""
    import json
    from importlib import metadata

    from irtool import __version__
    from irtool.ir.extensions import ENTRY_POINTS, entry_points

    packages: dict[str, str | None] = {}
    for name in ("click", "numpy", "scipy", "rich"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    plugins, operators = (sorted(entry_points(group)) for group in ENTRY_POINTS)
    return json.dumps({"schema": 1, "irtool": __version__, "python": sys.version.split()[0], **packages, "plugins": plugins,
                       "operators": operators}) + "\n"
