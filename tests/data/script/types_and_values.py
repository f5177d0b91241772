from typing import Any, Dict, List, Optional, Tuple, Union

import math

import torch
from torch import Tensor


# run: T(2), None
# run: T(2), T(2)
def optional_refinement(x: Tensor, y: Optional[Tensor]):
    if y is None:
        z = x
    else:
        z = x + y
    return z


# run: None
# run: 3
def optional_early_return(n: Optional[int]) -> int:
    if n is None:
        return -1
    return n + 1


# run: 3
def optional_assert(n: Optional[int]):
    assert n is not None
    return n * 2


# run: None, 4
# run: 2, 4
def optional_and(a: Optional[int], b: int):
    if a is not None and a < b:
        return a
    return b


# run: None
# run: 5
def optional_or(a: Optional[int]):
    if a is None or a < 3:
        return 0
    return a


# run: None
# run: [1, 2]
def optional_list(values: Optional[List[int]] = None):
    total = 0
    if values is not None:
        for v in values:
            total += v
    return total


# run: None
# run: 2.5
def optional_ternary(p: Optional[float]):
    q = 1.0 if p is None else p * 2
    return q


# run: 3
def optional_local(n: int):
    best: Optional[int] = None
    for i in range(n):
        if best is None:
            best = i
        elif i > best:
            best = i
    return best


# run: 2
def annotated_none(n: int) -> Optional[int]:
    if n > 1:
        return None
    return n


# run: 7, 2
# run: -7, 2
def int_arithmetic(a: int, b: int):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** b, -a


# run: 7.5, 2.0
def float_arithmetic(a: float, b: float):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** b, -a


# run: 3, 2.5
def mixed_arithmetic(n: int, f: float):
    return n + f, f - n, n * f, n / f, f ** n, n < f, n == f, n != f


# run: 12, 10
def bit_operations(a: int, b: int):
    return a & b, a | b, a ^ b, a << 2, a >> 1


# run: True, False
def bool_operations(a: bool, b: bool):
    return a & b, a | b, a ^ b, a == b, int(a), float(b)


# run: 3.7, "12", True
def casts(f: float, s: str, b: bool):
    return int(f), float(s), int(s), str(f), bool(f), int(b), float(int(f))


# run: 3
def aug_assign_numbers(n: int):
    a = n
    a += 2
    a -= 1
    a *= 5
    b = n
    b |= 8
    b ^= 3
    b <<= 2
    f = 1.0
    f /= 4
    f **= 2
    return a, b, f


# run: 2.0
def math_functions(x: float):
    return (math.sqrt(x), math.exp(x), math.log(x), math.sin(x), math.cos(x), math.atan2(x, 1.0), math.floor(x + 0.5),
            math.ceil(x + 0.5), math.pow(x, 3), math.fabs(-x), math.pi, math.isnan(x), math.gcd(12, 18))


# run: 5, -3
def builtin_numbers(a: int, b: int):
    return abs(b), min(a, b), max(a, b), round(2.6), divmod(a, 2), pow(a, 2)


# run: [4, 2, 9]
def builtin_lists(values: List[int]):
    return len(values), sum(values), min(values), max(values), sorted(values), any([v > 3 for v in values]), all([v > 3 for v in values])


# run: "abc", 65
def builtin_strings(s: str, n: int):
    return ord(s[0]), chr(n), hex(n), oct(n), bin(n), len(s)


# run: 2
def tuples(n: int):
    t = (n, 2.5, "s")
    a, b, c = t
    u = t[1:]
    return t[0], t[-1], u, a, b, c, len(t)


# run: 1
def nested_unpacking(n: int):
    (a, b), c = (n, n + 1), n + 2
    x = y = a + b
    return a, b, c, x, y


# run: 1
def starred_unpacking(n: int):
    t = (n, n + 1, n + 2, n + 3)
    a, *b, c = t
    first, *rest = t
    return a, b, c, first, rest


# run: [3, 4]
def list_unpacking(values: List[int]):
    a, b = values
    return b, a


# run: [1, 2, 3, 4]
def list_slices(v: List[int]):
    return v[1:3], v[:2], v[2:], v[:-1], v[::2], v[-1], v[1], v[:]


