"""The pass library: one file per pass. File, function and pipeline name are the same word (`constant_pooling`, `constant-pooling`).

A pass is a function `Graph -> bool`, which returns whether the graph changed; a pass that adds or joins graphs takes a `Module`. Its
keyword parameters are its options: `irtool passes NAME` shows their annotations and defaults, and pipelines are checked against them; where
a type has wrong values, too, `my_pass.values` has a `Values` for the parameter. Its docstring opens with one sentence, and shows IR
`before:` and `after:`, which a test runs.

`AREAS` names all passes; `PASSES` has an object for each, which imports the pass when it is first used.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

if __name__ != "irtool.passes":     # two copies of a module would be two sets of passes
    raise ImportError("import irtool.passes")


class Values:
    """The values of a type that an option takes besides its default: in words, an example, and a test. words: those that are values."""

    __slots__ = ("expected", "example", "fits", "words")

    def __init__(self, expected: str, example: str, fits: Callable[[Any], bool], words: tuple[str, ...] = ()) -> None:
        self.expected = expected
        self.example = example
        self.fits = fits
        self.words = words

    @classmethod
    def one_of(cls, *words: str) -> Values:
        """Some words and no others."""
        return cls(" or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words), words[0], words.__contains__, words)

    @classmethod
    def at_least(cls, least: int) -> Values:
        """Integers from `least` on."""
        return cls(f"at least {least}", "4", lambda value: bool(value >= least))


class PassOption:
    """One keyword parameter of a pass: `name` as a pipeline spells it, `type` as its annotation does. values: None: all of the type."""

    __slots__ = ("name", "parameter", "type", "default", "is_required", "values")

    def __init__(self, parameter: str, type: str, default: Any, is_required: bool, values: Values | None = None) -> None:
        self.name = parameter.replace("_", "-")
        self.parameter = parameter
        self.type = type
        self.default = default
        self.is_required = is_required
        self.values = values

    def problem(self, value: Any) -> str:
        """What is wrong with a value of the right type: `expected 2018 or modern, not 'moden'`; empty if the option takes it."""
        values = self.values
        if values is None or value == self.default or values.fits(value):
            return ""
        from irtool.ir.errors import did_you_mean

        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        return f"expected {values.expected}, not '{text[:40]}'{did_you_mean(text, values.words)}"

    def __repr__(self) -> str:
        return f"<PassOption {self.name}: {self.type}>"


class Pass:
    """A pass by name; a call runs it. is_own: was it added by a user?"""

    __slots__ = ("name", "is_own", "_function")

    def __init__(self, name: str, function: Callable[..., bool] | None = None, is_own: bool = False) -> None:
        self.name = name
        self.is_own = is_own
        self._function = function

    @property
    def function(self) -> Callable[..., bool]:
        """The function, imported on first use."""
        if self._function is None:
            from importlib import import_module

            word = self.name.replace("-", "_")
            function: Callable[..., bool] = getattr(import_module(f"irtool.passes.{word}"), word)
            self._function = function
        return self._function

    def __call__(self, subject: Any, **options: Any) -> bool:
        """Run the pass; returns whether it changed anything. Raises Error if a user's pass does not return a bool."""
        changed: object = self.function(subject, **options)
        if not isinstance(changed, bool) and self.is_own:
            from irtool.ir.extensions import Place

            raise Place(self.function).error(f"the pass '{self.name}' gave {str(changed)[:40]}: a pass returns True where it changed "
                                             "something, else False")
        return bool(changed)

    @property
    def takes_module(self) -> bool:
        """Does the pass take a Module, and not a Graph?"""
        code = self.function.__code__
        return annotation(self.function, code.co_varnames[0]).rpartition(".")[2] == "Module"

    @property
    def options(self) -> tuple[PassOption, ...]:
        """The options of the pass, in order."""
        function = self.function
        code = function.__code__
        count = code.co_argcount
        names = code.co_varnames[: count + code.co_kwonlyargcount]
        defaults: dict[str, Any] = dict(function.__kwdefaults__ or {})
        positional = function.__defaults__ or ()
        defaults.update(zip(names[count - len(positional): count], positional, strict=True))
        values: dict[str, Values] = getattr(function, "values", {})
        return tuple(PassOption(name, annotation(function, name), defaults.get(name), name not in defaults, values.get(name))
                     for name in names[1:])

    def check(self, **options: Any) -> None:
        """Raises PassError for a value that an option does not take. options: by the names of parameters."""
        from irtool.ir.errors import PassError

        for option in self.options:
            problem = option.problem(options[option.parameter]) if option.parameter in options else ""
            if problem:
                raise PassError(f"{self.name}: option '{option.name}': {problem}", code="E0305")

    @property
    def summary(self) -> str:
        """The first sentence of the pass's docstring."""
        return " ".join((self.function.__doc__ or "").strip().partition("\n\n")[0].split())

    @property
    def repeats(self) -> str:
        """Why a second run may change the graph again; empty for a pass whose second run changes nothing."""
        return str(getattr(self.function, "repeats", ""))

    def __repr__(self) -> str:
        return f"<Pass {self.name}>"


