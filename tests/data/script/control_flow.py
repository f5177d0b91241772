# Programs of the script front end: every function is compiled and run on the inputs behind `# run:` (T: float32 tensor of a shape,
# D: float64, I: int64, B: bool). Results are in recorded.json (tests/record_script.py makes it with torch).
from typing import Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor


# run: T(2, 3), 2
# run: T(2, 3), -1
def if_else(x, n: int):
    if n > 0:
        y = x + 1
        n = n * 2
    else:
        y = x
    return y, n


# run: T(3), 3
# run: T(3), 7
# run: T(3), 12
def elif_chain(x: Tensor, n: int) -> Tensor:
    if n < 5:
        x = x * 2
    elif n < 10:
        x = x - n
    else:
        x = -x
    return x


# run: T(2), 3
# run: T(2), 0
def early_return(x, n: int):
    if n == 0:
        return x
    y = x + n
    return y * y


# run: 3
# run: 20
# run: 200
def early_returns_nested(n: int) -> int:
    if n > 10:
        if n > 100:
            return 3
        n = n - 1
    else:
        n = n + 1
    return n * 2


# run: 3, True
# run: 3, False
# run: -3, True
# run: -3, False
def might_return(n: int, flag: bool):
    total = n
    if n > 0:
        if flag:
            return total
        total = total * 10
    else:
        if flag:
            total = total - 1
        else:
            return -total
    total = total + 5
    return total


# run: T(4), 6
# run: D(4) , 1
def early_return_in_loop(x, n: int):
    for i in range(n):
        if float(x.sum()) > 3.0:
            return x
        x = x + 1
    return -x


# run: 10
# run: 2
def while_break_continue(n: int):
    total = 0
    i = 0
    while i < n:
        i += 1
        if i == 3:
            continue
        if i == 7:
            break
        total += i
    return total, i


# run: 5
def nested_loops(n: int):
    count = 0
    for i in range(n):
        for j in range(i, n):
            if j - i == 3:
                break
            if (i + j) % 2 == 0:
                continue
            count += i * j
    return count


# run: 6
# run: 0
def return_from_nested_loops(n: int):
    for i in range(n):
        for j in range(n):
            if i * j == 6:
                return i, j
    return -1, -1


# run: 5
def while_true(n: int):
    k = 0
    while True:
        k += n
        if k > 17:
            break
    return k


# run: 9
# run: 1
def while_return(n: int):
    while n > 1:
        if n % 2 == 0:
            return n
        n = n // 2
    return -n


# run: T(3), 4
def for_range_start_stop_step(x, n: int):
    for i in range(2, 10, 3):
        x = x + i
    for j in range(n, 0, -1):
        x = x * j
    return x


# run: [1, 2, 3]
# run: [-1]
def for_list(values: List[int]):
    total = 0
    for v in values:
        if v < 0:
            total -= 1
        else:
            total += v
    return total


# run: T(3, 2)
def for_tensor_rows(x):
    total = torch.zeros(2)
    for row in x:
        total = total * 0.5 + row
    return total


# run: "hello"
def for_string(text: str):
    out = ""
    for c in text:
        out = c + out
    return out


# run: {"a": 1, "b": 5}
def for_dict_keys(d: Dict[str, int]):
    total = 0
    names = ""
    for k in d:
        names += k
        total += d[k]
    return names, total


# run: {"a": 1, "b": 5}
def for_dict_items(d: Dict[str, int]):
    out: List[str] = []
    total = 0
    for k, v in d.items():
        out.append(k)
        total = total * 10 + v
    return out, total


# run: T(2)
def for_tuple_unrolled(x):
    for factor in (2, 3.5, x):
        x = x * factor
    return x


# run: [3, 1, 2]
def for_enumerate(values: List[int]):
    total = 0
    for i, v in enumerate(values):
        total += i * v
    for i, v in enumerate(values, 10):
        total += i - v
    return total


# run: [3, 1, 2], [1.5, 2.5]
def for_zip(a: List[int], b: List[float]):
    total = 0.0
    for x, y in zip(a, b):
        total += x * y
    return total


# run: [3, 1, 2], [4, 5, 6]
def for_enumerate_zip(a: List[int], b: List[int]):
    total = 0
    for i, (x, y) in enumerate(zip(a, b)):
        total += i * x * y
    return total


