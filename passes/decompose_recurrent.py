"""Recurrent operators as loops over time, which plans compile as a whole."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.builder import Builder
from irtool.ir.constants import argument_value
from irtool.ir.edits import inline_graph, replace_node
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.schema import node_arguments, schema_of
from irtool.ir.types import INT, TENSOR, TensorType
from irtool.torchscript.front import compile_source

Form = tuple[tuple[int, ...], str]
"""The sizes of a tensor and the name of its dtype."""

STEPS = {
    "aten::lstm": """
        i, f, g, o = torch.chunk(x[t] + y, 4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)""",
    "aten::gru": """
        xr, xu, xn = torch.chunk(x[t], 3, 1)
        yr, yu, yn = torch.chunk(y, 3, 1)
        n = torch.tanh(xn + torch.sigmoid(xr + yr) * yn)
        h = (h - n) * torch.sigmoid(xu + yu) + n""",
    "aten::rnn_tanh": """
        h = torch.tanh(x[t] + y)""",
    "aten::rnn_relu": """
        h = torch.relu(x[t] + y)""",
}
"""Kind -> a function that computes the state h (and the cell c) after a step, from the contributions of the input (x[t]) and of the
state (y) to the gates."""
LAYER = """
def layer(x: Tensor, h: Tensor, c: Tensor, w: Tensor, b: Tensor, p: Tensor):
    out: List[Tensor] = []
    for k in range(x.size(0)):
        t = {time}
        y = torch.mm(h, w){bias}{step}{projection}
        out.append(h)
    return torch.stack(out){order}, h, c
