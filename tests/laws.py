"""Laws over many samples: `over` makes one test item of all samples of a group, and a failure names the samples that broke the law."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from irtool.ops import OPS

SHOWN = 5
"""Of how many broken samples the tracebacks are shown."""


def over(names: str, cases: Iterable[Any], group: Callable[..., str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize(names, cases)`, with a test item per group instead of per case.

    Cases are `pytest.param(..., id=...)`, and `group` says from a case's values in which item it is tried. All cases of an item are
    tried, also after one of them failed. What else the law takes are fixtures.
    """
    arguments = [name.strip() for name in names.split(",")]
    groups: dict[str, list[Any]] = {}
    for case in cases:
        groups.setdefault(group(*case.values), []).append(case)

    def decorate(law: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(law)
        def item(group: str, **fixtures: Any) -> None:
            hold(law, groups[group], arguments, fixtures)

        parameters = [each for each in inspect.signature(law).parameters.values() if each.name not in arguments]
        first = inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        item.__signature__ = inspect.Signature([first, *parameters])       # type: ignore[attr-defined]
        return pytest.mark.parametrize("group", list(groups))(item)

    return decorate


def hold(law: Callable[..., None], cases: Sequence[Any], arguments: Sequence[str], fixtures: Mapping[str, Any]) -> None:
    """Try a law on all cases; raise what went wrong, or skip if all are skipped."""
    broken: dict[str, BaseException] = {}
    reasons: list[str] = []
    for case in cases:
        try:
            law(**dict(zip(arguments, case.values, strict=True)), **fixtures)
        except pytest.skip.Exception as skipped:
            reasons.append(str(skipped))
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"on the sample {case.id}")
            broken[case.id] = error
    if len(broken) == 1:
        raise next(iter(broken.values()))
    if broken:
        raise BaseExceptionGroup(f"broken on {len(broken)} of {len(cases)} samples: {', '.join(broken)}", list(broken.values())[:SHOWN])
    if len(reasons) == len(cases):
        pytest.skip("; ".join(dict.fromkeys(reasons)))


def overload_samples(name: str) -> list[Any]:
    """The samples of an overload as cases: (overload, sample)."""
    samples = (OPS[name].samples or {}).get(name, ())
    return [pytest.param(name, sample, id=f"{name.removeprefix('aten::')}-{place}") for place, sample in enumerate(samples)]


def seeds(count: int) -> list[Any]:
    """Seeds of random graphs and texts as cases."""
    return [pytest.param(seed, id=str(seed)) for seed in range(count)]


def ten(seed: int) -> str:
    """Group seeds by tens."""
    return f"{seed - seed % 10} to {seed - seed % 10 + 9}"


def kind(name: str, *_: Any) -> str:
    """Group by operator: all samples of all its overloads."""
    return name.partition(".")[0]


def family(name: str, *_: Any) -> str:
    """Group by family: the module of `irtool.ops.samples` where the samples stand."""
    return OPS[name].family