# run: [1, 2, 3]
def list_methods(v: List[int]):
    v.append(4)
    v.extend([7, 5])
    v.insert(0, 9)
    last = v.pop()
    first = v.pop(0)
    v.remove(2)
    n = v.count(4)
    at = v.index(7)
    w = v.copy()
    v.reverse()
    w.sort()
    return v, w, last, first, n, at


# run: [3, 1, 2]
def list_assign(v: List[int]):
    v[0] = 10
    v[1] += 5
    v[-1] *= 3
    del v[1]
    return v


# run: [1, 2], [3]
def list_operators(a: List[int], b: List[int]):
    c = a + b
    d = a * 2
    a += b
    return c, d, a, a == c, a != d, 2 in a, 9 in a, 9 not in b


# run: 3
def list_displays(n: int):
    empty: List[int] = []
    nested = [[1, n], [n]]
    floats = [1.0, float(n)]
    strings = ["a", "b"]
    return empty, nested, floats, strings, [n, n + 1]


# run: 4
def comprehensions(n: int):
    squares = [i * i for i in range(n)]
    doubled = [2 * s for s in squares]
    texts = [str(s) for s in squares]
    table = {i: i * 1.5 for i in range(n)}
    return squares, doubled, texts, table


# run: [1, 2], 10
def comprehension_captures(v: List[int], k: int):
    return [x * k + len(v) for x in v]


# run: {"a": 1.5}
def dict_methods(d: Dict[str, float]):
    d["b"] = 2.5
    n = len(d)
    has = "a" in d
    x = d["a"]
    y = d.get("zz")
    z = d.get("zz", 7.0)
    p = d.pop("a")
    q = d.setdefault("c", 3.0)
    d.update({"e": 9.0})
    keys = list(d.keys())
    values = list(d.values())
    e = d.copy()
    d.clear()
    return n, has, x, z, p, q, keys, values, e, d


# run: 1
def dict_displays(n: int):
    a = {"x": n, "y": 2}
    b: Dict[int, str] = {}
    b[n] = "one"
    c = {1: 2.0, 3: 4.0}
    del a["x"]
    a["y"] += 40
    return a, b, c


# run: "Hello World"
def string_methods(s: str):
    return (s.upper(), s.lower(), s.split(" "), s.replace("l", "L"), s.find("o"), s.startswith("He"), s.endswith("x"), s.strip("Hd"),
            "-".join(["a", "b"]), s[1:4], s[::2], s[0], s + "!", "World" in s, s == "x", s.count("o"), s.isdigit(), s.title(),
            s.center(15), s.rfind("o"), s.index("W"), s.swapcase(), s.lstrip("H"), s.rstrip("d"), s.partition(" "), s.zfill(13))


# run: 3, 2.5
def formatting(n: int, f: float):
    return f"n={n} f={f}", "{} and {}".format(n, f), "%d items" % n, "%s-%s" % (n, "x"), f"{n + 1}"


# run: 3
# run: "text"
# run: 1.5
def union_isinstance(x: Union[int, str, float]):
    if isinstance(x, int):
        return "int " + str(x + 1)
    elif isinstance(x, str):
        return "str " + x
    else:
        return "float " + str(x)


# run: 3
def isinstance_static(n: int):
    if isinstance(n, int):
        a = 1
    else:
        a = 2
    if isinstance(n, (float, str)):
        b = 1
    else:
        b = 2
    return a, b


# run: 2
def is_scripting(n: int):
    if torch.jit.is_scripting():
        return n
    return -n


# run: 5, 4, 2.5, "z"
def default_arguments(n: int, k: int = 3, f: float = 2, s: str = "z"):
    return n * k, f, s


# run: T(2, 2), 3
def type_comment(x, n):
    # type: (Tensor, int) -> Tensor
    return x * n


# run: [1], {"a": 2}, (1, 2.0)
def lower_case_generics(v: list[int], d: dict[str, int], t: tuple[int, float]) -> tuple[int, float]:
    return v[0] + d["a"] + t[0], t[1]


# run: 3
# run: None
def pipe_optional(n: int | None):
    if n is not None:
        return n
    return 0


