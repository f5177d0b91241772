"""`irtool.torch` beside torch: the same lines of Python, run with both."""
from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import irtool
from irtool.dispatch.stack import Boxed, current
from irtool.ops import OPS

pytestmark = pytest.mark.oracle

KEYS = {"row": lambda t: 0, "all": lambda t: ..., "slice": lambda t: slice(1), "index": lambda t: t.tensor([1, 0]), "new": lambda t: None,
        "table": lambda t: t.tensor([[1], [0]]), "mask": lambda t: t.tensor([True, False]), "true": lambda t: True, "list": lambda t: [0],
        "elements": lambda t: t.tensor([[True, False, True], [False, False, True]]), "columns": lambda t: (slice(None), t.tensor([2, 0])),
        "two": lambda t: (t.tensor([0, 1]), t.tensor([1, 2])), "both": lambda t: (1, t.tensor([0])), "element": lambda t: (0, 1)}
SHAPES = [(), (1,), (3,), (1, 3), (2, 3), (1, 2, 3), (1, 1, 3), (1, 1, 1, 1), (2, 1, 3), (1, 2, 2, 3), (2, 1), (1, 1, 2, 1)]


@pytest.mark.parametrize("key", KEYS)
def test_assignments_broadcast_as_torch_does(key: str) -> None:
    torch = pytest.importorskip("torch")

    def assigned(library: Any, value: Any) -> Any:
        x = library.zeros(2, 3)
        x[KEYS[key](library)] = library.tensor(value)
        return np.asarray(x).tolist()

    for shape in SHAPES:
        value = np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float32).reshape(shape)
        try:
            wanted = assigned(torch, value)
        except RuntimeError:
            with pytest.raises(irtool.Error):
                assigned(irtool.torch, value)
        else:
            assert assigned(irtool.torch, value) == wanted, shape


def test_medians_of_nothing() -> None:
    torch = pytest.importorskip("torch")
    for name, dtype in product(["median", "nanmedian"], ["bool", "uint8", "int64", "float32", "complex64"]):
        one, other = [getattr(library, name)(library.zeros(2, 0, dtype=getattr(library, dtype))) for library in (torch, irtool.torch)]
        assert np.array_equal(one.numpy(), np.asarray(other), equal_nan=True) and one.numpy().dtype == np.asarray(other).dtype


