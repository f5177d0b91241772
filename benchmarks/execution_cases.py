"""The programs of `execution.py`, with everything that runs each of them."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import irtool

Make = Callable[[], Callable[[], Any]]
F32 = np.float32


class Case:
    """Candidates that compute the same. reference: whose results are right; targets: ratios that are to be reached."""

    def __init__(self, title: str, reference: str, candidates: dict[str, Make], targets: Sequence[tuple[str, str, float]] = (),
                 tolerance: float = 1e-4, tells_first: bool = True) -> None:
        self.title = title
        self.reference = reference
        self.candidates = candidates
        self.targets = targets
        self.tolerance = tolerance
        self.tells_first = tells_first


def normal(*shape: int, scale: float = 1.0, seed: int = 0) -> Any:
    """Random float32 numbers, the same for the same arguments."""
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(F32)


# -- what runs a program
def without_gradients(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """A torch function under no_grad."""
    import torch

    def run() -> Any:
        with torch.no_grad():
            return function(*args)
    return run


def backward(function: Callable[..., Any], data: Sequence[Any], weights: Sequence[Any]) -> Callable[[], Any]:
    """A torch function's loss, and its gradients."""
    own = [each.clone().requires_grad_() for each in weights]

    def run() -> Any:
        for each in own:
            each.grad = None
        found = function(*data, *own)
        ((found[0] if isinstance(found, tuple) else found) ** 2).sum().backward()
        return [each.grad for each in own]
    return run


def tensors(arrays: Sequence[Any]) -> list[Any]:
    """As torch has them."""
    import torch

    torch.set_num_threads(1)
    return [torch.from_numpy(each) for each in arrays]


def graph_of(function: Callable[..., Any]) -> Any:
    """The graph that torch.jit.script makes of a function."""
    import torch

    graph = torch.jit.script(function).graph.copy()
    torch._C._jit_pass_inline(graph)
    torch._C._jit_pass_dce(graph)       # what calls of functions leave behind cannot be read back
    return irtool.parse(str(graph))


def forward(graph: Callable[[], Any], args: Sequence[Any], **options: Any) -> Make:
    """irtool's executor."""
    def make() -> Callable[[], Any]:
        executor = irtool.compile(graph(), **options)
        return lambda: executor(*args)[0]
    return make


def gradients(graph: Callable[[], Any], args: Sequence[Any], wrt: Sequence[int], **options: Any) -> Make:
    """irtool's executor, forwards and backwards."""
    def make() -> Callable[[], Any]:
        executor = irtool.compile(graph(), **options)
        one = np.ones((), F32)
        return lambda: executor.vjp(list(args), [one], list(wrt))
    return make


def slots_of(graph: Any, args: Sequence[Any]) -> Callable[[], Any]:
    """The slot interpreter alone, which runs a graph the first time."""
    from irtool.execute.plan.compiled import Plan

    plan = Plan(graph.graph(), compile_after=-1)
    return lambda: plan(args)[0]


def jitted(function: Callable[..., Any], args: Sequence[Any]) -> Make:
    """jax.jit."""
    def make() -> Callable[[], Any]:
        import jax

        made, given = jax.jit(function), [jax.numpy.asarray(each) for each in args]
        return lambda: jax.block_until_ready(made(*given))
    return make


# -- C1: many small operators
OPERATORS = {"add": np.add, "mul": np.multiply, "sub": np.subtract, "maximum": np.maximum}


def chain(n: int) -> list[tuple[str, int, int]]:
    """(operator, operand, operand) of n operators; values 0 and 1 are the inputs."""
    choose = random.Random(0).choice
    return [(("add", "mul", "sub", "maximum")[i & 3], i + 1, choose((0, 1))) for i in range(n)]


def chain_text(program: Sequence[tuple[str, int, int]]) -> str:
    """As IR."""
    type = "Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu)"
    out = [f"graph(%v0 : {type}, %v1 : {type}):\n  %one : int = prim::Constant[value=1]()\n"]
    for i, (name, a, b) in enumerate(program):
        out.append(f"  %v{i + 2} : {type} = aten::{name}(%v{a}, %v{b}{', %one' if name in ('add', 'sub') else ''})\n")
    return "".join([*out, f"  return (%v{len(program) + 1})\n"])