# run: 4
def global_call(n: int):
    return helper_square(n) + helper_square(n=n + 1) + helper_default(n)


def helper_square(n: int) -> int:
    return n * n


def helper_default(n: int, k: int = 10):
    if n > 3:
        return n * k
    return k


# run: T(3)
def call_with_tensor(x):
    return helper_tensor(x, 2) + helper_tensor(x)


def helper_tensor(x, k: int = 1):
    y = x
    for _ in range(k):
        y = y * y
    return y


# run: 1+2j, 2.0
def complex_numbers(z: complex, f: float):
    return z + f, z * z, abs(z), z == z, -z


# run: "a"
def string_compare(s: str):
    return s < "b", s == "a", s != "c", s in ["a", "b"]


# run: (1, 2)
def tuple_compare(t: Tuple[int, int]):
    return t == (1, 2), t[0] in t


# run: 3
def any_type(n: int):
    v: Any = n
    if isinstance(v, int):
        return v + 1
    return 0


# run: T(2)
def tensor_to_number(x):
    n: int = int(x.sum())
    f = float(x[0])
    return n, f, x.sum().item() > 0


# run: 2
def while_condition_with_and(n: int):
    i = 0
    while i < 10 and i * i < n * 10:
        i += 1
    return i


# run: [1.5, 2.5]
def float_lists(v: List[float]):
    total = 0.0
    for x in v:
        total += x ** 2
    return total, len(v), sum(v), v + [1.0]


# run: (1, (2.0, "a"))
def nested_tuples(t: Tuple[int, Tuple[float, str]]):
    a, (b, c) = t
    return t[1][0], c, a, b


# run: 2
def del_variable(n: int):
    x = n
    del x
    return n


# run: T(2, 3)
def print_nothing(x):
    pass
    return x.dim()


# run: "0x1p3"
# run: " +1.5"
# run: "nan(abc)"
# run: "-Infinity"
# run: "1.5 "
# run: "1e400"
# run: "1e-400"
# run: "."
def parsed(s: str):
    return float(s)


# run: 65
# run: -1
# run: 1114112
def character(n: int):
    return chr(n)


# run: True, [3, 1]
def the_first_overload_that_a_list_of_numbers_fits(flag: bool, v: List[int]):
    nothing = v.sort()
    return max(flag), min(True, False), max(1.5), max(2), min(3, 2, 1), max(True, False, True), nothing, v


# run: 2
def rounds_after_a_return(n: int):
    for held in (n, 2, None):
        if n > 2:
            return 0
        return held
    return 1


# run: [3, 1]
# run: None
def length_of_an_optional(v: Optional[List[int]]):
    return len(v)


# run: T(2), 2
# run: T(2), 1
# run: T(1), 2
def asserted_by_a_call(x: Tensor, n: int):
    torch._assert(n > 1, "n is small")
    torch._assert((x != 0).sum() > 1, "x has few elements")
    torch._check(n < 5, message="n is large")
    return x * n


# run: [1, 2]
# run: [None, 2]
# run: []
def a_list_keeps_the_type_it_was_made_with(v: List[Optional[int]]):
    a, b, c, d, e = [1, 2], torch.jit.annotate(List[str], []), [[1], [2]], {"a": v}, (1, v)
    held: Any = v
    numbers: Any = a
    words: Any = b
    rows: Any = c
    mixed: Any = d
    pair: Any = e
    return (torch.jit.isinstance(held, List[int]), torch.jit.isinstance(held, List[Optional[int]]), isinstance(held, list),
            torch.jit.isinstance(numbers, List[int]), torch.jit.isinstance(numbers, List[Any]), torch.jit.isinstance(words, List[str]),
            torch.jit.isinstance(words, List[int]), torch.jit.isinstance(rows, List[List[int]]),
            torch.jit.isinstance(rows, List[List[Optional[int]]]), torch.jit.isinstance(mixed, Dict[str, List[int]]),
            torch.jit.isinstance(pair, Tuple[int, List[Optional[int]]]), torch.jit.isinstance(pair, Tuple[int, List[int]]))


