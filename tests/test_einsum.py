"""einsum takes operands of several dtypes, and bools, where torch's contraction, pair by pair, has no product of matrices to do."""
from __future__ import annotations

import random

import numpy as np
import pytest
from side_by_side import complaint, numbers, ours, theirs

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")


@pytest.mark.parametrize(("equation", "operands", "dtype"), [
    ("ij,jk->ik", (("bool", 2, 1), ("bool", 1, 3)), "bool"),            # nothing to be summed: a product, element by element
    ("ij,jk->ik", (("bool", 2, 2), ("bool", 2, 3)), None),
    ("ij,jk->ik", (("float32", 2, 1), ("int64", 1, 3)), "float32"),
    ("ij,jk->ik", (("float32", 2, 2), ("int64", 2, 3)), None),
    ("ij,k->ik", (("uint8", 2, 2), ("uint8", 3)), "int64"),             # one operand alone has j: its sum is of int64
    ("ij,ki->ik", (("uint8", 2, 2), ("uint8", 3, 2)), "int64"),
    ("ij,ij->i", (("int32", 2, 2), ("int32", 2, 2)), "int32"),
    ("ij->i", (("bool", 2, 2),), "int64"),
    ("ii->i", (("bool", 2, 2),), "bool")])
def test_dtypes(equation, operands, dtype):
    arrays = [numbers(place, tuple(shape), kind) for place, (kind, *shape) in enumerate(operands)]
    result = ours("aten::einsum", [equation, arrays], {})
    if dtype is None:
        assert "error" in result[0]
    else:
        wide = [array.astype(np.float64) for array in arrays]
        assert result.dtype == dtype
        assert np.allclose(result, np.einsum(equation, *wide).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("equation", ["ii", "ii->i", "iij->j", "iij->ij", "...ii->...", "i...i->i...", "j,ii->j"])
def test_dimensions_of_one_letter_have_one_size(equation, dtype):
    """Not even 1 and another: NumPy's einsum reads beyond the memory of an operand (0, 1)."""
    for sizes in ((0, 1), (1, 0), (3, 1), (1, 3), (2, 3)):
        terms = equation.partition("->")[0].split(",")
        shapes = [(sizes[0], 2, sizes[1]) if "i.." in term else (2,) * ("..." in term) + sizes + (2,) * ("j" in term) if "i" in term
                  else (2,) for term in terms]
        result = ours("aten::einsum", [equation, [np.ones(shape, dtype) for shape in shapes]], {})
        assert f"is repeated for operand {len(terms) - 1} but the sizes don't match, {sizes[1]} != {sizes[0]}" in str(result)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_random_equations_side_by_side():
    for seed in range(1500):
        draw = random.Random(seed)
        sizes = {letter: draw.choice([1, 1, 2, 3]) for letter in "ijkl"}
        terms = ["".join(draw.choice("ijkl") for _ in range(draw.choice([0, 1, 2, 2, 3]))) for _ in range(draw.choice([1, 2, 2, 2, 3]))]
        every = sorted(set("".join(terms)))
        equation = ",".join(terms)
        if draw.random() < 0.8:
            equation += "->" + "".join(draw.sample(every, draw.randint(0, len(every))))
        base = draw.choice(DTYPES)
        operands = []
        for place, term in enumerate(terms):
            shape = tuple(sizes[letter] if draw.random() < 0.9 else 1 for letter in term)
            operands.append(np.asarray(numbers(seed + place, shape, base if draw.random() < 0.6 else draw.choice(DTYPES))))
        why = complaint(ours("aten::einsum", [equation, operands], {}), theirs("aten::einsum", [equation, operands], {}))
        assert why is None, f"{equation} of {[f'{x.dtype}{list(x.shape)}' for x in operands]}: {why}"