def annotation(function: Callable[..., Any], name: str) -> str:
    """The annotation of a parameter as text."""
    kind = function.__annotations__.get(name, "str")
    return kind if isinstance(kind, str) else str(getattr(kind, "__name__", kind))


AREAS: dict[str, tuple[str, ...]] = {
    "names": ("canonicalize",),
    "constants": ("constant-pooling", "constant-propagation", "freeze"),
    "redundancy": ("cse", "dce", "peephole", "peephole-list-idioms"),
    "operators": ("rewrite", "canonicalize-ops", "check-inplace", "decompose-ops", "decompose-recurrent", "batch-mm", "fuse-addmm",
                  "fuse-linear", "fold-batch-norm", "remove-dropout", "relayout-weights"),
    "structure": ("inline", "loop-unrolling", "constant-loop-unrolling", "lower-tuples"),
    "types": ("propagate-shapes", "fold-ranks", "erase-number-types", "erase-shapes", "erase-non-input-shapes",
              "refine-tuple-types", "integer-value-refinement"),
    "gradients": ("remove-expands", "decompose-addmm", "propagate-requires-grad", "create-autodiff-subgraphs", "inline-autodiff-subgraphs"),
    "execution": ("functionalize", "remove-inplace", "remove-mutation", "lists-by-index", "sums-early", "fuse"),
    "transformations": ("vmap", "lower-custom-vjp", "differentiate", "specialize-undef", "lower-grad-of", "pack-gradient",
                        "unpack-gradient"),
}
"""Area -> the names of its passes."""

PASSES: tuple[Pass, ...] = tuple(Pass(name) for names in AREAS.values() for name in names)
"""Every pass, in the order of the areas."""

BY_NAME: dict[str, Pass] = {entry.name: entry for entry in PASSES}
"""Every pass by name, those of users (`add_pass`), which have no area, at the end."""


ALIASES = {"specialize-autogradzero": "specialize-undef"}
"""torch's names for passes that have other names here."""


# -- passes of users
OPTION_TYPES = ("bool", "int", "float", "str")


def add_pass(function: Callable[..., bool]) -> Pass:
    """Make a function a pass of its name: `swap_subtractions` becomes `swap-subtractions`. Raises Error if the function cannot be a
    pass."""
    from irtool.ir.extensions import added, check_name

    entry = pass_of(function)
    owner = BY_NAME.get(entry.name)
    check_name("the pass", entry.name, function, owner.function if owner is not None else None)
    BY_NAME[entry.name] = entry
    added(lambda: BY_NAME.pop(entry.name, None))
    return entry


def pass_of(function: Callable[..., bool]) -> Pass:
    """A function as a pass. Raises Error if its parameters are not those of a pass."""
    from irtool.ir.extensions import Place

    place = Place(function)
    code = getattr(function, "__code__", None)
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
    if not is_pass(function):
        raise place.error(f"{place.name} is no pass: its first parameter is annotated neither 'Graph' nor 'Module'")
    if code is not None and code.co_flags & 0x0C:       # *args, **named
        raise place.error(f"the pass {place.name} takes any number of options: write out their names")
    for name in names[1:]:
        type = annotation(function, name)
        element = type.removesuffix(" | None").removeprefix("tuple[").removesuffix(", ...]")
        if name not in function.__annotations__ or element not in OPTION_TYPES:
            raise place.error(f"the option '{name}' of the pass {place.name} needs one of these types: {', '.join(OPTION_TYPES)}, "
                              "tuple[int, ...], 'int | None' and their kin" + (f"; not {type}" if name in function.__annotations__ else ""))
    return Pass(place.name.rpartition(".")[2].replace("_", "-"), function, is_own=True)


def is_pass(function: object) -> bool:
    """Is the value a function whose first parameter is annotated `Graph` or `Module`?"""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount or not callable(function):
        return False
    return annotation(function, code.co_varnames[0]).rpartition(".")[2] in ("Graph", "Module")


def pass_called(name: str) -> Pass | None:
    """A pass by name, also from an entry point of another package. Raises Error if that cannot be imported."""
    name = ALIASES.get(name, name)
    if name not in BY_NAME:
        from irtool.ir.extensions import entry_points, imported

        point = entry_points("irtool.passes").get(name)
        if point is not None:
            entry = add_pass(imported(point))
            BY_NAME.setdefault(name, Pass(name, entry.function, is_own=True))
    return BY_NAME.get(name)


def all_passes() -> Iterable[Pass]:
    """irtool's passes, then those of users, including those of all packages. Raises Error if an entry point cannot be imported."""
    from irtool.ir.extensions import entry_points

    for name in entry_points("irtool.passes"):
        pass_called(name)
    return list(BY_NAME.values())
