"""Classes whose instances a function makes: attributes, methods, properties, operators, `with`, instances in containers and in each other."""
from dataclasses import InitVar, dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor


class Pair:
    def __init__(self, first: Tensor, second):
        self.first = first
        self.second = second

    def swap(self):
        held = self.first
        self.first = self.second
        self.second = held

    def total(self, scale: float = 2.0) -> Tensor:
        return (self.first + self.second) * scale


class Counter:
    def __init__(self, start: int = 0):
        self.count = start
        self.items: List[int] = []

    def add(self, item: int):
        self.count += item
        self.items.append(item)

    def is_small(self) -> bool:
        return self.count < 5

    def grown(self):
        # type: () -> int
        for i in range(3):
            self.add(i)
            if self.count > 5:
                return -self.count
        return self.count


class Number:
    def __init__(self, value: int):
        self.value = value

    @staticmethod
    def doubled(value: int) -> int:
        return value * 2

    @property
    def half(self) -> float:
        return self.value / 2

    @half.setter
    def half(self, value: float):
        self.value = int(value * 2)

    def clone(self):
        return Number(self.value)

    def __call__(self, other: int) -> int:
        return self.value * 100 + other

    def __add__(self, other: int) -> int:
        return self.value + other

    def __sub__(self, other: "Number") -> int:
        return self.value - other.value

    def __neg__(self) -> int:
        return -self.value

    def __len__(self) -> int:
        return self.value

    def __getitem__(self, index: int) -> int:
        return self.value * index

    def __setitem__(self, index: int, value: int) -> None:
        self.value = index * value

    def __contains__(self, item: int) -> bool:
        return item == self.value

    def __bool__(self) -> bool:
        return self.value > 3

    def __eq__(self, other: "Number") -> bool:
        return self.value == other.value

    def __lt__(self, other: "Number") -> bool:
        return self.value < other.value


class Owner:
    def __init__(self, number: Number):
        self.number = number

    def value(self) -> int:
        return self.number.value


class Raised:
    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __enter__(self):
        self.tensor.add_(0.5)
        return self.tensor

    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.tensor.sub_(0.25)


@torch.jit.script
@dataclass
class Point:
    x: float
    y: float
    norm: float = 1.0

    def total(self) -> float:
        return self.x + self.y + self.norm


def read(number: Number) -> int:
    number.value += 3
    return number.value


# run: T(2)
def attributes_and_methods(x: Tensor):
    pair = Pair(x, x + 1)
    pair.swap()
    return pair.first - pair.second + pair.total() + pair.total(scale=0.5)


# run: 4
def attribute_changes_in_a_loop(n: int):
    counter = Counter()
    for i in range(n):
        counter.add(i)
    return counter.count, counter.items


# run: 0
# run: 4
def method_in_a_condition_and_early_return(n: int):
    counter = Counter(n)
    while counter.is_small():
        counter.add(2)
    return counter.grown(), Counter(start=1).grown(), counter.items


# run: 4
def operators(n: int):
    a = Number(n)
    b = Number(n + 1)
    a[2] = 5
    return a + 1, -a, a - b, len(a), a[3], 10 in a, 11 not in a, a == b, a < b, a(7), bool(b)


# run: 4
# run: 2
def truth(n: int):
    number = Number(n)
    return 1 if number else 0


# run: 3
def property_and_static_method(n: int):
    number = Number(n)
    number.half = number.half + 1.0
    return number.half, Number.doubled(n)


# run: 3
def identity(n: int):
    a = Number(n)
    b = a
    c = a.clone()
    b.value += 1
    c.value = 100
    return a.value, b.value, c.value, a is b, a is c, isinstance(a, Number), hasattr(a, "value"), hasattr(a, "other")


# run: 4
def instance_in_an_instance(n: int):
    owner = Owner(Number(n))
    owner.number.value += 2
    before = owner.number
    owner.number = Number(owner.number.value * 2)
    return owner.value(), before.value


# run: 3
def instances_in_containers(n: int):
    numbers = [Number(i) for i in range(n)]
    numbers.append(Number(100))
    by_name: Dict[str, Number] = {}
    by_name["x"] = numbers[1]
    by_name["x"].value += 10
    total = 0
    for each in numbers:
        total += each.value
    return total, by_name["x"].value


# run: 3
# run: -3
def optional_instance(n: int):
    number: Optional[Number] = None
    if n > 0:
        number = Number(n)
    if number is not None:
        return number.value
    return 0


# run: True
# run: False
def instance_of_a_branch(flag: bool):
    if flag:
        number = Number(1)
    else:
        number = Number(2)
    return number.value


# run: 3
def handed_to_a_function(n: int):
    number = Number(n)
    return read(number), number.value


# run: T(3)
def entered(x: Tensor):
    raised = Raised(x.clone())
    with raised as first, Raised(x.clone()) as second:
        y = first + second
    return y + raised.tensor


# run: T(3), 1
# run: T(3), 0
def left_early(x: Tensor, n: int):
    raised = Raised(x.clone())
    for i in range(3):
        with raised:
            if i == n:
                return raised.tensor.clone(), i
    return raised.tensor, -1


# run: 3.0
def data_class(x: float):
    a = Point(x, 2.0)
    return a.total(), a == Point(x, 2.0), a == Point(x, 2.0, norm=3.0)


class Ranked:
    def __init__(self, rank: int, name: str):
        self.rank = rank
        self.name = name

    def __lt__(self, other: "Ranked") -> bool:
        return self.rank < other.rank


