"""nan in dicts, lists and tuples equals nothing, although Python takes an object for equal to itself. The results are torch's."""
from __future__ import annotations

import math
from typing import Any

import pytest
from test_identity import ways

import irtool

NAN = math.nan


def shown(value: Any) -> str:
    """As text, in which one nan is like another."""
    return repr(value)


PROGRAMS: list[tuple[str, str, list[Any], Any]] = [
    ("a: float", "d = {a: 1}\n    d[a] = 2\n    return len(d), a in d, d.get(a), d.get(a, 7), d",
     [NAN], (2, False, None, 7, {NAN: 1, -NAN: 2})),
    ("a: float, b: float", "d = {a: 1, b: 3}\n    d[a] = 2\n    return len(d), a in d", [NAN, NAN], (3, False)),
    ("a: float, b: float", "d = {a: 1, b: 3}\n    d[a] = 2\n    return len(d), a in d", [0.0, -0.0], (1, True)),
    ("a: float", "d = {a: 1}\n    return d.pop(a, 5), len(d)", [NAN], (5, 1)),
    ("a: float", "d = {a: 1}\n    e = d.setdefault(a, 3)\n    return e, len(d)", [NAN], (3, 2)),
    ("a: float", "d = {a: 1}\n    d.update({a: 4})\n    return len(d)", [NAN], 2),
    ("a: float", "d = {a: 1}\n    d.update(d.copy())\n    return len(d)", [NAN], 2),
    ("a: float", "d = dict([(a, 1), (a, 2)])\n    return len(d), list(d.values())", [NAN], (2, [1, 2])),
    ("a: float", "d = {x: 1 for x in [a, a, 2.0]}\n    return len(d), a in d", [NAN], (3, False)),
    ("a: float", "d = {2.0: 1, a: 3}\n    return d.popitem(), list(d.items())", [NAN], ((2.0, 1), [(NAN, 3)])),
    ("d: Dict[float, int], a: float", "return a in d, len(d)", [{NAN: 1}, NAN], (False, 1)),
    ("a: float", "d = {float('nan'): 1, float('nan'): 2}\n    return len(d)", [NAN], 2),
    ("a: float", "return a in [a], [a].count(a)", [NAN], (False, 0)),
    ("a: float, b: float", "return (a, b) == (b, a)", [NAN, NAN], False),
    ("a: float, b: float", "return (a, b) == (b, a)", [1.0, 1.0], True),
    ("a: List[float], b: List[float]", "return a == b, a != b", [[NAN], [NAN]], (False, True)),
    ("a: List[float], b: List[float]", "return a == b, a != b", [[0.0], [-0.0]], (True, False)),
    ("a: List[float]", "b = a\n    return a == b, a != b", [[NAN]], (True, False)),
    ("a: List[float]", "return 0.0 in a, -0.0 in a, a.index(0.0)", [[-0.0]], (True, True, 0)),
]


@pytest.mark.parametrize("parameters, body, values, wanted", [pytest.param(*each, id=each[1].partition("\n")[0] + shown(each[2]))
                                                              for each in PROGRAMS])
def test_nan_is_not_found(parameters: str, body: str, values: list[Any], wanted: Any) -> None:
    for name, way in ways(f"def f({parameters}):\n    {body}\n").items():
        for _ in range(3):
            assert shown(way(list(values))) == shown([wanted]), name


@pytest.mark.parametrize("body, message", [
    ("d[a]", "KeyError: nan"), ("d.pop(a)", "KeyError: nan"), ("d.popitem()", "Expected to erase 1 item, found 0"),
    ("[a].index(a)", "is not in list")])
def test_nan_that_is_no_key_is_refused(body: str, message: str) -> None:
    for way in ways(f"def f(a: float):\n    d = {{a: 1}}\n    return {body}\n").values():
        with pytest.raises(irtool.RunError, match=message):
            way([NAN])


def test_pairs_with_nan_are_sorted_as_by_c() -> None:
    """A pair that begins with nan is neither before nor behind another one."""
    for way in ways("def f(x: List[Tuple[float, int]]):\n    return [b for a, b in sorted(x)]\n").values():
        assert way([[(NAN, 2), (NAN, 1), (0.0, 5)]]) == [[2, 1, 5]]
