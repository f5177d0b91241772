"""`torch.svd_lowrank`, `torch.pca_lowrank` and `torch.unravel_index`: functions of torch that are no operators."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Any

from irtool.dispatch.torch.torch_functional import of_array
from irtool.ir.arguments import is_whole
from irtool.ir.errors import RunError
from irtool.ops.tensor import Tensor, call
from irtool.ops.tensor_facts import BY_NAME

BOOL = BY_NAME["bool"]


def do(name: str, *args: Any, **named: Any) -> Any:
    """Run an operator."""
    return call(f"aten::{name}", args, named)


def basis(a: Any, count: int, rounds: int, mean: Any) -> Any:
    """Orthonormal columns, `count` of them, that nearly span the range of `a - mean`: randomised subspace iteration."""
    def through(matrix: Any, of_mean: Any, columns: Any) -> Any:
        product = do("matmul", matrix, columns)
        return do("linalg_qr", product if of_mean is None else product - do("matmul", of_mean, columns))[0]
    columns = through(a, mean, do("randn", [a.shape[-1], count], dtype=a.dtype))
    for _ in range(rounds):
        columns = through(a.mH, None if mean is None else mean.mH, columns)
        columns = through(a, mean, columns)
    return columns


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple[Any, Any, Any]:
    """U, S and V for the q largest singular values of matrices `A - M`, as torch.svd_lowrank. The random start follows the seed."""
    A, count, rounds = of_array(A), 6 if q is None else q, 2 if niter is None else niter
    mean = None if M is None else do("broadcast_to", M, list(A.shape))
    is_wide = A.shape[-2] < A.shape[-1]
    if is_wide:
        A, mean = A.mH, None if mean is None else mean.mH
    columns = basis(A, count, rounds, mean)
    small = do("matmul", columns.mH, A)
    if mean is not None:
        small = small - do("matmul", columns.mH, mean)
    left, values, right = do("linalg_svd", small, False)
    left, right = do("matmul", columns, left), right.mH
    return (right, values, left) if is_wide else (left, values, right)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:
    """The same for matrices with the mean of each column subtracted (unless center is False). Raises RunError for q out of range."""
    A = of_array(A)
    least = min(A.shape[-2], A.shape[-1])
    count = min(6, least) if q is None else q
    if not 0 <= count <= least:
        raise RunError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise RunError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - do("mean", A, [-2], True) if center else A, count, niter)


def unravel_index(indices: Any, shape: int | Sequence[int]) -> tuple[Any, ...]:
    """The coordinates of flat indices, one tensor per dimension of `shape`. Raises RunError for indices that are no integers."""
    indices = indices if isinstance(indices, Tensor) else Tensor(indices)
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == BOOL:
        raise RunError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes: list[int] = [shape] if isinstance(shape, int) else list(shape)
    if not all(map(is_whole, sizes)):
        raise RunError(f"expected 'shape' to be int or sequence of ints, but got {shape!r}")
    if any(size < 0 for size in sizes):
        raise RunError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    indices = indices.to(BY_NAME["int64"])
    steps = list(accumulate(reversed([*sizes[1:], 1]), mul))[::-1] if sizes else []
    return tuple(do("remainder", do("floor_divide", indices, step), size) for step, size in zip(steps, sizes, strict=True))
