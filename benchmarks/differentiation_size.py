"""How much a gradient pair holds: irtool's `differentiate` against torch's `_jit_differentiate`, and against AOTAutograd's min-cut.

    python benchmarks/differentiation_size.py [--untyped] [--only NAME] [--show NAME] [--record FILE]

Both differentiate the same text, with the complete types of one run (`--untyped`: with none). What is counted:

- f, df: nodes, those in blocks included, without constants, without `prim::GradOf` itself (its body counts), and without what only packs
  and unpacks tuples (torch returns its gradients as a tuple and hands contexts around as tuples). Functions that torch's formulas call are
  inlined first: their nodes would run.
- captures: what df takes of f besides gradients, tensors and others (sizes, masks of flags) apart; vjps: the gradients that it takes.
- bytes: what the captured tensors keep in memory in one run, each buffer once however many views of it are captured. The last columns
  are what `differentiate{save=least}` keeps, and what torch's AOTAutograd keeps, whose partitioner chooses the minimum cut between forward
  and backward.
"""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import irtool
from irtool.analysis.liveness import remove_dead_nodes
from irtool.autodiff.reverse import differentiate_graph
from irtool.ir.edits import flatten_values
from irtool.ir.graph import Graph
from irtool.ir.types import TensorType, contiguous_strides, tensor_type
from irtool.testing.pair_size import Figures, pair_size, saved_bytes

X = (4, 6)
SHAPES: dict[str, tuple[int, ...]] = {"x": X, "y": X, "z": X, "row": (6,), "column": (4, 1), "image": (2, 3, 8, 8), "channel": (3,)}

PROGRAMS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "product": ("x * y * x + y", {}),
    "chain": ("torch.tanh(torch.sigmoid(torch.exp(torch.sin(torch.cos(x)))))", {}),
    "roots": ("torch.sqrt(x) + torch.log(x) + torch.reciprocal(x) + torch.rsqrt(x)", {}),
    "quotient": ("(x - y) / (z + 2.0)", {}),
    "broadcast": ("(x * row + column) / (x - row)", {}),
    "matmul": ("torch.mm(torch.mm(x, w), v)", {"w": (6, 5), "v": (5, 3)}),
    "batched": ("torch.bmm(torch.tanh(a), b)", {"a": (2, 3, 4), "b": (2, 4, 5)}),
    "spread_matmul": ("torch.matmul(a, w) + bias", {"a": (2, 3, 4), "w": (4, 5), "bias": (5,)}),
    "addmm": ("torch.addmm(row, x, w).relu()", {"w": (6, 6)}),
    "linear": ("torch.nn.functional.linear(x, w, bias).relu()", {"w": (5, 6), "bias": (5,)}),
    "mlp": ("""
    h = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))
    h = torch.nn.functional.gelu(torch.nn.functional.linear(h, v, c))
    return torch.log_softmax(h, 1)""", {"w": (8, 6), "b": (8,), "v": (5, 8), "c": (5,)}),
    "layer_norm": ("torch.layer_norm(x + y, [6], row, shift)", {"shift": (6,)}),
    "batch_norm": ("torch.batch_norm(image, channel, shift, mean, var, True, 0.1, 1e-5, False)",
                   {"shift": (3,), "mean": (3,), "var": (3,)}),
    "batch_norm_eval": ("torch.relu(torch.batch_norm(image, channel, shift, mean, var, False, 0.1, 1e-5, False))",
                        {"shift": (3,), "mean": (3,), "var": (3,)}),
    "softmax": ("torch.softmax(x * 0.5, 1) * y", {}),
    "dropout": ("torch.dropout(torch.tanh(x), 0.5, True) * y", {}),
    "statistics": ("(x - torch.mean(x, [1], True)) / torch.sqrt(torch.var(x, [1], True, True) + 1e-5)", {}),
    "lstm_cell": ("""
    gates = torch.nn.functional.linear(x, w, b) + torch.nn.functional.linear(h, u, d)
    i, f, g, o = torch.chunk(gates, 4, 1)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new), new""",
                  {"h": (4, 5), "c": (4, 5), "w": (20, 6), "b": (20,), "u": (20, 5), "d": (20,)}),
    "gru_cell": ("""
    r1, z1, n1 = torch.chunk(torch.matmul(x, w) + b, 3, 1)
    r2, z2, n2 = torch.chunk(torch.matmul(h, u) + d, 3, 1)
    r, z = torch.sigmoid(r1 + r2), torch.sigmoid(z1 + z2)
    n = torch.tanh(n1 + r * n2)
    return (1.0 - z) * n + z * h""", {"h": (4, 5), "w": (6, 15), "b": (15,), "u": (5, 15), "d": (15,)}),
    "attention": ("""
    scores = torch.matmul(q, k.transpose(1, 2)) * 0.5
    return torch.matmul(torch.dropout(torch.softmax(scores, -1), 0.1, True), v)""", {"q": (2, 4, 6), "k": (2, 5, 6), "v": (2, 5, 6)}),
    "glu": ("""
    a, b = torch.chunk(torch.matmul(x, w), 2, 1)
    return a * torch.sigmoid(b)""", {"w": (6, 8)}),
    "where": ("torch.where(x > 0, torch.exp(y), z * z)", {}),
    "clamp": ("torch.clamp(x * y, -0.5, 0.5) + torch.nn.functional.hardtanh(x)", {}),
    "views": ("torch.relu(x.view([4, 2, 3]).permute([2, 0, 1]).unsqueeze(0)).squeeze(0).transpose(0, 2)", {}),
    "pools": ("torch.nn.functional.avg_pool2d(torch.relu(image), [2, 2]) * scale", {"scale": (1, 3, 1, 1)}),
    "activations": ("""
    return torch.nn.functional.silu(x) + torch.nn.functional.hardswish(y) + torch.nn.functional.leaky_relu(z, 0.1)
    """, {}),
    "rms_norm": ("x * torch.rsqrt(torch.mean(x * x, [1], True) + 1e-5) * row", {}),
    "extremes": ("torch.max(x, y) * torch.min(y, row)", {}),
    "blend": ("torch.lerp(x, y, 0.3) + torch.addcmul(z, x, y, value=2.0)", {}),
    "cut": ("torch.pow(x, 3) * torch.threshold(y, 0.1, 0.0).type_as(x) + torch.abs(z)", {}),
}
"""Name -> (an expression, or the body of a function, of the inputs it names; shapes of inputs that `SHAPES` does not have)."""


