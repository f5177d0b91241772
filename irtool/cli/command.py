"""click as irtool uses it: options in groups, optional values only after `=`, usage errors in irtool's form.

    @command("fmt", epilog="...")
    @argument("files", nargs=-1, metavar="FILE", help="IR text")
    @option("-o", "--output", metavar="FILE", default="-", help="the file for the result")
    @option("--check", is_flag=True, help="change nothing")
    @option("--time-passes", metavar="FORM", type=Choice("text", "json"), bare="text", help="...")   # --time-passes or --time-passes=json
    def fmt(arguments: Arguments, console: Console) -> int: ...                                      # returns the exit code

Environment variables never set options, and abbreviations of options are refused. Usage errors are raised as `UsageError`, which
`irtool.cli.main` reports. docs/adr/0003-command-line-on-click.md says why.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import click
from click.core import ParameterSource

from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from irtool.cli.console import Console

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])

HELP_NAMES = ("-h", "--help")
DIAGNOSTICS = "Diagnostics"
NAMES = ("FILE", "DIR", "NAME", "DIALECT")
"""Metavars of values that must not be empty: `--expect=$UNSET` must not mean that nothing is compared."""
OPTION_WORDS = "irtool.option_words"
AFTER_EQUALS = "irtool.after_equals"
COLUMN = 30
"""The largest width of the first column of a help text."""


class Option(click.Option):
    """One option, in a group of the help text.

    bare: the value of the option without `=value`; then `--flag word` does not take the next word.
    """

    def __init__(self, names: Sequence[str], *, group: str = "Options", bare: str | None = None, **attributes: Any) -> None:
        super().__init__(names, **attributes)
        self.group = group
        self.bare = bare

    @property
    def long_flag(self) -> str:
        """The name of the option in messages: the long one."""
        return self.opts[-1]

    @property
    def shown(self) -> str:
        """The option as help shows it: `-o, --output FILE`, `--time-passes[=FORM]`, `--[no-]verify-each`."""
        flags = ", ".join(flag.replace("--", "--[no-]", 1) if self.secondary_opts else flag for flag in self.opts)
        if self.is_flag:
            return flags
        return f"{flags}[={self.metavar}]" if self.bare is not None else f"{flags} {self.metavar}"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The two columns of the option's line in help."""
        choices = f" ({'|'.join(self.type.choices)})" if isinstance(self.type, Choice) else ""
        return self.shown, (self.help or "") + choices

    def to_info_dict(self) -> dict[str, Any]:
        """The facts from which completion scripts and man pages are generated."""
        return {**super().to_info_dict(), "group": self.group, "bare": self.bare, "metavar": self.metavar, "shown": self.shown}

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The converted value. Raises for an empty name."""
        if "" in ((value or ()) if self.multiple else (value,)) and (self.metavar or "").partition(".")[0] in NAMES:
            raise click.BadOptionUsage(self.long_flag, "empty", ctx)
        return super().type_cast_value(ctx, value)


class Argument(click.Argument):
    """A positional argument, with a line of help."""

    def __init__(self, names: Sequence[str], *, help: str = "", **attributes: Any) -> None:
        super().__init__(names, **attributes)
        self.help = help

    @property
    def shown(self) -> str:
        """The argument as a usage line shows it: `FILE`, `[FILE]`, `[FILE]...`."""
        name = self.metavar or self.human_readable_name
        return (name if self.required else f"[{name}]") + ("..." if self.nargs == -1 else "")

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [self.shown]

    def to_info_dict(self) -> dict[str, Any]:
        """The facts from which completion scripts and man pages are generated."""
        return {**super().to_info_dict(), "help": self.help, "metavar": self.metavar, "shown": self.shown}


class Converted(click.ParamType):       # type: ignore[type-arg]  # generic from click 8.4 on
    """The type of a value that a function converts from text; the function raises ValueError("expected ...")."""

    name = "text"

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.function = function

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):      # a default
            return value
        try:
            return self.function(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Choice(Converted):
    """The type of a value that is one of a few words."""

    name = "choice"

    def __init__(self, *choices: str) -> None:
        super().__init__(self.chosen)
        self.choices = choices

    def chosen(self, text: str) -> str:
        if text not in self.choices:
            raise ValueError(f"expected {' or '.join(self.choices)}, not '{text}'{did_you_mean(text, self.choices)}")
        return text

    def to_info_dict(self) -> dict[str, Any]:     # type: ignore[override]  # a dict before click 8.5
        return {"param_type": "Choice", "name": self.name, "choices": list(self.choices)}


class Arguments:
    """The parsed command line: an attribute per option and argument; `given`: the names of those that the user wrote."""

    def __init__(self, context: click.Context) -> None:
        self.__dict__.update(context.params)
        self.given = {name for name, value in context.params.items()
                      if value != () and context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
        self.option_words: list[str] = context.meta.get(OPTION_WORDS, [])
        self.after_equals: str = context.meta.get(AFTER_EQUALS, "")

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...


class Program(click.Command):
    """A click command that ends as `irtool.cli.main.main` does, also if called as `cli()` or by `CliRunner().invoke(cli, words)`."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, complete_var: str | None = None,
             standalone_mode: bool = True, windows_expand_args: bool = True, **extra: Any) -> Any:
        from irtool.cli.main import main

        code = main(self.whole(args))
        if standalone_mode:
            sys.exit(code)
        return code

    def whole(self, args: Sequence[str] | None) -> Sequence[str] | None:
        """The whole command line, of which `args` is the last part; None: that of the process."""
        return args


