"""Inputs that share memory, in every way that NumPy has: a write into one shows in the other, in every way to run, or it is refused."""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import fake_cupy
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import irtool
from irtool.ops.arrays import address_of, are_apart, bounds_of

Pair = tuple[Any, Any]


def buffer(count: int = 6) -> bytearray:
    return bytearray(np.arange(float(count)).tobytes())


def same_object() -> Pair:
    x = np.arange(4.)
    return x, x


def slices() -> Pair:
    x = np.arange(6.)
    return x[:4], x[2:]


def interleaved() -> Pair:
    x = np.arange(8.)
    return x[::2], x[1::2]


def transposed() -> Pair:
    x = np.arange(9.).reshape(3, 3)
    return x, x.T


def windows() -> Pair:
    x = np.arange(6.)
    return x[1:], as_strided(x, (3, 4), (8, 8))


def buffer_twice() -> Pair:
    memory = buffer()
    return np.frombuffer(memory), np.frombuffer(memory)


def buffer_from_the_middle() -> Pair:
    memory = buffer()
    return np.frombuffer(memory)[:4], np.frombuffer(memory, offset=16)


def arrays_on_a_buffer() -> Pair:
    memory = buffer()
    return np.ndarray((2, 2), buffer=memory), np.ndarray(3, buffer=memory, offset=24, strides=(8,))


def apart_in_a_buffer() -> Pair:
    memory = buffer()
    return np.frombuffer(memory, count=3), np.frombuffer(memory, offset=24)


def foreign() -> Pair:
    memory = (ctypes.c_double * 4)(0, 1, 2, 3)
    return np.ctypeslib.as_array(memory), np.frombuffer(memory)


def address() -> Pair:
    x = np.arange(4.)
    pointer = ctypes.cast(x.ctypes.data, ctypes.POINTER(ctypes.c_double))
    return x, np.ctypeslib.as_array(pointer, (4,))


def memory_view() -> Pair:
    x = np.arange(4.)
    return x, np.asarray(memoryview(x))[1:]


def interface() -> Pair:
    class Holder:
        def __init__(self, array: Any) -> None:
            self.array, self.__array_interface__ = array, array.__array_interface__
    x = np.arange(4.)
    return np.asarray(Holder(x)), np.asarray(Holder(x))


def other_dtype() -> Pair:
    x = np.arange(4.)
    return x, x.view(np.int64)


def other_size() -> Pair:
    memory = buffer()
    return np.frombuffer(memory), np.frombuffer(memory, np.float32, offset=4)


def backwards() -> Pair:
    x = np.arange(4.)
    return x, x[::-1]


def both_backwards() -> Pair:
    x = np.arange(4.)[::-1]
    return x, x


def backwards_apart() -> Pair:
    x = np.arange(8.)
    return x[:4], x[:3:-1]


def backwards_beside_a_buffer() -> Pair:
    memory = buffer()
    return np.frombuffer(memory)[::-1], np.frombuffer(memory)[1:]


def other_byte_order() -> Pair:
    x = np.arange(4.).astype(">f8")
    return x, x


def between_items() -> Pair:
    x = np.zeros(4, [("number", "i4"), ("value", "f8")])["value"]
    return x, x[1:]


PAIRS = (same_object, slices, interleaved, transposed, windows, buffer_twice, buffer_from_the_middle, arrays_on_a_buffer, apart_in_a_buffer,
         foreign, address, memory_view, interface, other_dtype, other_size, backwards, both_backwards, backwards_apart,
         backwards_beside_a_buffer, other_byte_order, between_items)
REFUSED = {backwards, backwards_beside_a_buffer, between_items}
"""Pairs that no run of a graph takes: one of the arrays is copied, and the other one would not show it."""
SEVERAL_DTYPES = {other_dtype, other_size}
"""Pairs that the tape has no views for."""
ALL_RUN = {interleaved, backwards_apart, apart_in_a_buffer}
"""Pairs that share no element: each run takes them."""

MODULE = irtool.from_script("def f(x: Tensor, a: Tensor, b: Tensor):\n    a.add_(1)\n    return b * x\n")
X = np.full((), 2.)


def written(x: Any, a: Any, b: Any) -> Any:
    a.add_(1)
    return b * x


