"""Facts about overloads, for passes, differentiation, layers and plans.

    facts_of_overload("aten::mul.Tensor").is_pointwise          # True
    facts_of_node(node).is_view

The facts come from `facts.txt` beside this file, which `tools/facts.py` writes by running kernels on symbols; from the alias annotations of
schemas; and from tables declared here. Neither kernels nor NumPy are loaded. Operators that are aliases of one another have equal facts.
"""
from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from irtool.ir.schema import forgets_kinds, schema_named, schema_of

if TYPE_CHECKING:
    from irtool.ir.graph import Node
    from irtool.ir.schema import Schema

KEEPS, BOOL, REAL, OTHER = "keeps", "bool", "real", "other"
"""Rules for the dtype of a pointwise result. KEEPS: the first operand's, if that is floating-point or complex; BOOL: bool; REAL: the first
operand's, if that is floating-point (for complex operands that of the real part, or an error); OTHER: none of these."""
DECLARED_POINTWISE = dict.fromkeys(("aten::masked_fill.Scalar", "aten::masked_fill.Tensor", "aten::ldexp.Tensor"), KEEPS)
"""Pointwise overloads whose kernels write into a copy or ask for dimensions, which symbols do not support."""
OWN_POINTWISE: dict[str, str] = {}
"""As DECLARED_POINTWISE, for operators that users add."""
SHAPE_LIKE = frozenset(f"aten::{name}" for name in """
zeros_like ones_like empty_like full_like rand_like randn_like randint_like type_as flip roll sort
cumsum cumprod cummax cummin logcumsumexp _logcumsumexp
softmax log_softmax special_softmax special_log_softmax _softmax _log_softmax
_softmax_backward_data _log_softmax_backward_data dropout native_dropout native_dropout_backward
""".split())
"""Kinds that are not pointwise and whose first result has the shape of the first operand."""
CHEAP_COPIES = frozenset(("aten::zeros_like", "aten::ones_like", "aten::clone", "aten::contiguous"))
"""Kinds that are not pointwise and cost no more than reading the operand once."""
CASTS = frozenset(("aten::to", "aten::type_as"))
"""Kinds that only change the dtype."""
AS_FIRST = frozenset(f"aten::{name}" for name in """
_index_put_impl addr alpha_dropout copy dropout feature_alpha_dropout feature_dropout fill igamma igammac index_fill index_put put zero
""".split())
"""Kinds that are not pointwise and whose result has the first operand's shape and lies in memory as it does."""
BY_ROWS = frozenset(("aten::masked_fill",))
"""Pointwise kinds whose result lies by rows, whatever the first operand does."""
FIXED_VIEWS = frozenset(("prim::ConstantChunk",))
"""Kinds that return views though their schemas do not say so."""


class OverloadFacts:
    """The facts about one overload."""

    __slots__ = ("result", "is_pointwise", "is_view", "is_shape_like", "is_cheap", "is_free")

    def __init__(self, kind: str, result: str, is_view: bool) -> None:
        self.result = result
        """KEEPS, BOOL, REAL or OTHER for a pointwise overload, else empty."""
        self.is_pointwise = bool(result)
        """Each element of the results depends on the operands' elements at its place alone; operands are broadcast."""
        self.is_view = is_view
        """The result shares the memory of the first operand, or may."""
        self.is_shape_like = kind in SHAPE_LIKE or is_view and kind in CASTS
        """The first result has the shape of the first operand, though the overload is not pointwise."""
        self.is_free = is_view or kind in CASTS or result == BOOL
        """Computing the result again never costs more than saving it."""
        self.is_cheap = self.is_free or self.is_pointwise or kind in CHEAP_COPIES
        """Computing the result again costs about as much as reading the operands."""


UNKNOWN = OverloadFacts("", "", False)
"""The facts about an operator without a schema."""


@forgets_kinds
@cache
def facts_of_overload(name: str) -> OverloadFacts:
    """The facts of an overload by qualified name, `aten::mul.Tensor`."""
    kind = name.partition(".")[0]
    schema = schema_named(name)
    is_view = kind in FIXED_VIEWS or schema is not None and _gives_view(schema)
    return OverloadFacts(kind, _pointwise().get(name) or OWN_POINTWISE.get(name, ""), is_view)


def facts_of_node(node: Node) -> OverloadFacts:
    """The facts of the overload that a node means."""
    schema = schema_of(node)
    if schema is None:
        return facts_of_overload(node.kind) if node.kind in FIXED_VIEWS else UNKNOWN
    return facts_of_overload(schema.name)


def lies_as_first(kind: str, facts: OverloadFacts) -> bool:
    """Does the result of an overload of a kind lie in memory as the first operand does, if it has that operand's shape, without gaps?"""
    return kind in AS_FIRST or kind not in BY_ROWS and facts.is_pointwise


def _gives_view(schema: Schema) -> bool:
    """Does a schema say that the result is a view of the first operand, `Tensor(a) self -> Tensor(a)`, without a write?"""
    if not schema.arguments or not schema.returns:
        return False
    operand, result = schema.arguments[0].alias, schema.returns[0].alias
    return operand is not None and result is not None and not operand.is_write and schema.arguments[0].type.text == "Tensor"


@cache
def _pointwise() -> dict[str, str]:
    """Pointwise overload -> the rule for its result's dtype."""
    rows = (Path(__file__).parent / "facts.txt").read_text(encoding="utf-8").split("\n")
    return {**dict(row.split() for row in rows if row), **DECLARED_POINTWISE}


MEANINGS = {"div": 4, "div_": 4, "true_divide": 4, "full": 5, "linspace": 8, "logspace": 9, "gelu": 10}
"""Operator whose meaning changed -> the first version of the archive format in which it has its present meaning."""


def meaning_since(kind: str) -> int:
    """The first version of the archive format in which a kind has its present meaning. Source: torch._C._get_operator_version_map()."""
    return MEANINGS.get(kind.removeprefix("aten::"), 3)
