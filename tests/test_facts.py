"""Facts about operators (`irtool.ops.facts`): what kernels say, what samples show, and that aliases of one operator agree."""
from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.autodiff.captures import ANY_DTYPE
from irtool.autodiff.formula_graphs import has_gradient
from irtool.execute.plan.predicted_dtypes import predicted_dtypes
from irtool.interpret import Observer, run
from irtool.ir.effects import MUTATORS
from irtool.ir.graph import Node, Value
from irtool.ir.schema import declared_kinds, parse_schema, schema_named, schemas
from irtool.ir.types import DictType, ListType
from irtool.ops import OPS
from irtool.ops.call import call_op
from irtool.ops.facts import KEEPS, facts_of_overload
from irtool.ops.overload import Overload
from irtool.ops.samples.draw import Call
from irtool.passmanager import PassManager
from irtool.testing.formulas import call_graph
from tests.laws import family, over, overload_samples

ROOT = Path(__file__).parent.parent
ATEN = sorted(name for name in OPS if name.startswith("aten::"))


def test_the_files_are_what_kernels_say() -> None:
    spec = importlib.util.spec_from_file_location("facts_tool", ROOT / "tools" / "facts.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for file, text in tool.TABLES.items():
        assert (tool.FOLDER / file).read_text(encoding="utf-8") == text(), "python tools/facts.py"


def has_a_gradient(name: str) -> bool:
    schema = schema_named(name)
    return schema is not None and bool(has_gradient(schema))


def facts(name: str) -> tuple[object, ...]:
    found = facts_of_overload(name)
    return tuple(getattr(found, each) for each in type(found).__slots__)


def test_aliases_have_equal_facts() -> None:
    """Overloads of one stanza with the same parameters and results: `absolute` is `abs`, `swapdims` is `swapaxes`."""
    unequal = []
    for op in {id(OPS[name]): OPS[name] for name in ATEN}.values():
        by_signature: dict[str, list[str]] = {}
        for text, name in zip(op.schemas, op.names, strict=True):
            by_signature.setdefault(text.partition("(")[2], []).append(name)
        for names in by_signature.values():
            unequal += [(names[0], name) for name in names[1:] if facts(name) != facts(names[0])]
    assert not unequal


@over("name, call", [case for name in ATEN for case in overload_samples(name)
                     if facts_of_overload(name).is_pointwise or facts_of_overload(name).is_shape_like], family)
def test_samples_have_the_shape_and_dtype_that_facts_say(name: str, call: Call) -> None:
    known = facts_of_overload(name)
    arguments = call.arguments(next(text for text in OPS[name].schemas if text.startswith(name + "(")))
    result = call_op(name, list(arguments))
    first = result[0] if isinstance(result, tuple) else result
    arrays = [each for each in arguments if isinstance(each, np.ndarray)]
    expected = np.broadcast_shapes(*[each.shape for each in arrays]) if known.is_pointwise else arguments[0].shape
    assert np.shape(first) == expected
    if known.result == KEEPS and arguments[0].dtype.kind in "fc" and all(each.dtype.kind != "c" for each in arrays[1:]):
        assert first.dtype == arguments[0].dtype


class Dtypes(Observer):
    """The dtypes of the tensors of a run."""

    def __init__(self) -> None:
        self.dtypes: dict[Value, str] = {}

    def after(self, node: Node, results: Sequence[Any]) -> None:
        self.dtypes.update((value, each.dtype.name) for value, each in zip(node.outputs, results, strict=True)
                           if isinstance(each, np.ndarray))


@over("name, call", [case for name in ATEN for case in overload_samples(name) if has_a_gradient(name)], family)
def test_dtypes_are_predicted_without_a_run(name: str, call: Call) -> None:
    """What is predicted is what a run gives; not knowing is the exception."""
    text = next(text for text, each in zip(OPS[name].schemas, OPS[name].names, strict=True) if each == name)
    graph, inputs, _ = call_graph(parse_schema(text), call.arguments(text))
    watcher = Dtypes()
    run(graph, inputs, observer=watcher)
    predicted = predicted_dtypes(graph, inputs)
    for value, dtype in watcher.dtypes.items():
        uncertain = dtype.startswith("complex") or name == "aten::convolution_backward" or "stft" in name
        assert predicted.get(value, dtype) in ((dtype, ANY_DTYPE) if uncertain else (dtype,))


@pytest.mark.parametrize("line", ["aten::mul(%x, %y)", "aten::linalg_solve(%x, %y)", "aten::index_select(%x, %zero, %y)"])
def test_a_plan_is_made_without_a_run(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel sees the inputs, nor anything in their place that has elements, though dtypes mix."""
    graph = irtool.parse(f"""graph(%x : Tensor, %y : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %six : int = prim::Constant[value=6]()
  %0 : Tensor = {line}
  %1 : Tensor = aten::sum(%0, %six)
  %2 : Tensor = aten::mul(%1, %x)
  return (%2)
""").graph()
    seen = []
    called = Overload.__call__
    monkeypatch.setattr(Overload, "__call__", lambda self, args: seen.append(args) or called(self, args))
    y = np.zeros(2, np.int64) if "index" in line else np.eye(2)
    plan = irtool.compile(graph).plan_for(np.eye(2, dtype=np.float32), y, wrt=[0])
    assert plan.differentiables and not [args for args in seen if any(type(each) is np.ndarray for each in args)]


def test_every_kind_that_changes_a_list_is_known() -> None:
    declared = {kind for kind in declared_kinds() for schema in schemas(kind) for argument in schema.arguments
                if argument.alias is not None and argument.alias.is_write and not argument.alias.on_elements
                and isinstance(argument.type, ListType)}
    dicts = {kind for kind in declared_kinds() for schema in schemas(kind) for argument in schema.arguments
             if argument.alias is not None and argument.alias.is_write and isinstance(argument.type, DictType)}
    assert declared <= MUTATORS <= declared | dicts


@pytest.mark.parametrize(("one", "other"), [("swapaxes(%x, %a, %b)", "swapdims(%x, %a, %b)"), ("abs(%x)", "absolute(%x)"),
                                            ("acos(%x)", "arccos(%x)"), ("clamp(%x, %a, %b)", "clip(%x, %a, %b)"),
                                            ("gt(%x, %a)", "greater(%x, %a)"), ("div(%x, %x)", "divide(%x, %x)")])
def test_aliases_are_captured_alike(one: str, other: str) -> None:
    def captures(call: str) -> object:
        text = f"""graph(%x : Float(2, 3)):
  %a : int = prim::Constant[value=0]()
  %b : int = prim::Constant[value=1]()
  %y : Tensor = aten::exp(%x)
  %z : Tensor = aten::{call.replace('%x', '%y')}
  %w : Tensor = aten::mul(%z, %z)
  return (%w)
"""
        module = PassManager("differentiate{save=least}").run(irtool.parse(text))
        f = module.graphs[0]
        return len(f.outputs), len(module.graphs[1].inputs)

    assert captures(one) == captures(other)