def seen(pair: Callable[[], Pair]) -> tuple[Any, Any]:
    """The arrays after NumPy wrote into the first one."""
    a, b = pair()
    a += 1
    return a, b


def gradient(run: Callable[..., Any], a: Any, b: Any, **options: Any) -> Any:
    """The gradient of the sum of b * x, which is the sum of b."""
    ones = np.ones_like(irtool.run(MODULE, [X, a.copy(), b.copy()])[0])
    return [run([X, a, b], [ones], [0], **options) for _ in range(3)][-1]


RUNS: dict[str, Callable[[Any, Any], Any]] = {
    "interpreted": lambda a, b: irtool.run(MODULE, [X, a, b], interpret=True)[0],
    "run": lambda a, b: [irtool.run(MODULE, [X, a, b]) for _ in range(3)][-1][0],
    "compiled": lambda a, b: [executor(X, a, b) for executor in [irtool.compile(MODULE)] for _ in range(3)][-1][0],
    "compiled on tensors": lambda a, b: irtool.compile(MODULE)(*map(irtool.Tensor, (X, a, b)))[0],
    "compiled for others": lambda a, b: after_others(irtool.compile(MODULE), a, b),
    "not optimized": lambda a, b: irtool.compile(MODULE, optimize=False)(X, a, b)[0],
    "native": lambda a, b: irtool.compile(MODULE, native=True)(X, a, b)[0],
    "two threads": lambda a, b: irtool.compile(MODULE, threads=2)(X, a, b)[0],
    "profiled": lambda a, b: [executor(X, a, b) for executor in [irtool.compile(MODULE, profiling=True)] for _ in range(3)][-1][0],
    "recorded": lambda a, b: irtool.compile(MODULE).record([X, a, b], [0]).outputs[0],
    "recorded for a": lambda a, b: irtool.compile(MODULE).record([X, a, b], [1]).outputs[0],
    "recorded for none": lambda a, b: irtool.compile(MODULE).record([X, a, b], []).outputs[0],
    "jit of the graph": lambda a, b: irtool.jit(MODULE.graph())(X, a, b),
    "frozen": lambda a, b: irtool.run(irtool.freeze(MODULE, {"a": a, "b": b}), [X])[0],
}
MAY_REFUSE = {"recorded for a": "where b may show a, by bounds", "frozen": "arrays of several dtypes that share memory"}
"""Ways to run that refuse more pairs, and which."""
GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "compiled": lambda a, b: gradient(irtool.compile(MODULE).vjp, a, b),
    "not optimized": lambda a, b: gradient(irtool.compile(MODULE, optimize=False).vjp, a, b),
    "of a graph": lambda a, b: gradient(partial(irtool.vjp, MODULE), a, b),
    "interpreted": lambda a, b: gradient(partial(irtool.vjp, MODULE), a, b, interpret=True),
    "recorded": lambda a, b: gradient(lambda inputs, ones, wrt: irtool.compile(MODULE).record(inputs, wrt).backward(ones), a, b),
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "eager": lambda a, b: written(*map(irtool.Tensor, (X, a, b))),
    "jit": lambda a, b: irtool.jit(written)(*map(irtool.Tensor, (X, a, b))),
    "jit on arrays": lambda a, b: irtool.jit(written)(X, a, b),
}
TRANSFORMED: dict[str, Callable[[Any, Any], Any]] = {
    "vmap": lambda a, b: irtool.vmap(written, in_dims=(None, 0, 0))(X, a, b),
    "vmap of the first": lambda a, b: irtool.vmap(written, in_dims=(None, 0, None))(X, a, b)[0],
    "vmap by name": lambda a, b: irtool.vmap(lambda a, b: written(X, a, b))(a, b=b)[0],
    "vmap of the graph": lambda a, b: irtool.vmap(MODULE.graph(), in_dims=(None, 0, 0))(X, a, b),
    "vjp with arguments": lambda a, b: irtool.torch.func.vjp(written, *map(irtool.Tensor, (X, a, b)))[0],
    "value and gradient": lambda a, b: irtool.value_and_grad(lambda x, a, b: (written(x, a, b).sum(),) * 2, has_aux=True)(X, a, b)[0][1],
    "jvp": lambda a, b: irtool.torch.func.jvp(lambda x, a, b: written(x, a, b), (X, a, b), (X, np.ones_like(a), np.ones_like(b)))[0],
}


