"""Pipelines: presets, the required order of passes, and the parser of pipeline strings.

    pipeline := item ("," item)*                        whitespace and newlines are allowed around tokens
    item     := NAME opts? | COMB opts? "(" pipeline ")"        COMB: fixpoint, repeat (reserved)
    opts     := "{" [opt (WS opt)*] "}"
    opt      := KEY ["=" value]                         a bare KEY means true
    value    := atom ("," atom)* | '"' chars '"'        atom := [A-Za-z0-9_.+/-]+

Every error has a place in the string: `<passes>:1:17: error: ...`, with the whole string and a caret.
"""
from __future__ import annotations

from collections.abc import Sequence

from irtool.ir.errors import PipelineError, did_you_mean
from irtool.ir.source import Diagnostic, SourceFile
from irtool.passes import BY_NAME, Pass, PassOption, pass_called

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

O1 = (
    ("lower-tuples", "tuples hide values from later passes; not {all}, which would change inputs and outputs"),
    ("constant-propagation", "decides branches and loop counts, so that later passes have less to do"),
    ("peephole", "its rules need constant operands"),
    ("constant-pooling", "equal constants become one value, so that equal nodes have equal operands"),
    ("cse", "merges the equal nodes"),
    ("dce", "last: each pass before leaves nodes without users"),
)
"""The preset of the passes that torch's executor runs before specialisation."""

O2 = (
    ("inline", "the passes below see what called graphs compute"),
    ("remove-mutation", "what nobody writes into may be folded, merged and deleted"),
    ("lower-tuples", "tuples hide values from later passes"),
    ("constant-propagation", "decides branches and loop counts, before loops are unrolled"),
    ("loop-unrolling{whole}", "rounds of short loops are optimised together; not by eights, which would only make the code longer"),
    ("peephole", "its rules need constant operands"),
    ("peephole-list-idioms{refine-list-len}", "behind `if len(x) == 2` the length is a constant"),
    ("constant-propagation", "folds what unrolling and the two passes before made constant"),
    ("peephole", "of the tensors that the casts hid, which its first run removed, it now knows the sizes"),
    ("fuse-linear", "a product with transposed weights and its bias are one operator"),
    ("constant-pooling", "equal constants become one value, so that equal nodes have equal operands"),
    ("cse", "merges the equal nodes, those of different rounds too"),
    ("dce", "last: each pass before leaves nodes without users"),
)
"""The preset for graphs that run often: O1, and passes that make graphs longer before they make them shorter."""

TRAINING = (
    ("inline", "calls hide operators, which have gradients"),
    *O1,
    ("differentiate", "a node less in the graph is up to three nodes less in df"),
    ("specialize-undef", "opens the regions of df whose gradients are defined, for the passes below"),
    *O1,
)
"""The preset that makes a gradient pair of a graph."""

INFERENCE = (
    ("inline", "calls hide operators from the passes below"),
    ("remove-mutation", "what nobody writes into may be folded, merged and deleted"),
    ("lower-tuples", "tuples hide values from later passes"),
    ("constant-propagation", "decides what depends on flags like `training`, and branches"),
    ("peephole", "its rules need constant operands"),
    ("remove-dropout", "dropout that does not train is its operand"),
    ("fold-batch-norm", "batch norm that does not train is a factor and a bias of the convolution in front of it"),
    ("fuse-linear", "a product with transposed weights and its bias are one operator"),
    ("constant-pooling", "equal constants become one value, so that equal nodes have equal operands"),
    ("relayout-weights", "products read a right factor faster row by row"),
    ("cse", "merges the equal nodes"),
    ("dce", "last: each pass before leaves nodes without users"),
)
"""The preset for graphs whose weights are constants (`irtool.freeze`, or the pass `freeze` on archives)."""

PRESETS: dict[str, tuple[tuple[str, str], ...]] = {"O1": O1, "O2": O2, "training": TRAINING, "inference": INFERENCE}

ORDER = (       # (earlier, later, reason): a preset with both must run `earlier` first
    ("lower-tuples", "cse", "TupleConstruct and TupleUnpack keep equal values apart"),
    ("constant-propagation", "constant-pooling", "folding makes new constants, pooling merges them"),
    ("constant-pooling", "relayout-weights", "a weight that two constants hold is stored once"),
    ("constant-pooling", "cse", "nodes are equal only when their constants are one value"),
    ("cse", "dce", "a merged node's operands lose their last users"),
    ("peephole", "dce", "a bypassed node loses its users"),
    ("differentiate", "specialize-undef", "specialize-undef inlines the regions that differentiate makes"),
    ("specialize-undef", "lower-grad-of", "the definedness of a lowered region is decided only in the run"),
    ("create-autodiff-subgraphs", "inline-autodiff-subgraphs", "the second inlines groups that the first makes"),
    ("propagate-shapes", "fold-ranks", "ranks come from types"),
)
COMBINATORS = ("fixpoint", "repeat")
ATOM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-/")
SPACE = " \t\r\n"
MAX_DIGITS = 4000
"""Longer numbers are refused, since Python refuses to parse more than 4300 digits."""
SHELL_HINT = "did the shell expand the braces? quote the pipeline"


