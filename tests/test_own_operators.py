"""Passes and operators of users: by `--load`, as an installed package, from Python; what is wrong with them is said at their line."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_cli import irtool_

import irtool
from irtool import Tensor
from irtool.ops.own_operators import OWN
from irtool.testing.operator_checks import check_operator

PLUGIN = Path(__file__).parents[1] / "examples" / "plugin"
GRAPH = PLUGIN.parent / "hard_swish.ir"
HEAD = "import numpy as np, irtool\nfrom irtool import Graph, Module, Tensor\n"
OPERATOR = '@irtool.operator("t::twice(Tensor x, float k=2.) -> Tensor")\ndef twice(x, k): return x * k\n'


def written(folder: Path, text: str) -> str:
    """A file of a user's."""
    path = folder / "mine.py"
    path.write_text(HEAD + text)
    return str(path)


@pytest.mark.parametrize(("text", "line", "message"), [
    ("def p(graph: Graph, most) -> bool: ...", 3, "the option 'most' of the pass p needs one of these types: bool, int"),
    ("def p(graph: Graph, most: complex = 1j) -> bool: ...", 3, "not complex"),
    ("def p(graph: Graph, **options: int) -> bool: ...", 3, "takes any number of options"),
    ("def dce(graph: Graph) -> bool: ...", 3, "the pass 'dce' is already defined: "),
    ("def p(graph: Graph) -> bool: ...", 3, "the pass 'p' gave None: a pass returns True"),
    ("def p(graph: Graph) -> bool:\n    return 1 / 0 > 1", 4, "ZeroDivisionError: division by zero"),
    ("def p(graph: Graph) -> bool:\n    next(graph.walk()).kind = 'prim::If'\n    return True", 3, "'p' leaves a graph that is wrong"),
    ("def p(graph: Graph) -> bool:\n    next(graph.walk()).kind = None\n    return True", 3, r"the kind of a node is None; .*\[E0213\]"),
    ("def p(graph: Graph) -> bool:\n    next(graph.walk()).output.type = 'int'\n    return True", 3, "the type of %one is 'int'; expected"),
    ("def p(graph: Graph) -> bool:\n    next(graph.walk()).attributes = {'value': 3}\n    return True", 3, "'value' of a node is 3"),
    ("def p(graph: Graph) -> bool:\n    return graph.nodez", 4, r"mine.py:4:12: error: .*\n.*graph.nodez\n {11}\^~{10}\n"),
    ('@irtool.operator("aten::mine(Tensor x) -> Tensor")\ndef f(x): return x', 3, "'t::mine'|'my::mine' would be"),
    ('@irtool.operator("t::mine(Tensor x")\ndef f(x): return x', 3, "not an operator schema"),
    ('@irtool.operator("mine(Tensor x) -> Tensor")\ndef f(x): return x', 3, "'mine' is no name of an operator"),
    ('@irtool.operator("t::mine(Tensor(a!) x) -> Tensor(a!)")\ndef f(x): return x', 3, "writes into an argument"),
    ('@irtool.operator("t::mine(Tensor x, int n) -> Tensor")\ndef f(x): return x', 3, r"takes 2 arguments \(x, n\), and its function 1"),
    (OPERATOR + "@twice.gradient\ndef g(x: Tensor): return x", 5, "a gradient formula takes the arguments of the schema: 2 parameters"),
    (OPERATOR + "@twice.derivative\ndef g(grad, k): return grad * k, None", 5, "returns 2 gradients, expected those of x"),
    (OPERATOR + "@twice.derivative\ndef g(grad, k, n): return grad * k", 5, "its derivative reads grad, n, which are no arguments"),
    ('@irtool.operator("^Half(Tensor x) -> Tensor")\ndef half(x): return x\n@half.derivative\ndef g(grad): return grad', 5,
     "needs a whole formula"),
    (OPERATOR + '@irtool.operator("t::twice(Tensor x) -> Tensor")\ndef other(x): return x', 5, "operator 't::twice' is already defined"),
    (OPERATOR + 'twice.facts(pointwise="yes")', 3, "pointwise in one of these ways: keeps, bool, real, other"),
])
def test_what_is_wrong_is_said_at_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = written(tmp_path, text)
    passes = ["--passes=p"] if "def p(" in text else []
    code, _, err = irtool_("opt", "--load", path, *passes, str(PLUGIN.parent / "mlp.ir"))
    assert code == 1, err
    assert any(err.startswith(f"{path}:{each}:") for each in (line, line + 1)), err        # of a decorated function either line
    assert re.search(message, err), err