def after_others(executor: Any, a: Any, b: Any) -> Any:
    """The result of an executor that has run on arrays of these shapes that share nothing."""
    for _ in range(3):
        executor(X, np.array(a), np.array(b))
    return executor(X, a, b)[0]


@pytest.mark.parametrize("way", RUNS)
@pytest.mark.parametrize("pair", PAIRS)
def test_runs_see_writes_through_shared_memory(pair: Callable[[], Pair], way: str) -> None:
    a, b = pair()
    before = a.copy(), b.copy()
    try:
        found = RUNS[way](a, b)
    except irtool.UnsupportedError as error:
        assert "share" in str(error)
        assert pair in REFUSED or way in MAY_REFUSE and pair not in (backwards_apart, apart_in_a_buffer) or \
            way == "recorded" and pair in SEVERAL_DTYPES
    else:
        assert pair not in REFUSED
        np.testing.assert_array_equal(found, seen(pair)[1] * 2.)
    np.testing.assert_array_equal(a, before[0])       # a run leaves the caller's arrays alone
    np.testing.assert_array_equal(b, before[1])


@pytest.mark.parametrize("way", GRADIENTS)
@pytest.mark.parametrize("pair", PAIRS)
def test_gradients_see_writes_through_shared_memory(pair: Callable[[], Pair], way: str) -> None:
    try:
        (found,) = GRADIENTS[way](*pair())
    except irtool.UnsupportedError as error:
        assert "share" in str(error) and (pair in REFUSED or pair in SEVERAL_DTYPES)
    else:
        np.testing.assert_allclose(found, seen(pair)[1].astype(float).sum(), rtol=1e-5)


@pytest.mark.parametrize("way", FUNCTIONS)
@pytest.mark.parametrize("pair", PAIRS)
def test_functions_write_into_shared_memory(pair: Callable[[], Pair], way: str) -> None:
    """They write into the caller's arrays, as torch does."""
    a, b = pair()
    if way == "eager" and pair is other_byte_order:
        return      # a handle for such an array is a copy
    try:
        found = FUNCTIONS[way](a, b)
    except irtool.UnsupportedError as error:
        assert way != "eager" and "share" in str(error) and pair not in ALL_RUN
    else:
        after = seen(pair)
        np.testing.assert_array_equal(np.asarray(found), after[1] * 2.)
        np.testing.assert_array_equal(a, after[0])
        np.testing.assert_array_equal(b, after[1])


@pytest.mark.parametrize("way", TRANSFORMED)
@pytest.mark.parametrize("pair", PAIRS)
def test_transformed_functions_refuse_writes_into_shared_memory(pair: Callable[[], Pair], way: str) -> None:
    try:
        found = TRANSFORMED[way](*pair())
    except irtool.Error as error:
        assert pair not in ALL_RUN or "extents" in str(error) or "differentiated" in str(error) or "in-place" in str(error), error
    else:
        np.testing.assert_array_equal(np.asarray(found), (seen(pair)[1] * 2.).sum() if way == "value and gradient" else seen(pair)[1] * 2.)


LISTS = irtool.from_script("def f(a: List[Tensor], b: Dict[str, Tensor]):\n    a[1].add_(1)\n    return a[0] * 2, b['k'] * 2\n")


@pytest.mark.parametrize("run", [lambda *args: irtool.run(LISTS, args, interpret=True), lambda *args: irtool.compile(LISTS)(*args)])
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair not in REFUSED])
def test_arrays_in_lists_and_dicts_share_memory_too(pair: Callable[[], Pair], run: Callable[..., Any]) -> None:
    a, b = pair()
    ((first, second),) = run([b, a], {"k": b})
    np.testing.assert_array_equal(first, seen(pair)[1] * 2)
    np.testing.assert_array_equal(second, seen(pair)[1] * 2)
    if pair is not both_backwards:
        with pytest.raises(irtool.UnsupportedError, match="share memory"):
            run([a[::-1], a], {"k": b})


