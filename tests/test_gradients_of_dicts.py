"""Gradients of tensors that are put into a dict under one of its names, and read under another."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.torchscript.front import compile_source

BODIES = {
    "an element of a list": "l = [d]\n    l[0]['a'] = x * 2\n    return d['a']",
    "a list holds it": "l = [d]\n    d['a'] = x * 2\n    return l[0]['a']",
    "a tuple holds it": "t = (d, 1)\n    d['a'] = x * 2\n    return t[0]['a']",
    "a dict of dicts": "e: Dict[str, Dict[str, Tensor]] = {'d': d}\n    e['d']['a'] = x * 2\n    return e['d']['a']",
    "one of two": "other: Dict[str, Tensor] = {}\n    e = d if c else other\n    e['a'] = x * 2\n    return d['a']",
    "an optional": "e: Optional[Dict[str, Tensor]] = d\n    if e is not None:\n        e['a'] = x * 2\n    return d['a']",
    "a value of type Any": "e: Any = d\n    d['a'] = x * 2\n    assert isinstance(e, Dict[str, Tensor])\n    return e['a']",
    "an attribute": "h = Holder(d)\n    h.d['a'] = x * 2\n    return h.d['a']",
    "rounds of a loop": "l = [d]\n    for i, e in enumerate(l):\n        e['a'] = x * (i + 2)\n    return l[0]['a']",
    "update": "d.update({'a': x * 2})\n    return d['a']",
    "setdefault": "l = [d]\n    l[0].setdefault('a', x * 2)\n    return d['a']",
    "a copy": "l = [d]\n    l[0]['a'] = x * 2\n    e = d.copy()\n    d.clear()\n    return e['a']",
}
SOURCE = """
class Holder:
    def __init__(self, d: Dict[str, Tensor]):
        self.d = d

def f(x: Tensor, c: bool):
    d: Dict[str, Tensor] = {}
    BODY
"""


@pytest.mark.parametrize("body", BODIES)
def test_a_tensor_is_found_under_every_name_of_its_dict(body: str) -> None:
    graph = compile_source(SOURCE.replace("BODY", BODIES[body]), "f").graph()
    x = np.arange(3.0)
    for interpret in (True, False, False):
        (gradient,) = irtool.vjp(graph, [x, True], [np.ones(3)], [0], interpret=interpret)
        np.testing.assert_array_equal(gradient, np.full(3, 2.0))
    (gradient,) = irtool.compile(graph).vjp([x, True], [np.ones(3)], [0])
    np.testing.assert_array_equal(gradient, np.full(3, 2.0))


def test_a_dict_that_no_result_reads_changes_no_gradient() -> None:
    graph = compile_source("def f(x):\n    d = {'a': x}\n    l = [d]\n    l[0]['b'] = x\n    return x * 3\n").graph()
    pair = irtool.PassManager("differentiate", verify=True).run(irtool.parse(str(graph)))
    assert pair.names() == ["f", "df"]
    (gradient,) = irtool.vjp(graph, [np.ones(2)], [np.ones(2)], [0])
    np.testing.assert_array_equal(gradient, [3.0, 3.0])


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("results, k, j", [("%n", 2, 5), ("%n, %n", 4, 10), ("%2, %n", 16, 5), ("%2, %n, %n", 18, 10)])
def test_a_dict_among_the_results_twice(results: str, k: float, j: float, interpret: bool) -> None:
    graph = irtool.parse(f"""graph(%n : Dict(str, Tensor)):
  %k : str = prim::Constant[value="k"]()
  %1 : Tensor = aten::__getitem__(%n, %k)
  %2 : Tensor = aten::mul(%1, %1)
  return ({results})
""")
    cotangent = {"k": np.full(2, 2.0), "j": np.full(1, 5.0)}
    cotangents = [np.full(2, 7.0) if each == "%2" else cotangent for each in results.split(", ")]
    for _ in range(3):
        (gradient,) = irtool.vjp(graph, [{"k": np.ones(2), "j": np.ones(1)}], cotangents, [0], interpret=interpret)
        np.testing.assert_array_equal(gradient["k"], np.full(2, float(k)))
        np.testing.assert_array_equal(gradient["j"], np.full(1, float(j)))


HOLDERS = {
    "Dict[str, Tensor]": ("a['k']", {"k": np.array([5.0])}, {"k": np.array([3.0])}),
    "Optional[Dict[str, Tensor]]": ("a['k']", {"k": np.array([5.0])}, {"k": np.array([3.0])}),
    "List[Dict[str, Tensor]]": ("a[0]['k']", [{"k": np.array([5.0])}], [{"k": np.array([3.0])}]),
    "Optional[Tuple[Tensor, int]]": ("a[0]", (np.array([5.0]), 3), [np.array([3.0]), None]),
    "Union[int, Tensor]": ("a", np.array([5.0]), np.array([3.0])),
    "Optional[Union[int, Tensor]]": ("a", np.array([5.0]), np.array([3.0])),
    "Any": ("a", np.array([5.0]), np.array([3.0])),
}


@pytest.mark.parametrize("profiling", [False, True])
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_holder_of_tensors_has_a_gradient_after_calls_that_asked_for_none(holder: str, profiling: bool) -> None:
    part, value, wanted = HOLDERS[holder]
    check = "if a is None:\n        return x" if holder.startswith("Optional") else "pass"
    cast = "if isinstance(a, int):\n        return x" if "int, Tensor]" in holder and "Tuple" not in holder else "pass"
    cast = "assert isinstance(a, Tensor)" if holder == "Any" else cast
    source = f"def f(a: {holder}, x: Tensor):\n    {check}\n    {cast}\n    return x * {part}\n"
    executor = irtool.compile(compile_source(source, "f"), profiling=profiling)
    x, ones = np.array([1.0, 2.0]), np.ones(2)
    for _ in range(3):
        np.testing.assert_equal(executor.vjp([value, x], [ones], [1]), [np.array([5.0, 5.0])])
    for _ in range(3):
        np.testing.assert_equal(executor.vjp([value, x], [ones], [0, 1]), [wanted, np.array([5.0, 5.0])])
        np.testing.assert_equal(executor.vjp([value, x], [ones], [1]), [np.array([5.0, 5.0])])