OF_EACH_OTHER = """
@irtool.operator("t::wave(Tensor x, float a=1.) -> Tensor")
def wave(x, a):
    return np.sin(a * x)

@irtool.operator("t::slope(Tensor grad, Tensor x, float a=1.) -> Tensor")
def slope(grad, x, a):
    return grad * a * np.cos(a * x)

@irtool.operator("^Wave(float a, Tensor x) -> Tensor")
def python_wave(a, x):
    return np.sin(a * x)

@wave.{how}

@slope.derivative
def slope_derivative(grad, x, a, grad_slope):
    return slope(grad_slope, x, a), -a * grad_slope * grad * a * wave(x, a)

@python_wave.gradient
def python_wave_gradient(a: float, x: Tensor):
    def backward(grad: Tensor):
        return None, torch.ops.t.slope(grad, x, a)
    return python_wave(a, x), backward

for each in (wave, slope, python_wave):
    each.facts(pointwise="keeps")
    each.sample(*{samples}[each.name])
"""


@pytest.mark.parametrize("how", [
    "derivative\ndef wave_derivative(grad, x, a):\n    return slope(grad, x, a)",
    "gradient\ndef wave_gradient(x: Tensor, a: float):\n    def backward(grad: Tensor):\n"
    "        return torch.ops.t.slope(grad, x, a), None\n    return wave(x, a), backward"])
def test_gradient_formulas_call_operators_of_users(tmp_path: Path, how: str) -> None:
    samples = '{"t::wave": (np.ones(3), 0.5), "t::slope": (np.ones(3), np.arange(3.0), 0.5), "^Wave": (0.5, np.ones(3))}'
    path = written(tmp_path, "import numpy as np\nfrom irtool import Tensor, torch\n" + OF_EACH_OTHER.format(how=how, samples=samples))
    code, out, err = irtool_("check-operator", path)
    assert (code, out.count("gradient right"), err) == (0, 3, ""), out + err
    graph = tmp_path / "wave.ir"
    graph.write_text("graph(%x : Float(3)):\n  %a : float = prim::Constant[value=2.]()\n  %y : Tensor = t::wave(%x, %a)\n"
                     "  %z : Tensor = ^Wave(2.)(%y)\n  return (%z)\n")
    code, out, err = irtool_("opt", "--load", path, "--passes=differentiate", str(graph))
    assert code == 0 and out.count("t::slope(") == 2, out + err


def test_a_derivative_is_enough_for_a_gradient(tmp_path: Path) -> None:
    """The formula is written from it: operands are summed to their shapes, results and facts are read, all layers have the gradient."""
    path = written(tmp_path, """
@irtool.operator("t::cube(Tensor x, Tensor y, float a=1.) -> Tensor")
def cube(x, y, a):
    return (a * x * x * y).astype(x.dtype)

@cube.derivative
def cube_derivative(grad, x, y, a):
    scaled = grad * a
    return scaled * 2 * x * y, scaled * x * x

@irtool.operator("t::expo(Tensor x) -> Tensor")
def expo(x):
    return np.exp(x)

@irtool.operator("t::total(Tensor x) -> Tensor")
def total(x):
    return x.sum()

expo.derivative(lambda grad, result: grad * result)
total.derivative(lambda grad, x_size: grad.expand(x_size))
for each in (cube, expo):
    each.facts(pointwise="keeps")
cube.sample(np.linspace(-2, 2, 6).reshape(2, 3), np.linspace(1, 2, 3), a=0.8)
expo.sample(np.linspace(-2, 2, 6))
total.sample(np.linspace(-2, 2, 6))
""")
    code, out, err = irtool_("check-operator", path)
    assert "cube: runs right, gradient right, batch right" in out and "expo: runs right, gradient right" in out, err + out
    assert "t::total: runs right, gradient right" in out