OTHERS = irtool.from_script("def f(a: Tensor, b: Tensor, c: Tensor):\n    d = b + 1\n    d.add_(c)\n    a.add_(1)\n    return d + b - a\n")


@pytest.mark.parametrize("run", [lambda *args: irtool.run(OTHERS, args, interpret=True), lambda *args: irtool.compile(OTHERS)(*args)])
def test_memory_that_is_only_read_may_lie_backwards(run: Callable[..., Any]) -> None:
    x = np.arange(4.)
    np.testing.assert_array_equal(run(np.ones(4), x, x[::-1])[0], x + x + x[::-1] - 1)


NUMBERS = irtool.from_script("def f(a: Tensor, b: Tensor):\n    a.mul_(2)\n    return b + 0\n")


@pytest.mark.parametrize("run", [lambda *args: irtool.run(NUMBERS, args, interpret=True), lambda *args: irtool.compile(NUMBERS)(*args)])
@pytest.mark.parametrize("swap", [False, True])
def test_conjugates_are_refused_where_a_write_would_reach_them(run: Callable[..., Any], swap: bool) -> None:
    x = irtool.Tensor(np.array([1 + 2j, 3 - 1j]))
    pair = (x, x.conj())
    with pytest.raises(irtool.UnsupportedError, match="share memory"):
        run(*[each.array for each in (pair[::-1] if swap else pair)])
    conjugate = x.conj()
    np.testing.assert_array_equal(run(conjugate.array, conjugate.array)[0], np.array([2 - 4j, 6 + 2j]))


def test_conjugates_follow_writes_through_other_owners() -> None:
    memory = bytearray(np.array([1 + 2j, 3 - 1j]).tobytes())
    x, y = irtool.Tensor(np.frombuffer(memory, complex)), irtool.Tensor(np.frombuffer(memory, complex, offset=16))
    conjugate = x.conj()
    y.mul_(2)
    np.testing.assert_array_equal(np.asarray(conjugate), [1 - 2j, 6 + 2j])
    conjugate.mul_(2)
    np.testing.assert_array_equal(np.asarray(y), [12 - 4j])
    owned = np.array([1 + 2j])
    conjugate = irtool.Tensor(owned).conj()
    irtool.Tensor(np.frombuffer(owned, complex)).add_(1)
    np.testing.assert_array_equal(np.asarray(conjugate), [2 - 2j])


def test_inputs_on_a_device() -> None:
    """What goes there is copied: one array once, but two that share memory would be taken apart. So are parts of memory that is there."""
    module = irtool.from_script("def f(a: Tensor, b: Tensor):\n    a.add_(1)\n    return b * 2\n")
    with fake_cupy.installed() as cupy:
        x = np.arange(4.)
        there = cupy.asarray(x)
        for run in (lambda *args: irtool.run(module, args, backend="cupy", interpret=True)[0],
                    lambda *args: irtool.compile(module, backend="cupy", optimize=False)(*args)[0]):
            np.testing.assert_array_equal(run(x, x).get(), (x + 1) * 2)
            np.testing.assert_array_equal(run(there, there).get(), (x + 1) * 2)
            np.testing.assert_array_equal(run(there[:2], there[2:]).get(), x[2:] * 2)
            for pair in ((x, x[1:]), (x[:3], x[1:]), (there, there[1:])):
                with pytest.raises(irtool.UnsupportedError, match="share memory"):
                    run(*pair)


def test_what_is_known_of_memory_at_once() -> None:
    x, memory = np.zeros((4, 5)), buffer()
    assert are_apart([]) and are_apart([x]) and are_apart([x[:2], x[2:]]) and not are_apart([x, x])
    assert are_apart([x, np.zeros(1), np.zeros(2)]) and not are_apart([x, x, np.zeros(1)])
    assert not are_apart([np.zeros(1), np.frombuffer(memory), np.frombuffer(memory)])
    for view in (x, x[1:], x.T, x[::-1], x[1:3, ::-2], x[:, 2], np.zeros(())):
        steps = [sum(np.multiply(place, view.strides)) for place in np.ndindex(view.shape)]
        assert bounds_of(view) == (address_of(view) + min(steps), address_of(view) + max(steps) + 8)
