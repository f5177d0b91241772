"""Modules of archives in Python: what aliases what, hooks, state as a whole, calls under layers and from threads, against torch."""
from __future__ import annotations

import copy
import enum
import pickle
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import irtool

FOLDER = Path(__file__).parent / "data" / "archives"
X = np.random.default_rng(0).standard_normal((2, 2, 5, 5)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    first: Any
    second: int


def module(name: str) -> Any:
    return irtool.load(FOLDER / f"{name}.pt")


def first_call(name: str) -> list[Any]:
    """Arguments of the first call that torch made."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        values = [arrays[key] for key in arrays.files if key.startswith("0.") and ".out" not in key]
    return [each.item() if each.ndim == 0 else each for each in values]


def flat(value: Any) -> list[Any]:
    return [each for item in value for each in flat(item)] if isinstance(value, list | tuple) else [np.asarray(value)]


def same(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(flat(one), flat(other), strict=True))


def state_of(script: Any) -> dict[str, Any]:
    return {name: array.copy() for name, array in script.state_dict().items()}


def loss(script: Any, parameters: Any, x: Any, y: Any) -> Any:
    return ((irtool.functional_call(script, parameters, (x,)) - y) ** 2).mean()


# -- what is whose
def test_results_and_arguments_share_no_memory_with_the_state() -> None:
    hooked, x = module("hooked"), np.ones((2, 1, 3), np.float32)
    result = hooked.forward(x)
    assert same(result, hooked.total)
    result[...] = 7
    x[...] = 7
    assert not same(hooked.total, result)
    assert same(hooked.last, np.ones((2, 1, 3)))


def test_hooks_run_where_the_module_is_called() -> None:
    x = first_call("hooked")[0]
    called, plain = module("hooked"), module("hooked")
    np.testing.assert_allclose(called(x), plain.forward(x * 2) + 100, rtol=1e-6)
    assert module("hooked").steps == 0
    assert called.steps == 1
    with_gradients = module("hooked")
    np.testing.assert_allclose(irtool.value_and_grad(lambda a: with_gradients(a).sum())(x)[0], module("hooked")(x).sum(), rtol=1e-6)


@pytest.mark.parametrize("name", ["net_train", "state", "shared", "choice", "hooked", "objects", "quantized_dynamic"])
def test_copies_have_a_state_of_their_own(name: str) -> None:
    original, arguments = module(name), first_call(name)
    others = [copy.deepcopy(original), pickle.loads(pickle.dumps(original))]
    first, second = original(*arguments), original(*arguments)
    for other in others:
        assert same(other(*arguments), first)
        assert same(copy.deepcopy(other)(*arguments), second)
        assert same(pickle.loads(pickle.dumps(other))(*arguments), second)
    for other in others:
        if name == "shared":
            assert other.a.weight is other.b.weight
            assert np.shares_memory(other.whole, other.part)
        if name == "hooked":
            assert other.lstm._flat_weights[0] is other.lstm.weight_ih_l0


def test_objects_are_references_and_members_and_tuples_have_names() -> None:
    script, one = module("objects"), np.ones(2, np.float32)
    assert script.the_counter().n == script.counter.n == 3
    assert script.counter == script.the_counter() != script.line
    assert (script.line.in_features, module("hooked").lstm.mode) == (2, "LSTM")
    assert script.count(script.counter, 2) == script.the_counter().up(0) == 5
    assert script(one, 4)[1] == 9
    assert script.counter.n == 9
    (colour, (first, second)), (same_colour, (third,)) = script.mixed(script.colour, (one, 7)), script.mixed(Colour.BLUE, Pair(one, 7))
    assert (colour.name, colour.value, same_colour.name, script.colour.value) == ("BLUE", 2, "RED", 1)
    assert colour == Colour.BLUE
    assert repr(pickle.loads(pickle.dumps(third))) == repr(copy.deepcopy(third)) == repr(third) and type(third).__name__ == 'Pair'
    assert (first._fields, first.second, second.second, third.first.tolist()) == (("first", "second"), 7, 7, [1, 1])
    for other in (copy.deepcopy(script), pickle.loads(pickle.dumps(script))):
        assert other.count(other.counter, 1) == 10
        with pytest.raises(irtool.RunError, match="expected int, got 1.0"):     # as torch's methods do, where its interpreter takes them
            other.count(other.counter, 1.0)
        assert script.counter.n == 9


@pytest.mark.parametrize(("name", "value", "expected"), [       # as torch takes them
    ("scale", 2, 2.0), ("size", True, 1), ("size", np.int64(3), 3), ("size", 1.5, None), ("size", "1", None), ("names", ("b",), ["b"]),
    ("names", [1], None), ("weight", np.zeros(5), np.zeros(5)), ("weight", irtool.Tensor(np.zeros(1)), np.zeros(1)), ("weight", 1.0, None),
    ("weight", None, None), ("training", 0, False), ("line", np.zeros(2), None), ("new", 1, None), ("forward", 1, None),
])
def test_attributes_take_what_they_are_declared_as(name: str, value: Any, expected: Any) -> None:
    script = module("objects")
    before = getattr(script, name, None)
    if expected is None:
        with pytest.raises(irtool.Error):
            setattr(script, name, value)
        assert callable(before) or getattr(script, name, None) is before
        return
    setattr(script, name, value)
    now = getattr(script, name)
    assert type(now) is type(expected)
    assert np.array_equal(now, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(4))
def test_what_shares_memory_shares_it_as_in_torch(seed: int) -> None:
    import torch

    script, oracle = module("aliases"), torch.jit.load(FOLDER / "aliases.pt")
    rng = np.random.default_rng(seed)
    names = sorted({*script.methods()} - {"forward"})

    def held(owner: Any) -> list[Any]:
        return flat([owner.base, owner.other, list(owner.cache), list(owner.table.values()), owner.pair])
    for _ in range(40):
        name = ["forward", *names][rng.integers(len(names) + 1)]
        x = rng.integers(-3, 4, 3).astype(np.float32)
        wanted = getattr(oracle, name)(torch.tensor(x))
        if seed % 2 and rng.integers(2):
            script.vjp(name, [x], [None] * (0 if name == "push" else len(flat(wanted))), [0])
        else:
            assert same(getattr(script, name)(x), wanted), name
        assert same(held(script), held(oracle)), name


def test_load_state_dict_writes_all_or_nothing(tmp_path: Path) -> None:
    source, target = module("net_train"), module("net_train")
    source(X)
    np.savez(tmp_path / "state.npz", **source.state_dict())
    bias = target.head.bias
    assert not any(target.load_state_dict(tmp_path / "state.npz"))
    assert all(same(array, source.state_dict()[name]) for name, array in target.state_dict().items())
    assert target.head.bias is bias
    before = state_of(target)
    with pytest.raises(irtool.RunError, match=r"has no 'head.weigth' \(did you mean 'head.weight'\?\); .* lacks .*; 'head.bias' is of"):
        target.load_state_dict({"body.0.bias": np.zeros(4), "head.weigth": np.zeros((3, 4)), "head.bias": np.zeros(2)})
    assert target.load_state_dict({"head.bias": np.zeros(3), "extra": 1}, strict=False).unexpected_keys == ["extra"]
    assert all(same(array, before[name]) for name, array in target.state_dict().items() if name != "head.bias")


def test_to_converts_what_is_held_twice_once() -> None:
    hooked = module("hooked").to("float64")
    assert hooked.lstm._flat_weights[0] is hooked.lstm.weight_ih_l0
    assert hooked(np.ones((2, 1, 3))).dtype == np.float64
    assert module("net_train").to(irtool.torch.float64).state_dict()["body.1.num_batches_tracked"].dtype == np.int64
    with pytest.raises(irtool.RunError, match="not int8"):
        hooked.to(np.int8)
    with pytest.raises(irtool.UnsupportedError, match="bfloat16"):
        hooked.to(irtool.torch.bfloat16)


@pytest.mark.oracle
def test_requires_grad_and_dtypes_are_saved(tmp_path: Path) -> None:
    import torch

    for on in (True, False):
        script = copy.deepcopy(module("hooked").requires_grad_(on)).to(np.float64)
        irtool.save(script, tmp_path / "m.pt")
        parameters = list(torch.jit.load(tmp_path / "m.pt").parameters())
        assert {(each.requires_grad, each.dtype) for each in parameters} == {(on, torch.float64)}


def test_several_sizes_share_one_plan() -> None:
    net = module("net_traced")
    for rows in range(1, 5):
        net(np.ones((rows, 2, 4 + rows, 4), np.float32))
    (variant,) = net.method("__call__").variants
    assert len(variant.executor.plans) == 1


def test_numbers_that_change_often_are_no_reason_to_compile_again() -> None:
    script, one = module("objects"), np.ones(2, np.float32)
    for step in range(30):
        script.scale = step / 2
        assert script(one, 1)[0].tolist() == [step / 2] * 2
    assert len(script.method("__call__").variants) == 2


def test_calls_from_several_threads_lose_no_write() -> None:
    state, net = module("state"), module("net_traced")
    wanted = net(X)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: state(np.ones(2, np.float32), 1), range(64)))
        assert all(pool.map(lambda _: np.array_equal(net(X), wanted), range(64)))
    assert state.steps == 64
    assert len(state.seen) == 65


# -- functional_call
def test_functional_call_takes_arrays_in_place_of_parameters() -> None:
    hooked, x = module("hooked"), first_call("hooked")[0]
    weights = {name: np.zeros_like(array) for name, array in hooked.named_parameters()}
    assert same(irtool.functional_call(hooked, weights, x), np.float32([100, 100]))       # the weights in the list are replaced, too
    total = np.float32([1, 2])
    given = {**weights, "total": total}
    irtool.functional_call(hooked, given, (x,))
    assert same(given["total"], total)          # it was assigned zeros more
    eye, ones = np.eye(3, dtype=np.float32), np.ones(3, np.float32)
    shared = module("shared")
    assert same(irtool.functional_call(shared, {"a.weight": eye}, ones), irtool.functional_call(module("shared"), {"b.weight": eye}, ones))
    for wrong, message in (({"a.weigth": eye}, "did you mean 'a.weight'"), ({"a.weight": eye, "b.weight": eye + 1}, "are one tensor"),
                           ({"a.weight": "eye"}, "takes an array")):
        with pytest.raises(irtool.RunError, match=message):
            irtool.functional_call(shared, wrong, ones)


def test_functional_call_takes_several_dicts_and_no_arguments() -> None:
    hooked, x = module("hooked"), first_call("hooked")[0]
    weights = {name: np.zeros_like(array) for name, array in hooked.named_parameters()}
    names = sorted(weights)
    parts = {name: weights[name] for name in names[:1]}, {name: weights[name] for name in names[1:]}
    for several in (parts, list(parts), (parts[1], {}, parts[0])):
        assert same(irtool.functional_call(hooked, several, x), irtool.functional_call(hooked, weights, x))
    assert same(irtool.functional_call(hooked, weights, None, {hooked.forward.parameters.names[0]: x}),
                irtool.functional_call(hooked, weights, x))
    slope = irtool.grad(lambda a, b: irtool.functional_call(module("hooked"), (a, b), x).sum())(*parts)
    assert sorted(slope) == names[:1]
    for wrong, message in (((parts[0], weights), "appeared in multiple dictionaries; behavior of functional call is ambiguous"),
                           ((parts[0], 3), "Expected all elements of parameter_and_buffer_dicts to be dictionaries"),
                           (3, "or a list/tuple of dicts"), (None, "or a list/tuple of dicts")):
        with pytest.raises(irtool.RunError, match=message):
            irtool.functional_call(hooked, wrong, x)
    with pytest.raises(irtool.RunError):
        irtool.functional_call(hooked, weights, None)


def test_batched_and_compiled_calls_give_what_single_ones_do() -> None:
    net = module("net_train").eval()
    parameters = dict(net.named_parameters())
    gradients = irtool.vmap(irtool.grad(lambda p, x, y: loss(net, p, x, y)), in_dims=(None, 0, 0))(parameters, X[:, None], Y[:, None])
    for row in range(2):
        single = irtool.grad(lambda p, row=row: loss(net, p, X[row:row + 1], Y[row:row + 1]))(parameters)
        for name in parameters:
            np.testing.assert_allclose(np.asarray(gradients[name])[row], np.asarray(single[name]), atol=1e-6)
    compiled = irtool.jit(lambda p, x: irtool.functional_call(net, p, x))
    for scale in (1, 2):
        np.testing.assert_allclose(compiled(parameters, X * scale), net(X * scale), rtol=1e-5)
    for call in (net, net.forward):
        np.testing.assert_allclose(irtool.jit(call)(X), net(X), rtol=1e-5)
        np.testing.assert_allclose(irtool.vmap(call)(X[:, None])[:, 0], net(X), rtol=1e-5)
    exact, x = copy.deepcopy(net).to("float64"), X.astype(np.float64)
    value, slope = irtool.jvp(lambda x: exact(x), (x,), (np.ones_like(x),))
    np.testing.assert_allclose(value, exact(x))
    np.testing.assert_allclose(slope, (exact(x + 1e-6) - exact(x - 1e-6)) / 2e-6, atol=1e-7)


def test_what_a_layer_would_lose_is_refused() -> None:
    net, before = module("net_train"), state_of(module("net_train"))
    for wrong in (irtool.jit(lambda x: net(x)), irtool.vmap(lambda x: net(x[None]))):
        with pytest.raises(irtool.Error, match=r"give it among the parameters|were not batched"):
            wrong(X)
    assert all(same(array, before[name]) for name, array in net.state_dict().items())
    buffers = {name: irtool.Tensor(array.copy()) for name, array in net.named_buffers()}
    compiled = irtool.jit(lambda b, x: irtool.functional_call(net, b, x))
    for _ in range(3):
        compiled(buffers, X)
    other = module("net_train")
    for _ in range(3):
        other(X)
    assert all(np.allclose(tensor, other.state_dict()[name]) for name, tensor in buffers.items())
    assert all(same(array, before[name]) for name, array in net.state_dict().items())


def test_branches_must_not_train_a_module() -> None:
    net = module("net_train")
    before, x = state_of(net), irtool.Tensor(X)

    def branch(y: Any) -> Any:
        return irtool.torch.cond(y.sum() > 0, lambda y: y.sum() * 2, lambda y: net(x).sum() + y.sum(), (y,))
    for call in (lambda: irtool.vmap(branch)(np.ones((2, 2))), lambda: irtool.jit(branch)(np.ones(2)), lambda: branch(irtool.Tensor(-X))):
        with pytest.raises(irtool.RunError, match="cond: false_fn writes into the attribute"):
            call()
    assert all(same(array, before[name]) for name, array in net.state_dict().items())
    net.eval()
    assert irtool.vmap(branch)(np.ones((2, 2), np.float32)).shape == [2]


def test_an_ensemble_trains_its_own_statistics() -> None:
    net = module("net_train")
    stacked = {name: np.stack([array, array * 2]) for name, array in net.named_parameters()}

    def call(parameters: Any, buffers: Any, x: Any) -> Any:
        return irtool.functional_call(net, {**parameters, **buffers}, x)
    for transform in (lambda f: f, irtool.jit):
        buffers = {name: irtool.Tensor(np.stack([array, array])) for name, array in net.named_buffers()}
        results = transform(irtool.vmap(call, in_dims=(0, 0, None)))(stacked, buffers, X)
        for place in range(2):
            single = module("net_train")
            wanted = irtool.functional_call(single, {name: array[place] for name, array in stacked.items()}, X)
            np.testing.assert_allclose(np.asarray(results)[place], wanted, rtol=1e-4, atol=1e-5)
            for name, array in single.named_buffers():
                np.testing.assert_allclose(np.asarray(buffers[name])[place], array, rtol=1e-5)
    assert net.state_dict()["body.1.num_batches_tracked"] == 0


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "way"), [("net_train", "vjp"), ("hooked", "vjp"), ("shared", "vjp"), ("net_train", "grad"),
                                           ("hooked", "grad")])
def test_gradients_of_parameters_are_torch_s(name: str, way: str) -> None:
    import torch

    script, oracle = module(name), torch.jit.load(FOLDER / f"{name}.pt")
    parameters, arguments = dict(script.named_parameters()), first_call(name)

    def total(results: Any) -> Any:
        return sum((each ** 2).sum() for each in (results if isinstance(results, tuple) else (results,)))
    total(oracle(*map(torch.tensor, arguments))).backward()
    if way == "grad":
        gradients = irtool.grad(lambda p: total(irtool.functional_call(script, p, tuple(arguments))))(parameters)
    else:
        results = copy.deepcopy(script)(*arguments)
        seeds = [2 * each for each in (results if isinstance(results, tuple) else (results,))]
        gradients = dict(zip(parameters, script.vjp("__call__", arguments, seeds, list(parameters)), strict=True))
    for key, tensor in oracle.named_parameters():
        np.testing.assert_allclose(np.asarray(gradients[key]), tensor.grad.numpy(), rtol=1e-4, atol=1e-5)
    for key, tensor in oracle.state_dict().items():
        np.testing.assert_allclose(script.state_dict()[key], tensor.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_memory_that_is_shared_and_written_is_refused_under_layers() -> None:
    shared = module("shared")
    with pytest.raises(irtool.UnsupportedError, match="whose memory another one shares"):
        irtool.grad(lambda x: shared(x)[0].sum())(first_call("shared")[0])


@pytest.mark.oracle
def test_the_training_loop_of_the_examples_follows_torch(tmp_path: Path) -> None:
    import torch

    examples = Path(__file__).parents[1] / "examples"
    train: Any = runpy.run_path(str(examples / "train.py"))
    script, oracle = irtool.load(examples / "model.pt").train(), torch.jit.load(examples / "model.pt").train()
    mine, theirs = train["SGD"](script), torch.optim.SGD(oracle.parameters(), 0.05, momentum=0.9)
    for x, y in train["batches"](20):
        theirs.zero_grad()
        loss = torch.nn.functional.cross_entropy(oracle(torch.tensor(x)), torch.tensor(y))
        loss.backward()
        theirs.step()
        assert mine.step(x, y) == pytest.approx(loss.item(), rel=1e-4)
        for name, tensor in oracle.state_dict().items():
            np.testing.assert_allclose(script.state_dict()[name], tensor.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
    train["main"](str(examples / "model.pt"), str(tmp_path / "trained.pt"))
    assert torch.jit.load(tmp_path / "trained.pt").state_dict()["body.1.num_batches_tracked"] == 60


# -- errors
def test_errors_name_the_code_of_the_archive_and_what_it_is_made_from() -> None:
    for run in (module("hooked"), lambda x: module("hooked").vjp("forward", [x], [np.ones(2)], [0]), irtool.grad(module("hooked"))):
        for _ in range(2):
            with pytest.raises(irtool.RunError, match="ValueError: expected 3 dimensions, not 2") as raised:
                run(np.ones((2, 3), np.float32))
    text = str(raised.value)
    assert 'hooked.pt:code/__torch__/make.py:17:7: error: ' in text
    assert 'note: this is made from\n            raise ValueError("expected 3 dimensions' in text
    with pytest.raises(irtool.RunError, match=r"note: this is made from\nconv.py\(\d+\): _conv_forward"):      # traced
        module("net_traced")(np.ones((2, 3), np.float32))


def test_layers_refuse_what_they_have_no_rule_for() -> None:
    """Nodes of other name spaces went past the layers, on the elements at the bottom."""
    quantized = module("quantized_dynamic")
    with pytest.raises(irtool.Error, match="under vmap is not supported"):
        irtool.vmap(lambda x: quantized(x)[0])(np.ones((2, 2, 3, 3), np.float32))


def test_a_future_is_its_value() -> None:
    choice, (x, index) = module("choice"), first_call("choice")
    assert "Future" not in str(choice.graph())
    exact = choice.to("float64")
    (gradient,) = exact.vjp("forward", [x.astype(np.float64), index], [np.ones((3, 2))], [0])
    step = np.zeros_like(x, np.float64)
    step[1, 1] = 1e-6
    slope = (exact(x + step, index) - exact(x - step, index)).sum() / 2e-6
    assert abs(slope - gradient[1, 1]) < 1e-6


def test_few_names_hide_attributes_of_archives() -> None:
    """Each public name of the class hides an attribute of that name: there are those of torch, and four of irtool's."""
    names = {name for name in vars(irtool.ScriptModule) if not name.startswith("_")}
    of_torch = {"train", "eval", "to", "requires_grad_", "state_dict", "load_state_dict", "named_parameters", "named_buffers", "graph",
                "named_attributes", "code"}
    assert names - of_torch <= {"method", "methods", "vjp", "inspect", "freeze", "of_archive"}


@pytest.mark.parametrize("name", ["net_train", "net_traced", "objects", "hooked"])
def test_inline_opens_the_calls_of_a_method(name: str) -> None:
    module = irtool.load(FOLDER / f"{name}.pt")
    before = str(module.graph(inlined=False))
    graph = irtool.PassManager("inline").run(irtool.Module([module.graph(inlined=False)])).graph()
    assert "prim::Call" in before and "prim::CallMethod" not in str(graph)
    assert str(module.graph(inlined=False)) == before
    kinds = [node.kind for node in graph.walk() if node.kind.startswith("aten::")]
    assert {node.kind for node in module.graph().walk() if node.kind.startswith("aten::")} <= set(kinds)
