"""Rewrite rules: ours are right by value, wrong ones are refused, and what they make of random graphs computes the same."""
from __future__ import annotations

from pathlib import Path

import pytest

import irtool
from irtool.checking.validation import Validation
from irtool.ir.types import TensorType, parse_type
from irtool.torchscript.rewrite_rules import STANDARD, read_rules
from tests.random_graphs import Writer

RULES = read_rules(Path(STANDARD).read_text(encoding="utf-8"), STANDARD, False)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_our_rules_keep_values_dtypes_and_signs(rule: object) -> None:
    assert rule.problem() == ""     # type: ignore[attr-defined]


def refused(tmp_path: Path, body: str) -> str:
    """What is said of a rule."""
    path = tmp_path / "rules.py"
    path.write_text("from irtool import Tensor, torch\n\n\n" + body)
    with pytest.raises(irtool.Error) as caught:
        irtool.PassManager(f"rewrite{{rules={path}}}").run(irtool.parse("graph(%x : Tensor):\n  return (%x)\n"))
    return str(caught.value)


@pytest.mark.parametrize(("body", "message"), [
    ("def r(x: Tensor):\n    assert x.is_floating_point()\n    return x + 0, x\n", "gives -0.0 instead of 0.0"),
    ("def r(x: Tensor):\n    return x * 1, x\n", "gives bool[3, 3] instead of int64[3, 3]"),
    ("def r(x: Tensor, y: Tensor):\n    return torch.exp(x) * torch.exp(y), torch.exp(x + y)\n", "instead of nan"),
    ("def r(x: Tensor):\n    return x / x, torch.ones_like(x)\n", "instead of"),
    ("def r(x: Tensor):\n    return torch.abs(x), torch.sqrt(x * x)\n", "instead of"),
    ("def r(x: Tensor):\n    return torch.floor(x), torch.trunc(x)\n", "instead of"),
    ("def r(x: Tensor):\n    return x - x, torch.zeros_like(x)\n", "instead of nan"),
    ("def r(x: Tensor):\n    return torch.relu(x), x.double()\n", "float64[3, 3] instead of float32[3, 3]"),
    ("def r(x: Tensor):\n    return x.sum(), x.sum(0)\n", "instead of"),
    ("def r(x: Tensor):\n    return torch.relu(x)\n", "the rule 'r' returns no pair"),
    ("def r(x: Tensor):\n    return x, torch.relu(x)\n", "looks for no operator"),
    ("def r(x: Tensor):\n    return torch.rand_like(x), x\n", "rules are of operators without blocks, writes and chance"),
    ("def r(x: Tensor):\n    return x.add_(1), x\n", "rules are of operators without blocks, writes and chance"),
    ("def r(x: Tensor):\n    return torch.relu(x), other(x)\n", "undefined value other"),
    ("def r(x Tensor):\n", "rules.py:4:"),
])
def test_a_wrong_rule_is_refused(tmp_path: Path, body: str, message: str) -> None:
    assert message in refused(tmp_path, body)


def test_rules_that_come_to_no_end(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text("def r(x: Tensor, y: Tensor):\n    return torch.maximum(x, y), torch.maximum(y, x)\n")
    module = irtool.parse("graph(%x : Tensor, %y : Tensor):\n  %2 : Tensor = aten::maximum(%x, %y)\n"
                          "  return (%2)\n")
    with pytest.raises(irtool.Error, match="the rules r come to no end"):
        irtool.PassManager(f"rewrite{{unchecked rules={path}}}").run(module)
    with pytest.raises(irtool.Error, match="cannot be read"):
        irtool.PassManager("rewrite{rules=/no/such/file.py}").run(module)


@pytest.mark.parametrize("seed", range(40))
def test_rewritten_graphs_compute_the_same(seed: int) -> None:
    module = irtool.parse(Writer(seed).graph())
    for value in module.graph().values():
        if isinstance(value.type, TensorType) and value.type.dtype is None:
            value.type = parse_type("Float(*, *)") if value.node.kind != "aten::dim" else value.type
    checked = Validation()
    irtool.PassManager("rewrite,dce,rewrite", verify=True).run(module, checked)
    assert checked.comparisons or checked.not_run