def inputs_of(name: str) -> dict[str, np.ndarray]:
    """Positive float32 inputs of a program, the same in each run."""
    import re

    body, shapes = PROGRAMS[name]
    rng = np.random.default_rng(7)
    known = {**SHAPES, **shapes}
    wanted = [key for key in known if re.search(rf"\b{key}\b", body)
              and (key in shapes or not re.search(rf"^    {key} =|, {key} =|^    {key},", body, re.MULTILINE))]
    return {key: (rng.random(known[key]) * 0.8 + 0.2).astype(np.float32) for key in wanted}


def source_of(name: str) -> str:
    """The program as TorchScript."""
    body = PROGRAMS[name][0]
    return f"def f({', '.join(inputs_of(name))}):" + (body if "return" in body else f"\n    return {body}") + "\n"


def text_of(name: str) -> str:
    """Its graph as torch scripts it, with the types of one run; results one by one rather than as a tuple."""
    import torch

    graph = torch.jit.CompilationUnit(source_of(name)).f.graph
    for change in ("inline", "canonicalize_graph_fuser_ops", "constant_propagation", "dce"):
        getattr(torch._C, f"_jit_pass_{change}")(graph)
    made = irtool.parse(str(graph)).graph()
    made.block.set_outputs(flatten_values(made.outputs))
    remove_dead_nodes(made)
    for node in made.walk():
        node.tail = ""
    annotate(made, list(inputs_of(name).values()))
    return str(made)


def annotate(graph: Graph, inputs: Sequence[np.ndarray]) -> None:
    """Give every tensor the complete type that it has in a run."""
    from irtool.ir.edits import clone_graph

    probe = clone_graph(graph)
    tensors = [[value for value in each.values() if isinstance(value.type, TensorType)] for each in (graph, probe)]
    probe.block.set_outputs(tensors[1])
    for value, array in zip(tensors[0], irtool.run(probe, [np.array(each) for each in inputs]), strict=True):
        dtype = str(np.asarray(array).dtype)
        value.type = tensor_type(dtype, array.shape, contiguous_strides(array.shape), dtype.startswith("float"), "cpu")


def untyped(text: str) -> str:
    """The same text with plain `Tensor` types."""
    graph = irtool.parse(text).graph()
    for value in graph.values():
        if isinstance(value.type, TensorType):
            value.type = tensor_type()
    return str(graph)



def each(figures: Figures) -> Figures:
    """What is compared where types are complete: everything. (A gradient that df takes for a temporary is no capture: a saved value
    that depends on an input has one, or a second derivative is wrong. torch forgets those of nodes that it replaces.)"""
    return {key: value for key, value in figures.items() if key != "vjps"}


def together(figures: Figures) -> Figures:
    """What is compared where nothing is known: torch computes sizes in f and captures them, irtool asks for them in df."""
    return {"nodes": figures["f"] + figures["df"], "captures": figures["tensors"] + figures["others"],
            "tensors": figures["tensors"], "bytes": figures["bytes"]}


def ours(text: str, inputs: Sequence[np.ndarray], least: bool = False) -> Figures:
    """What irtool makes of a text; `least`: with `save=least`."""
    graph = irtool.parse(text).graph()
    made = differentiate_graph(graph, [isinstance(value.type, TensorType) for value in graph.inputs], True, True, least=least)
    return {**pair_size(made.f, made.df, len(made.input_vjps)), "bytes": saved_bytes(made, inputs)}