# run: {"a": 1}
# run: {"a": [1]}
# run: [1]
# run: [[1], [2]]
# run: (1, "a")
# run: (1, None)
def what_is_passed_for_anything_has_the_narrowest_type(x: Any):
    return (torch.jit.isinstance(x, Dict[str, int]), torch.jit.isinstance(x, Dict[str, Optional[int]]), torch.jit.isinstance(x, Dict[str, Any]),
            torch.jit.isinstance(x, List[int]), torch.jit.isinstance(x, List[Any]), torch.jit.isinstance(x, List[List[Optional[int]]]),
            torch.jit.isinstance(x, Tuple[Optional[int], Any]), torch.jit.isinstance(x, Dict[str, List[Union[int, str]]]))


# run: [1, 2], [1, 3]
# run: [1, 3], [1, 2]
# run: [1, 2], [1, 2]
# run: [1], [1, 2]
# run: [], [3]
def the_larger_list_is_one_of_the_two(a: List[int], b: List[int]):
    large = max(a, b)
    large.append(7)
    small = min(a, b)
    for i in range(2):
        small.append(i)
    return a, b, large, small


# run: [3.0, 1.0]
# run: [2.0, 5.0, 0.5, 4.0, 4.0]
def lists_with_a_nan(v: List[float]):
    nan = [float("nan")]
    up, down = v[:1] + nan + v[1:], nan + v + nan + v
    up.sort()
    down.sort(reverse=True)
    tensors = [torch.tensor(each) for each in v + nan + v]
    tensors.sort()
    return up, down, sorted(v + nan + v), tensors, max(v + nan, v + v), min(v + nan, v + v), max(nan, v), min(nan, v)


# run: 9007199254740993, 9007199254740992.0
# run: 9223372036854775807, 9.223372036854775808e18
# run: 3, 2.5
def numbers_of_two_kinds_are_compared_as_doubles(a: int, b: float):
    return (a == b, a != b, a < b, a <= b, a > b, a >= b, b == a, b != a, b < a, b <= a, b > a, b >= a,
            torch.tensor(a).item() == torch.tensor(b, dtype=torch.float64).item())


# run: "aaab", "ab", 2
# run: "aaaa", "aa", 3
# run: "", "a", 1
# run: "ab\x1cc\x1d d\x0b", "b", 1
def places_in_a_string(s: str, part: str, n: int):
    return (s.count(part, 0, n), s.count(part, 1), s.count("", len(s)), s.replace("", part, n), s.replace(part, "", n), s.split(),
            ("x\ty\n\t" + s + "\tz").expandtabs(n), "\u00e9\t|".expandtabs(4), "\t.\t".expandtabs(0))


# run: [1, 2, 3], "abc", 9223372036854775807
# run: [1, 2, 3], "abc", -9223372036854775808
# run: [1, 2, 3], "abc", 1
def slices_to_the_largest_number(items: List[int], word: str, far: int):
    backwards = slice(None, None, -1)
    both = (1, 2, 3)
    return (items[far:], items[1:far:-1], items[0:far:-1], word[far:], word[2:far:-1], items[backwards], word[backwards], both[backwards],
            both[slice(1, None, -1)], items[slice(None, 1, -1)], items[slice(2)], word[slice(1, None)], both[0:9223372036854775807:-1])


# run: 0
# run: 1
def list_of_tuples_that_differ(place: int):
    pairs = [(1, "a"), (2.5, "b"), (2, "c")]
    number, word = pairs[place]
    table = {"x": (1, [2]), "y": (1, [2.5])}
    total = 0.0
    for kind, (value, count) in [(1, (1, "x")), (2, (3, 4))]:
        total += kind * value
        if isinstance(count, int):
            total += count
    return number, word, table["y"], dict(a=1, b=2.5), total


# run: 1
def constant_lists_in_a_union(n: int):
    return [[1], [2.0]], [[1.5], [2]], [(1, 2), (2.0, 1)], {"a": [1], "b": [0.0]}, n


# run: [1, "a", None]
def optional_of_a_union(held: List[Optional[Union[int, str]]]):
    same: List[Union[int, str, None]] = held
    return same, [each is None for each in same]
