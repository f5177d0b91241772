"""Flags as a table: what a subcommand accepts, read from one place by the parser, `--help` and the completion scripts.

A subcommand is a module with one `COMMAND`:

    COMMAND = Command(run, usage="FILE", positionals=[Positional("file", "?", default="-", help="input")], options=[
        Option("-o --output", "where the result goes", value="FILE", default="-"),
        Option("--check", "only say whether it differs"),                       # a switch: False or True
        Option("--time-passes", "...", value="FORM", choices=("text", "json"), bare="text"),   # --time-passes or --time-passes=json
        Option("--passes", "...", value="PIPELINE", many=True),                 # may be given again: a list
    ])
    def run(arguments: Arguments, console: Console) -> int: ...                 # gives the exit code

(why not click: docs/adr/0001-own-option-parser.md)
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from irtool.ir.errors import Error, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.console import Console


class UsageError(Error):
    """The command line is wrong, or names a file that cannot be opened: exit code 2."""


NAMES = ("FILE", "DIR", "NAME", "DIALECT")
"""Values that are no empty text: `--expect=$UNSET` must not mean that nothing is compared."""


class Option:
    """One flag, with its long and short spellings."""

    __slots__ = ("flags", "help", "value", "default", "choices", "convert", "bare", "many", "group", "dest", "negatable")

    def __init__(self, flags: str, help: str, *, value: str = "", default: Any = None, choices: Sequence[str] = (),
                 convert: Callable[[str], Any] = str, bare: Any = None, many: bool = False, group: str = "Options",
                 negatable: bool = False) -> None:
        self.flags = tuple(flags.split())
        self.help = help
        self.value = value                  # what stands for the value in help; "" makes it a switch
        self.choices = tuple(choices)
        self.convert = convert              # raises ValueError("expected ...") for a bad value
        self.bare = bare                    # the value of the flag without `=value`; then `--flag value` does not take the next word
        self.many = many
        self.group = group
        self.negatable = negatable          # a switch that is on: `--no-flag` turns it off
        self.dest = self.flags[-1].lstrip("-").replace("-", "_")
        self.default = default if default is not None or value else negatable
        if many and self.default is None:
            self.default = ()

    def shown(self) -> str:
        """The flag as help shows it: `-o, --output FILE`."""
        names = [flag.replace("--", "--[no-]", 1) if self.negatable else flag for flag in self.flags]
        if not self.value:
            return ", ".join(names)
        return ", ".join(names) + (f"[={self.value}]" if self.bare is not None else f" {self.value}")

    def read(self, text: str) -> Any:
        """The value of `text`. Raises UsageError."""
        if not text and self.value.partition(".")[0] in NAMES:
            raise UsageError(f"{self.flags[-1]} needs a value: {self.flags[-1]}={self.value}")
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.flags[-1]}: expected {' or '.join(self.choices)}, not '{text}'{did_you_mean(text, self.choices)}")
        try:
            return self.convert(text)
        except ValueError as error:
            raise UsageError(f"{self.flags[-1]}: {error}") from None


class Positional:
    """An argument without a flag: `count` is "1" (required), "?" (at most one) or "*" (any number: a list)."""

    __slots__ = ("name", "count", "default", "help")

    def __init__(self, name: str, count: str = "1", default: Any = None, help: str = "") -> None:
        self.name = name
        self.count = count
        self.default = default if default is not None or count != "*" else ()
        self.help = help


class Arguments:
    """What the user wrote: an attribute per option and positional; `given` names those that were written."""

    def __init__(self, values: dict[str, Any], given: set[str]) -> None:
        self.__dict__.update(values)
        self.given = given

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...


class Command:
    """A subcommand: what it accepts and the function that does it."""

    __slots__ = ("run", "usage", "positionals", "options", "details")

    def __init__(self, run: Callable[[Arguments, Console], int], *, usage: str = "", positionals: Sequence[Positional] = (),
                 options: Sequence[Option] = (), details: str = "") -> None:
        self.run = run
        self.usage = usage
        self.positionals = tuple(positionals)
        self.options = (*options, *COMMON)
        self.details = details          # text at the end of its help: examples

    def parse(self, words: Sequence[str]) -> Arguments:
        """Read the words after the subcommand's name. Raises UsageError."""
        table = {flag: option for option in self.options for flag in option.flags}
        values: dict[str, Any] = {option.dest: option.default for option in self.options}
        given: set[str] = set()
        loose: list[str] = []
        queue = iter(words)
        for word in queue:
            if word == "--":
                loose += queue
            elif word == "-" or not word.startswith("-"):
                loose.append(word)
            else:
                option, value = self._flag(word, table, queue)
                given.add(option.dest)
                values[option.dest] = [*values[option.dest], value] if option.many else value
        self._place(loose, values, given)
        return Arguments(values, given)

    def _flag(self, word: str, table: dict[str, Option], queue: Iterable[str]) -> tuple[Option, Any]:
        """The option a word names, and its value, taken from behind `=` or from the next word."""
        flag, equals, text = word.partition("=")
        if flag not in table and not word.startswith("--") and word[:2] in table and table[word[:2]].value:
            flag, equals, text = word[:2], "=", word[2:]            # -oFILE
        if flag.startswith("--no-") and (positive := table.get("--" + flag[5:])) is not None and positive.negatable and not equals:
            return positive, False
        option = table.get(flag)
        if option is None:
            raise UsageError(f"no such option: {flag}{did_you_mean(flag, table) if len(flag) > 3 else ''}")
        if not option.value:
            if equals:
                raise UsageError(f"{flag} takes no value")
            return option, True
        if equals:
            return option, option.read(text)
        if option.bare is not None:
            return option, option.bare
        for following in queue:
            return option, option.read(following)
        raise UsageError(f"{flag} needs a value: {flag}={option.value}")

    def _place(self, loose: list[str], values: dict[str, Any], given: set[str]) -> None:
        """Give the words without flags to the positionals in order."""
        for positional in self.positionals:
            if positional.count == "*":
                taken, loose = loose, []
                values[positional.name] = taken or positional.default
            elif loose:
                values[positional.name] = loose.pop(0)
                given.add(positional.name)
            elif positional.count == "1" and "help" not in given:
                raise UsageError(f"missing argument {positional.name.upper()}")
            else:
                values[positional.name] = positional.default
        if loose:
            raise UsageError(f"unexpected argument '{loose[0]}'")

    def help(self, name: str, summary: str) -> str:
        """The text of `irtool NAME --help`."""
        out = [f"usage: irtool {name} [options] {self.usage}".rstrip(), "", summary, ""]
        rows = [(positional.name.upper(), positional.help) for positional in self.positionals if positional.help]
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": rows} if rows else {}
        for option in self.options:
            choices = f" ({'|'.join(option.choices)})" if option.choices else ""
            groups.setdefault(option.group, []).append((option.shown(), option.help + choices))
        for group, lines in groups.items():
            out += [f"{group}:", *(two_columns(left, right) for left, right in lines), ""]
        return "\n".join(out) + (self.details and "\n" + self.details.strip("\n") + "\n")


