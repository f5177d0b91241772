"""Augmented assignments, conversions and calls of numbers, of which TorchScript makes something else than Python does."""
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor


# run: -7, 3, -7.5
# run: 7, -3, 7.5
def remainder_of_numbers(a: int, b: int, c: float):
    c %= b
    a %= b
    return a, c


# run: T(2, 3), I(3)
def remainder_of_tensors(x, y):
    held = x.clone()
    x = held
    x %= 0.25
    z = y - 2
    z %= -2
    return x, held, z


# run: I(4)
def tensors_that_are_not_written(x):
    x = x.clone()
    before = x
    x |= 8
    first = x
    x &= 11
    second = x
    x ^= 2
    third = x
    x **= 2
    fourth = x
    x <<= 1
    x >>= 2
    return before, first, second, third, fourth, x


# run: I(2, 2)
def parts_of_tensors(x):
    x = x.clone()
    x[0] |= 8
    x[1] -= 5
    x[1] %= 3
    x[:, 0] **= 2
    x[torch.tensor([0])] ^= 4
    return x


# run: I(2), 5.5
def items(x, n: float):
    tensors = [x, x + 1]
    held = tensors[1]
    tensors[1] |= 8
    tensors[1] += 1
    numbers: Dict[str, float] = {"a": n}
    numbers["a"] %= 2
    return tensors, held, numbers


class Holder:
    def __init__(self, tensor: Tensor, number: float):
        self.tensor = tensor
        self.number = number


# run: I(2), -5.5
def attributes(x, n: float):
    holder = Holder(x.clone(), n)
    held = holder.tensor
    holder.tensor |= 8
    holder.tensor %= 3
    holder.number %= 2
    return holder.tensor, held, holder.number


# run: (1, 2), (3,), [4]
def tuples_become_lists(x: Tuple[int, int], y: Tuple[int], z: List[int]):
    a = x
    x += y
    z += y
    a += z
    return x, z, a


def first_of(pair: Tuple[float, int]):
    return pair[0]


# run: D(), 3
def elements_become_numbers(x, n: int) -> Tuple[float, Tuple[float, int]]:
    pair = (x, n)
    return first_of(pair), pair


# run: (3, 4), (5, 2.5)
def filled_from_tuples(x: Tuple[int, int], y: Tuple[int, float]):
    counts: List[Optional[int]] = [i for i in x]
    again: List[Optional[int]] = list(x)
    return {i: i + 1 for i in x}, {str(i): 1 for i in y}, counts, again, 3 in x, True in x, 5 not in x, [float(i) for i in y]


# run: T(3), 2, 0.5
def functions_of_numbers_and_tensors(x, n: int, y: float):
    return torch.add(n, x), torch.sub(y, x), torch.mul(n, x), torch.div(y, x), torch.lt(y, x), torch.ge(n, x), torch.eq(1, x)


# run: T(2, 3), 2
def all_elements_by_dots(x: Tensor, n: int):
    y = x.clone()
    y[...] = n
    z = x.clone()
    z[...] += 1
    z[...] = z * n
    x[...] *= x
    return y, z, x


@torch.jit._overload
def parts(x: int, by: int = 3) -> int: ...


@torch.jit._overload
def parts(x: str) -> List[str]: ...


def parts(x, by: int = 3):
    return x * by if isinstance(x, int) else [x] * by


# run: 2, "a"
def overloads_that_omit_a_parameter(n: int, s: str):
    return parts(n), parts(n, 4), parts(s), parts(s, by=2)
