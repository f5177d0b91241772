"""Programs that write into tensors they make, into views of them and into values: written once, for torch and for `irtool.torch`.

Each takes (torch, x), x of shape (3, 3) in float64, and gives a tensor. `python tests/buffer_programs.py` (with torch) records what
torch.func makes of them in tests/data/buffer_programs.npz; what it refuses is not in the record.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from buffer_view_programs import VIEW_PROGRAMS

RECORDED = Path(__file__).parent / "data" / "buffer_programs.npz"
X = np.round(np.random.default_rng(11).standard_normal((3, 3)) * 0.8 + 0.2, 3)
V = np.round(np.random.default_rng(12).standard_normal((3, 3)), 3)
XS = np.stack([X, V, 0.5 * X + 1])
PROGRAMS: dict[str, Callable[..., Any]] = dict(VIEW_PROGRAMS)


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[function.__name__] = function
    return function


# -- filled
@program
def rows_of_zeros(torch: Any, x: Any) -> Any:
    z = torch.zeros(3, 3, dtype=torch.float64)
    for i in range(3):
        z[i] = x[i] ** 2
    return z


@program
def elements_of_new_zeros(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3)
    for i in range(3):
        z[i] = x[i, i].sin() * x[0, i]
    return z


@program
def empty_like_by_columns(torch: Any, x: Any) -> Any:
    z = torch.empty_like(x)
    for j in range(3):
        z[:, j] = x[:, 2 - j] * (j + 1)
    return z


@program
def fill_with_an_element(torch: Any, x: Any) -> Any:
    z = x.new_empty(2, 2)
    z.fill_(x[1, 2])
    z[0].fill_(2.5)
    return z * x[:2, :2]


@program
def copy_into_a_slice(torch: Any, x: Any) -> Any:
    z = x.new_ones(5, 3)
    z[1:4].copy_(x * 2)
    return z.cos()


@program
def copy_with_broadcast(torch: Any, x: Any) -> Any:
    z = x.new_zeros(4, 3)
    z.copy_(x[0])
    return z * z


@program
def steps_of_a_slice(torch: Any, x: Any) -> Any:
    z = x.new_zeros(6)
    z[::2] = x[0]
    z[1::2] = x[1].exp()
    return z


@program
def new_full_in_part(torch: Any, x: Any) -> Any:
    z = x.new_full((3, 3), 2.0)
    z[1:, 1:] = x[:2, :2]
    return z * x


@program
def triangle(torch: Any, x: Any) -> Any:
    z = torch.zeros_like(x)
    for i in range(3):
        for j in range(i + 1):
            z[i, j] = x[i, j] * x[j, i]
    return z @ x


@program
def diagonal_of_a_buffer(torch: Any, x: Any) -> Any:
    z = torch.zeros_like(x)
    z.diagonal().copy_(x[0])
    z.diagonal().mul_(x[1])
    return z + x


@program
def three_dimensions(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 3, 3)
    z[0] = x
    z[1, 1:] = x[:2] * 3
    z[:, 0, 0] = x[2, :2]
    return z.sum(0)


@program
def ellipsis_and_none(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 3)
    z[..., 1] = x[:2, 0]
    z[None, 0, 2:] = x[1, 1]
    return z


# -- accumulated
@program
def sum_in_place(torch: Any, x: Any) -> Any:
    z = torch.zeros_like(x)
    for _ in range(3):
        z += x * z.cos()
    return z


@program
def sum_of_rows(torch: Any, x: Any) -> Any:
    total = x.new_zeros(3)
    for row in x:
        total.add_(row * row, alpha=0.5)
    return total


@program
def product_in_place(torch: Any, x: Any) -> Any:
    z = torch.ones_like(x[0])
    for i in range(3):
        z *= x[i] + i
    return z


@program
def running_mean(torch: Any, x: Any) -> Any:
    mean = x.new_zeros(3)
    for i in range(3):
        mean.mul_(0.9).add_(x[i], alpha=0.1)
    return (x - mean) ** 2


@program
def scan_by_hand(torch: Any, x: Any) -> Any:
    z = x.new_zeros(4, 3)
    for i in range(3):
        z[i + 1] = z[i] * 0.5 + x[i]
    return z


@program
def elements_add_up(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3)
    for i in range(3):
        for j in range(3):
            z[i] += x[i, j] * x[j, i]
    return z


@program
def addcmul_in_place(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 3)
    z.addcmul_(x, x.t(), value=2)
    z.addcdiv_(x, x * x + 1)
    return z


@program
def sub_and_div_in_place(torch: Any, x: Any) -> Any:
    z = x.new_ones(3, 3)
    z -= x
    z /= x * x + 1
    return z


@program
def power_and_functions_in_place(torch: Any, x: Any) -> Any:
    z = x * 1
    z.exp_().add_(1).log_().pow_(2)
    return z


@program
def activations_in_place(torch: Any, x: Any) -> Any:
    z = (x * 2).tanh_()
    z.sigmoid_()
    y = (x + 0.1).relu_()
    return z + y


@program
def clamp_in_place(torch: Any, x: Any) -> Any:
    return (x * 1).clamp_(-0.3, 0.6) * x


@program
def lerp_in_place(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 3)
    z.lerp_(x, 0.3)
    return z * z


@program
def matrix_products_in_place(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 3)
    z.addmm_(x, x.t())
    return z.sin()


@program
def running_sum_in_place(torch: Any, x: Any) -> Any:
    z = x * 1
    z.cumsum_(0)
    return z * x


# -- scattered
@program
def index_put_of_places(torch: Any, x: Any) -> Any:
    z = x.new_zeros(4)
    z[torch.tensor([3, 0, 1])] = x[0] * x[1]
    return z


@program
def index_put_that_adds(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2)
    z.index_put_((torch.tensor([0, 1, 0]),), x[2] * 3, accumulate=True)
    return z * z


@program
def pairs_of_places(torch: Any, x: Any) -> Any:
    z = torch.zeros_like(x)
    z[torch.tensor([0, 1]), torch.tensor([2, 0])] = x[1, :2] ** 2
    return z + x


@program
def index_add_of_rows(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 3)
    z.index_add_(0, torch.tensor([0, 1, 0]), x)
    return z ** 3


@program
def index_copy_of_columns(torch: Any, x: Any) -> Any:
    z = x.new_ones(3, 4)
    z.index_copy_(1, torch.tensor([0, 3]), x[:, :2] * 2)
    return z * z


@program
def index_fill_of_rows(torch: Any, x: Any) -> Any:
    z = x * 2
    z.index_fill_(0, torch.tensor([1]), 0.5)
    return z * x


@program
def scatter_of_values(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 4)
    z.scatter_(1, torch.tensor([[0, 3], [2, 1], [1, 0]]), x[:, :2])
    return z.exp()


@program
def scatter_that_adds(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 3)
    z.scatter_add_(0, torch.tensor([[0, 1, 0], [1, 1, 0], [0, 0, 0]]), x)
    return z * z


@program
def masked_fill_by_values(torch: Any, x: Any) -> Any:
    z = x * 3
    z.masked_fill_(x > 0.2, 0.0)
    return z * x


@program
def where_in_place(torch: Any, x: Any) -> Any:
    z = x * 1
    z.copy_(torch.where(z > 0, z * 2, z * 3))
    return z


@program
def fill_diagonal(torch: Any, x: Any) -> Any:
    z = x * 2
    z.fill_diagonal_(1.5)
    return z * x


@program
def zero_of_a_row(torch: Any, x: Any) -> Any:
    z = x ** 2
    z[1].zero_()
    return z


@program
def mask_of_constants(torch: Any, x: Any) -> Any:
    m = torch.zeros(3, dtype=torch.float64)
    m[0] = 1.0
    m[2:] += 2
    return x * m


# -- transformations
def scalar(torch: Any, f: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: (f(torch, x) ** 2).sum()


WAYS: dict[str, Callable[..., Any]] = {
    "value": lambda t, torch, f, T: f(torch, T(X)),
    "grad": lambda t, torch, f, T: t.grad(scalar(torch, f))(T(X)),
    "vmap": lambda t, torch, f, T: t.vmap(lambda x: f(torch, x))(T(XS)),
    "vmap of grad": lambda t, torch, f, T: t.vmap(t.grad(scalar(torch, f)))(T(XS)),
    "grad of vmap": lambda t, torch, f, T: t.grad(lambda xs: t.vmap(scalar(torch, f))(xs).sum())(T(XS)),
    "jvp": lambda t, torch, f, T: t.jvp(lambda x: f(torch, x), (T(X),), (T(V),))[1],
    "jacrev": lambda t, torch, f, T: t.jacrev(lambda x: f(torch, x))(T(X)),
    "jacfwd": lambda t, torch, f, T: t.jacfwd(lambda x: f(torch, x))(T(X)),
    "hessian": lambda t, torch, f, T: t.hessian(scalar(torch, f))(T(X)),
}
"""By name: what is done with a program, in (transformations, torch, program, what makes a tensor of an array)."""


def of_torch() -> dict[str, Any]:
    """What torch.func makes of the programs, by "program way"; nothing for what it refuses."""
    import torch
    from torch import func

    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, f in PROGRAMS.items():
            for way, run in WAYS.items():
                try:
                    found[f"{name} {way}"] = run(func, torch, f, lambda array: torch.tensor(array)).detach().numpy()
                except RuntimeError as error:
                    print(f"{name} {way}: torch refuses: {str(error)[:90]}")
    return found


if __name__ == "__main__":
    np.savez_compressed(RECORDED, **{key: np.round(value, 12) for key, value in of_torch().items()})