def torchs(text: str, inputs: Sequence[np.ndarray]) -> tuple[Figures, str]:
    """What torch makes of it, and its text."""
    import torch

    made = torch._C._jit_differentiate(torch._C.parse_ir(text))
    f, df = made.f, made.df
    for graph in (f, df):
        torch._C._jit_pass_inline(graph)
    torch._C._jit_pass_dce(f)
    given = [torch.from_numpy(np.array(each)) for each in inputs]
    results = torch._C._jit_interpret_graph(made.f, tuple(given))
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    saved = [given[i] for i in made.df_input_captured_inputs] + [results[i] for i in made.df_input_captured_outputs]
    figures = pair_size(irtool.parse(str(f)).graph(), irtool.parse(str(df)).graph(), len(made.df_input_vjps))
    figures["bytes"] = kept([each for each in saved if isinstance(each, torch.Tensor)], _storage)
    return figures, f"{f}\n{df}"


def min_cut(name: str, inputs: Sequence[np.ndarray]) -> int:
    """Bytes that AOTAutograd keeps between forward and backward, where its partitioner chooses them."""
    import warnings

    import torch
    from functorch.compile import aot_function, make_boxed_func, min_cut_rematerialization_partition

    space: dict[str, Any] = {"torch": torch}
    exec(source_of(name), space)
    found: list[int] = []

    def compiler(module: Any, example: Sequence[Any]) -> Any:
        names = [node.name for node in module.graph.find_nodes(op="placeholder")]

        def measured(*given: Any) -> Any:
            if any(name.startswith("tangents") for name in names):
                saved = [each for each, name in zip(given, names, strict=True) if not name.startswith("tangents")]
                found.append(kept([each for each in saved if isinstance(each, torch.Tensor)], _storage))
            return module(*given)

        return make_boxed_func(measured)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = [torch.from_numpy(np.array(each)).requires_grad_(True) for each in inputs]
        if "batch_norm" in name:
            given[-2:] = [each.detach() for each in given[-2:]]
        results = aot_function(space["f"], compiler, compiler, min_cut_rematerialization_partition)(*given)
        results = results if isinstance(results, (tuple, list)) else (results,)
        sum(result.sum() for result in results).backward()
    return found[-1]


def kept(saved: Sequence[Any], buffer_of: Callable[[Any], tuple[int, int]]) -> int:
    """Bytes of the buffers behind some tensors."""
    return sum(dict(map(buffer_of, saved)).values())


def _storage(tensor: Any) -> tuple[int, int]:
    return tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--untyped", action="store_true", help="leave the types out")
    flags.add_argument("--only", default="", help="only programs whose names contain this")
    flags.add_argument("--show", default="", metavar="NAME", help="print both pairs of one program instead")
    flags.add_argument("--record", metavar="FILE", help="keep texts and torch's counts there, for the test")
    arguments = flags.parse_args()
    rows, records = [], {}
    for name in PROGRAMS:
        if arguments.only not in name or arguments.show and arguments.show != name:
            continue
        text, inputs = text_of(name), list(inputs_of(name).values())
        if arguments.untyped:
            text = untyped(text)
        theirs, shown = torchs(text, inputs)
        if arguments.show:
            print(text, shown, sep="\n")
            print(irtool.PassManager("differentiate").run(irtool.parse(text)))
            return
        own = {**ours(text, inputs), "least": ours(text, inputs, True)["bytes"]}
        rows.append((name, own, theirs, min_cut(name, inputs)))
        if arguments.record:
            records[name] = {"graph": text, "typed": theirs, "untyped": torchs(untyped(text), inputs)[0], "cut": rows[-1][-1]}
    table(rows, together if arguments.untyped else each)
    if arguments.record:
        with open(arguments.record, "w") as file:
            file.write("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(record)}" for name, record in records.items()) + "\n}\n")


def table(rows: Sequence[tuple[str, Figures, Figures, int]], judged: Callable[[Figures], dict[str, int]]) -> None:
    """One line per program, ours / torch's; where ours is worse, in what."""
    print(f"{'':16}" + "".join(f"{key:>{WIDTHS[key]}}" for key in WIDTHS) + f"{'least':>8}{'min-cut':>9}   ours / torch")
    worse = 0
    for name, own, theirs, cut in rows:
        mine, other = judged({key: own[key] for key in theirs}), judged(theirs)
        marks = [key for key in mine if mine[key] > other[key]]
        worse += bool(marks)
        print(_line(name, own, theirs, cut) + ("   worse: " + ", ".join(marks) if marks else ""))
    totals = [{key: sum(row[i][key] for row in rows) for key in rows[0][i]} for i in (1, 2)]
    print(_line("all", *totals, sum(row[3] for row in rows)))
    above = [sum(row[1][key] > row[3] for row in rows) for key in ("bytes", "least")]
    print(f"{len(rows)} graphs, worse than torch in {worse}; more bytes than the minimum cut in {above[0]}, with save=least in {above[1]}")


WIDTHS = {"f": 11, "df": 12, "tensors": 11, "others": 10, "vjps": 9, "bytes": 15}


def _line(name: str, own: Figures, theirs: Figures, cut: int) -> str:
    cells = [f"{f'{own[key]} / {theirs[key]}':>{width}}" for key, width in WIDTHS.items()]
    return f"{name:16}" + "".join(cells) + f"{own['least']:>8}{cut:>9}"


if __name__ == "__main__":
    sys.exit(main())