# run: [3, 1, 2, 5, 0]
# run: [7]
# run: []
def sorted_instances(ranks: List[int]):
    every = [Ranked(rank, str(rank)) for rank in ranks]
    upwards = sorted(every)
    every.sort(reverse=True)
    downwards = [each.name for each in every]
    every.sort()
    return downwards, [each.rank for each in upwards], [each.rank for each in every]


# run: [3, 1, 2, 5, 0]
# run: [1, 1]
# run: []
def sorted_tuples_of_instances(ranks: List[int]):
    shared = Ranked(1, "shared")
    pairs = [(0.5 * (rank % 2), Ranked(rank, str(rank))) for rank in ranks]
    later = sorted(pairs)
    pairs.sort(reverse=True)
    nested = [((shared, -rank), "a") for rank in ranks]
    nested.sort()
    return [each[1].name for each in pairs], [each[1].rank for each in later], [each[0][1] for each in nested]


class Gathered:
    def __init__(self):
        self.values: Dict[str, List[torch.Tensor]] = {}
        self.calls: Tuple[int, str] = (0, "")

    def add(self, key: str, value: torch.Tensor) -> None:
        if key not in self.values:
            self.values[key] = []
        self.values[key].append(value)
        self.calls = (self.calls[0] + 1, key)


# run: T(2), 3
def attributes_that_hold_containers(x, n: int):
    gathered = Gathered()
    for i in range(n):
        gathered.add(str(i % 2), x * i)
    return gathered.values, gathered.calls


@torch.jit.script
@dataclass(order=True)
class Version:
    major: int
    part: float = 1.0
    build: Optional[int] = None
    weight: Optional[torch.Tensor] = None


# run: 1, 2
# run: 2, 2
# run: 3, 2
def data_classes_in_order(a: int, b: int):
    x, y, z = Version(a), Version(b, 1.0), Version(a, 2.0)
    return x < y, x <= y, x > y, x >= y, x == y, x == z, x < z, Version(a, 1.0, 3) == x, Version(a, 1.0, 3) < Version(a, 1.0, 4)


# run: 3
def data_classes_without_order(a: int):
    return Version(a, 1.0, 3) < Version(a, 1.0)


# run: T(2)
def data_classes_with_tensors(x):
    a = Version(1, weight=x[0])
    return a == Version(1, weight=x[0] + 1), a == Version(1, weight=x[0]), a == Version(1)


@torch.jit.interface
class Scales:
    def scale(self, x: torch.Tensor) -> torch.Tensor:
        pass


@torch.jit.script
class Doubled:
    def __init__(self):
        pass

    def scale(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@torch.jit.script
class Counting:
    def __init__(self, calls: int):
        self.calls = calls

    def scale(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + self.calls


@torch.jit.script
def as_scales(x: Scales) -> Scales:
    return x


@torch.jit.script
def scaled_twice(by: Scales, x: torch.Tensor) -> torch.Tensor:
    return by.scale(by.scale(x))


# run: T(2), True
# run: T(2), False
def interfaces_in_branches(x, c: bool):
    if c:
        by = as_scales(Doubled())
    else:
        by = as_scales(Counting(3))
    return by.scale(x), scaled_twice(by, x), as_scales(as_scales(by)).scale(x)


# run: T(2), 3
def interfaces_in_lists(x, n: int):
    every: List[Scales] = [Doubled(), Counting(n)]
    one: Scales = Doubled()
    for each in every:
        x = each.scale(x)
        one = each
    return one.scale(x)


@torch.jit.script
@dataclass(eq=False, repr=False, unsafe_hash=True)
class Bare:
    x: int


@torch.jit.script
@dataclass(order=True, slots=False)
class Made:
    x: int
    factor: InitVar[int]
    name: str = field(default="a", compare=False)
    offset: InitVar[int] = 4

    def __post_init__(self, factor: int, offset: int):
        self.x = self.x * factor + offset


@torch.jit.script
@dataclass
class FromHalf:
    x: int

    def __init__(self, half: int):
        self.x = half * 2


# run: 3
def options_of_data_classes(n: int):
    made = Made(n, 5)
    compared = made == Made(n, factor=5, name="b"), made < Made(n, 5, "c", 7), FromHalf(n) == FromHalf(3)
    return Bare(n).x, made.x, made.name, compared, FromHalf(n).x


class Shelf:
    """The methods that `del`, `round` and `with` call."""

    def __init__(self, held: List[int]):
        self.held = held
        self.depth = 0

    def __delitem__(self, place: int) -> None:
        del self.held[place]

    def __round__(self) -> int:
        return len(self.held) * 10

    def __enter__(self) -> int:
        self.depth += 1
        return self.depth

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.depth += 10


# run: 3
def methods_that_statements_call(n: int):
    shelf = Shelf([n, n + 1, n + 2])
    del shelf[1]
    with shelf as depth:
        rounded = round(shelf) + depth
    return shelf.held, rounded, shelf.depth


class Kept:
    __jit_unused_properties__ = ["unknown"]

    def __init__(self, number: int):
        self.number = number

    @property
    def unknown(self):
        return not_defined(self)        # noqa: F821

    @torch.jit._drop
    def walked(self) -> "Walk":         # noqa: F821
        return not_defined(self)        # noqa: F821

    @property
    def doubled(self) -> int:
        return self.number * 2


# run: 3
def members_that_are_not_compiled(n: int):
    return Kept(n).doubled
