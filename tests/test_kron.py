"""The product of operands in different memory orders lies in memory as torch puts it."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ir.errors import RunError
from irtool.ir.shapes import pointwise_strides

KRON = "graph(%x : Tensor, %y : Tensor):\n  %z : Tensor = aten::kron(%x, %y)\n  return (%z)\n"


def test_the_first_operand_that_tells_two_dimensions_apart_decides() -> None:
    rows, columns = ((2, 3), (3, 1)), ((2, 3), (1, 2))
    assert pointwise_strides((2, 3), [rows, columns]) == (3, 1)
    assert pointwise_strides((2, 3), [columns, rows]) == (1, 2)
    assert pointwise_strides((2, 3), [((2, 3), (0, 1)), columns]) == (1, 2)     # what is repeated does not count


def test_kron_lies_in_memory_as_the_product_it_is() -> None:
    graph = irtool.parse(KRON).graph()
    column = np.ones((3, 2))
    with pytest.raises(RunError, match="view size is not compatible"):
        irtool.run(graph, [column.T, column])
    assert irtool.run(graph, [column.T.copy(), column])[0].strides == (6 * 8, 8)


@pytest.mark.oracle
def test_kron_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    graph = irtool.parse(KRON).graph()
    generator = np.random.default_rng(0)

    def drawn() -> Any:
        order = generator.permutation(int(generator.integers(0, 4)))
        array = torch.randn([int(generator.integers(0 if generator.random() < 0.1 else 1, 4)) for _ in order])
        array = array.permute(*np.argsort(order).tolist()) if len(order) else array
        if len(order) and 0 not in array.shape and generator.random() < 0.2:
            array = array.select(int(generator.integers(len(order))), 0)
        return array

    for _ in range(500):
        x, y = drawn(), drawn()
        try:
            expected = torch.kron(x, y)
        except RuntimeError as error:
            with pytest.raises(RunError, match=str(error)[:30]):
                irtool.run(graph, [x.numpy(), y.numpy()], interpret=True)
            continue
        (found,) = irtool.run(graph, [x.numpy(), y.numpy()], interpret=True)
        np.testing.assert_array_equal(found, expected.numpy())
        if found.size:
            places = [dim for dim, size in enumerate(found.shape) if size > 1]
            assert [found.strides[dim] // 4 for dim in places] == [expected.stride(dim) for dim in places]
