"""Texts whose meaning was changed at random (types, kinds, names, numbers, attributes), and that still verify: no pass leaves a graph that
does not, or raises one of Python's errors, unless the declared types are doubtful, which the command line says then."""
from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import irtool
from fuzz.mutations import MEANING
from irtool.ir.doubtful_types import doubtful
from irtool.passes import PASSES
from irtool.passmanager import violations

TEXTS = [text for path in sorted(Path(__file__).parent.glob("expect/**/*.ir"))
         for text in re.split(r"(?m)^# (?:-----?.*|====.*)$", path.read_text(encoding="utf-8")) if "graph(" in text]
NAMES = sorted(each.name for each in PASSES)


def changed(seed: int) -> str | None:
    """A text; None if it does not verify."""
    rng = random.Random(seed)
    text = rng.choice(TEXTS)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        text = rng.choice(MEANING)(rng, text, TEXTS)
    try:
        return None if violations(irtool.parse(text)) else text
    except irtool.Error:
        return None


@pytest.mark.parametrize("block", range(8))
def test_passes_of_changed_texts(block: int) -> None:
    """Every fourth pass alone, and pipelines of a few: of what the first of them makes, the next may make what does not verify."""
    texts = [text for seed in range(100 * block, 100 * block + 100) if (text := changed(seed)) is not None]
    assert len(texts) > 10
    for number, text in enumerate(texts):
        rng = random.Random(number)
        pipelines = [",".join(rng.sample([*NAMES, "O1"], rng.choice((2, 3)))) for _ in range(4)]
        for name in [*NAMES[number % 4::4], *pipelines]:
            try:
                irtool.PassManager(name, verify=True).run(irtool.parse(text))
            except Exception as error:
                is_refusal = isinstance(error, irtool.Error) and "after pass" not in str(error)
                assert is_refusal or doubtful(irtool.parse(text)), (name, error, text)


LYING = {
    "a bool for a list of ints": ("aten::conv1d", """graph(%x : Tensor, %w : Tensor, %no : int[], %n : int):
  %0 : bool = prim::Constant[value=0]()
  %1 : NoneType = prim::Constant()
  %2 : Tensor = aten::conv1d(%x, %w, %1, %no, %no, %0, %n)
  return (%2)
"""),
}


DOUBTFUL = {
    "%0 : float = prim::Undefined()": "prim::Undefined gives an undefined tensor, found %0 : float",
    "%0 : bool = prim::Undefined[value=0]()": "prim::Undefined gives an undefined tensor, found %0 : bool",
    "%0 : int = prim::Print(%x)": "prim::Print gives None, found %0 : int",
    "%0 : Scalar = prim::Constant()": "prim::Constant gives None, found %0 : Scalar",
    "%0 : bool = aten::copy_(%x, %x)": "aten::copy_ gives Tensor, found %0 : bool",
    "%0 : Tensor = aten::mul_(%n, %x)": "aten::mul_ takes Tensor, found %n : int",
}


@pytest.mark.parametrize("node", DOUBTFUL)
def test_what_is_doubtful(node: str) -> None:
    text = f"graph(%x : Tensor, %n : int):\n  {node}\n  %1 : Tensor = aten::mul(%x, %0)\n  return (%1)\n"
    assert [DOUBTFUL[node] in each.message for each in doubtful(irtool.parse(text))] == [True]


CARRIED = """graph(%n : int, %x : Tensor, %y : bool):
  %t : bool = prim::Constant[value=1]()
  %1 : Tensor, %2 : Tensor = prim::Loop(%n, %t, %x, %y)
    block0(%i : int, %b : Tensor, %c : Tensor):
      %3 : Tensor = aten::mul(%b, %c)
      -> (%t, %3, %c)
  return (%1, %2)
"""
CHOSEN = """graph(%c : bool, %x : Tensor, %y : float):
  %1 : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%y)
  return (%1)
"""


@pytest.mark.parametrize("text, message", [
    (CARRIED, "prim::Loop passes on %y : bool as %c : Tensor"),
    (CHOSEN, "prim::If passes on %y : float as %1 : Tensor")], ids=["Loop", "If"])
def test_numbers_passed_on_as_tensors_are_doubtful(text: str, message: str) -> None:
    """A pass that takes what is passed on for what it becomes (the carried bool that never changes) puts a number where a tensor was."""
    assert [each.message.partition(" [")[0] for each in doubtful(irtool.parse(text))] == [message]
    irtool.verify(irtool.parse(text))


@pytest.mark.parametrize("what", LYING)
def test_what_does_not_verify(what: str) -> None:
    message, text = LYING[what]
    with pytest.raises(irtool.VerifyError, match=message):
        irtool.verify(irtool.parse(text))


def test_results_of_what_gives_nothing_have_no_gradient() -> None:
    graph = irtool.parse("graph(%l : Tensor[], %n : int, %x : Tensor):\n  %1 : (Tensor) = aten::insert(%l, %n, %x)\n  return (%1)\n")
    with pytest.raises(irtool.PassError, match="aten::insert gives nothing"):
        irtool.PassManager("differentiate").run(graph)


@pytest.mark.parametrize("shape", ["", "3", "1, 1, 3"])
def test_batch_norm_stays_behind_weights_of_another_rank(shape: str) -> None:
    text = f"""graph(%x : Tensor, %no : int[], %one : int[]):
  %w : Float({shape}) = prim::Constant[value={{2}}]()
  %b : Float(1) = prim::Constant[value={{1}}]()
  %n : int = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=1.]()
  %false : bool = prim::Constant[value=0]()
  %y : Tensor = aten::conv1d(%x, %w, %b, %one, %no, %one, %n)
  %z : Tensor = aten::batch_norm(%y, %b, %b, %w, %w, %false, %eps, %eps, %false)
  return (%z)
"""
    module = irtool.PassManager("fold-batch-norm", verify=True).run(irtool.parse(text))
    assert "aten::batch_norm" in str(module)


@pytest.mark.parametrize("element, dtype", [
    ("300", "Byte"), ("-1", "Byte"), ("nan", "Long"), ("inf", "Long"), ("1.5", "Long"), ("1e30", "Long"), ("40000", "Short"), ("2", "Bool"),
    ("nan", "Bool")])
@pytest.mark.parametrize("interpret", [False, True])
def test_elements_are_of_the_dtype_that_the_text_says(element: str, dtype: str, interpret: bool) -> None:
    text = f"graph(%x : Tensor):\n  %1 : Tensor = prim::Constant[value= 1  {element} [ CPU{dtype}Type{{2}} ]]()\n  return (%1)\n"
    with pytest.raises(irtool.Error, match=f"of dtype .* has the element {element[:2]}"):
        irtool.run(irtool.parse(text), [1.0], interpret=interpret)


OPTIONAL = """graph(%s : Tensor, %n : int, %m : int?, %w : Tensor):
  %o : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %1 : bool = aten::__isnot__(%m, %o)
  %2 : int? = prim::If(%1)
    block0():
      %3 : int = aten::add(%n, %n)
      -> (%3)
    block1():
      -> (%o)
  %r : Tensor = aten::istft(%s, %n, %n, %n, %w, %f, %f, %f, %2, %f)
  return (%r)
"""


def test_an_optional_number_whose_branches_are_tensors_keeps_its_type() -> None:
    """As erase-number-types makes them. A tensor may stand for the number that `istft` takes, an optional one not."""
    made = irtool.PassManager("erase-number-types,propagate-shapes", verify=True).run(irtool.parse(OPTIONAL))
    assert "int? = prim::If" in str(made)
