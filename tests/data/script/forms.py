"""Forms of the language that need more than the operators: classes that are types, unions, forks, containers made of others, type comments."""
import cmath
import math
import warnings
from collections import OrderedDict, namedtuple
from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor


class Shade(Enum):
    DARK = 3
    LIGHT = 8


class Unit(Enum):
    METRE = "m"
    SECOND = "s"


class Reading(NamedTuple):
    value: Tensor
    weight: float
    label: str = "none"


class Odd(Exception):
    pass


Pair = namedtuple("Pair", ["first", "second"])
Sizes = List[int]
night = Shade.DARK


# run: 1
# run: 8
def shade_of(number: int):
    found = Shade.DARK
    for each in Shade:
        if each.value == number:
            found = each
    return found.name, found.value, found == Shade.LIGHT, found == night


# run: True
# run: False
def unit_of(length: bool):
    unit = Unit.METRE if length else Unit.SECOND
    table = {"a": unit, "b": Unit.SECOND}
    return table["a"].value + table["b"].name


# run: T(2), 0.5
def weighted(x, weight: float):
    one = Reading(x, weight)
    other = Reading(weight=2.0, value=x + 1, label="other")
    value, factor, label = other
    return one.value * one.weight + value * factor, one.label + label, len(one), other[1]


# run: T(2), T(2)
def swapped(x, y):
    pair = Pair(x, second=y)
    return Pair(pair.second, pair.first).first - pair.first


# run: 3
def in_list(n: int):
    held: List[Reading] = [Reading(torch.ones(2) * i, float(i)) for i in range(n)]
    total = 0.0
    for each in held:
        total += each.weight * float(each.value.sum())
    return total


# run: 4
# run: "four"
# run: [1, 2]
def measured(x: Union[int, str, Sizes]):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    else:
        return sum(x)


# run: {"a": 1}
# run: ["p", "q"]
# run: 2.5
def described(x: Any):
    if torch.jit.isinstance(x, Dict[str, int]):
        return "dict of " + str(len(x))
    if torch.jit.isinstance(x, List[str]):
        return "words " + ",".join(x)
    if isinstance(x, (int, float)):
        return "number"
    return "other"


# run: 3, "a"
# run: "b", 4
def either(x: Union[int, str], y: Union[int, str]):
    if isinstance(x, int) and isinstance(y, str):
        return x + len(y)
    if not isinstance(x, int):
        return len(x)
    return -1


# run: None
# run: 7
# run: "seven"
def optional_union(x: Optional[Union[int, str]]):
    if x is None:
        return "nothing"
    return "number" if isinstance(x, int) else x


# run: 5
# run: "s"
def asserted(x: Union[int, str]):
    assert isinstance(x, str), "no string"
    return x + "!"


# run: T(2)
def kept_in_union(x):
    held: Union[List[Tensor], int] = []
    table: Dict[str, Union[int, Tensor]] = {"n": 3}
    table["x"] = x
    if torch.jit.isinstance(held, List[Tensor]):
        held.append(x)
        return len(held) + len(table)
    return 0


# run: I()
# run: D()
def number_inside(x):
    number = x.item()
    if isinstance(number, int):
        return number + 3
    return 8


# run: T(2, 2)
def forked(x):
    first = torch.jit.fork(twice, x, by=3)
    second = torch.jit._fork(torch.neg, x)
    return torch.jit.wait(first) + torch.jit._wait(second), first.wait()


def twice(x, by: int = 2):
    return x * by


# run: 4
def many_forks(n: int):
    waiting: List[torch.jit.Future[int]] = []
    for i in range(n):
        waiting.append(torch.jit.fork(squared, i))
    total = 0
    for each in waiting:
        total += torch.jit.wait(each)
    return total


def squared(n: int) -> int:
    return n * n


# run: 3
def dicts(n: int):
    first = dict(a=1, b=n)
    second = dict([("x", 1), ("y", n)])
    third = dict(zip(["p", "q"], [1, 2]))
    fourth = OrderedDict([(1, 2), (n, 4), (1, 5)])
    fifth = dict(first, c=9)
    sixth: Dict[str, int] = dict()
    sixth["k"] = n
    return first, second, third, fourth, fifth, sixth, dict({"m": n}, o=0)