def two_columns(left: str, right: str, width: int = 30) -> str:
    """One row of a help text."""
    return f"  {left:<{width}}{right}" if len(left) < width else f"  {left}\n  {'':<{width}}{right}"


def at_least(least: int) -> Callable[[str], int]:
    """A converter: a decimal integer that is not less than `least`."""
    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"expected an integer, not '{text}'") from None
        if number < least:
            raise ValueError(f"expected at least {least}, not {number}")
        return number
    return convert


def dialect_name(text: str) -> str:
    """A converter: the name or alias of a dialect."""
    from irtool.ir.dialect import ALIASES, DIALECTS, dialect

    try:
        dialect(text)
    except Error as error:
        raise ValueError(f"{error.message}{did_you_mean(text.upper(), [*DIALECTS, *ALIASES])}") from None
    return text


COMMON = (      # every subcommand has them
    Option("--color", "colour of messages", value="WHEN", choices=("auto", "always", "never"), default="auto", group="Messages"),
    Option("--diagnostics-format", "errors as text or as one JSON object per line", value="FORM", choices=("text", "json"), default="text",
           group="Messages"),
    Option("--max-errors", "stop reporting after this many (20)", value="N", convert=at_least(1), default=20, group="Messages"),
    Option("--debug", "show the Python traceback of an error", group="Messages"),
    Option("-h --help", "this text", group="Messages"),
)
