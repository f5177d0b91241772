"""Conjugated views: a write into a complex tensor or into its conjugate changes both, in every way to run."""
from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.ops import conjugates
from irtool.ops.arrays import memory_of
from irtool.ops.call import call_op

PROGRAMS = {
    "y = x.conj(); x.add_(1j); return y * 2": "x.add_(1j); return x.conj() * 2",
    "y = x.conj(); y.add_(w); return x * 2": "return (x.conj() + w).conj() * 2",
    "y = x.conj(); x.mul_(w); return y, x": "z = x * w; return z.conj(), z",
    "y = x.mH; y[0].mul_(w[1]); return x, y": "z = x.mT.conj().clone(); z[0].mul_(w[1]); return z.mT.conj(), z",
    "y = x.H; y.mul_(w); return x, y": "z = x.mT.conj() * w; return z.mT.conj(), z",
    "y = x.adjoint(); x[0, 1] = 7; return y": "x[0, 1] = 7; return x.mT.conj()",
    "y = x.conj(); z = y.conj(); z.mul_(w); return x, y, z": "z = x * w; return z, z.conj(), z",
    "y = x.conj(); z = y.resolve_conj(); z.mul_(w); return x, y, z": "z = x.conj() * w; return x, x.conj(), z",
    "y = x.conj(); z = x.conj(); y[1] = w[0]; return x, z": "x[1] = w[0].conj(); return x, x.conj()",
    "l = [x.conj()]; x.mul_(2j); return l[0] + 1": "return (x * 2j).conj() + 1",
    "y = x.conj()\nfor i in range(3):\n    x.mul_(2j)\n    y.add_(w)\nreturn x, y":
        "for i in range(3):\n    x = x * 2j + w.conj()\nreturn x, x.conj()",
    "y = x.conj()\nif bool((x.real > 0).all()):\n    y.mul_(w)\nreturn x": "return x * w.conj()",
    "y = x.conj(); torch.view_as_real(x).mul_(3); return x, y": "return x * 3, x.conj() * 3",
    "y = x.conj(); x.zero_(); x.add_(w); return y": "return w.conj() + 0",
    "y = x.conj_physical(); y.mul_(w); return x, y": "return x, x.conj() * w",
    "y = x[0].expand(3, 2).conj(); y.t_(); return y, x": "return x[0].conj().expand(3, 2).mT * 1, x",
    "y = torch.meshgrid([x[0], x[1]])[0].mH; y.transpose_(0, 1); return y": "return x[0].conj().expand(2, 2).mT * 1",
    "y = x[0].expand(3, 2).adjoint(); y.swapaxes_(0, 1); x.mul_(w); return y": "return (x * w)[0].conj().expand(3, 2) * 1",
    "y = x[0].expand(3, 2).mH; y.swapdims_(0, 1); return y, x": "return x[0].conj().expand(3, 2) * 1, x",
    "y = x[0].expand(3, 2).conj(); y.unsqueeze_(1); return y, x": "return x[0].conj().expand(3, 1, 2) * 1, x",
    "y = x[0].expand(1, 3, 2).conj(); y.squeeze_(); return y, x": "return x[0].conj().expand(3, 2) * 1, x",
    "y = torch.conj(x.real); y.mul_(3.0); return x": "return torch.complex(x.real * 3.0, x.imag)",
}
"""Programs with writes -> programs that give the same without writes into conjugated views."""
X = np.array([[1 + 3j, 2 + 2j], [3 + 1j, 4 - 1j]])
W = X * (1 - 0.5j) + 3


def source(body: str) -> str:
    """A function of a program."""
    lines = body.replace("; ", "\n").split("\n")
    return "def f(x0: Tensor, w: Tensor):\n    x = x0.clone()\n" + "".join(f"    {line}\n" for line in lines)


def functionalized(module: irtool.Module) -> list[Any]:
    """The result of a graph after the pass functionalize."""
    return irtool.run(irtool.PassManager("functionalize").run(irtool.parse(str(module))), [X, W], interpret=True)


def eager(body: str) -> Any:
    """The program as a Python function on irtool's tensors."""
    names: dict[str, Any] = {"torch": irtool.torch, "Tensor": object}
    exec(source(body), names)
    return names["f"]


def arrays(results: Any) -> list[Any]:
    """Results as arrays."""
    flat = results[0] if isinstance(results, list) and isinstance(results[0], tuple) else results
    return [np.asarray(each) for each in (flat if isinstance(flat, list | tuple) else [flat])]


WAYS: dict[str, Callable[[str, irtool.Module], Any]] = {
    "interpreted": lambda body, module: irtool.run(module, [X, W], interpret=True),
    "thrice": lambda body, module: [irtool.run(module, [X, W]) for _ in range(3)][-1],
    "planned": lambda body, module: [run.run([X, W]) for run in [irtool.compile(module)] for _ in range(2)][-1],
    "native": lambda body, module: irtool.compile(module, native=True).run([X, W]),
    "not optimized": lambda body, module: irtool.compile(module, optimize=False).run([X, W]),
    "functionalized": lambda body, module: functionalized(module),
    "eager": lambda body, module: eager(body)(irtool.torch.tensor(X), irtool.torch.tensor(W)),
    "jit": lambda body, module: [jitted(X, W) for jitted in [irtool.jit(eager(body))] for _ in range(3)][-1],
    "vmap": lambda body, module: [each[1] for each in arrays(irtool.vmap(eager(body))(np.stack([W, X]), np.stack([X, W])))],
}


