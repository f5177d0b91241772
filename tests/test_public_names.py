"""What is public: a list, reachable after `import irtool`, and documented."""
from __future__ import annotations

import builtins
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irtool
from irtool.ir.errors import RunError

PUBLIC = """
__version__ Error ParseError PassError PipelineError RunError UnsupportedError VerifyError
Block Builder Graph Module Node Use Value OPS PASSES PassManager Tensor parse verify
Executor clear_custom_passes compile custom_passes debug_state register_custom_pass register_python_op run vjp
custom_vjp dispatch grad grad_and_value gradcheck hessian jacfwd jacrev jit jvp linearize register_hook torch trace value_and_grad vmap
from_script to_script ScriptModule load freeze save functional_call operator
""".split()
"""Adding a name is a promise; taking one away breaks somebody's program."""
DISPATCH = """
Autograd Backend Batched Boxed DispatchError Hooks Layer Logger current grad grad_and_value hessian jacfwd jacrev jvp linearize
value_and_grad vjp vmap
""".split()
DOCS = Path(__file__).parents[1] / "docs"
API = "".join([(DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("api", "gradients", "transformations", "archives")])
MISSPELT = ("irtool.compil",)


def test_the_lists() -> None:
    assert sorted(irtool.__all__) == sorted(PUBLIC)
    assert sorted(irtool.dispatch.__all__) == sorted(DISPATCH)
    for name in PUBLIC:
        assert getattr(irtool, name) is not None
        assert name in dir(irtool)


def test_the_table_for_users_of_jax_names_what_exists() -> None:
    rows = [line.split(" | ") for line in (DOCS / "from-jax.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    names = re.findall(r"\b(?:irtool|torch)(?:\.\w+)+", " ".join(row[1] for row in rows))
    assert len(names) > 25
    for name in names:
        value = irtool if name.startswith("irtool") else irtool.torch
        for word in name.split(".")[1:]:
            value = getattr(value, word)


def test_every_name_is_documented() -> None:
    for name in set(PUBLIC) - {"__version__", "Block", "OPS", "Use"}:
        assert re.search(rf"\b{name}\b", API), f"docs/api.md does not speak of {name}"


def test_errors_are_also_what_the_table_says() -> None:
    """People catch `RuntimeError` around a program, as torch raises it."""
    rows = re.findall(r"(?m)^\| `([\w.]+)` \| .*?(?:\(also an? `(\w+)`\) )?\|$", API)
    also = {name: other for name, other in rows if other}
    assert (also["PipelineError"], also["RunError"]) == ("UnsupportedError", "RuntimeError")
    for name, other in also.items():
        error = irtool.dispatch.DispatchError if name.endswith("DispatchError") else getattr(irtool, name)
        assert issubclass(error, getattr(irtool, other, None) or getattr(builtins, other))
    with pytest.raises(RuntimeError, match="mat1 and mat2|cannot be multiplied"):
        irtool.torch.mm(np.ones((2, 3)), np.ones((2, 3)))


def test_names_of_the_documentation_are_there_after_one_import() -> None:
    words = sorted(set(re.findall(r"\birtool(?:\.[A-Za-z_]+)+", API)) - set(MISSPELT))
    words = [word for word in words if not word.startswith("irtool.ir.errors.")]     # how Python shows an exception
    code = "import irtool\n" + "".join(f"{word}\n" for word in words)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and len(words) > 20, done.stderr


def test_arguments_of_compile_are_documented() -> None:
    section = API[API.index("## irtool.compile"):API.index("## irtool.gradcheck")]
    for name in inspect.signature(irtool.compile).parameters:
        assert f"`{name}" in section or f"{name}=" in section or name == "graph", name


CHAIN = """graph(%x : Float(2), %y : Float(2)):
  %2 : Float(2) = aten::mul(%x, %y)
  %3 : Float(2) = aten::tanh(%2)
  %4 : Float(2) = aten::mul(%3, %y)
  return (%4)
"""


def test_thresholds_choose_groups() -> None:
    x, y = np.float32([0.5, 1.0]), np.float32([2.0, 3.0])
    wanted = irtool.vjp(irtool.parse(CHAIN), [x, y], [np.ones(2, np.float32)], [0, 1], interpret=True)
    for thresholds, count in (({}, 1), ({"autodiff_threshold": 2, "inline_threshold": 1}, 1), ({"autodiff_threshold": 4}, 0),
                              ({"inline_threshold": 9}, 0)):
        executor = irtool.compile(irtool.parse(CHAIN), **thresholds)
        found = executor.vjp([x, y], [np.ones(2, np.float32)], [0, 1])
        assert all(np.allclose(one, other) for one, other in zip(found, wanted, strict=True))
        (plan,) = irtool.debug_state(executor)["execution_plans"].values()
        assert plan["graph"].count("prim::DifferentiableGraph_") // 2 == count, thresholds
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(RunError, match="autodiff_threshold"):
            irtool.compile(irtool.parse(CHAIN), autodiff_threshold=wrong)    # type: ignore[arg-type]


def test_custom_passes_are_public() -> None:
    seen: list[int] = []
    try:
        @irtool.register_custom_pass
        def count(graph: irtool.Graph) -> bool:
            seen.append(len(list(graph.nodes)))
            return False

        assert irtool.custom_passes() == (count,)
        irtool.compile(irtool.parse(CHAIN))(np.float32([1, 2]), np.float32([1, 2]))
        assert seen
    finally:
        irtool.clear_custom_passes()
    assert irtool.custom_passes() == ()