class Step:
    """One pass of a pipeline, with its options."""

    __slots__ = ("entry", "options", "name")

    def __init__(self, entry: Pass, options: dict[str, Any]) -> None:
        self.entry = entry
        self.options = options      # by parameter name; absent: the default
        self.name = entry.name

    def __repr__(self) -> str:
        return f"<Step {self}>"

    def __str__(self) -> str:
        """The step as text that parses to the same step, with every option, so that a change of defaults does not change it."""
        shown = []
        for option in self.entry.options:
            value = self.options.get(option.parameter, option.default)
            if value is not None and value != ():
                shown.append(f"{option.name}={spelled(value)}")
        return self.name + ("{" + " ".join(shown) + "}" if shown else "")


def parse_pipeline(text: str, name: str = "<passes>", has_comments: bool = False) -> list[Step]:
    """Parse a pipeline string; an empty text is an empty pipeline. Raises PipelineError.

    has_comments: `#` starts a comment to the end of the line (in pipeline files).
    """
    return Reader(text, name, has_comments).pipeline()


def expand(preset: str) -> list[Step]:
    """The steps of a preset. Raises PipelineError if it violates ORDER (a bug of irtool)."""
    steps = [step for line, _ in PRESETS[preset] for step in parse_pipeline(line, f"<{preset}>")]
    check_order([step.name for step in steps], f"preset {preset}")
    return steps


def check_order(names: Sequence[str], who: str) -> None:
    """Raises PipelineError if ORDER requires a pass before another, and all runs of the other come first."""
    for earlier, later, why in ORDER:
        if earlier in names and later in names and names.index(earlier) > len(names) - 1 - names[::-1].index(later):
            raise PipelineError(f"{who} runs '{later}' before '{earlier}': {why}")


