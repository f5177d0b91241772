"""After any change of what a jitted function reads from outside, wherever Python looks for it, jit gives what eager gives.

Rows are: setup, the expression of `x` (or the statements of a function), and changes. After each change the function is called twice; the
second call needs no trace, unless the row is in TRACED_EACH_TIME.
"""
from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import irtool

ONES = np.ones(2)
CLASS = "class C: k = 3.\nc = C()"
TABLE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # where an attribute is found
    "a namespace": ("m = types.SimpleNamespace(k=3.)", "x * m.k", ("m.k = 8.",)),
    "an attribute of the object hides one of the class": (CLASS, "x * c.k", ("c.k = 8.", "del c.k", "C.k = 4.")),
    "a subclass hides a base": (f"{CLASS}\nclass D(C): pass\nd = D()", "x * d.k", ("C.k = 8.", "D.k = 9.", "d.k = 1.", "del D.k")),
    "slots": ("class S: __slots__ = ('k',)\ns = S(); s.k = 3.", "x * s.k", ("s.k = 8.",)),
    "a slot filled later": ("class S: __slots__ = ('k',)\ns = S()", "x * getattr(s, 'k', 2.)", ("s.k = 8.", "del s.k")),
    "hasattr": ("class C: pass\nc = C()", "x * c.k if hasattr(c, 'k') else x", ("c.k = 8.", "del c.k")),
    "getattr with a default": ("class C: pass\nc = C()", "x * getattr(c, 'k', 2.)", ("c.k = 8.", "C.k = 7.", "del c.k")),
    "a computed name": (f"{CLASS}\nname = 'k'", "x * getattr(c, name)", ("c.k = 8.",)),
    "a name made of parts": (CLASS, "x * getattr(c, 'kz'[:1])", ("c.k = 8.",)),
    "vars": (f"{CLASS}\nc.a = 2.", "x * sum(vars(c).values())", ("c.a = 8.", "c.b = 1.")),
    "__dict__": (f"{CLASS}\nc.a = 2.", "x * sum(c.__dict__.values())", ("c.a = 8.", "c.b = 1.", "c.__dict__ = {'a': 5.}")),
    "a metaclass": ("class M(type): k = 2.\nclass C(metaclass=M): pass", "x * C.k", ("M.k = 5.", "C.k = 7.")),
    "super": ("class B:\n def k(s): return 2.\nclass C(B):\n def k(s): return super().k() * 2\nc = C()", "x * c.k()",
              ("B.k = lambda s: 5.",)),
    "another class": (f"{CLASS}\nclass D: k = 5.", "x * c.k", ("c.__class__ = D",)),
    "another base": ("class A: k = 2.\nclass M: k = 5.\nclass B(A): pass\nb = B()", "x * b.k", ("B.__bases__ = (M,)",)),
    "an object that is passed on": (f"{CLASS}\ndef h(c, x): return x * c.k", "h(c, x)", ("c.k = 8.",)),
    "an object made inside": ("Q = [2.]\nclass C:\n def __init__(s, k): s.k = k * Q[0]", "x * C(3.).k", ("Q[0] = 5.",)),
    "attrgetter": (f"{CLASS}\nget = operator.attrgetter('k')", "x * get(c)", ("c.k = 8.",)),
    "a weak reference": (f"{CLASS}\nr = weakref.ref(c)", "x * r().k", ("c.k = 8.",)),
    "an attribute of a function": ("def h(x): return x * h.k\nh.k = 2.", "h(x)", ("h.k = 3.",)),
    # code that runs unnamed
    "a property": ("Q = [2.]\nclass C:\n @property\n def k(s): return s.a * Q[0]\nc = C(); c.a = 1.", "x * c.k", ("Q[0] = 5.", "c.a = 3.")),
    "a descriptor": ("Q = [2.]\nclass D:\n def __get__(s, o, t): return Q[0]\nclass C: k = D()\nc = C()", "x * c.k", ("Q[0] = 5.",)),
    "a cached property": ("class C:\n @functools.cached_property\n def q(s): return s.v * 2\nc = C(); c.v = 1.", "x * c.q",
                          ("c.v = 8.", "c.__dict__.pop('q')")),
    "__getattr__": ("class C:\n def __getattr__(s, n): return {'q': s.v}[n]\nc = C(); c.v = 1.", "x * c.q", ("c.v = 8.",)),
    "__getattribute__": ("Q = [2.]\nclass C:\n def __getattribute__(s, n): return Q[0] if n == 'q' else object.__getattribute__(s, n)\n"
                         "c = C()", "x * c.q", ("Q[0] = 8.",)),
    "__getitem__ and __len__": ("Q = [1., 2.]\nclass C:\n def __getitem__(s, i): return Q[i]\n def __len__(s): return len(Q)\nc = C()",
                                "x * c[0] * len(c)", ("Q[0] = 3.", "Q.append(1.)")),
    "__iter__ and __contains__": ("Q = [1.]\nclass C:\n def __iter__(s): return iter(Q)\n def __contains__(s, v): return v in Q\nc = C()",
                                  "x * sum(c) * (5. in c)", ("Q[0] = 3.", "Q.append(5.)")),
    "__missing__": ("Q = [1.]\nclass D(dict):\n def __missing__(s, k): return Q[0]\nd = D()", "x * d['q']", ("Q[0] = 3.", "d['q'] = 7.")),
    "a metaclass that is called": ("Q = [1.]\nclass M(type):\n def __call__(s): return Q[0]\nclass C(metaclass=M): pass", "x * C()",
                                   ("Q[0] = 3.",)),
    "a context manager": ("Q = [1.]\n@contextlib.contextmanager\ndef cm(): yield Q[0]", "with cm() as k: return x * k", ("Q[0] = 3.",)),
    # names
    "a global defined later": ("", "try: return x * LATER\n except NameError: return x", ("LATER = 8.", "del LATER")),
    "a global that hides a builtin": ("", "x * max(1, 2)", ("max = min",)),
    "globals()": ("", "x * globals().get('Z', 2.)", ("Z = 8.",)),
    "a function of a library": ("h = math.sin", "x * h(1.)", ("h = math.cos",)),
    "a NumPy number": ("k = np.float32(3)", "x * k", ("k = np.float32(8)",)),
    "a NumPy zero": ("k = [np.float64(0.)]", "1 / (x * k[0])", ("k[0] = np.float64(-0.)",)),
    "an import inside": ("m = sys.modules['a_module'] = types.ModuleType('a_module'); m.k = 2.", "import a_module; return x * a_module.k",
                         ("m.k = 5.", "m = sys.modules['a_module'] = types.ModuleType('a_module'); m.k = 9.")),
    "default values": ("def h(x, k=2.): return x * k", "h(x)", ("h.__defaults__ = (5.,)", "h.__code__ = (lambda x, k=1: x + k).__code__")),
    "named default values": ("def h(x, *, k=[2.], q=3.): return x * k[0] * q", "h(x)",
                             ("h.__kwdefaults__['k'][0] = 5.", "h.__kwdefaults__['q'] = 1.", "h.__kwdefaults__ = {'k': [1.], 'q': 9.}")),
    # containers
    "a set": ("s = {1, 2}", "x * sum(s) * (9 in s)", ("s.add(9)", "s.discard(1)")),
    "a deque": ("d = collections.deque([1., 2.])", "x * d[0] * len(d)", ("d.append(1.)", "d[0] = 3.")),
    "a bytearray": ("b = bytearray(b'abc')", "x * b[0] * len(b)", ("b.append(1)", "b[0] = 3")),
    "an array": ("a = array.array('d', [1., 2.])", "x * a[0]", ("a[0] = 3.",)),
    "a key of a dict": ("d = {'a': 1.}", "x * (2. if 'b' in d else 3.)", ("d['b'] = d.pop('a')",)),
    "a dict with an order of its own": ("class D(dict):\n def __iter__(s): return iter(sorted(dict.keys(s)))\nd = D(k=1.)", "x * d['k']",
                                        ("d['k'] = 5.",)),
    "a ChainMap": ("a = {'k': 1.}; m = collections.ChainMap({}, a)", "x * m['k']", ("a['k'] = 5.", "m.maps.insert(0, {'k': 9.})")),
    "a UserDict": ("u = collections.UserDict(k=1.)", "x * u['k']", ("u['k'] = 5.",)),
    "a mapping proxy": ("d = {'k': 1.}; u = types.MappingProxyType(d)", "x * u['k']", ("d['k'] = 5.",)),
    "os.environ": ("os.environ['JIT_K'] = '1'", "x * float(os.environ['JIT_K'])", ("os.environ['JIT_K'] = '2'",)),
    "the length of a long list": ("big = list(range(2000))", "x * len(big)", ("big.append(1)",)),
    # tensors
    "sizes of a tensor": ("w = irtool.Tensor(np.ones((2, 3)))", "x * w.shape[0]", ("w.t_()", "w.unsqueeze_(0)")),
    "sizes of a tensor in a dict": ("d = {'w': irtool.Tensor(np.ones((2, 3)))}", "x * d['w'].shape[0]", ("d['w'].t_()",)),
    "sizes of an array": ("w = np.ones((2, 3))", "x * w.shape[0]", ("w.shape = (3, 2)",)),
    "elements that NumPy reads": ("w = np.ones(2)", "x * w[0] + torch.tensor(w) * w.sum()", ("w *= 2", "w[1] = 5.")),
    "an array of no dimensions": ("w = np.array(2.)", "x * w", ("w[...] = 5.",)),
    # what cannot be compared
    "a threading.local": ("l = threading.local(); l.k = 2.", "x * l.k", ("l.k = 5.",)),
    "a ContextVar": ("v = contextvars.ContextVar('v', default=1.)", "x * v.get()", ("v.set(5.)",)),
    "a cache": ("Q = [2.]\n@functools.lru_cache\ndef k(n): return n * Q[0]", "x * k(3)", ("k.cache_clear()",)),
}
TRACED_EACH_TIME = {"a threading.local": "it reads a threading.local, which cannot be compared",
                    "a ContextVar": "it reads a contextvars.ContextVar, which"}