class Command(Program):
    """A subcommand. Its function takes `Arguments` and a `Console`, and returns the exit code."""

    allow_extra_args = True         # `parse_args` refuses them, in irtool's form

    def whole(self, args: Sequence[str] | None) -> Sequence[str] | None:
        return [self.name or "", *(sys.argv[1:] if args is None else args)]

    def read(self, words: Sequence[str]) -> Arguments:
        """Parse the words after the subcommand's name, without `--help`. Raises UsageError."""
        return Arguments(self.make_context(self.name, list(words), help_option_names=[]))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(self.spelled_out(args))
        ctx.meta[AFTER_EQUALS] = self.after_equals(args)
        ctx.meta[OPTION_WORDS] = [word for word in words[:words.index("--") if "--" in words else None] if word.startswith("--")]
        if (console := ctx.find_object(object)) is not None:
            prepare(console, words)
        try:
            rest = super().parse_args(ctx, words)
        except click.UsageError as error:
            raise in_our_words(error, ctx) from None
        if rest and not ctx.resilient_parsing:
            raise UsageError(f"unexpected argument '{rest[0]}'{ctx.meta[AFTER_EQUALS]}", code="E0804")
        return rest

    def after_equals(self, words: Sequence[str]) -> str:
        """A hint for `--validate FILE`, where the value is taken for an argument; empty if no such option is among the words."""
        bare = [option for option in self.params if isinstance(option, Option) and option.bare is not None and option.long_flag in words]
        return "".join([f"; a value of {option.long_flag} follows '=': {option.long_flag}={option.metavar}" for option in bare[:1]])

    def spelled_out(self, words: Sequence[str]) -> Iterator[str]:
        """The words for click's parser: long options only, each with its value after `=`, `bare` values included.

        (For a short option click first looks for similar long ones, which takes longer than all its other work.)
        """
        options = {flag: each for each in self.params if isinstance(each, Option) for flag in (*each.opts, *each.secondary_opts)}
        queue = iter(words)
        for word in queue:
            if word == "--":
                yield word
                yield from queue
                return
            flag, equals, value = word.partition("=")
            option = options.get(flag)
            if option is None and word[:2] in options and not options[word[:2]].is_flag and not word.startswith("--"):
                option, flag, equals, value = options[word[:2]], word[:2], "=", word[2:]        # -oFILE
            if option is None:
                yield word
                continue
            name = flag if flag.startswith("--") else option.long_flag
            if equals:
                yield f"{name}={value}"
            elif option.is_flag:
                yield name
            elif option.bare is not None:
                yield f"{name}={option.bare}"
            else:                           # the next word is the value, even if it looks like an option
                following = next(queue, None)
                yield name if following is None else f"{name}={following}"

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        return help_option(ctx)

    def invoke(self, ctx: click.Context) -> int:
        console: Console = ctx.obj
        arguments = Arguments(ctx)
        console.configure(arguments)
        if arguments.load:
            from irtool.cli.loading import load_files

            load_files(arguments.load, console)
        assert self.callback is not None
        code: int = self.callback(arguments, console)
        return code

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, summary, arguments, options by group, and examples."""
        pieces = ["[options]", *(piece for param in self.params for piece in param.get_usage_pieces(ctx))]
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix="usage: ")
        formatter.write(f"\n{self.help}\n")
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if isinstance(param, Option):
                groups.setdefault(param.group, []).append(param.get_help_record(ctx))
            elif isinstance(param, Argument) and param.help:
                groups.setdefault("Arguments", []).append((param.shown, param.help))
        write_groups(formatter, groups)
        if self.epilog:
            formatter.write("\n" + self.epilog.strip("\n") + "\n")


def write_groups(formatter: click.HelpFormatter, groups: dict[str, list[tuple[str, str]]], most: int = COLUMN) -> None:
    """Write headings with rows of two columns, aligned across all headings."""
    width = max((len(left) for rows in groups.values() for left, _ in rows if len(left) <= most), default=0)
    for group, rows in groups.items():
        with formatter.section(group):
            formatter.write_dl([(f"{left:<{width}}", right) for left, right in rows], col_max=most)


def in_our_words(error: click.UsageError, ctx: click.Context) -> UsageError:
    """A usage error of click's as irtool's, with a suggestion."""
    options = {flag: each for each in ctx.command.params if isinstance(each, Option) for flag in (*each.opts, *each.secondary_opts)}
    if isinstance(error, click.NoSuchOption):
        flag = error.option_name
        hint = did_you_mean(flag, [*options, *ctx.help_option_names]) if len(flag) > 3 else ""
        if "--passes" in options and is_pipeline_name(flag.lstrip("-")):
            hint = f" (did you mean '--passes={flag.lstrip('-')}'?)"
        return UsageError(f"no such option: {flag}{hint}", code="E0803")
    if isinstance(error, click.BadOptionUsage):
        option = options.get(error.option_name)
        takes_value = option is not None and not option.is_flag
        what = f"needs a value: {error.option_name}={option.metavar}" if option is not None and takes_value else "takes no value"
        return UsageError(f"{error.option_name} {what}", code="E0805")
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return UsageError(f"missing argument {error.param.metavar or error.param.human_readable_name}", code="E0804")
    if isinstance(error, click.BadParameter) and isinstance(error.param, Option):
        return UsageError(f"{error.param.long_flag}: {error.message}", code="E0805")
    return UsageError(error.message)


def is_pipeline_name(word: str) -> bool:
    """Is it the name of a pass or of a preset?"""
    from irtool.passes import pass_called
    from irtool.pipelines import PRESETS

    return word in PRESETS or pass_called(word) is not None


def prepare(console: Any, words: Sequence[str]) -> None:
    """Configure how errors are shown, before the words are parsed, which may contain errors."""
    for word in words:
        if word == "--":
            return
        if word == "--diagnostics-format=json":
            console.json = True


def help_option(ctx: click.Context) -> click.Option | None:
    """The option `--help`, which prints to the result stream; None if the context does not allow it."""
    if not ctx.help_option_names:
        return None
    return Option(ctx.help_option_names, is_flag=True, is_eager=True, expose_value=False, callback=show_help, group=DIAGNOSTICS,
                  help="this text")


def show_help(ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:
    """Print help, and end the command."""
    if is_wanted and not ctx.resilient_parsing:
        print_help(ctx)
        ctx.exit()


def print_help(ctx: click.Context) -> None:
    """Print help, in the width of the terminal."""
    console: Console = ctx.obj
    ctx.terminal_width = console.width()
    console.out(ctx.get_help() + "\n")


# -- decorators
def command(name: str, **attributes: Any) -> Callable[[Callable[[Arguments, Console], int]], Command]:
    """Make a function the subcommand `name`; the options that every subcommand has come last."""
    from irtool.cli.commands import COMMANDS
    from irtool.cli.options import common_options

    def decorate(function: Callable[[Arguments, Console], int]) -> Command:
        params: list[click.Parameter] = list(reversed(function.__dict__.pop("__click_params__", [])))
        params += reversed(common_options(lambda: None).__dict__["__click_params__"])
        return Command(name, callback=function, params=params, help=COMMANDS[name][1], **attributes)
    return decorate


def option(*names: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """An option, as `click.option` takes it, with `group` and `bare`."""
    return click.option(*names, cls=Option, **attributes)


def argument(name: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """An argument, as `click.argument` takes it, with `help`."""
    return click.argument(name, cls=Argument, **attributes)


def together(*decorators: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Several options as one decorator; help shows them in the order of the arguments."""
    def decorate(function: Decorated) -> Decorated:
        for each in reversed(decorators):
            function = each(function)
        return function
    return decorate