# run: 4
def loop_carried_tuple(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a, b


# run: T(2, 2), 3
def loop_in_if(x, n: int):
    if n > 2:
        for i in range(n):
            x = x + i
    else:
        while n > 0:
            x = x - 1
            n -= 1
    return x


# run: T(2), True
# run: T(2), False
def raise_in_branch(x, flag: bool):
    if flag:
        y = x
    else:
        raise RuntimeError("no")
    return y + 1


# run: 3
# run: -3
def assert_statement(n: int):
    assert n > 0, "n must be positive"
    return n


# run: 4
def raise_in_else_of_chain(n: int):
    if n == 1:
        s = "one"
    elif n == 4:
        s = "four"
    else:
        raise ValueError("unknown n")
    return s


# run: True, False
# run: False, False
def conditional_expression(a: bool, b: bool):
    x = 1 if a else 2
    y = 3 if b else (4 if a else 5)
    return x, y


# run: 5, 2.5
def chained_comparison(n: int, f: float):
    return 0 < n < 10, 1 < f <= 2, n > 4 > f


# run: 3, [1, 2, 3]
# run: 5, [1, 2, 3]
def short_circuit(n: int, values: List[int]):
    first = n < 3 and values[n] > 0
    second = n >= 3 or values[n] > 0
    return first, second, not first


# run: True, False
def nested_functions_of_logic(a: bool, b: bool):
    return a and not b, a or b and not a, not (a and b)


# run: 7
def collatz(n: int):
    steps = 0
    while n != 1 and steps < 1000:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


# run: 12
def primes(n: int):
    found: List[int] = []
    for i in range(2, n):
        is_prime = True
        for p in found:
            if p * p > i:
                break
            if i % p == 0:
                is_prime = False
                break
        if is_prime:
            found.append(i)
    return found


# run: [5, 2, 9, 1]
def bubble_sort(values: List[int]):
    n = len(values)
    for i in range(n):
        swapped = False
        for j in range(n - i - 1):
            if values[j] > values[j + 1]:
                t = values[j]
                values[j] = values[j + 1]
                values[j + 1] = t
                swapped = True
        if not swapped:
            break
    return values


# run: [1, 3, 5, 7], 5
# run: [1, 3, 5, 7], 4
def binary_search(values: List[int], wanted: int) -> int:
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        if values[middle] == wanted:
            return middle
        elif values[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


# run: 48, 18
def gcd(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


# run: T(3, 3)
def power_iteration(a):
    v = torch.ones(3)
    for _ in range(5):
        v = a.matmul(v)
        v = v / v.norm()
    return v


# run: T(4)
def tensor_condition(x):
    while x.sum() < 20:
        x = x * 2 + 1
        if (x > 5).any():
            x = x - 0.5
    return x


# run: 3
# run: 0
def dead_code_behind_return(n: int) -> int:
    if n > 2:
        return n
        n = n + 1
    else:
        return -n


# run: 1
# run: 2
# run: 3
def variable_from_one_branch(n: int):
    if n == 1:
        return 10
    elif n == 2:
        k = 5
    else:
        raise ValueError("bad")
    return k * 2


# run: 5
def continue_at_end(n: int):
    out: List[int] = []
    for i in range(n):
        if i % 2:
            out.append(i)
            continue
        else:
            out.append(-i)
            continue
    return out


# run: 6
def break_and_return(n: int):
    k = 0
    for i in range(n):
        k += i
        if k > 100:
            return -1
        if k > 5:
            break
    k = k * 2
    return k


# run: [[1, 2], [3, 4]]
def nested_lists(rows: List[List[int]]):
    total = 0
    for row in rows:
        for v in row:
            total = total * 2 + v
    return total


# run: 4
def no_return(n: int):
    n = n + 1


# run: 5
def unused_loop_variable(n: int) -> int:
    last = -1
    for i in range(n):
        last = i
        unused = i * 2
    return last


# run: T(3), 0
# run: T(3), 2
def return_in_both_branches_of_loop(x, n: int):
    for i in range(n):
        if i == 1:
            return x * 2
        else:
            x = x + 1
    return x


# run: 3
def shadowing(n: int):
    x = n
    x = n + 1.5
    if n > 1:
        y = x
    else:
        y = 0.0
    return y


# run: 1
# run: 2
# run: 3
def exceptions_of_python(n: int):
    if n == 1:
        raise IOError("file")
    elif n == 2:
        raise UnicodeError
    return n