MODULES = """array collections contextlib contextvars functools math operator os sys threading types weakref""".split()


def made(setup: str, body: str) -> dict[str, Any]:
    """The globals of a program, with the function `f`."""
    names: dict[str, Any] = {"irtool": irtool, "torch": irtool.torch, "np": np, "__name__": "a_program"}
    names.update({name: __import__(name) for name in MODULES})
    is_expression = not body.startswith(("try", "with", "import"))
    exec(f"{setup}\ndef f(x):\n {'return ' if is_expression else ''}{body}", names)
    return names


@pytest.mark.parametrize("case", TABLE)
def test_a_change_outside_gives_what_eager_gives(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIT_K", "0")        # a row sets it: afterwards it is gone again
    setup, body, changes = TABLE[case]
    names = made(setup, body)
    eager, fast = names["f"], irtool.jit(names["f"])
    try:
        with warnings.catch_warnings(), np.errstate(divide="ignore"):
            warnings.simplefilter("error", irtool.dispatch.tracer.TraceWarning)
            for change in ("", *changes, ""):
                exec(change, names)
                for again in range(3):
                    assert np.array_equal(np.asarray(fast(ONES)), np.asarray(eager(irtool.Tensor(ONES)))), change
                    assert again == 0 or bool(fast.why) == (case in TRACED_EACH_TIME), fast.why
    finally:
        sys.modules.pop("a_module", None)
    if case in TRACED_EACH_TIME:
        assert fast.variants.why.startswith(TRACED_EACH_TIME[case]) and fast.variants.why.endswith(": it is traced in each call")
        assert len(fast.variants) == 1


def test_a_cache_whose_results_are_of_earlier_times() -> None:
    names = made("h = [2.]\n@functools.lru_cache\ndef k(): return h[0]", "x * k()")
    fast, eager = irtool.jit(names["f"]), names["f"]
    for change in ("", "h[0] = 4.", "k.cache_clear()", "h[0] = 2.", "k.cache_clear()"):
        exec(change, names)
        for _ in range(2):
            assert np.asarray(fast(ONES)).tolist() == np.asarray(eager(irtool.Tensor(ONES))).tolist(), change
        if change == "h[0] = 4.":
            assert fast.why == "it calls k, whose cached results may be of before a change of what it reads: it is traced in each call"


def test_iterators_and_generators_of_random_numbers_go_on() -> None:
    for setup, body in (("it = iter([2., 3., 4., 5.])", "x * next(it)"), ("r = np.random.default_rng(0)", "x * r.normal()")):
        fast, eager = irtool.jit(made(setup, body)["f"]), made(setup, body)["f"]
        for _ in range(4):
            assert np.asarray(fast(ONES)).tolist() == np.asarray(eager(irtool.Tensor(ONES))).tolist()


def test_a_file_that_is_written_is_no_reason_to_trace_again(tmp_path: Any) -> None:
    with open(tmp_path / "log.txt", "w") as log:
        fast = irtool.jit(lambda x: x * 2 if print("traced", file=log) is None else x)
        fast(ONES)
        fast(ONES)
        assert not fast.why
    with open(tmp_path / "log.txt") as log:
        fast = irtool.jit(lambda x: x * len(log.readline()))
        assert [np.asarray(fast(ONES)).tolist() for _ in range(2)] == [[7, 7], [0, 0]]


def test_objects_whose_own_code_fails_are_no_obstacle() -> None:
    class Bare:
        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            raise KeyError(name)

    class Sealed:
        @property
        def __dict__(self) -> Any:      # type: ignore[override]
            raise ValueError

        def __len__(self) -> int:
            raise ValueError

        def __eq__(self, other: object) -> bool:
            raise ValueError

        __hash__ = None                 # type: ignore[assignment]
    for value in (Bare(), Sealed()):
        names = made("", "x * 2 if held['a'] is value else x")
        names |= {"value": value, "held": {"a": value}}
        fast = irtool.jit(names["f"])
        for _ in range(2):
            assert np.asarray(fast(ONES)).tolist() == [2, 2]
        assert not fast.why


def test_what_nothing_reads_is_no_change() -> None:
    names = made("class C: k = 3.\nc = C(); m = types.SimpleNamespace(k=1., z=2.)", "x * c.k * m.k")
    fast = irtool.jit(names["f"])
    fast(ONES)
    for change in ("c.other = 1.", "C.another = 2.", "m.z = 4.", "unread = 5.", "c.other = 6."):
        exec(change, names)
        fast(ONES)
        assert not fast.why, change


def test_what_the_function_remembers_may_be_changed_from_outside() -> None:
    """What the function changes itself was never compared again."""
    names = made("class C: n = 2.\nc = C()\ndef g(x):\n if not hasattr(c, 'kept'): c.kept = c.n * 2\n return x * c.kept", "g(x)")
    fast, eager = irtool.jit(names["f"]), names["f"]
    for change in ("", "del c.kept", "c.n = 5.", "c.kept = 7.", "del c.kept"):
        exec(change, names)
        for _ in range(2):
            assert np.asarray(fast(ONES)).tolist() == np.asarray(eager(irtool.Tensor(ONES))).tolist(), change


def test_elements_of_operands_are_read_in_each_run() -> None:
    names = made("w = np.ones(2); t = irtool.Tensor(np.ones(2))", "x * w + t")
    fast = irtool.jit(names["f"])
    fast(ONES)
    for step in range(20):
        exec("w += 1; t.mul_(2)", names)
        assert np.asarray(fast(ONES)).tolist() == [2.0 + step + 2.0 ** (step + 1)] * 2 and not fast.why
