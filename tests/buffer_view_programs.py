"""The programs of `buffer_programs` that write through views, change shapes in place, or keep tensors in Python's lists and dicts."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

VIEW_PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    VIEW_PROGRAMS[function.__name__] = function
    return function


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
