"""A dict that the caller passes, and the graph changes: gradients go through what the graph puts into it."""
from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.cli.main import main

HOLDERS = {"d": ("Dict[str, Tensor]", lambda d: d), "t[0]": ("List[Dict[str, Tensor]]", lambda d: [d]),
           "t[1]": ("Tuple[int, Dict[str, Tensor]]", lambda d: (2, d)), 't["q"]': ("Dict[str, Dict[str, Tensor]]", lambda d: {"q": d})}
CHANGES = ('d["z"] = d["a"] * x', 'd.update({"z": d["a"] * x})', 'd.setdefault("z", d["a"] * x)', 'd["z"] = d.pop("a") * x',
           'd["z"] = d.popitem()[1] * x', 'w = d["a"] * x; d.clear(); d["z"] = w', 'd["z"] = d["a"] * x; del d["a"]')
X, Y = np.array([1.0, 2.0]), np.array([3.0, 5.0])


@pytest.mark.parametrize("branch", (False, True), ids=("straight", "branch"))
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("holder", HOLDERS)
def test_gradients_go_through_dicts_that_change(holder: str, change: str, branch: bool) -> None:
    declared, held = HOLDERS[holder]
    lines = [*(["d = " + holder] if holder != "d" else []), *(["if n > 1:"] if branch else []),
             *["    " * branch + line for line in change.split("; ")]]
    name = "d" if holder == "d" else "t"
    source = f"def f({name}: {declared}, x, n: int):\n" + "".join(f"    {line}\n" for line in lines) + f"    return {name}\n"
    inputs = [held({"a": Y}), X, 2]
    module = irtool.from_script(source)
    outputs = irtool.run(module, inputs)[0]
    results = outputs if name == "d" else outputs["q"] if isinstance(outputs, dict) else outputs[-1]
    cotangents = [np.ones(2) for _ in results]
    for interpret in (True, False, False, False):
        np.testing.assert_allclose(irtool.vjp(module, inputs, cotangents, [1], interpret=interpret)[0], Y)
    executor = irtool.compile(module)
    for _ in range(3):
        np.testing.assert_allclose(executor.vjp(inputs, cotangents, [1])[0], Y)


def test_the_pass_refuses_what_it_cannot_follow() -> None:
    source = 'def f(d: Dict[str, Tensor], x):\n    d["z"] = x * 2\n    return d\n'
    with pytest.raises(irtool.UnsupportedError, match="changes a dict"):
        irtool.PassManager("differentiate").run(irtool.from_script(source))


def test_every_command_takes_gradients_of_dicts(tmp_path: Path) -> None:
    """`grad` without names, the tape, `run --requires-grad` and `gradcheck` see the tensors in a dict."""
    path = tmp_path / "d.ir"
    path.write_text("""graph(%d : Dict(str, Tensor)):
  %k : str = prim::Constant[value="a"]()
  %x : Tensor = aten::__getitem__(%d, %k)
  %y : Tensor = aten::mul(%x, %x)
  return (%y)
""")
    given = ["-i", 'd={"a": 2xf64=2}']
    for words in (["grad"], ["grad", "--via", "tape"], ["run", "--requires-grad", "d", "--backward"],
                  ["run", "--requires-grad", "all", "--backward"]):
        out, err = io.StringIO(), io.StringIO()
        assert main([words[0], str(path), *words[1:], *given, "-i", "vjp0=2xf64=1"], io.BytesIO(), out, err) == 0, err.getvalue()
        assert "grad0 %d: dict of 1\n  ['a']: float64 (2,)\n    [4. 4.]\n" in out.getvalue()
    report = irtool.gradcheck(irtool.parse(path.read_text()), [{"a": X}], order=1)
    assert report.is_right and len(report.rows) == 2 and not report.tape[1]