def spelled(value: object) -> str:
    """A value as a pipeline writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(spelled(element) for element in value)
    text = str(value)
    if text and ATOM.issuperset(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Reader:
    """A cursor over one pipeline string."""

    __slots__ = ("source", "text", "at")

    def __init__(self, text: str, name: str, has_comments: bool) -> None:
        self.source = SourceFile(name, text)
        if has_comments:
            text = without_comments(text)
        self.text = text
        self.at = 0

    # -- grammar
    def pipeline(self) -> list[Step]:
        """Parse the whole string."""
        self._space()
        if self.at == len(self.text):
            return []
        steps = self._item()
        while self._space() == ",":
            self.at += 1
            steps += self._item()
        if self.at < len(self.text):
            self._unexpected("',' or the end")
        return steps

    def _item(self) -> list[Step]:
        following = self._space()
        start = self.at
        if following in ("", ","):
            at = start if following else self.text.rstrip(SPACE).rfind(",")
            self._fail("empty pass name; remove the comma", at, at + 1)
        word = self._word()
        if not word:
            self._unexpected("the name of a pass")
        if self.text[self.at: self.at + 1].strip(SPACE + "{,(="):
            self._unexpected("',' or the end")
        if word in COMBINATORS:
            self._fail(f"'{word}' is reserved for a later version; write its passes out", start)
        if self.text[self.at: self.at + 1] == "=":
            self._fail(f"'=' outside braces: {SHELL_HINT}", self.at, self.at + 1)
        if word in PRESETS:
            if self._space() == "{":
                self._fail(f"preset '{word}' has no options", self.at, self.at + 1)
            return expand(word)
        entry = pass_called(word)
        if entry is None:
            self._unknown_pass(word, start)
        return [Step(entry, self._options(entry, start))]

    def _options(self, entry: Pass, start: int) -> dict[str, Any]:
        known = {option.name: option for option in entry.options}
        options: dict[str, Any] = {}
        end = self.at
        if self._space() == "{":
            opening = self.at
            self.at += 1
            while (following := self._space()) != "}":
                if not following:
                    self._fail("'{' is never closed; a pipeline with spaces or braces wants quotes in the shell", opening, opening + 1)
                self._option(entry, known, options)
            self.at += 1
        for option in known.values():
            if option.is_required and option.parameter not in options:
                self._fail(f"pass '{entry.name}' needs the option '{option.name}' ({option.type})", start, end, "E0305")
        return options

    def _option(self, entry: Pass, known: dict[str, PassOption], options: dict[str, Any]) -> None:
        start = self.at
        if self.text[start] == ",":
            self._fail("options are separated by spaces, not commas", start, start + 1)
        key = self._word()
        if not key:
            self._unexpected("an option or '}'")
        option = known.get(key)
        if option is None:
            spaced = known.get(key.replace("_", "-"))
            hint = f" (did you mean '{spaced.name}'?)" if spaced is not None else did_you_mean(key, known)
            have = f"; its options: {', '.join(known)}" if known else ", it has none"
            self._fail(f"pass '{entry.name}' has no option '{key}'{hint or have}", start, code="E0304")
        if option.parameter in options:
            self._fail(f"option '{key}' is given twice", start, code="E0305")
        if self.text[self.at: self.at + 1] != "=":
            if not option.type.startswith("bool"):
                wanted = f"<{option.type}>" if option.values is None else option.values.example
                self._fail(f"option '{key}' needs a value: {key}={wanted}", start, code="E0305")
            options[option.parameter] = True
            return
        self.at += 1
        begin = self.at
        words, is_quoted = self._value()
        try:
            value = convert(words, is_quoted, option.type)
            problem = option.problem(value)
        except ValueError as error:
            problem = str(error)
        if problem:
            self._fail(f"option '{key}' of '{entry.name}': {problem}", begin, code="E0305")
        options[option.parameter] = value

    def _value(self) -> tuple[list[str], bool]:
        if self.text[self.at: self.at + 1] == '"':
            return [self._quoted()], True
        words = [self._word()]
        while self.text[self.at: self.at + 1] == ",":
            self.at += 1
            words.append(self._word())
        if "" in words:
            self._unexpected("a value")
        return words, False

    def _quoted(self) -> str:
        start = self.at
        out: list[str] = []
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                return "".join(out)
            if char == "\\" and self.text[self.at: self.at + 1] in ('"', "\\"):
                char = self.text[self.at]
                self.at += 1
            out.append(char)
        self._fail("this '\"' is never closed", start, start + 1)

    # -- tokens
    def _space(self) -> str:
        """Skip white space; returns the next character, empty at the end."""
        while self.at < len(self.text) and self.text[self.at] in SPACE:
            self.at += 1
        return self.text[self.at: self.at + 1]

    def _word(self) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in ATOM:
            self.at += 1
        return self.text[start: self.at]

    # -- errors
    def _unexpected(self, expected: str) -> NoReturn:
        char = self.text[self.at: self.at + 1]
        self._fail(f"expected {expected}, found {repr(char) if char else 'the end'}", self.at, self.at + 1)

    def _unknown_pass(self, word: str, start: int) -> NoReturn:
        hint = did_you_mean(word, [*BY_NAME, *PRESETS])
        if any(map(word.startswith, BY_NAME)):
            hint += f"; {SHELL_HINT}"
        self._fail(f"unknown pass '{word}'{hint or '; `irtool passes` lists them'}", start, code="E0303")

    def _fail(self, message: str, start: int, end: int | None = None, code: str = "E0302") -> NoReturn:
        end = self.at if end is None else end
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        raise PipelineError(diagnostics=[Diagnostic("error", message, self.source, line, column, column + max(1, end - start))], code=code)


def convert(words: Sequence[str], is_quoted: bool, type: str) -> Any:
    """The words of a value converted to the annotation `type`. Raises ValueError, which says what is expected."""
    type = type.removesuffix(" | None")
    if type.startswith(("tuple[", "list[", "Sequence[")):
        element = type[type.index("[") + 1:].removesuffix("]").removesuffix(", ...")
        values = [scalar(word, element) for word in words]
        return values if type.startswith("list[") else tuple(values)
    if len(words) > 1:
        raise ValueError(f"expected one value ({type}), not {len(words)}")
    if is_quoted and type != "str":
        raise ValueError(f"expected {type}, not a string")
    return scalar(words[0], type)


def scalar(word: str, type: str) -> Any:
    """One word converted to bool, int, float or str. Raises ValueError, which says what is expected."""
    if type == "bool":
        if word not in ("true", "false", "1", "0"):
            raise ValueError(f"expected true or false, not '{word}'")
        return word in ("true", "1")
    if type == "int":
        digits = word[1:] if word[:1] in ("+", "-") else word
        if not digits.isdecimal() or len(word) > MAX_DIGITS:
            raise ValueError(f"expected an integer, not '{word[:40]}'")
        return int(word)
    if type == "float":
        try:
            return float(word)
        except ValueError:
            raise ValueError(f"expected a number, not '{word}'") from None
    return word


def without_comments(text: str) -> str:
    """The text with comments replaced by spaces, so that positions stay."""
    lines = []
    for line in text.split("\n"):
        code = line.partition("#")[0]
        lines.append(code + " " * (len(line) - len(code)))
    return "\n".join(lines)
