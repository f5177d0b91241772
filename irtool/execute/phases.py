"""From a graph and a spec of its inputs to the graph that is run: which passes, in which order, and why.

The order is torch's of 2019. "Differentiable" rewrites leave operators that have gradients, so they may be done before gradients are
thought of; the others may make nodes without gradients, and are done only inside graphs that have an explicit gradient already, or
when none is wanted.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from irtool.execute.argument_spec import ArgumentSpec, specialize_inputs
from irtool.ir.arguments import check_function
from irtool.ir.constants import CONSTANT_KINDS
from irtool.ir.errors import Error, PassError, VerifyError
from irtool.ir.graph import PARAM, Graph
from irtool.ir.rewrite import clone_graph
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
    ("lower-grad-of", "a region of gradients that could not be decided asks when it runs; nothing runs a GradOf"),
    ("remove-expands", "operators broadcast themselves"),
    ("canonicalize-ops", "chunks with known numbers, and operands that are numbers, in one form"),
    ("dce", "what is left of the decided regions"),
)
"""What always happens, optimised or not; the regions of gradients that can be decided are decided before."""
PROPAGATE: Steps = (
    ("constant-propagation", "types depend on constants"),
    ("propagate-shapes", "dtypes and numbers of dimensions"),
    ("fold-ranks", "whether a product is of matrices or of vectors, and the like"),
)
AGAIN: Steps = (
    ("constant-propagation", "what depends on ranks"),
    ("propagate-shapes", "branches that are gone no longer blur what is known"),
)
"""If ranks have decided anything."""
GRADIENTS: Steps = (("propagate-requires-grad", "which values need gradients"),)
DIFFERENTIABLE: Steps = (
    ("dce", "nothing dead is looked at"),
    ("cse", "merges what is equal"),
    ("constant-pooling", "equal constants become one value"),
    ("peephole", "rules that need operands to be constants"),
    ("constant-propagation", "what peephole found out"),
    ("loop-unrolling{whole}", "rounds can be looked at together; not by eights, which here would only make the code longer"),
    ("cse", "what became equal"),
    ("check-inplace", "a Python operator that writes cannot be run"),
)
WITHOUT_GRADIENTS: Steps = (
    ("lists-by-index", "lists that loops take apart are read by index, so that nothing but numbers is carried"),
    ("sums-early", "gradients are added up as soon as there are two, so that one array lives instead of two"),
    *OPENED,
    ("decompose-ops", "the parts of a fused product go into other groups"),
    ("batch-mm", "many small products as one"),
    ("dce", "nothing dead is run"),
)

Custom = Callable[[Graph], bool]
_custom_passes: list[Custom] = []


def register_custom_pass(function: Custom) -> Custom:
    """Have `function(graph) -> changed` called on every graph that is about to be compiled and needs no further gradients.

    It may rewrite the graph as it likes, as long as results stay. Gives the function, so that it can be used as a decorator. Raises
    RunError for what cannot be called.
    """
    check_function("register_custom_pass", function)
    _custom_passes.append(function)
    return function


def clear_custom_passes() -> None:
    """Forget all custom passes."""
    _custom_passes.clear()


def custom_passes() -> tuple[Custom, ...]:
    """Those that are registered, in order."""
    return tuple(_custom_passes)


class Phases:
    """The passes of one compilation. `on_pass` is called after each."""

    def __init__(self, on_pass: OnPass | None = None) -> None:
        self.on_pass = on_pass

    def run(self, graph: Graph, steps: Steps) -> bool:
        """These passes on a graph, in order; did the last one change anything?"""
        changed = False
        for text, _ in steps:
            step = step_of(text)
            graph.forget_names()
            changed = bool(step.entry.function(graph, **step.options))
            self.tell(step.name, graph)
        return changed

    def tell(self, name: str, graph: Graph) -> None:
        """A pass has run."""
        if self.on_pass is not None:
            self.on_pass(name, graph)

    def copy(self, graph: Graph) -> Graph:
        """A copy that says nothing of shapes: those of a trace hold for its inputs only."""
        copy = clone_graph(graph)
        forget_shapes(copy)
        return copy

    def required(self, graph: Graph, defined: Sequence[bool]) -> None:
        """Phase 1."""
        graph.forget_names()
        Specializer(graph, list(defined)).run()
        self.tell("specialize-undef", graph)
        self.run(graph, REQUIRED)

    def specialized(self, graph: Graph, spec: ArgumentSpec, types: Sequence[TensorType | None] = ()) -> Graph:
        """Phases 0 to 2: a copy of the graph for one spec. types: what more is known of its records, if given."""
        copy = self.copy(graph)
        defined = specialize_inputs(copy, spec, types)
        self.tell("specialize-types", copy)
        self.run(copy, STRUCTURE if spec.requires_gradient else STRUCTURE + OPENED)
        self.required(copy, defined)
        if self.run(copy, PROPAGATE):
            self.run(copy, AGAIN)
        self.run(copy, GRADIENTS)
        return copy

    def told_again(self, graph: Graph) -> Graph:
        """The graph, which was rewritten, with the types that hold now: what a loop carries may need gradients only since then."""
        for value in graph.values():
            type = value.type
            if isinstance(type, TensorType) and type.requires_grad is False and not value.node.kind == PARAM:
                value.type = spell(tensor_type(type.dtype, type.sizes, type.strides, None, type.device, type.undefined), graph.dialect)
        self.run(graph, AGAIN + GRADIENTS)
        return graph

    def differentiable(self, graph: Graph) -> None:
        """Phase 3: rewrites that leave operators with gradients."""
        self.run(graph, DIFFERENTIABLE)

    def without_gradients(self, graph: Graph) -> None:
        """Phase 5: rewrites of a graph whose operators need no gradients any more."""
        for function in _custom_passes:
            self.custom(function, graph)
        self.run(graph, WITHOUT_GRADIENTS)

    def custom(self, function: Custom, graph: Graph) -> None:
        """A pass of a user. Raises PassError where it fails, VerifyError where what it leaves is no graph."""
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
        self.tell(name, graph)

    def fallback(self, graph: Graph) -> Graph:
        """A copy with the required passes only; which gradients are there shows when it runs."""
        copy = self.copy(graph)
        self.run(copy, REQUIRED)
        return copy


@cache
def step_of(text: str) -> Step:
    """A pass with its options, as pipelines spell it."""
    (step,) = parse_pipeline(text)
    return step


def forget_shapes(graph: Graph) -> None:
    """Tensor types say nothing any more, but those of constants, whose dtypes their text may leave to them."""
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