OPERAND_OR_PART = """
a.double() a.type_as(a) a.to(a) a.to(torch.float64) a.contiguous() a.cpu() a.flatten(1,1) a.conj() a.resolve_conj() a.sum_to_size(2,3)
torch.dropout(a,0.,True) torch.dropout(a,.5,False) torch.feature_dropout(a,0.,True) torch.alpha_dropout(a,.5,False)
torch.feature_alpha_dropout(a,0.,True) torch.atleast_1d(a) torch.atleast_2d(a) torch.real(a) torch.positive(a) torch.atleast_3d(a)
a[...] a.expand_as(a) a.view_as(a) a.reshape(2,3) a.detach() a.unsafe_chunk(1)[0] a.unsafe_split(1)[1] a.unsafe_split_with_sizes([1,1])[1]
""".split()
CHANGES = ["b.mul_(3.)", "a.mul_(3.)", "b.unsqueeze_(-1)", "b.t_()", "a.unsqueeze_(0)", "b[0].add_(1.)", "(b.mul_(a.sum() + b), a.t_())",
           "b.add_(a)"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("operator", OPERAND_OR_PART)
def test_what_gives_its_operand_or_a_part_of_it_is_changed_as_in_torch(operator: str, change: str) -> None:
    """The operand itself, a view of it, or a tensor of its own to tapes: eager, traced, under tapes and under batches."""
    torch = pytest.importorskip("torch")
    lines = "a = x * 2.\nb = {}\n{}\nc, d = a.sin().flatten(), b.flatten()\nsizes = a.shape[0] * 100 + len(a.shape) * 10 + len(b.shape)\n"
    x = np.random.RandomState(0).randn(2, 3)
    def function(library: Any) -> Any:
        def f(x: Any) -> Any:
            names = {"torch": library, "x": x}
            exec(lines.format(operator, change), names)      # lines of this file
            return (names["c"][:names["d"].shape[0]] * names["d"][:names["c"].shape[0]]).sum() + names["sizes"]
        return f

    def outcome(call: Any) -> Any:
        try:
            return np.asarray(call())
        except (RuntimeError, irtool.Error):
            return None

    leaf = torch.tensor(x, requires_grad=True)
    value = outcome(lambda: function(torch)(torch.tensor(x)))
    slope = outcome(lambda: torch.autograd.grad(function(torch)(leaf), leaf)[0])
    f = function(irtool.torch)
    ways = [(value, lambda: f(irtool.torch.tensor(x))), (value, lambda: irtool.jit(f)(x)), (value, lambda: irtool.vmap(f)(x[None])[0]),
            (value, lambda: irtool.run(irtool.trace(f, [x]), [x])[0]), (slope, lambda: irtool.grad(f)(x)),
            (slope, lambda: irtool.jit(irtool.grad(f))(x)), (slope, lambda: irtool.vmap(irtool.grad(f))(x[None])[0]),
            (None if slope is None else slope.sum(), lambda: irtool.jvp(f, (x,), (np.ones_like(x),))[1])]
    for place, (wanted, way) in enumerate(ways):
        result = outcome(way)
        assert (result is None) == (wanted is None) and (wanted is None or np.allclose(result, wanted)), place


@pytest.mark.parametrize("operator", OPERAND_OR_PART)
def test_what_is_the_operand_itself_is_so_in_torch(operator: str) -> None:
    torch = pytest.importorskip("torch")
    answers = []
    for library in (torch, irtool.torch):
        a = library.ones(2, 3, dtype=library.float64)
        answers.append(eval(operator, {"torch": library, "a": a}) is a)     # lines of this file
    assert answers[0] == answers[1]


@pytest.mark.parametrize("numbers", ["[]", "[1.5, 2]", "[True, 2]", "[1, 2j]", "[[]]", "[x, x]", "[None]", "[x.size(0), x]"])
def test_script_makes_tensors_of_numbers_of_one_type(numbers: str) -> None:
    torch = pytest.importorskip("torch")
    source = f"def f(x: Tensor):\n    return torch.tensor({numbers})\n"
    with pytest.raises(RuntimeError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.CompilationUnit(source).f(torch.ones(2))
    module = irtool.from_script(source)
    for interpret in (True, False, False):
        with pytest.raises(irtool.Error, match="Input must be of ints, floats, or bools"):
            irtool.run(module, [np.ones(2)], interpret=interpret)


def test_numbers_are_no_tensors_to_write_into() -> None:
    torch = pytest.importorskip("torch")
    for name in ("sum", "mean", "prod", "amax", "argmax"):
        with pytest.raises(TypeError):
            getattr(torch.ones(2, 3), name)(0, 1)
        with pytest.raises(irtool.UnsupportedError, match=f"aten::{name} on .Tensor, int, int. is not supported"):
            getattr(irtool.torch.ones(2, 3), name)(0, 1)


def test_results_without_elements_are_no_part_of_an_operand() -> None:
    """A view of nothing shares no memory, but is read-only where the operand is."""
    torch = pytest.importorskip("torch")
    x = np.zeros((2, 0))
    x.flags.writeable = False
    assert irtool.torch.tensor(x).flip([0]).tanh_().shape == list(torch.zeros(2, 0).flip([0]).tanh_().shape)
    assert irtool.run(irtool.from_script("def f(x: Tensor):\n    return x.flip([0]).tanh_()\n"), [x])[0].shape == x.shape


@pytest.mark.parametrize("counts", [[-1, 2], [2, -1], [-1, -2], [2, 0], [-1]])
@pytest.mark.parametrize("shape", [(0, 3), (2, 3), (0,), ()])
def test_repeats_below_zero(shape: tuple[int, ...], counts: list[int]) -> None:
    torch = pytest.importorskip("torch")

    def repeated(library: Any) -> Any:
        try:
            return tuple(library.zeros(shape).repeat(counts).shape)
        except (RuntimeError, irtool.Error) as error:
            return str(error).splitlines()[0]
    assert repeated(irtool.torch) == repeated(torch)


SEVERAL = sorted(name for name, op in OPS.items() if op.samples.get(name) and " -> (Tensor" in dict(zip(op.names, op.schemas))[name]
                 and not any(each in name for each in ("svd", "dropout", "native_group_norm")))
"""Overloads of several results; not random ones, those known up to a sign, and those of which torch drops a gradient."""


@pytest.mark.parametrize("name", SEVERAL)
def test_each_result_alone_has_the_gradient_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    kind, _, variant = name.removeprefix("aten::").partition(".")
    function = getattr(getattr(torch.ops.aten, kind, None), variant or "default", None)
    text = dict(zip(OPS[name].names, OPS[name].schemas))[name]
    for sample in OPS[name].samples[name] if function else ():
        args = sample.arguments(text)
        places = [place for place, value in enumerate(args) if isinstance(value, np.ndarray) and value.dtype == np.float64]
        inputs = [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in args]
        for place in places:
            inputs[place].requires_grad_()
        try:
            outputs = function(**dict(zip([each.name for each in function._schema.arguments], inputs)))
        except (RuntimeError, TypeError):
            continue
        for number, output in enumerate(outputs):
            if not isinstance(output, torch.Tensor) or not output.requires_grad:
                continue
            seed = np.random.default_rng(0).normal(size=output.shape)
            try:
                wants = torch.autograd.grad(output, [inputs[place] for place in places], torch.from_numpy(seed).to(output.dtype),
                                            allow_unused=True, retain_graph=True)
            except RuntimeError:
                continue        # torch has no gradient

            def result(*values: Any) -> Any:
                operands = list(args)       # noqa: B023
                for place, value in zip(places, values):        # noqa: B023
                    operands[place] = value
                return current().apply(name, operands)[number]      # noqa: B023

            for want, gradient in zip(wants, irtool.torch.func.vjp(result, *[args[place] for place in places])[1](seed)):
                np.testing.assert_allclose(gradient, 0 if want is None else want, rtol=1e-6, atol=1e-8)


PYTHON = """
{a.shape: 1, a.size(): 2, b.shape: 3}
{(3,): 1}[b.shape]
a.stride() == (3, 1), a.t().stride() == (1, 3), a.stride(0), a.stride() + (4,) == (3, 1, 4), hash(a.stride()) == hash((3, 1))
reversed(a).tolist(), reversed(b).tolist(), float(reversed(a[0, 0]))
5.0 in a, float(a[1, 2]) in a, 2.5 in b, b[0] in b
[each.tolist() for each in a], [each.tolist() for each in zip(a, b)] if False else len(list(zip(a, b)))
len(a), len(b), max(b).item(), min(b).item(), sum(a).tolist(), any(b > 1), all(b > 1), [each.item() for each in sorted(b)]
len(a[0, 0])
iter(a[0, 0])
float(a[0, 0]), int(a[0, 1]), complex(a[0, 0]), bool(a[0, 0]), f"{a[0, 0]:.2f}", "%.1f" % b[0], a[0, 0].__index__() if False else 0
[1, 2, 3, 4][torch.tensor(2)], list(range(torch.tensor(3))), "ab" * torch.tensor(2), [0] * torch.tensor(2)
a.shape[0] * 2, a.shape[-1:] == (3,), (1,) + a.shape == (1, 2, 3), [*a.shape], a.shape.numel(), a.shape == torch.Size([2, 3])
""".strip().splitlines()


@pytest.mark.parametrize("line", PYTHON)
def test_python_sees_a_tensor_as_torch_s(line: str) -> None:
    torch = pytest.importorskip("torch")

    def outcome(library: Any) -> Any:
        a, b = library.tensor([[0.5, 1.0, -2.0], [3.0, 2.0, 1.5]]), library.tensor([2.5, 1.0, 4.0])
        try:
            return eval(line, {"torch": library, "a": a, "b": b})
        except (TypeError, ValueError, RuntimeError, irtool.Error) as error:
            return type(error).__name__, str(error)
    assert outcome(irtool.torch) == outcome(torch)


def test_layers_hide_no_attribute_of_tensors() -> None:
    """`x.data` is what it is outside of layers; a layer's data about a tensor has a name of its own."""
    torch = pytest.importorskip("torch")
    hidden = {name for name in vars(Boxed) if name[0] != "_" and hasattr(torch.Tensor, name)}
    assert hidden <= set(vars(irtool.Tensor))


@pytest.mark.parametrize("wrap", [lambda f: lambda x: f(irtool.Tensor(x)), irtool.vmap, irtool.jit,
                                  lambda f: lambda x: irtool.jvp(f, (x,), (x,))[0],
                                  lambda f: lambda x: irtool.grad(lambda y: (f(y).sum(), f(y)), has_aux=True)(x)[1]])
def test_writes_into_the_data_of_a_tensor(wrap: Any) -> None:
    torch = pytest.importorskip("torch")

    def function(x: Any) -> Any:
        y = x * 2
        y.data.mul_(3)
        return y * x + x.data
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert np.array_equal(np.asarray(wrap(function)(x)), function(torch.tensor(x)).numpy())
