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

RECORDED = Path(__file__).parent / "data" / "buffer_programs.npz"
X = np.round(np.random.default_rng(11).standard_normal((3, 3)) * 0.8 + 0.2, 3)
V = np.round(np.random.default_rng(12).standard_normal((3, 3)), 3)
XS = np.stack([X, V, 0.5 * X + 1])
PROGRAMS: dict[str, Callable[..., Any]] = {}


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


# -- views
@program
def view_of_a_buffer(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 3)
    v = z.view(-1)
    v[:3] = x[0]
    v[4:7] += x[1] * v[:3]
    return z


@program
def view_sees_the_write(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 3)
    v = z[1]
    z += x
    v.mul_(2)
    z[1, 0] = x[2, 2]
    return v * z[1]


@program
def transpose_of_a_buffer(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 2)
    z.t()[0] = x[0]
    z.transpose(0, 1)[1].add_(x[1])
    return z


@program
def permuted_part(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 3, 2)
    z.permute(1, 2, 0)[0].copy_(x[:2, :2])
    z.select(1, 2).add_(x[1:, 1:])
    return z


@program
def unsqueezed_part(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3)
    z.unsqueeze(0)[0, 1:].copy_(x[0, :2])
    return z * x


@program
def narrow_of_a_value(torch: Any, x: Any) -> Any:
    z = x * 2
    z.narrow(1, 0, 2).mul_(x[:, 1:])
    return z


@program
def view_of_a_view(torch: Any, x: Any) -> Any:
    z = x.new_zeros(4, 3)
    z[1:][1:][0].copy_(x[0])
    z[1:].view(9)[6:].sub_(x[1])
    return z ** 2


@program
def reshape_of_a_buffer(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 6)
    z.reshape(4, 3)[1:3] = x[:2]
    return z


@program
def two_views_of_one(torch: Any, x: Any) -> Any:
    z = x * 1
    a, b = z[:2], z[1:]
    a.mul_(2)
    b.add_(a * 1)
    return z * a.sum()


@program
def flattened_value(torch: Any, x: Any) -> Any:
    z = x.sin()
    z.flatten()[::2].mul_(3)
    return z


@program
def squeezed_of_nothing(torch: Any, x: Any) -> Any:
    z = x * 1
    y = z.squeeze()
    y.unsqueeze_(0)
    y.mul_(2)
    return z + y[0]


@program
def expanded_is_read(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3)
    wide = z.expand(2, 3)
    z += x[0]
    return wide * x[:2]


@program
def split_is_read(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 3)
    a, b, c = z.unbind(0)
    z.copy_(x)
    return a * b + c


@program
def index_is_a_copy(torch: Any, x: Any) -> Any:
    z = x * 1
    part = z[torch.tensor([0, 1])]
    part.mul_(5)
    return z * part.sum()


# -- shapes changed in place
@program
def unsqueeze_of_a_value(torch: Any, x: Any) -> Any:
    return (x * 2).unsqueeze_(0).unsqueeze_(-1)


@program
def transposes_in_place(torch: Any, x: Any) -> Any:
    z = (x[:2] * 2).t_()
    z.transpose_(0, 1).mul_(x[:2])
    return z


@program
def squeeze_in_place(torch: Any, x: Any) -> Any:
    return (x[:1] * 3).squeeze_() * (x[1:2] * 1).squeeze_(0)


@program
def swaps_in_place(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 3)
    z.swapaxes_(0, 1)
    z[0] = x[0, :2]
    return z.swapdims_(0, 1)


@program
def turned_buffer_seen_by_a_view(torch: Any, x: Any) -> Any:
    z = x.new_zeros(2, 3)
    v = z[1]
    z.t_()
    z[:, 1] = x[0]
    v.mul_(2)
    return z


@program
def turned_view_writes_through(torch: Any, x: Any) -> Any:
    z = x * 1
    v = z[1:]
    v.unsqueeze_(0)
    v.mul_(x[1:])
    return z


# -- python around it
@program
def list_of_buffers(torch: Any, x: Any) -> Any:
    buffers = [x.new_zeros(3) for _ in range(3)]
    for i, buffer in enumerate(buffers):
        buffer += x[i]
        buffers[(i + 1) % 3].add_(buffer * buffer)
    return torch.stack(buffers)


@program
def dict_of_buffers(torch: Any, x: Any) -> Any:
    state = {"m": x.new_zeros(3), "v": x.new_zeros(3)}
    for row in x:
        state["m"].mul_(0.9).add_(row, alpha=0.1)
        state["v"].mul_(0.99).addcmul_(row, row, value=0.01)
    return state["m"] / (state["v"] + 0.1).sqrt()


@program
def carried_through_functions(torch: Any, x: Any) -> Any:
    def step(buffer: Any, i: int) -> Any:
        buffer[i] += x[i].sum() * buffer.sum()
        return buffer
    z = x.new_ones(3)
    for i in range(3):
        z = step(z, i)
    return z


@program
def swapped_in_a_loop(torch: Any, x: Any) -> Any:
    a, b = x.new_zeros(3), x.new_ones(3)
    for i in range(4):
        a += b * x[i % 3]
        a, b = b, a
    return a * b


@program
def decided_by_python(torch: Any, x: Any) -> Any:
    z = torch.empty_like(x)
    for i in range(3):
        if i % 2:
            z[i] = x[i] * 2
        else:
            z[i].copy_(x[i].exp())
    return z


@program
def clone_is_apart(torch: Any, x: Any) -> Any:
    z = x * 1
    before = z.clone()
    z.mul_(3)
    return z * before


@program
def detached_is_a_constant(torch: Any, x: Any) -> Any:
    z = x.new_zeros(3, 3)
    z += x.detach()
    return z * x


@program
def written_over(torch: Any, x: Any) -> Any:
    z = x ** 3
    z[0] = 1.0
    z[0] = x[1]
    z.copy_(x * z)
    return z


@program
def without_gradients(torch: Any, x: Any) -> Any:
    z = x * 2
    with torch.no_grad():
        z[0] = 7.0
        z.mul_(3)
    return z + x


@program
def through_the_data(torch: Any, x: Any) -> Any:
    z = x * 2
    z.detach().mul_(3)
    return z + x


@program
def buffer_of_float32(torch: Any, x: Any) -> Any:
    z = torch.zeros(3, 3, dtype=torch.float32)
    z += x.to(torch.float32)
    z[0] = x[1].to(torch.float32)
    return z.to(torch.float64) * x


@program
def whole_numbers_count(torch: Any, x: Any) -> Any:
    z = torch.zeros(3, dtype=torch.int64)
    z += torch.tensor([1, 2, 3])
    z[0] = 5
    return x * z


@program
def outer_product_by_hand(torch: Any, x: Any) -> Any:
    z = x.new_empty(3, 3)
    for i in range(3):
        z[i].copy_(x[0, i] * x[1])
    return z


@program
def householder(torch: Any, x: Any) -> Any:
    r = x.clone()
    for k in range(2):
        v = r[k:, k].clone()
        v[0] += v.norm()
        v /= v.norm()
        r[k:, k:] -= 2 * torch.outer(v, v @ r[k:, k:])
    return r


@program
def cholesky_by_hand(torch: Any, x: Any) -> Any:
    a = x @ x.t() + 3 * torch.eye(3, dtype=torch.float64)
    low = torch.zeros_like(a)
    for i in range(3):
        for j in range(i + 1):
            s = a[i, j] - (low[i, :j] * low[j, :j]).sum()
            low[i, j] = s.sqrt() if i == j else s / low[j, j]
    return low


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