# run: 3
def lists(n: int):
    return list(range(n)), list("abc"), list((1, 2)), list(i * i for i in range(n)), sum(i for i in range(n)), any(i > 1 for i in range(n))


# run: I(6), [5, 6, 7, 8], "letters"
def slices(x, items: List[int], word: str):
    part = slice(1, 3)
    return x[part], items[part], word[part], x[slice(4)], items[slice(None, None, 2)], x.view(2, 3)[slice(None), part]


# run: T(3, 3)
def sliced_writes(x):
    rows = slice(0, 2)
    x[rows] = 0.5
    x[rows, 1] += 2
    return x


# run: T(1)
def empty_sizes(x):
    return x.view(()), x.reshape([]), torch.zeros([]), x.sum(()), x.sum([]), torch.ones(()), x.new_full([], 2.0)


# run: 2
def empty_arguments(n: int):
    return longer([], n), longer([4], n)


def longer(items: List[int], n: int):
    items.append(n)
    return items


# run: 4
def comment_without_result(n):
    # type: (int)
    return n + 1


# run: 4, T(2)
def comments_by_line(n,  # type: int
                     x,  # type: Tensor
                     ):
    # type: (...) -> Tensor
    return x * n


# run: T(3), T(3)
def receiver_elsewhere(x, y):
    return x.where(x > 0.0, y), torch.add(input=x, other=y, alpha=2), torch.ceil(input=x)


# run: T(1, 2, 4)
def pools(x):
    values, places = F.max_pool1d(x, 2, return_indices=True)
    return F.max_pool1d(x, 2, 2, 0, 1, False, False), values, places, F.adaptive_max_pool1d(x, 2), F.adaptive_avg_pool1d(x, 1)


# run: T(2, 3), T(3, 2)
def contracted(x, y):
    return torch.tensordot(x, y, dims=1), torch.tensordot(x, y, dims=([0, 1], [1, 0])), torch.tensordot(x, y, [[1], [0]])


# run: T(2, 3)
def norms(x):
    return torch.norm(x), torch.norm(x, 1), torch.norm(x, dim=1), torch.norm(x, "fro", [0, 1]), torch.norm(x, p=2, dim=0, keepdim=True)


# run: I(6)
def uniques(x):
    found, inverse = torch.unique(x, return_inverse=True)
    return found, inverse, torch.unique(x), torch.unique(x, return_counts=True)[1], torch.unique_consecutive(x)


# run: T(2)
def conversions(x):
    return x.type(torch.float64), torch.LongTensor([1, 2]), torch.FloatTensor(2, 3).shape, torch.DoubleTensor()


# run: 2
# run: -1
def checked(n: int):
    torch._check(n > 0, "n is not positive")
    torch._check(cond=n < 100)
    return n


# run: 1
# run: 0
def own_exception(n: int):
    if n > 0:
        raise Odd("odd")
    return n


# run: (1, 2)
def warned(pair: Tuple[int, int]):
    warnings.warn("once")
    return pair[0]


# run: T(2)
def profiled(x):
    with torch.autograd.profiler.record_function("part"):
        y = x + 1
    with torch.no_grad():
        return y * 2


# run: 0.0, 0.0
# run: 1.0, 0.0
# run: 0.0, -1.0
# run: -2.0, 0.5
def complex_functions(a: float, b: float):
    z = complex(a, b)
    return (cmath.log(z), cmath.log10(z), cmath.atan(z), cmath.atanh(z), cmath.sqrt(z), cmath.acosh(z), cmath.phase(z), cmath.rect(a, b),
            cmath.infj, cmath.isnan(z), cmath.exp(z * 800.0))


# run: 7, 2
def remainders(a: int, b: int):
    return math.remainder(a, b), math.fmod(a, b), bool("a"), bool([a]), bool({1: b})


# run: T(2)
def parameters(x: torch.nn.Parameter):
    return x + 1


# run: T(3), False
def not_run(x, flag: bool = False):
    if torch.jit.is_scripting():
        return x
    return only_python(x)


@torch.jit.unused
def only_python(x):
    return x * 2


# run: T(3)
def properties(x):
    return x.is_leaf, x.retains_grad, x.is_mtia, x.ndim, x.itemsize, x.get_device()