def test_nothing_outlives_a_command(tmp_path: Path) -> None:
    path = written(tmp_path, OPERATOR + "def gone(graph: Graph) -> bool: return False\n")
    assert irtool_("opt", "--load", path, "--passes=gone", str(GRAPH))[0] == 0
    code, _, err = irtool_("opt", "--passes=gone", str(GRAPH))
    assert code == 2 and "unknown pass 'gone'" in err
    assert "t::twice" not in OWN and "t::twice" not in irtool.OPS
    other = tmp_path / "other"
    other.mkdir()
    again = written(other, OPERATOR + "def gone(graph: Graph) -> bool: return False\n")     # the same names from another file
    assert irtool_("opt", "--load", again, "--passes=gone", str(GRAPH))[0] == 0


def test_a_reproducer_names_what_was_loaded_and_loads_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, "def p(graph: Graph) -> bool: return False\n")
    saved = tmp_path / "again.ir"
    assert irtool_("opt", "--load", path, "--passes=p", f"--write-reproducer={saved}", str(GRAPH))[0] == 0
    assert f"# made with --load {path}, which is needed again" in saved.read_text()
    assert irtool_("opt", "--run-reproducer", str(saved))[0] == 2
    assert irtool_("opt", "--run-reproducer", "--load", path, str(saved))[0] == 0
    saved.write_text(saved.read_text().replace("# irtool: opt", f"# irtool: opt --load {path}", 1))
    code, _, err = irtool_("opt", "--run-reproducer", str(saved))
    assert code == 2 and "a reproducer cannot set load" in err