def overhead(quick: bool) -> Iterator[Case]:
    """1000 operators on 24 numbers: what a call costs."""
    program = chain(100 if quick else 1000)
    n = len(program)
    x, y = [(np.random.default_rng(i).random((2, 3, 4)) * 0.01 + 0.995).astype(F32) for i in range(2)]
    text = chain_text(program)

    def straight() -> Callable[[], Any]:
        lines = [f" v{i + 2} = {name}(v{a}, v{b})" for i, (name, a, b) in enumerate(program)]
        return defined(lines, f"v{n + 1}")

    def over() -> Callable[[], Any]:
        lines = [f" {name}({f'v{a}' if a < 2 else f'b{a & 1}'}, v{b}, {'out=' if name == 'maximum' else ''}b{i & 1})"
                 for i, (name, a, b) in enumerate(program)]
        return defined(lines, f"b{n + 1 & 1}", b0=np.empty_like(x), b1=np.empty_like(x))

    def defined(lines: list[str], result: str, **names: Any) -> Callable[[], Any]:
        space: dict[str, Any] = {**OPERATORS, **names}
        exec("\n".join(["def run(v0, v1):", *lines, f" return {result}"]), space)       # our own text
        return lambda: space["run"](x, y)

    def jit() -> Callable[[], Any]:
        import torch

        function = torch._C._create_function_from_graph("f", torch._C.parse_ir(text))
        return without_gradients(function, *tensors([x, y]))

    def jax_chain(a: Any, b: Any) -> Any:
        import jax.numpy as jnp

        values = [a, b]
        for name, i, j in program:
            values.append({"add": jnp.add, "mul": jnp.multiply, "sub": jnp.subtract, "maximum": jnp.maximum}[name](values[i], values[j]))
        return values[-1]

    parsed = lambda: irtool.parse(text)     # noqa: E731
    yield Case(f"{n} operators on 24 numbers (C1)", "numpy straight line", {
        "numpy straight line": straight,
        "numpy straight line, out=": over,
        "torch.jit": jit,
        "jax.jit": jitted(jax_chain, [x, y]),
        "onnxruntime": lambda: session([("Add Mul Sub Max".split()[i & 3], [f"v{a}", f"v{b}"], f"v{i + 2}")
                                        for i, (_, a, b) in enumerate(program)], {"v0": x, "v1": y}, f"v{n + 1}", {}),
        "irtool": forward(parsed, [x, y]),
        "irtool, native": forward(parsed, [x, y], native=True),
        "irtool, slots alone": lambda: slots_of(parsed(), [x, y]),
    }, [("irtool", "numpy straight line", 0.95), ("irtool", "torch.jit", 1 / 2.3), ("irtool, native", "numpy straight line", 0.05),
        ("irtool, slots alone", "numpy straight line", 1.4)])


