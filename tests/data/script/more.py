from typing import Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor


# run: 17
def fizz_buzz(n: int):
    out: List[str] = []
    for i in range(1, n + 1):
        if i % 15 == 0:
            out.append("FizzBuzz")
        elif i % 3 == 0:
            out.append("Fizz")
        elif i % 5 == 0:
            out.append("Buzz")
        else:
            out.append(str(i))
    return ",".join(out)


# run: "the quick the lazy the end"
def word_count(text: str):
    counts: Dict[str, int] = {}
    for word in text.split(" "):
        if word in counts:
            counts[word] += 1
        else:
            counts[word] = 1
    return counts


# run: "level"
# run: "levels"
def palindrome(s: str) -> bool:
    n = len(s)
    for i in range(n // 2):
        if s[i] != s[n - 1 - i]:
            return False
    return True


# run: 10
def fibonacci_memo(n: int) -> int:
    memo: Dict[int, int] = {0: 0, 1: 1}
    for i in range(2, n + 1):
        memo[i] = memo[i - 1] + memo[i - 2]
    return memo[n]


# run: 255, 2
# run: 255, 16
def to_base(n: int, base: int) -> str:
    digits = "0123456789abcdef"
    out = ""
    while n > 0:
        out = digits[n % base] + out
        n = n // base
    return out


# run: 5
def pascal(n: int):
    rows: List[List[int]] = []
    row = [1]
    for _ in range(n):
        rows.append(row)
        following = [1]
        for j in range(len(row) - 1):
            following.append(row[j] + row[j + 1])
        following.append(1)
        row = following
    return rows


# run: [3, 4, -1, 2, -5, 6]
def best_sum(values: List[int]) -> Tuple[int, int, int]:
    best, best_start, best_end = values[0], 0, 0
    current, start = 0, 0
    for i, v in enumerate(values):
        if current <= 0:
            current = v
            start = i
        else:
            current += v
        if current > best:
            best = current
            best_start = start
            best_end = i
    return best, best_start, best_end


# run: 2.0
def newton_sqrt(x: float) -> float:
    guess = x
    for _ in range(100):
        better = (guess + x / guess) / 2
        if abs(better - guess) < 1e-12:
            break
        guess = better
    return guess


# run: [1, 2, 3], 2
# run: [1, 2, 3], 9
def find(values: List[int], wanted: int) -> Optional[int]:
    for i, v in enumerate(values):
        if v == wanted:
            return i
    return None


# run: [1.0, 2.5, 4.0]
def statistics(values: List[float]):
    n = len(values)
    mean = sum(values) / n
    variance = 0.0
    for v in values:
        d = v - mean
        variance += d * d
    return mean, variance / n


# run: "a=1;b=22"
def parse_pairs(text: str) -> Dict[str, int]:
    out: Dict[str, int] = {}
    for part in text.split(";"):
        pieces = part.split("=")
        assert len(pieces) == 2
        out[pieces[0]] = int(pieces[1])
    return out


# run: [[1, 2, 3], [4, 5, 6]]
def transpose(rows: List[List[int]]) -> List[List[int]]:
    out: List[List[int]] = []
    for j in range(len(rows[0])):
        out.append([row[j] for row in rows])
    return out


# run: 3, 4
def ackermann_free(m: int, n: int) -> int:
    stack = [m]
    while len(stack) > 0:
        m = stack.pop()
        if m == 0:
            n += 1
        elif n == 0:
            n = 1
            stack.append(m - 1)
        else:
            n -= 1
            stack.append(m - 1)
            stack.append(m)
        if n > 40:
            return -1
    return n


# run: T(5)
def running_maximum(x):
    out = x.clone()
    for i in range(1, x.size(0)):
        if bool(out[i] < out[i - 1]):
            out[i] = out[i - 1]
    return out


# run: T(3, 3)
def matrix_power(a):
    result = torch.eye(3)
    k = 5
    while k > 0:
        if k % 2 == 1:
            result = result @ a
        a = a @ a
        k = k // 2
    return result


# run: T(4), T(4)
def dot_by_loop(a, b):
    total = torch.zeros(1)
    for x, y in zip(a, b):
        total = total + x * y
    return total


# run: T(2, 3), "relu"
# run: T(2, 3), "tanh"
# run: T(2, 3), "none"
def activation(x, kind: str):
    if kind == "relu":
        return torch.relu(x)
    elif kind == "tanh":
        return torch.tanh(x)
    return x


# run: T(2, 3), "cosine"
def unknown_activation(x, kind: str):
    if kind == "relu":
        return torch.relu(x)
    raise ValueError("unknown activation " + kind)


# run: T(3), True, True
# run: T(3), True, False
# run: T(3), False, True
def nested_ifs(x, a: bool, b: bool):
    if a:
        if b:
            y = x + 1
        else:
            y = x + 2
        z = y * 2
    else:
        y = x
        z = x - 1
    return y, z


# run: T(3), 2
def if_inside_loop_reassigns(x, n: int):
    scale = 1.0
    for i in range(n):
        if i == 0:
            scale = scale * 2
        else:
            scale = scale + 0.5
            x = x * scale
    return x, scale


# run: 7
def loop_else_free_search(n: int):
    found = -1
    i = 2
    while i < n and found < 0:
        if n % i == 0:
            found = i
        i += 1
    return found


# run: None, None
# run: 3, None
# run: 3, 4
def two_optionals(a: Optional[int], b: Optional[int]):
    if a is not None and b is not None:
        return a + b
    if a is not None:
        return a
    return 0


# run: None
# run: T(2)
def optional_default_inside(x: Optional[Tensor]):
    if x is None:
        x = torch.ones(2)
    return x + 1


# run: [1, 2, 3]
# run: None
def not_none_else(v: Optional[List[int]]) -> int:
    if not (v is None):
        return len(v)
    else:
        return -1


# run: 3
# run: "ab"
def union_two(x: Union[int, str]):
    if isinstance(x, str):
        return len(x)
    return x


# run: (1, 2.5)
def tuple_argument(t: Tuple[int, float]):
    n, f = t
    return f * n, t


# run: [(1, 2.0), (3, 4.0)]
def list_of_tuples(pairs: List[Tuple[int, float]]):
    total = 0.0
    for n, f in pairs:
        total += n * f
    return total, pairs[0][1]


# run: {"x": [1, 2], "y": [3]}
def dict_of_lists(d: Dict[str, List[int]]):
    total = 0
    for k in d:
        for v in d[k]:
            total += v
    d["x"].append(9)
    return total, len(d["x"])


# run: 4
def list_of_lists_built(n: int):
    grid = [[0 for _ in range(n)] for _ in range(2)]
    grid[1][2] = 5
    return grid


# run: 3
def tuple_building(n: int):
    t = (n,)
    u = t + (n + 1, "s")
    return t, u, len(u)


# run: [5, 1, 4]
def sort_in_place(v: List[int]):
    v.sort()
    w = sorted([3, 1, 2])
    v.sort(reverse=True)
    return v, w


# run: 10
def ranges(n: int):
    a = [i for i in range(n)]
    b = list(range(3, n))
    c = [i for i in range(n, 0, -3)]
    d = [i for i in range(0)]
    return a, b, c, d


# run: 6, 4
def boolean_results(a: int, b: int):
    less = a < b
    both = less and a > 0
    either = less or a > 0
    return less, both, either, not less, a == 6 and b == 4, bool(a), bool(0)


# run: 3.5, 2
def number_casts(f: float, n: int):
    return int(f) + n, float(n) / 4, int(True), bool(n), str(n) + "!", float("1.5")


# run: 100
def integer_division(n: int):
    return n // 7, n % 7, -n // 7, -n % 7, n / 8


# run: T(2, 2)
def method_chain(x):
    return x.add(1).mul(2).relu().sum(0).view(1, 2).squeeze(0)


# run: T(3, 4)
def view_updates(x):
    y = x.clone()
    row = y[1]
    row += 10
    y[:, 0].zero_()
    y[2].fill_(3)
    return y


# run: T(3)
def tensor_item_comparison(x):
    if x[0] > x[1]:
        return x[0]
    elif x[1] == x[2]:
        return x[1]
    return x[2]


# run: T(3), T(3)
def where_and_masks(x, y):
    m = x > y
    z = torch.where(m, x, y)
    n = (m & (x > 0)) | ~m
    return z, n, n.sum(), m.any(), m.all()


# run: T(2, 3)
def slices_with_variables(x):
    a, b = 1, 3
    step = 2
    return x[:, a:b], x[0, :b:step], x[:a, -1:]


# run: T(2, 3, 4)
def multi_dimensional_slices(x):
    return x[..., 1:3], x[0, ..., -1], x[:, -1, ::2], x[1, 2, 3], x[:, None, :, 0]


# run: I(4)
def one_hot(i):
    out = torch.zeros(4, 3)
    for k in range(i.size(0)):
        out[k, int(i[k])] = 1
    return out


# run: T(6)
def moving_average(x):
    out = [x[i:i + 3].mean() for i in range(x.size(0) - 2)]
    return torch.stack(out)


# run: T(3, 4)
def argmax_by_hand(x):
    best = torch.zeros(3, dtype=torch.long)
    for i in range(3):
        for j in range(1, 4):
            if bool(x[i, j] > x[i, int(best[i])]):
                best[i] = j
    return best, x.argmax(1)


# run: T(2, 3), 0.5, True
# run: T(2, 3), 0.5, False
def keyword_call(x, a: float, flag: bool):
    return scaled(x, factor=a, negate=flag) + scaled(x) + scaled(x, 3.0)


def scaled(x, factor: float = 2.0, negate: bool = False):
    if negate:
        return -x * factor
    return x * factor


# run: 5
def calls_that_return_tuples(n: int):
    a, b = both_ways(n)
    pair = both_ways(a)
    return a, b, pair


def both_ways(n: int) -> Tuple[int, int]:
    return n + 1, n - 1


# run: 4
def calls_that_return_early(n: int):
    total = 0
    for i in range(n):
        total += clipped(i, 1, 2)
    return total


def clipped(n: int, low: int, high: int) -> int:
    if n < low:
        return low
    if n > high:
        return high
    return n


# run: 4
def call_in_condition(n: int):
    k = 0
    while clipped(k, 0, n) < n:
        k += 1
    return k


# run: [1, 2]
def function_changes_list(v: List[int]):
    push_twice(v, 7)
    return v


def push_twice(v: List[int], n: int):
    v.append(n)
    v.append(n)


# run: None, 2
# run: 4, 2
def optional_passed_on(a: Optional[int], b: int):
    return or_default(a, b) * 10


def or_default(a: Optional[int], b: int) -> int:
    if a is None:
        return b
    return a


# run: T(2)
def docstring_and_pass(x):
    """Documentation is no code."""
    pass
    "neither is this"
    return x


# run: 3
def multiple_targets(n: int):
    a = b = n
    a += 1
    (c, d) = [a, b]
    return a, b, c, d


# run: T(4)
def semicolons_and_parentheses(x):
    y = (x +
         1); z = (y * 2)
    return (y,
            z)


# run: "abc"
def escapes(s: str):
    return s + "\n\t\"'\\" + 'single' + "é", len("é"), """triple
line"""


# run: 1
def numbers(n: int):
    return 1_000, 0x1F, 0b101, 1e3, .5, 1e-07, 123456789.123, -2, -0.0, 2 ** 10


# run: T(2), 5
def early_exit_two_loops(x, n: int):
    for i in range(n):
        if i == 3:
            break
        x = x + 1
    for j in range(n):
        if j == 1:
            continue
        x = x * 2
        if j == 3:
            return x, j
    return x, -1


# run: 3, 3
def nested_while(n: int, m: int):
    total = 0
    i = 0
    while i < n:
        j = 0
        while True:
            if j >= m:
                break
            total += i * m + j
            j += 1
        i += 1
    return total


# run: 5
# run: 0
def raise_in_loop(n: int):
    k = 0
    while True:
        k += 1
        if k > 3:
            if n > 0:
                return k
            raise RuntimeError("too many rounds")


# run: [4, -2, 0]
def signs(values: List[int]):
    out: List[str] = []
    for v in values:
        s = "+" if v > 0 else "-" if v < 0 else "0"
        out.append(s)
    return "".join(out)


# run: 2
def variable_of_if_in_loop(n: int):
    total = 0
    for i in range(n):
        if i > 0:
            t = i * 2
        else:
            t = 7
        total += t
    return total


# run: T(2, 2), 1
def in_place_methods(x, n: int):
    y = x.clone()
    y.add_(n).mul_(2)
    y.clamp_(min=0)
    return y


# run: "k", 3
def dict_comprehension(prefix: str, n: int):
    return {prefix + str(i): [i, i * i] for i in range(n)}


# run: {"b": 2, "a": 1}
def dict_iteration(d: Dict[str, int]):
    pairs = [k + str(v) for k, v in d.items()]
    values = [v for v in d.values()]
    return pairs, values, sum(values), list(d)


# run: 6
def assert_with_format(n: int):
    assert n > 2, f"too small: {n}"
    assert isinstance(n, int)
    return n


# run: T(2, 3)
def print_and_return(x):
    if x.dim() == 7:
        print("never", x, 1)
    return x


# run: 3
def string_building(n: int):
    out = ""
    for i in range(n):
        out += str(i) + ("," if i < n - 1 else "")
    return out, out.split(","), len(out)


# run: 2
# run: 9
def return_from_unrolled_loop(n: int):
    for i in (1, 2, 3):
        if i == n:
            return i * 10
    n = n + 1
    return n


# run: T(2), 1
def unrolled_mixed_tuple(x, n: int):
    for i, v in enumerate((2, 1.5, 3)):
        if n == i:
            x = x + v
        else:
            x = x * i
    return x


# run: [1], {"a": 1}, "s"
# run: [1], {"a": 1}, ""
def truth_of_containers(v: List[int], d: Dict[str, int], s: str):
    if not v or not d:
        return 0
    if s:
        return 1
    return 2


# run: 0, 2.5
# run: 3, 0.0
def truth_of_numbers(n: int, f: float):
    a = 1 if n else 2
    b = 1 if f else 2
    while n:
        n -= 1
    return a, b, n, not f


# run: T(2), T(2)
def truth_of_tensors(x, y):
    if x.sum() > 0 and y.sum() > 0 or not (x == y).all():
        return x
    return y * 2


# run: T(4, 2), 1
def assign_slices(x, n: int):
    y = x.clone()
    y[n:n + 1] = 3.0
    y[0, :] += 1
    y[[2, 3]] = 2
    y[..., 1] = y[..., 0]
    y[1:3, 0] *= y[0:2, 1]
    return y


# run: 3
def tuple_functions(n: int):
    t = (1, 2, n)
    s = 0
    for a in t:
        s += a
    return s, max(1, 2, n), sum(t), 1 in t, min(t), [v * 2 for v in t]


# run: 2
def static_branches(n: int):
    x: Optional[int] = n
    if x is None:
        y = "never"
    else:
        y = "always"
    if n is None:
        z = undefined_name
    else:
        z = 1
    return y, z


# run: [None, 2]
def list_of_optionals(values: List[Optional[int]]):
    total = 0
    for v in values:
        if v is not None:
            total += v
        else:
            total -= 1
    return total


# run: 5
def optional_result_used(n: int):
    k = maybe(n)
    if k is None:
        return -1
    return k + maybe_zero(n)


def maybe(n: int) -> Optional[int]:
    if n > 3:
        return n
    return None


def maybe_zero(n: int) -> int:
    k = maybe(n - 4)
    return 0 if k is None else k


# run: 3, "x"
def union_parameter(n: int, s: str):
    return describe(n) + describe(s)


def describe(value: Union[int, str]) -> str:
    if isinstance(value, int):
        return "<" + str(value) + ">"
    return value


# run: T(2, 2)
def same_value_in_both_branches(x):
    if x.dim() > 1:
        k = 1
        y = x
    else:
        k = 1
        y = x
    return k, y


# run: 3
def loop_with_constant_assignment(n: int):
    done = False
    label = "none"
    for i in range(n):
        done = True
        label = "some"
    return done, label


# run: 6
def while_with_two_exits(n: int):
    a, b = 0, 0
    while a < n:
        a += 1
        if a % 2 == 0:
            b += a
            if b > 5:
                return a, b
            continue
        b -= 1
        if b < -3:
            break
        a += 0
    return -a, -b


# run: [3, 1, 2], True
# run: [3, 1, 2], False
def list_passed_through_branches(v: List[int], flag: bool):
    w = v
    if flag:
        w = sorted(v)
    w.append(9)
    return v, w


# run: T(3)
def comparison_of_none(x: Optional[Tensor]):
    y = x
    has = y is not None
    z = torch.zeros(3) if y is None else y
    return has, z


# run: 4
def nested_comprehension(n: int):
    return [[i * j for j in range(i)] for i in range(n)], [(i, str(i)) for i in range(2)], [x[0] for x in [(1, 2), (3, 4)]]


# run: "a,b;c"
def nested_string_loops(text: str):
    out: List[List[str]] = []
    for part in text.split(";"):
        row: List[str] = []
        for piece in part.split(","):
            row.append(piece.upper())
        out.append(row)
    return out


# run: T(2, 3)
def named_results(x):
    result = torch.max(x, dim=1)
    q, r = torch.linalg.qr(x)
    v, i = x.topk(2)
    return result.values + 1, result[1], (q @ r - x).abs().max() < 1e-5, v, i


# run: 3
def deep_tuple(n: int):
    t = ((n, (n + 1, "a")), [n])
    (a, (b, c)), d = t
    return a, b, c, d, t[0][1][1]


# run: 2, 3
def shadowed_builtin(n: int, max: int):
    len = n + max
    return len


# run: 1
def long_condition(n: int):
    if (n > 0 and n < 10
            and not (n == 5)
            or n == 100):
        return "in"
    else:
        return "out"


# run: T(2), True
# run: T(2), False
def with_no_grad(x, flag: bool):
    with torch.no_grad():
        y = x * 2
        if flag:
            return y
    with torch.no_grad(), torch.no_grad():
        y = y + 1
    return y


# run: 12, True
# run: 12, False
def break_or_raise_in_a_branch(n: int, flag: bool):
    k = 0
    for i in range(n):
        if flag:
            if i * i > 20:
                break
        else:
            raise ValueError("flag")
        k += i
    return k


# run: T(2)
def literal_condition(x):
    if True:
        y = x + 1
    if 1 > 0 and True:
        z = y
    else:
        z = x
    return y, z


# run: 5
def continue_or_return_in_a_branch(n: int):
    out: List[int] = []
    for i in range(n):
        if i % 2 == 0:
            if i == 4:
                return out
            elif i == 2:
                continue
        else:
            i = i + 10
        out.append(i)
    return out