def test_a_package_works_on_every_command(tmp_path: Path) -> None:
    """Installed as users install it, in a process of its own: a pass, an operator with gradient and batching, an expect suite."""
    pytest.importorskip("setuptools", minversion="77")
    pytest.importorskip("pip")
    shutil.copytree(PLUGIN, tmp_path / "source")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target",
                    str(tmp_path / "site"), str(tmp_path / "source")], check=True, timeout=300)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(PLUGIN.parents[1])])}

    def printed(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, cwd=tmp_path / "source",
                              timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    graph = str(GRAPH)
    assert "aten::neg" not in printed("-m", "irtool", "opt", "-q", "--passes=double-negations,dce", graph)
    assert "[0.6666667 1.6666666 4.       ]" in printed("-m", "irtool", "run", graph, "--input", "x=3xf32=1,2,4")
    assert "order 2: 4 of 4" in printed("-m", "irtool", "gradcheck", graph, "--input", "x=3xf32=1,2,4")
    assert "hard::swish" in printed("-m", "irtool", "vmap", graph, "--input", "x=2x3xf32=1")
    assert "hard::swish" in printed("-m", "irtool", "ops", "--family", "hard")
    assert "double-negations" in printed("-m", "irtool", "passes")
    assert "hard::swish: runs right, gradient right, batch right" in printed("-m", "irtool", "check-operator", "hard::swish")
    rules = tmp_path / "site" / "irtool_hard" / "rules.py"
    assert "aten::neg" not in printed("-m", "irtool", "opt", "-q", f"--passes=rewrite{{rules={rules}}}", graph)
    assert '"plugins": ["double-negations"], "operators": ["hard"]' in printed("-m", "irtool", "--version", "--json")
    assert "1 passed" in printed("-m", "pytest", "-q", "-p", "irtool.expect", "-p", "no:cacheprovider", "tests")
    assert printed("-c", f"import irtool, sys; m = irtool.parse(open({graph!r}).read()); print('irtool_hard' in sys.modules)") == "False\n"


def test_python_operators_have_gradients_and_scalars() -> None:
    from irtool.ir.extensions import taken_away

    text = "graph(%x : Float(2)):\n  %1 : Float(2) = ^ScaledBy(3.)(%x)\n  %2 : Float(2) = aten::mul(%1, %x)\n  return (%2)\n"
    module, x = irtool.parse(text), np.float32([1, 2])
    with taken_away():
        @irtool.operator("^ScaledBy(float k, Tensor x) -> Tensor")
        def scaled(k, x):       # type: ignore[no-untyped-def]
            return (k * x).astype(x.dtype)

        @scaled.gradient
        def scaled_gradient(k: float, x: Tensor):      # type: ignore[no-untyped-def]
            def backward(grad: Tensor):        # type: ignore[no-untyped-def]
                return None, grad * k

            return x * k, backward

        scaled.facts(pointwise="keeps")
        scaled.sample(2.0, np.linspace(-1, 1, 3))
        assert check_operator("^ScaledBy") == {"runs": [], "gradient": [], "batch": []}
        for _ in range(3):
            np.testing.assert_array_equal(irtool.run(module, [x])[0], [3, 12])
        np.testing.assert_array_equal(irtool.vjp(module, [x], [np.ones(2, np.float32)], [0])[0], [6, 12])
        pair = irtool.PassManager("differentiate{requires-grad=all}", verify=True).run(irtool.parse(text))
        assert "prim::GradOf[name=\"^ScaledBy\"]" in str(pair)
        batched = irtool.dispatch.vmap(lambda t: scaled(2.0, t))(irtool.Tensor(np.float32([[1, 2], [3, 4]])))
        np.testing.assert_array_equal(batched.numpy(), [[2, 4], [6, 8]])
        traced = str(irtool.trace(lambda t: scaled(2.0, t), [irtool.Tensor(x)]))
        np.testing.assert_array_equal(irtool.run(irtool.parse(traced), [x])[0], [2, 4])
    with pytest.raises(irtool.Error, match="no Python op registered as 'ScaledBy'"):
        irtool.run(irtool.parse(text), [x])


@pytest.mark.parametrize(("text", "check", "problem"), [
    ('@o.gradient\ndef g(x: Tensor):\n    def backward(grad: Tensor):\n        return grad * x\n    return x * x, backward\n',
     "gradient", "by differences"),
    ('@o.gradient\ndef g(x: Tensor):\n    def backward(grad: Tensor):\n        return grad\n    return x + 1., backward\n',
     "gradient", "the formula gives another result than the function"),
    ('@o.batching\ndef rule(batch, x): return batch.box(batch.same(batch.whole(x)) + 1)\n', "batch", "is not that of the slices"),
    ('o.facts(pointwise="keeps")\n', "", ""),
])
def test_check_operator_finds_what_is_wrong(tmp_path: Path, text: str, check: str, problem: str) -> None:
    path = written(tmp_path, '@irtool.operator("t::square(Tensor x) -> Tensor")\ndef o(x): return x * x\n'
                   'o.sample(np.linspace(-1, 2, 4))\n' + text)
    code, out, _ = irtool_("check-operator", path)
    assert code == bool(check)
    assert f"{check} wrong" in out and problem in out if check else "runs right, batch right" in out


def test_a_function_that_writes_into_its_argument_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, '@irtool.operator("t::plus(Tensor x) -> Tensor")\ndef o(x):\n    x += 1\n    return x\n'
                   'o.sample(np.ones(3))\n')
    code, out, _ = irtool_("check-operator", path)
    assert code == 1 and "it writes into an argument" in out


def test_a_pipeline_takes_functions() -> None:
    def renamed(graph: irtool.Graph) -> bool:
        """Give the first input another name."""
        graph.inputs[0].name = "first"
        return True

    module = irtool.parse(GRAPH.read_text())
    manager = irtool.PassManager(["dce", renamed, "canonicalize"])
    assert [step.name for step in manager.steps] == ["dce", "renamed", "canonicalize"]
    assert "%first" in str(irtool.PassManager([renamed]).run(module))
    with pytest.raises(irtool.Error, match="is no pass: its first parameter is annotated neither 'Graph' nor 'Module'"):
        irtool.PassManager([lambda graph: True])
