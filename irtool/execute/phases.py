"""The phases of a compilation: which passes make the graph that runs from a graph and a spec, in which order, and why.

The order is torch's of 2019. "Differentiable" rewrites leave operators that have gradients, so they may run before differentiation. The
others may make nodes without gradients; they run only inside graphs that have a gradient graph already, or when no gradient is wanted.
Unused random operators stay, though torch deletes them: a plan draws the numbers that the interpreter draws.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from irtool.analysis.definedness import PARTIAL
from irtool.execute.argument_spec import ArgumentSpec, specialize_inputs
from irtool.ir.arguments import check_function
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.edits import clone_graph
from irtool.ir.errors import Error, PassError, VerifyError
from irtool.ir.graph import PARAM, Graph, Value
from irtool.ir.source import Diagnostic
from irtool.ir.types import TENSOR, TensorType, Type, spell, tensor_type
from irtool.ir.verify import violations
from irtool.passes.erase_shapes import without_shapes
from irtool.passes.specialize_undef import Specializer
from irtool.pipelines import Step, parse_pipeline

OnPass = Callable[[str, Graph], None]
"""Called after each pass with its name and the graph."""

Steps = tuple[tuple[str, str], ...]

STRUCTURE: Steps = (
    ("lower-tuples", "tuples hide the values that the later passes want to see"),
)
OPENED: Steps = (
    ("lower-custom-vjp", "no gradients are needed any more, so the other passes may see the bodies of custom_vjp functions"),
)
REQUIRED: Steps = (
    ("lower-grad-of", "a GradOf whose definedness is unknown becomes a branch on it; nothing runs a GradOf"),
    ("remove-expands", "operators broadcast themselves"),
    ("canonicalize-ops", "chunks with known numbers, and operands that are numbers, in one form"),
    ("dce{keep-draws}", "removes what lowered GradOfs leave dead"),
)
"""The required passes, which always run. GradOfs with known definedness are specialised before."""
PROPAGATE: Steps = (
    ("constant-propagation{keep-draws}", "types depend on constants"),
    ("propagate-shapes", "dtypes and numbers of dimensions"),
    ("fold-ranks", "whether a product is of matrices or of vectors, and the like"),
)
AGAIN: Steps = (
    ("constant-propagation{keep-draws}", "folds what depends on ranks"),
    ("propagate-shapes", "types are more precise without the branches that were folded"),
)
"""These run if fold-ranks changed the graph."""
GRADIENTS: Steps = (("propagate-requires-grad", "which values need gradients"),)
DIFFERENTIABLE: Steps = (
    ("dce{keep-draws}", "the other passes need not look at dead nodes"),
    ("cse", "merges what is equal"),
    ("constant-pooling", "equal constants become one value"),
    ("peephole{careful}", "rules that need operands to be constants; errors of operators stay"),
    ("constant-propagation{keep-draws}", "folds what peephole made constant"),
    ("loop-unrolling{whole}", "iterations can be optimised together; not by eights, which would only make the code longer"),
    ("cse", "what became equal"),
    ("check-inplace", "a Python operator that writes cannot be run"),
)
WITHOUT_GRADIENTS: Steps = (
    ("lists-by-index", "lists that loops pop from are read by index, so that only numbers are loop-carried"),
    ("sums-early", "gradients are added as soon as there are two, so that one array is alive instead of two"),
    *OPENED,
    ("decompose-ops", "the parts of a fused product go into other groups"),
    ("batch-mm", "many small products as one"),
    ("dce{keep-draws}", "dead nodes do not run"),
)

Custom = Callable[[Graph], bool]
registered: tuple[Custom, ...] = ()
"""The custom passes, in order."""


def register_custom_pass(function: Custom) -> Custom:
    """Have `function(graph) -> changed` called on every graph that is about to be compiled and needs no further gradients.

    It may rewrite the graph in any way that preserves results. Returns the function, so that it can be used as a decorator. Raises
    RunError if `function` is not callable.
    """
    check_function("register_custom_pass", function)
    global registered
    registered += (function,)
    return function


def clear_custom_passes() -> None:
    """Forget all custom passes."""
    global registered
    registered = ()


def custom_passes() -> tuple[Custom, ...]:
    """The registered custom passes, in order."""
    return registered


class Phases:
    """The passes of one compilation. `on_pass` is called after each."""

    def __init__(self, on_pass: OnPass | None = None) -> None:
        self.on_pass = on_pass

    def run(self, graph: Graph, steps: Steps) -> bool:
        """Run passes on a graph, in order; did the last one change the graph?"""
        changed = False
        for text, _ in steps:
            step = step_of(text)
            graph.forget_names()
            changed = bool(step.entry.function(graph, **step.options))
            self.report(step.name, graph)
        return changed

    def report(self, name: str, graph: Graph) -> None:
        """Call `on_pass` after a pass."""
        if self.on_pass is not None:
            self.on_pass(name, graph)

    def copy(self, graph: Graph) -> Graph:
        """A copy without shapes in its types, since the shapes of a trace hold only for the inputs it was made with."""
        copy = clone_graph(graph)
        forget_shapes(copy)
        return copy

    def required(self, graph: Graph, defined: Sequence[bool]) -> None:
        """Phase 1. Lists of gradients may have undefined elements: a spec says only whether the list is there."""
        graph.forget_names()
        Specializer(graph, list(defined), PARTIAL).run()
        self.report("specialize-undef", graph)
        self.run(graph, REQUIRED)

    def specialized(self, graph: Graph, spec: ArgumentSpec, types: Sequence[TensorType | None] = ()) -> Graph:
        """Phases 0 to 2: a copy of the graph for one spec. types: by record, types with more facts than the spec has."""
        copy = self.copy(graph)
        defined = specialize_inputs(copy, spec, types)
        self.report("specialize-types", copy)
        self.run(copy, STRUCTURE if spec.requires_gradient else STRUCTURE + OPENED)
        self.required(copy, defined)
        if self.run(copy, PROPAGATE):
            self.run(copy, AGAIN)
        self.run(copy, GRADIENTS)
        return copy

    def retyped(self, graph: Graph) -> Graph:
        """Recompute the types of a graph that was rewritten; a loop-carried value may need gradients only since the rewrite."""
        for value in graph.values():
            type = value.type
            if isinstance(type, TensorType) and type.requires_grad is False and not value.node.kind == PARAM:
                forget_requires_grad(value, graph)
        self.run(graph, AGAIN + GRADIENTS)
        return graph

    def differentiable(self, graph: Graph) -> None:
        """Phase 3: rewrites that leave operators with gradients."""
        self.run(graph, DIFFERENTIABLE)

    def without_gradients(self, graph: Graph) -> None:
        """Phase 5: rewrites of a graph whose operators need no gradients any more."""
        for function in registered:
            self.custom(function, graph)
        self.run(graph, WITHOUT_GRADIENTS)

    def custom(self, function: Custom, graph: Graph) -> None:
        """Run a user's pass. Raises PassError if it fails, VerifyError if it leaves an invalid graph."""
        name = getattr(function, "__name__", "custom")
        graph.forget_names()
        try:
            function(graph)
        except Error:
            raise
        except Exception as error:
            raise PassError(f"the custom pass '{name}' failed: {type(error).__name__}: {error}", code="E0308") from error
        broken = violations(graph)
        if broken:
            broken[-1].notes.append(Diagnostic("note", f"after the custom pass '{name}'"))
            raise VerifyError(diagnostics=broken)
        self.report(name, graph)

    def fallback(self, graph: Graph) -> Graph:
        """A copy after the required passes only; whether gradients are defined is decided at run time."""
        copy = self.copy(graph)
        self.run(copy, REQUIRED)
        return copy


@cache
def step_of(text: str) -> Step:
    """A pass with its options, as pipelines spell it."""
    (step,) = parse_pipeline(text)
    return step


def forget_requires_grad(value: Value, graph: Graph) -> None:
    """Erase from a tensor's type whether it needs a gradient."""
    type = value.type
    if isinstance(type, TensorType) and type.requires_grad is not None:
        value.type = spell(tensor_type(type.dtype, type.sizes, type.strides, None, type.device, type.undefined), graph.dialect)


def forget_shapes(graph: Graph) -> None:
    """Erase shapes and dtypes from tensor types, but not from those of constants, whose text may not say the dtype."""
    plain = spell(TENSOR, graph.dialect)
    erased: dict[Type, Type] = {}
    for value in graph.values():
        if value.node.kind in CONSTANT_KINDS:
            continue
        old = value.type
        new = erased.get(old)
        if new is None:
            new = erased[old] = without_shapes(old, plain)
        if new is not old:
            value.type = new
