"""`_single`, `_pair`, `_triple` and `_quadruple` of torch.nn.modules.utils in source: lists of numbers, as torch compiles them."""
from __future__ import annotations

import pytest

import irtool

HEAD = "from torch.nn.modules.utils import _single, _pair, _triple, _quadruple\nimport torch\n"
NUMBERS = {"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_as_often_as_the_list_needs_it(name: str) -> None:
    module = irtool.from_script(f"{HEAD}def f(n: int, r: float, l: List[int], t: Tuple[int, int]):\n"
                                f"    return {name}(n), {name}(r), {name}(l), {name}(t), torch.nn.modules.utils.{name}((n, 1, n))\n")
    size = NUMBERS[name]
    assert irtool.run(module, [3, 0.5, [1, 2], (4, 5)])[0] == ([3] * size, [0.5] * size, [1, 2], [4, 5], [3, 1, 3])


@pytest.mark.parametrize("arguments", ["'a'", "n, n", "torch.ones(2)", ""])
def test_others_are_refused_as_torch_refuses_them(arguments: str) -> None:
    with pytest.raises(irtool.Error, match="Arguments for call are not valid"):
        irtool.from_script(f"{HEAD}def f(n: int):\n    return _pair({arguments})\n")
