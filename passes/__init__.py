"""The pass library: one file per pass; file, function and pipeline name are one word (`constant-pooling`, `constant_pooling`).

A pass is a function `Graph -> bool` (did it change?), or of a `Module` where it makes or joins graphs. Its keyword parameters are
its options; their annotations and defaults are what `irtool passes NAME` shows and what a pipeline string is checked against. Its
docstring opens with one sentence and shows IR `before:` and `after:`, and a test runs that.

`PASSES` lists them all; a pass is imported when it is first used, so naming one costs nothing.
"""
from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

if __name__ != "irtool.passes":     # two copies of a module would be two sets of passes
    raise ImportError("import irtool.passes")


class PassOption:
    """One keyword parameter of a pass: `name` as a pipeline spells it, `type` as its annotation does."""

    __slots__ = ("name", "parameter", "type", "default", "is_required")

    def __init__(self, parameter: str, type: str, default: Any, is_required: bool) -> None:
        self.name = parameter.replace("_", "-")
        self.parameter = parameter
        self.type = type
        self.default = default
        self.is_required = is_required


class Pass:
    """A pass by name; calling it runs it."""

    __slots__ = ("name", "_function")

    def __init__(self, name: str, function: Callable[..., bool] | None = None) -> None:
        self.name = name
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
        return self.function(subject, **options)

    @property
    def takes_module(self) -> bool:
        """Does it work on a whole Module rather than on one Graph?"""
        code = self.function.__code__
        return annotation(self.function, code.co_varnames[0]) == "Module"

    @property
    def options(self) -> tuple[PassOption, ...]:
        """Its keyword parameters, in order."""
        function = self.function
        code = function.__code__
        count = code.co_argcount
        names = code.co_varnames[: count + code.co_kwonlyargcount]
        defaults: dict[str, Any] = dict(function.__kwdefaults__ or {})
        positional = function.__defaults__ or ()
        defaults.update(zip(names[count - len(positional): count], positional, strict=True))
        return tuple(PassOption(name, annotation(function, name), defaults.get(name), name not in defaults) for name in names[1:])

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
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
    "redundancy": ("cse", "dce", "peephole"),
    "operators": ("canonicalize-ops", "check-inplace", "decompose-ops", "batch-mm", "fold-batch-norm"),
    "structure": ("inline", "loop-unrolling", "constant-loop-unrolling", "lower-tuples"),
    "types": ("propagate-shapes", "fold-ranks", "erase-number-types", "erase-shapes"),
    "gradients": ("remove-expands", "decompose-addmm", "propagate-requires-grad", "create-autodiff-subgraphs", "inline-autodiff-subgraphs"),
    "execution": ("functionalize", "lists-by-index", "sums-early", "fuse"),
    "transformations": ("vmap", "lower-custom-vjp", "differentiate", "specialize-undef", "lower-grad-of", "pack-gradient",
                        "unpack-gradient"),
}
"""The names of all passes, by what they work on."""

PASSES: tuple[Pass, ...] = tuple(Pass(name) for names in AREAS.values() for name in names)
"""Every pass, in the order of the areas."""

BY_NAME: dict[str, Pass] = {entry.name: entry for entry in PASSES}