"""
"""One layer in one direction. x: (time, batch, gates); h, c: (batch, width); w, p: transposed weights; b: the hidden bias."""


def decompose_recurrent(graph: Graph) -> bool:
    """Replace `lstm`, `gru`, `rnn_tanh` and `rnn_relu` of padded sequences by loops over time, where types say all sizes.

    The products of the input with its weights are made for all times at once. Operators that train with dropout stay.

    before:
        graph(%x : Float(5, 1, 2), %h : Float(1, 1, 3), %w : Float(3, 2), %v : Float(3, 3)):
          %4 : Tensor[] = prim::ListConstruct(%w, %v)
          %5 : bool = prim::Constant[value=0]()
          %6 : int = prim::Constant[value=1]()
          %7 : float = prim::Constant[value=0.]()
          %8 : Float(5, 1, 3), %9 : Float(1, 1, 3) = aten::rnn_tanh(%x, %h, %4, %5, %6, %7, %5, %5, %5)
          return (%8)

    after:
        graph(%x : Float(5, 1, 2), %h : Float(1, 1, 3), %w : Float(3, 2), %v : Float(3, 3)):
          %10 : int = prim::Constant[value=0]()
          %11 : int = aten::size(%x, %10)
          %12 : int = prim::Constant[value=1]()
          %13 : int = aten::size(%x, %12)
          %14 : int = prim::Constant[value=-1]()
          %15 : int[] = prim::ListConstruct(%11, %13, %14)
          %16 : int = prim::Constant[value=0]()
          %17 : int = prim::Constant[value=1]()
          %18 : Tensor = aten::flatten(%x, %16, %17)
          %19 : Tensor = aten::t(%w)
          %20 : Tensor = aten::mm(%18, %19)
          %21 : Tensor = aten::reshape(%20, %15)
          %22 : int = prim::Constant[value=0]()
          %23 : int = prim::Constant[value=0]()
          %24 : Tensor = aten::select(%h, %22, %23)
          %25 : Tensor = aten::t(%v)
          %26 : int = prim::Constant[value=0]()
          %27 : bool = prim::Constant[value=1]()
          %28 : int = prim::Constant[value=1]()
          %29 : int = prim::Constant[value=0]()
          %out.1 : Tensor[] = prim::ListConstruct()
          %30 : int = aten::size(%21, %26)
          %h.1 : Tensor = prim::Loop(%30, %27, %24)
            block0(%k.1 : int, %h.2 : Tensor):
              %y.1 : Tensor = aten::mm(%h.2, %25)
              %31 : Tensor = aten::select(%21, %26, %k.1)
              %32 : Tensor = aten::add(%31, %y.1, %28)
              %h.3 : Tensor = aten::tanh(%32)
              %33 : Tensor[] = aten::append(%out.1, %h.3)
              -> (%27, %h.3)
          %34 : Float(5, 1, 3) = aten::stack(%out.1, %29)
          return (%34)
    """
    changed = False
    for node in list(graph.walk()):
        if node.kind in STEPS and replaced(node, form_of_type):
            changed = True
    if changed:
        remove_dead_nodes(graph)
    return changed


def form_of_type(value: Value) -> Form | None:
    """The sizes and the dtype that a type says."""
    type = value.type
    if not isinstance(type, TensorType) or type.dtype is None or type.sizes is None or None in type.sizes:
        return None
    return tuple(size for size in type.sizes if size is not None), type.dtype


def replaced(node: Node, form_of: Callable[[Value], Form | None]) -> bool:
    """Put a loop in the place of a recurrent operator, if its sizes are known and fit; did it?"""
    net = Net.of(node, form_of)
    if net is None:
        return False
    replace_node(node, net.written_out())
    return True


class Net:
    """A recurrent operator whose sizes are known and fit."""

    def __init__(self, node: Node, x: Value, states: list[Value], params: list[Value], numbers: list[int]) -> None:
        self.node = node
        self.x = x
        self.states = states
        self.params = params
        self.has_biases, self.layers, self.directions, self.batch_first = numbers

    @classmethod
    def of(cls, node: Node, form_of: Callable[[Value], Form | None]) -> Net | None:
        """The recurrent net of a node; None if something is unknown, or does not fit."""
        schema = schema_of(node)
        if schema is None or not schema.name.endswith(".input"):
            return None
        x, states, params, *rest = node_arguments(node, schema)
        if not (isinstance(x, Value) and isinstance(states, Value) and isinstance(params, Value)):
            return None
        has_biases, layers, dropout, train, bidirectional, batch_first = map(argument_value, rest)
        if not (isinstance(has_biases, bool | int) and isinstance(layers, int) and isinstance(bidirectional, bool | int)
                and isinstance(batch_first, bool | int) and (dropout == 0 or train in (False, 0))):
            return None
        lists = [params] if node.kind != "aten::lstm" else [params, states]
        if any(each.node.kind != "prim::ListConstruct" or any(user.kind not in STEPS for user, _ in each.uses) for each in lists):
            return None
        net = cls(node, x, list(states.node.inputs) if node.kind == "aten::lstm" else [states], list(params.node.inputs),
                  [int(has_biases), layers, 2 if bidirectional else 1, int(batch_first)])
        forms = [form_of(each) for each in (x, *net.states, *net.params)]
        if None in forms or len({form[1] for form in forms if form}) != 1 or forms[0] is None or forms[0][1] not in ("float32", "float64"):
            return None
        return net if net.fits([form[0] for form in forms if form]) else None

    def fits(self, sizes: list[tuple[int, ...]]) -> bool:
        """Are sizes (of the input, the states and the parameters) those of such a net, without empty dimensions?"""
        x, *rest = sizes
        states, params = rest[:len(self.states)], rest[len(self.states):]
        places = self.layers * self.directions
        if len(x) != 3 or not all(x) or not params or len(states) != 1 + (self.node.kind == "aten::lstm"):
            return False
        if any(len(each) != 3 for each in states) or len(params) % max(places, 1) or places < 1:
            return False
        batch = x[0 if self.batch_first else 1]
        shown, width = states[0][2], states[-1][2]
        gates = width * {"aten::lstm": 4, "aten::gru": 3}.get(self.node.kind, 1)
        wanted: list[tuple[int, ...]] = [(places, batch, shown)]
        if len(states) == 2:
            wanted.append((places, batch, width))
        features = x[2]
        for _ in range(self.layers):
            one: list[tuple[int, ...]] = [(gates, features), (gates, shown)]
            one += [*[(gates,)] * (2 * self.has_biases), *[(shown, width)] * (shown != width)]
            wanted += one * self.directions
            features = shown * self.directions
        return [*states, *params] == wanted

    def written_out(self) -> list[Value]:
        """Nodes in front of the operator that compute its results."""
        assert self.node.graph is not None
        build = Builder(self.node.graph).before(self.node)
        build.tail = self.node.tail
        kind, each = self.node.kind, len(self.params) // (self.layers * self.directions)
        x = build.call("aten::transpose", self.x, 0, 1) if self.batch_first else self.x
        sizes = build.construct_list([build.call("aten::size", x, 0), build.call("aten::size", x, 1), build.constant(-1)], INT)
        finals: list[list[Value]] = [[] for _ in self.states]
        for layer in range(self.layers):
            outputs = []
            for direction in range(self.directions):
                place = layer * self.directions + direction
                params = self.params[place * each:(place + 1) * each]
                gates = build.call("aten::mm", build.call("aten::flatten", x, 0, 1), build.call("aten::t", params[0]))
                if self.has_biases:
                    gates = build.call("aten::add", gates, params[2], 1)
                gates = build.call("aten::reshape", gates, sizes)
                first = [build.call("aten::select", state, 0, place) for state in self.states]
                projects = each % 2 == 1
                weights = [build.call("aten::t", params[1]), params[3] if self.has_biases else params[1],
                           build.call("aten::t", params[-1]) if projects else params[1]]
                source = layer_graph(kind, bool(self.has_biases), projects, direction == 1)
                (results,) = inline_graph(source, self.node, [gates, first[0], first[-1], *weights])
                output, *last = results.node.inputs
                outputs.append(output)
                for part, value in zip(finals, last, strict=False):
                    part.append(value)
            x = outputs[0] if self.directions == 1 else build.call("aten::cat", build.construct_list(outputs, TENSOR), 2)
        if self.batch_first:
            x = build.call("aten::transpose", x, 0, 1)
        whole = [x, *[build.call("aten::stack", build.construct_list(part, TENSOR), 0) for part in finals]]
        for value, old in zip(whole, self.node.outputs, strict=True):
            value.type = old.type
        return whole


@cache
def layer_graph(kind: str, has_bias: bool, projects: bool, is_backwards: bool) -> Graph:
    """The loop of one layer in one direction."""
    text = LAYER.format(time="x.size(0) - 1 - k" if is_backwards else "k", bias=" + b" if has_bias else "", step=STEPS[kind],
                        projection="\n        h = torch.mm(h, p)" if projects else "", order=".flip(0)" if is_backwards else "")
    (graph,) = compile_source(text, filename="<recurrent>").graphs
    for node in graph.walk():
        node.tail = ""          # places in this text say nothing to readers of the graph
    return graph
