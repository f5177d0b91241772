"""The pass vmap keeps numbers, loops and branches that are not batched, and gives for each row what the graph gives for it."""
from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.cli.main import main
from irtool.dispatch.graph_functions import trace_vmap

ROWS = 3
GRAPHS = {
    "a loop over a number": ("0,None", [(4,), 3], """graph(%x : Double(4), %n : int):
  %t : bool = prim::Constant[value=1]()
  %y : Double(4) = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Double(4)):
      %b : Double(4) = aten::mul(%a, %a)
      -> (%t, %b)
  return (%y)
""", "prim::Loop("),
    "a loop that becomes batched in its second value": ("0,None,None", [(4,), (4,), 2], """graph(%x : Double(4), %z : Double(4), %n : int):
  %t : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %y : Double(4), %v : Double(4), %w : Double(4) = prim::Loop(%n, %t, %x, %z, %z)
    block0(%i : int, %a : Double(4), %b : Double(4), %c : Double(4)):
      %d : Double(4) = aten::add(%b, %a, %one)
      %e : Double(4) = aten::neg(%c)
      -> (%t, %a, %d, %e)
  %r : Double(4) = aten::mul(%v, %w)
  return (%r, %y)
""", "prim::Loop("),
    "a branch on a number": ("1,None", [(2, 3), True], """graph(%x : Double(2, 3), %c : bool):
  %y : Double(2, 3) = prim::If(%c)
    block0():
      %a : Double(2, 3) = aten::sigmoid(%x)
      -> (%a)
    block1():
      %o : Double(2, 3) = prim::Constant[value= 1  2  3  4  5  6 [ CPUDoubleType{2,3} ]]()
      -> (%o)
  return (%y)
""", "prim::If("),
    "lists of batched and other tensors": ("0,None,None", [(2, 3), (2, 3), 1], """graph(%x : Double(2, 3), %z : Double(2, 3), %n : int):
  %l : Tensor[] = prim::ListConstruct(%x, %z)
  %d : int = prim::Constant[value=1]()
  %y : Double(2, 6) = aten::cat(%l, %d)
  %s : Double(2) = aten::matmul(%y, %q)
  return (%s)
""".replace("  %s : Double(2) = aten::matmul(%y, %q)\n  return (%s)", "  return (%y)"), "%n : int"),
}


def opt(passes: str, text: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(["opt", "-q", f"--passes={passes}", "-"], io.BytesIO(text.encode()), out, err), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", GRAPHS)
def test_each_row_is_what_the_graph_gives(name: str) -> None:
    dims, inputs, text, kept = GRAPHS[name]
    code, out, err = opt(f"vmap{{length={ROWS} in-dims={dims}}}", text)
    assert code == 0, err
    assert kept in out
    rng = np.random.default_rng(0)
    places = [None if word == "None" else int(word) for word in dims.split(",")]
    values = []
    for given, place in zip(inputs, places, strict=True):
        if isinstance(given, tuple):
            shape = given if place is None else (*given[:place], ROWS, *given[place:])
            values.append(rng.normal(size=shape))
        else:
            values.append(given)
    together = irtool.run(irtool.parse(out), values)
    for row in range(ROWS):
        alone = [value if place is None else np.take(value, row, place) for value, place in zip(values, places, strict=True)]
        for mine, expected in zip(together, irtool.run(irtool.parse(text), alone), strict=True):
            np.testing.assert_allclose(mine[row], expected)


@pytest.mark.parametrize(("text", "expected"), [
    ("graph(%x : Float(100000, 100000)):\n  %y : Float(100000, 100000) = aten::neg(%x)\n  return (%y)\n", "too many elements"),
    ("graph(%x : Float(0, 1000000000000000000)):\n  return (%x)\n", "too many elements"),
    ("graph(%x : Float(2), %n : int):\n  %y : Float(2) = aten::select(%x, %n, %n)\n  return (%y)\n", "%n : int, which is not constant"),
    ("graph(%x : Tensor, %n : int):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n", "does not say its sizes"),
])
def test_what_cannot_be_batched_is_said(text: str, expected: str) -> None:
    dims = ",".join(["0"] + ["None"] * text.partition(")\n")[0].count("%n : int"))
    code, _, err = opt(f"vmap{{in-dims={dims}}}", text)
    assert code == 1
    assert expected in err


@pytest.mark.parametrize(("rounds", "code"), [(3, 0), (2**63 - 1, 1)])
def test_a_loop_that_cannot_stay_is_unrolled_up_to_a_limit(rounds: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irtool.dispatch.control_flow.MOST_ROUNDS", 10)
    text = (f"graph(%x : Float(2)):\n  %n : int = prim::Constant[value={rounds}]()\n  %t : bool = prim::Constant[value=1]()\n"
            "  %a : Float(2) = aten::relu_(%x)\n  %y : Tensor = prim::Loop(%n, %t, %a)\n    block0(%i : int, %b : Tensor):\n"
            "      %c : Tensor = aten::neg(%b)\n      -> (%t, %c)\n  return (%y)\n")
    result, out, err = opt("vmap", text)
    assert result == code
    assert out.count("aten::neg") == 3 if code == 0 else "more than 10 rounds" in err


def test_nodes_that_are_alike_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracing takes most of the time of the pass; results keep their names, and a long list of them is not copied for each."""
    count = 0

    def counted(*args: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        return trace_vmap(*args, **named)

    monkeypatch.setattr("irtool.dispatch.graph_functions.trace_vmap", counted)
    half = "".join(f"  %k{i} : Double(3) = aten::mul(%x, %c{i % 2})\n" for i in range(8))
    items = ", ".join(f"%k{i}" for i in range(8))
    text = f"""graph(%x : Double(3), %n : int):
  %c0 : float = prim::Constant[value=0.5]()
  %c1 : float = prim::Constant[value=2.5]()
{half}  %l : Tensor[] = prim::ListConstruct({items})
  %d : int = prim::Constant[value=0]()
  %z : Double(24) = aten::cat(%l, %d)
  return (%z)
"""
    graph = irtool.PassManager("vmap{in-dims=0,None length=2}").run(irtool.parse(text)).graph()
    assert count == 3       # by 0.5, by 2.5, and cat
    x = np.arange(6.0).reshape(2, 3)
    assert irtool.run(graph, [x, 1])[0].tolist() == [np.concatenate([row * [0.5, 2.5][i % 2] for i in range(8)]).tolist() for row in x]
    assert "%k7" in str(graph)
