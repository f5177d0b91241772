"""The batching rule of an overload: one written for it (`irtool.ops.batching`); else, if the overload is pointwise (`irtool.ops.facts`),
the common rule of pointwise operators; else, if it writes into its first operand, the rule of the overload that does not write.
"""
from __future__ import annotations

from functools import cache

from irtool.dispatch.layer_writes import without_write
from irtool.ir.errors import UnsupportedError
from irtool.ir.schema import forgets_kinds
from irtool.ops import OPS
from irtool.ops.facts import facts_of_overload
from irtool.ops.op import Rule


@forgets_kinds
@cache
def rule_of(name: str) -> Rule | None:
    """The batching rule of an overload; None if it has none."""
    from irtool.ops.batching.batch_dim import pointwise

    rule = OPS[name].batch_rules.get(name) if name in OPS else None
    if rule is not None:
        return rule
    if facts_of_overload(name).is_pointwise:
        return pointwise
    plain = without_write(name)
    return None if plain is None else rule_of(plain)


def is_pointwise_rule(name: str) -> bool:
    """Has an overload the common batching rule of pointwise operators?"""
    from irtool.ops.batching.batch_dim import pointwise

    return rule_of(name) is pointwise


def why_no_rule(name: str) -> str | None:
    """The reason that the stanza declares for having no batching rule; None if it declares none."""
    return OPS[name].not_batched.get(name) if name in OPS else None


def rule_or_refusal(name: str) -> Rule:
    """The batching rule of an overload. Raises UnsupportedError, with the declared reason, if it has none."""
    rule = rule_of(name)
    if rule is None:
        reason = why_no_rule(name)
        raise UnsupportedError(f"{name} under vmap is not supported{f': {reason}' if reason else ' yet'}", code="E0504")
    return rule