def session(nodes: Sequence[tuple[str, list[str], str]], inputs: dict[str, Any], output: str, weights: dict[str, Any]) -> Callable[[], Any]:
    """onnxruntime on one thread."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph([helper.make_node(kind, operands, [out]) for kind, operands, out in nodes], "g",
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, each.shape) for name, each in inputs.items()],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(each, name) for name, each in weights.items()])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: made.run(None, inputs)[0]


# -- C2: pointwise operators on large arrays
CHEAP = """t0 mul x y; t1 add t0 z; t2 sub t1 x; t3 mul t2 t1; t4 add t3 y; t5 maximum t4 z; t6 mul t5 x; t7 sub t6 t0; t8 add t7 z;
t9 mul t8 y; t10 maximum t9 x; t11 add t10 t4"""
TRANSCENDENTAL = """t0 mul x y; t1 add t0 z; t2 tanh t1; t3 mul t2 x; t4 add t3 y; t5 sigmoid t4; t6 mul t5 z; t7 exp t6; t8 add t7 x;
t9 tanh t8; t10 mul t9 t5; t11 add t10 t2"""


def pointwise(quick: bool) -> Iterator[Case]:
    """12 operators, three operands, one result."""
    for name, text in (("cheap", CHEAP), ("transcendental", TRANSCENDENTAL)):
        for n in (100_000,) if quick else (1_000_000, 10_000_000):
            yield pointwise_case(name, [line.split() for line in text.split(";")], n)


def pointwise_case(name: str, program: list[list[str]], n: int) -> Case:
    """One of them."""
    x, y, z = [(np.random.default_rng(i).random(n) * 0.9 + 0.05).astype(F32) for i in range(3)]
    type = f"Float({n}, strides=[1], requires_grad=0, device=cpu)"
    out = [f"graph(%x : {type}, %y : {type}, %z : {type}):\n  %one : int = prim::Constant[value=1]()\n"]
    for result, op, *operands in program:
        extra = ", %one" if op in ("add", "sub") else ""
        out.append(f"  %{result} : {type} = aten::{op}({', '.join('%' + each for each in operands)}{extra})\n")
    text = "".join([*out, f"  return (%{program[-1][0]})\n"])
    parsed = lambda: irtool.parse(text)     # noqa: E731

    def walk(functions: dict[str, Callable[..., Any]], *given: Any) -> Any:
        values = dict(zip("xyz", given, strict=True))
        for result, op, *operands in program:
            values[result] = functions[op](*[values[each] for each in operands])
        return values[program[-1][0]]

    def jax_walk(*given: Any) -> Any:
        import jax

        j = jax.numpy
        return walk({"mul": j.multiply, "add": j.add, "sub": j.subtract, "maximum": j.maximum, "tanh": j.tanh, "exp": j.exp,
                     "sigmoid": jax.nn.sigmoid}, *given)

    by_hand = {"mul": np.multiply, "add": np.add, "sub": np.subtract, "maximum": np.maximum, "tanh": np.tanh, "exp": np.exp,
               "sigmoid": lambda v: F32(1) / (F32(1) + np.exp(-v))}

    def limit() -> Callable[[], Any]:
        target = np.empty_like(x)

        def run() -> Any:       # four arrays go through memory: two copies
            np.copyto(target, x)
            np.copyto(target, y)
        return run

    def eager() -> Callable[[], Any]:
        import torch

        return without_gradients(lambda *given: walk({each: getattr(torch, each) for each in
                                                      "mul add sub maximum tanh exp sigmoid".split()}, *given), *tensors([x, y, z]))

    def jit() -> Callable[[], Any]:
        import torch

        return without_gradients(torch._C._create_function_from_graph("f", torch._C.parse_ir(text)), *tensors([x, y, z]))

    targets = [("irtool", "torch.jit", 0.5)]
    if n >= 10_000_000:
        targets = [("irtool", "torch.jit", 0.1 if name == "cheap" else 0.125), ("irtool", "jax.jit", 1.0),
                   ("irtool, native", "jax.jit", 0.6)]
        targets += [("irtool, native", "limit: 4 arrays at the speed of copies", 1.3)] * (name == "cheap")
    return Case(f"12 {name} pointwise operators on {n:,} floats (C2)", "numpy by hand", {
        "numpy by hand": lambda: lambda: walk(by_hand, x, y, z),
        "limit: 4 arrays at the speed of copies": limit,
        "torch eager": eager,
        "torch.jit": jit,
        "jax.jit": jitted(jax_walk, [x, y, z]),
        "irtool": forward(parsed, [x, y, z], native=False),
        "irtool, native": forward(parsed, [x, y, z], native=True),
    }, targets)


# -- C3: a network of three layers
def mlp(quick: bool) -> Iterator[Case]:
    """512-1024-1024-512, 128 rows."""
    import torch

    def network(x, w1, c1, w2, c2, w3, c3):     # type: ignore[no-untyped-def]
        h = torch.relu(torch.mm(x, w1) + c1)
        h = torch.relu(torch.mm(h, w2) + c2)
        return torch.mm(h, w3) + c3

    def loss(x, w1, c1, w2, c2, w3, c3):        # type: ignore[no-untyped-def]
        h = torch.relu(torch.mm(x, w1) + c1)
        h = torch.relu(torch.mm(h, w2) + c2)
        return torch.pow(torch.mm(h, w3) + c3, 2).sum()

    rows, a, b, c = (16, 32, 64, 8) if quick else (128, 512, 1024, 512)
    yield from mlp_cases(network, loss, "MLP (C3)", rows, a, b, c, [0.95, 0.95])
    yield from list(mlp_cases(network, loss, "small MLP (C6)", 16, 32, 64, 8, [1.0, 1.0]))[1:]


def mlp_cases(network: Any, loss: Any, title: str, rows: int, a: int, b: int, c: int, limits: list[float]) -> Iterator[Case]:
    """Forwards, and forwards and backwards."""
    x = normal(rows, a)
    weights = [normal(a, b, scale=a ** -.5), normal(b, scale=.1), normal(b, b, scale=b ** -.5), normal(b, scale=.1, seed=1),
               normal(b, c, scale=b ** -.5), normal(c, scale=.1)]
    t = tensors([x, *weights])

    def by_hand(x: Any, w1: Any, c1: Any, w2: Any, c2: Any, w3: Any, c3: Any, xp: Any = np) -> Any:
        h = xp.maximum(x @ w1 + c1, F32(0))
        h = xp.maximum(h @ w2 + c2, F32(0))
        return h @ w3 + c3

    def jax_loss(weights: Any, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.sum(by_hand(x, *weights, xp=jnp) ** 2)

    def jax_forward(*given: Any) -> Any:
        import jax.numpy as jnp

        return by_hand(*given, xp=jnp)

    import torch

    names = "w1 b1 w2 b2 w3 b3".split()
    layers = [("Gemm", ["x", "w1", "b1"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "w2", "b2"], "i"), ("Relu", ["i"], "s"),
              ("Gemm", ["s", "w3", "b3"], "o")]
    yield Case(f"{title} {a}-{b}-{b}-{c}, {rows} rows, forward", "torch eager", {
        "torch eager": lambda: without_gradients(network, *t),
        "numpy by hand": lambda: lambda: by_hand(x, *weights),
        "torch.jit": lambda: without_gradients(torch.jit.script(network), *t),
        "jax.jit": jitted(jax_forward, [x, *weights]),
        "onnxruntime": lambda: session(layers, {"x": x}, "o", dict(zip(names, weights, strict=True))),
        "irtool": forward(lambda: graph_of(network), [x, *weights]),
        "irtool, native": forward(lambda: graph_of(network), [x, *weights], native=True),
    }, [("irtool", "torch eager", limits[0])])
    yield Case(f"{title} {a}-{b}-{b}-{c}, {rows} rows, forward and backward", "torch eager", {
        "torch eager": lambda: backward(network, t[:1], t[1:]),
        "torch.jit": lambda: backward(torch.jit.script(network), t[:1], t[1:]),
        "jax.jit": lambda: jax_gradients(jax_loss, weights, x),
        "irtool": gradients(lambda: graph_of(loss), [x, *weights], range(1, 7)),
    }, [("irtool", "torch eager", limits[1])])


def jax_gradients(loss: Callable[..., Any], weights: Sequence[Any], *data: Any) -> Callable[[], Any]:
    """jax.jit(jax.grad(loss)) for the first argument."""
    import jax

    made = jax.jit(jax.grad(loss))
    own, given = [jax.numpy.asarray(each) for each in weights], [jax.numpy.asarray(each) for each in data]
    return lambda: jax.block_until_ready(made(own, *given))


# -- C6: many small gradients
def grad(quick: bool) -> Iterator[Case]:
    """The gradient of 200 pointwise operators on 1000 numbers."""
    import torch

    x, w = normal(1000, scale=.3), normal(1000, scale=.3, seed=1)

    def repeated(x, w):     # type: ignore[no-untyped-def]
        y = x
        for _ in range(50):
            y = torch.tanh(y * w + x) - w
        return y

    def loss(x, w):         # type: ignore[no-untyped-def]
        y = x
        for _ in range(50):
            y = torch.tanh(y * w + x) - w
        return torch.pow(y, 2).sum()

    def jax_loss(given: Any) -> Any:
        import jax.numpy as jnp

        y = given[0]
        for _ in range(50):
            y = jnp.tanh(y * given[1] + given[0]) - given[1]
        return jnp.sum(y ** 2)

    t = tensors([x, w])
    yield Case("gradient of 200 pointwise operators on 1000 numbers (C6)", "torch eager", {
        "torch eager": lambda: backward(repeated, [], t),
        "torch.jit": lambda: backward(torch.jit.script(repeated), [], t),
        "jax.jit": lambda: jax_gradients(jax_loss, [x, w]),
        "irtool": gradients(lambda: graph_of(loss), [x, w], [0, 1]),
        "irtool, native": gradients(lambda: graph_of(loss), [x, w], [0, 1], native=True),
    }, [("irtool", "torch eager", 0.2)])


# -- C4: a recurrent cell in a loop
def lstm(quick: bool) -> Iterator[Case]:
    """An LSTM cell, 100 steps."""
    import execution_lstm

    yield from execution_lstm.cases(quick)


# -- C5: a transformer block
def block(quick: bool) -> Iterator[Case]:
    """Attention and a feed-forward network, with their norms."""
    import execution_block

    yield from execution_block.cases()


CASES: dict[str, Callable[[bool], Iterator[Case]]] = {"overhead": overhead, "pointwise": pointwise, "mlp": mlp, "lstm": lstm,
                                                      "block": block, "grad": grad}