@pytest.mark.filterwarnings("ignore::irtool.execute.fallbacks.FallbackWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("body", PROGRAMS)
def test_writes_reach_conjugated_views(body: str, way: str) -> None:
    wants = arrays(irtool.run(irtool.from_script(source(PROGRAMS[body])), [X, W], interpret=True))
    try:
        results = arrays(WAYS[way](body, irtool.from_script(source(body))))
    except irtool.Error as error:
        assert way == "vmap" and any(word in body for word in ("view_as_real", "x.real")), error
        return
    for result, want in zip(results, wants, strict=True):
        np.testing.assert_allclose(result, want)


@pytest.mark.filterwarnings("ignore::irtool.execute.fallbacks.FallbackWarning")
@pytest.mark.parametrize("body", PROGRAMS)
def test_gradients_see_writes_into_conjugated_views(body: str) -> None:
    module, same = irtool.from_script(source(body)), irtool.from_script(source(PROGRAMS[body]))
    cotangents = [each * 0 + np.resize(X * 1j, each.shape) for each in arrays(irtool.run(same, [X, W], interpret=True))]
    wants = irtool.vjp(same, [X, W], cotangents, [0, 1], interpret=True)

    def on_tensors() -> Any:
        _, pull = irtool.torch.func.vjp(eager(body), irtool.torch.tensor(X), irtool.torch.tensor(W))
        return pull(*cotangents) if len(cotangents) == 1 else pull(tuple(cotangents))
    for way in (lambda: irtool.vjp(module, [X, W], cotangents, [0, 1], interpret=True),
                lambda: [irtool.vjp(module, [X, W], cotangents, [0, 1]) for _ in range(3)][-1], on_tensors):
        try:
            results = way()
        except irtool.UnsupportedError:
            assert any(word in body for word in ("[x.conj()]", "if bool", "adjoint", "view_as_real", "real")), body
            continue
        for result, want in zip(results, wants, strict=True):
            np.testing.assert_allclose(np.zeros_like(X) if result is None else np.asarray(result),
                                       np.zeros_like(X) if want is None else want)


@pytest.mark.oracle
@pytest.mark.parametrize("body", PROGRAMS)
def test_the_programs_mean_the_same_in_torch(body: str) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for each in (body, PROGRAMS[body]):
        names: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor}
        exec(source(each), names)
        found = names["f"](torch.tensor(X), torch.tensor(W))
        results.append([one.resolve_conj().numpy() for one in (found if isinstance(found, tuple) else (found,))])
    for result, want in zip(*results, strict=True):
        np.testing.assert_allclose(result, want)


def test_a_write_into_the_conjugate_of_an_expanded_tensor_is_refused_as_in_torch() -> None:
    module = irtool.from_script("def f(x):\n    y = x.expand(2, -1).conj()\n    y.mul_(2)\n    return y\n")
    with pytest.raises(irtool.RunError, match="more than one element of the written-to tensor refers to a single memory location"):
        irtool.run(module, [X[0]], interpret=True)


def test_pairs_are_forgotten_with_the_conjugate() -> None:
    x = X.copy()
    y = call_op("aten::conj", [x])
    part = y[0]
    del y
    assert id(memory_of(x)) in conjugates._pairs and id(memory_of(part)) in conjugates._pairs
    call_op("aten::mul_.Scalar", [x, 2])
    np.testing.assert_array_equal(part, x[0].conj())
    keys = id(memory_of(x)), id(memory_of(part))
    del part
    gc.collect()
    assert conjugates._pairs.keys().isdisjoint(keys)


def test_what_is_a_conjugated_view_is_said_alike_in_all_ways() -> None:
    """As torch: of the views of a view, too; not of copies, of its own conjugate, of real parts."""
    body = "y = x.conj(); return y.is_conj(), y[0].is_conj(), x.mH.is_conj(), x.is_conj(), y.conj().is_conj(), (y * 2).is_conj(), " \
           "x.real.is_conj(), y.resolve_conj().is_conj()"
    module = irtool.from_script(source(body), "f")
    expected = (True, True, True, False, False, False, False, False)
    assert eager(body)(irtool.torch.tensor(X), irtool.torch.tensor(W)) == irtool.run(module, [X, W], interpret=True)[0] == expected
    for options in ({}, {"optimize": False}, {"profiling": True}):
        assert irtool.compile(module, **options).run([X, W])[0] == expected


@pytest.mark.parametrize("body", PROGRAMS)
def test_compiled_functions_write_into_arguments_what_eager_ones_write(body: str) -> None:
    """Through a conjugated view of an argument, of which the caller has a conjugate, too."""
    names: dict[str, Any] = {"torch": irtool.torch, "Tensor": object}
    exec(source(body).replace("x0.clone()", "x0"), names)
    function = names["f"]
    fast = irtool.jit(function)
    for _ in range(3):
        seen = []
        for call in function, fast:
            x, w = irtool.torch.tensor(X), irtool.torch.tensor(W)
            conjugate = x.conj()
            result = call(x, w)
            seen.append(arrays([*(result if isinstance(result, tuple) else (result,)), x, w, conjugate]))
        for got, want in zip(*seen, strict=True):
            np.testing.assert_allclose(got, want)


def test_compiled_functions_do_not_write_into_arguments_that_are_conjugates() -> None:
    def function(x: Any, y: Any) -> Any:
        y.mul_(2)
        return x + 1

    x = irtool.torch.tensor(X)
    with pytest.raises(irtool.UnsupportedError, match="one is the conjugate of a tensor"):
        irtool.jit(function)(x, x.conj())
    np.testing.assert_array_equal(x, X)
    assert irtool.jit(lambda a, b: a + b)(x, x.conj()).tolist() == (X + X.conj()).tolist()
    for question in (lambda a: a.is_conj(), lambda a: a.conj().resolve_conj()):
        assert irtool.jit(question)(x) is not None
        with pytest.raises(irtool.UnsupportedError, match="an argument is the conjugate of a tensor"):
            irtool.jit(question)(x.conj())