# run: T(3), 2
def type_comment_behind_a_docstring(x, n):
    """What it does."""
    # type: (Tensor, int) -> Tensor
    return x * n


# run: T(3), [1, 2]
def type_comments_of_parameters(
    x,  # type: Tensor
    sizes,  # type: List[int]
):
    # comments stand where they like
    # type: (...) -> Tensor
    total = 0  # type: ignore
    for size in sizes:
        total += size
    return x * total


# run: None
# run: 3
def union_result(x: Optional[int]) -> Union[int, str]:
    if x is None:
        return "none"
    return x


# run: 3
# run: -3
# run: 0
def union_result_of_three(n: int) -> Union[int, float, str]:
    for i in range(2):
        if n > 0:
            return n
        elif n < 0:
            return 0.5
    return "zero"


# run: T(2)
def awaitables(x):
    waiting = torch.jit._awaitable(two, x, 3)
    there: torch._awaits._Await[torch.Tensor] = torch.jit._awaitable_nowait(x)
    y, n = torch.jit._awaitable_wait(waiting)
    return y * n + torch.jit._awaitable_wait(there)


def two(x: torch.Tensor, n: int) -> Tuple[torch.Tensor, int]:
    return x + n, n


@torch.jit._overload
def overloaded(x: int, by: int = 2) -> int: ...


@torch.jit._overload
def overloaded(x: torch.Tensor, by: int = 2) -> torch.Tensor: ...


def overloaded(x, by: int = 2):
    return x * by


# run: T(2)
def overloads(x):
    return overloaded(x), overloaded(3, 5)


# run: "hello world", -3, 1.5
# run: "", 0, 0.0
# run: "12345678", 7, -0.1
def hashes(text: str, n: int, x: float):
    return hash(text), hash(n), hash(x)


# run: (1, "a"), (-2, (1.5, None))
# run: (0, ""), (7, (0.0, True))
def hashes_of_tuples(a: Tuple[int, str], b: Tuple[int, Tuple[float, Optional[bool]]]):
    return hash(a), hash(b), hash((1, 2, 3)), hash((5,)), hash(a) == hash((a[0], a[1])), hash((1, 2)) == hash((2, 1))


# run:
def generators():
    generator = torch.Generator()
    generator.manual_seed(3)
    torch.manual_seed(4)
    return torch.rand(2, generator=generator).shape


@torch.jit.ignore(drop=True)
def dropped(x):
    return only_python(x)


# run: T(2), False
def call_of_what_is_dropped(x, flag: bool = False):
    if flag:
        return dropped(x)
    return x


# run: True
def identity_of_members(flag: bool):
    color = Shade.DARK if flag else Shade.LIGHT
    return color is Shade.DARK, color is color, color == Shade.DARK, str(color)


# run: (1, "a")
# run: (1, 2)
# run: ("a", (1, [2]))
def instances_of_tuples(x: Any):
    if torch.jit.isinstance(x, Tuple[int, str]):
        return x[0]
    elif torch.jit.isinstance(x, Tuple[str, Tuple[int, List[int]]]):
        return x[1][1][0] + 10
    return 4


# run: (1, 2.0)
def tuples_side_by_side(t: Tuple[int, float]):
    total = 0.0
    for i, value in enumerate(t):
        total += value * i
    for number, factor in zip(t, (total, 0.5)):
        total += number * factor
    return total


# run: T(2), T(2), 3
def greatest_of_tensors(x, y, n: int):
    a = (x * 0 + 2).long()
    return max(a[0], n), min(a[0], a[1]), max(x[0], 2.5), max(a[0], a[1], a[0])


# run: T(2)
def greatest_of_fractions(x):
    return max(x[0], x[1])


# run: None
# run: 3
def never_none(x: Any):
    return x is None, x is not None


# run: T(2)
def contexts_with_names(x):
    with torch.autograd.profiler.record_function("part") as part:
        y = x + 1
    with torch.no_grad() as nothing:
        y = y * 2
    return y


# run: I(2)
# run: T(2)
def listed_exactly(x):
    numbers: List[int] = x.int().tolist()
    return numbers


# run: T(2, 2), "ab"
def tensors_as_text(x, word: str):
    return f"{x} {word}", "%s" % x[0], str([x[0, 0]])


# run:
def constant_tuples():
    return "日本", ("é", 1), 2.5, None
