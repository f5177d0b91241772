"""Depthwise convolutions as sums of products, which plans compile to one loop."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from irtool.analysis.liveness import remove_dead_nodes
from irtool.ir.builder import Builder
from irtool.ir.constants import constant, is_none
from irtool.ir.edits import replace_node
from irtool.ir.graph import Graph, Node, Value
from irtool.ir.types import INT
from irtool.passes.decompose_recurrent import Form, form_of_type

PLACES = {**dict.fromkeys(("aten::conv1d", "aten::conv2d", "aten::conv3d"), (6, None)),
          **dict.fromkeys(("aten::convolution", "aten::_convolution"), (8, 6))}
"""Kind -> the operand that says the number of groups, and the one that says whether the convolution is a transposed one."""
MOST = 49
"""Elements of the largest kernel: each costs a product."""


def decompose_depthwise(graph: Graph) -> bool:
    """Replace convolutions with a kernel per channel by sums of products of shifted inputs, where types say all sizes.

    before:
        graph(%x : Float(1, 2, 5), %w : Float(2, 1, 2)):
          %n : NoneType = prim::Constant()
          %1 : int = prim::Constant[value=1]()
          %2 : int = prim::Constant[value=2]()
          %3 : int = prim::Constant[value=0]()
          %4 : int[] = prim::ListConstruct(%1)
          %5 : int[] = prim::ListConstruct(%3)
          %6 : Float(1, 2, 4) = aten::conv1d(%x, %w, %n, %4, %5, %4, %2)
          return (%6)

    after:
        graph(%x : Float(1, 2, 5), %w : Float(2, 1, 2)):
          %7 : int = prim::Constant[value=1]()
          %8 : int = prim::Constant[value=2]()
          %9 : int = prim::Constant[value=2]()
          %10 : int = prim::Constant[value=1]()
          %11 : int[] = prim::ListConstruct(%7, %8, %9, %10)
          %12 : Tensor = aten::reshape(%w, %11)
          %13 : int = prim::Constant[value=2]()
          %14 : int = prim::Constant[value=0]()
          %15 : int = prim::Constant[value=4]()
          %16 : int = prim::Constant[value=1]()
          %17 : Tensor = aten::slice(%x, %13, %14, %15, %16)
          %18 : int = prim::Constant[value=2]()
          %19 : int = prim::Constant[value=0]()
          %20 : Tensor = aten::select(%12, %18, %19)
          %21 : Tensor = aten::mul(%17, %20)
          %22 : int = prim::Constant[value=2]()
          %23 : int = prim::Constant[value=1]()
          %24 : int = prim::Constant[value=5]()
          %25 : int = prim::Constant[value=1]()
          %26 : Tensor = aten::slice(%x, %22, %23, %24, %25)
          %27 : int = prim::Constant[value=2]()
          %28 : int = prim::Constant[value=1]()
          %29 : Tensor = aten::select(%12, %27, %28)
          %30 : Tensor = aten::mul(%26, %29)
          %31 : int = prim::Constant[value=1]()
          %32 : Float(1, 2, 4) = aten::add(%21, %30, %31)
          return (%32)
    """
    changed = False
    for node in list(graph.walk()):
        if node.kind in PLACES and replaced(node, form_of_type):
            changed = True
    if changed:
        remove_dead_nodes(graph)
    return changed


def replaced(node: Node, form_of: Callable[[Value], Form | None], least: int = 0) -> bool:
    """Put products in the place of a depthwise convolution, if its sizes are known, and it takes `least` products or more; did it?"""
    convolution = Convolution.of(node, form_of)
    if convolution is None or convolution.products < least:
        return False
    replace_node(node, [convolution.written_out()])
    return True


class Convolution:
    """A depthwise convolution whose sizes are known. moves: stride, padding, dilation and number of results, of each dimension."""

    def __init__(self, node: Node, x: tuple[int, ...], kernel: tuple[int, ...], moves: list[tuple[int, int, int, int]]) -> None:
        self.node = node
        self.x = x
        self.kernel = kernel
        self.moves = moves

    @classmethod
    def of(cls, node: Node, form_of: Callable[[Value], Form | None]) -> Convolution | None:
        """The convolution that a node is, or None where it is no depthwise one, or something is not known."""
        at_groups, at_transposed = PLACES[node.kind]
        if len(node.inputs) <= at_groups or at_transposed is not None and constant(node.inputs[at_transposed]) not in (False, 0):
            return None
        forms = [form_of(value) for value in node.inputs[:2]]
        if forms[0] is None or forms[1] is None or forms[0][1] != forms[1][1] or forms[0][1] not in ("float32", "float64"):
            return None
        (x, _), (weight, _) = forms[0], forms[1]
        kernel = weight[2:]
        rank = len(kernel)
        if len(x) != rank + 2 or weight[:2] != (x[1], 1) or constant(node.inputs[at_groups]) != x[1] or not 2 <= prod(kernel) <= MOST:
            return None
        if not is_none(node.inputs[2]) and form_of(node.inputs[2]) != ((x[1],), forms[0][1]):
            return None
        lists = [numbers(value, rank) for value in node.inputs[3:6]]
        if None in lists:
            return None
        moves = []
        for size, width, stride, padding, dilation in zip(x[2:], kernel, *[each for each in lists if each], strict=True):
            if stride < 1 or padding < 0 or dilation < 1:
                return None
            moves.append((stride, padding, dilation, (size + 2 * padding - dilation * (width - 1) - 1) // stride + 1))
        return cls(node, x, kernel, moves) if x[0] > 0 and all(move[3] > 0 for move in moves) else None

    @property
    def products(self) -> int:
        """How many products of two numbers it takes."""
        return prod(self.x[:2]) * prod(self.kernel) * prod(move[3] for move in self.moves)

    def written_out(self) -> Value:
        """Nodes in front of the convolution that compute its result."""
        assert self.node.graph is not None
        build = Builder(self.node.graph).before(self.node)
        build.tail = self.node.tail
        x, weight, bias = self.node.inputs[:3]
        rank, channels = len(self.kernel), self.x[1]
        if any(move[1] for move in self.moves):
            pads = [move[1] for move in reversed(self.moves) for _ in range(2)]
            x = build.call("aten::constant_pad_nd", x, numbers_in(build, pads), 0)
        kernels = build.call("aten::reshape", weight, numbers_in(build, [1, channels, prod(self.kernel), *[1] * rank]))
        total: Value | None = None
        for tap, place in enumerate(product(*map(range, self.kernel))):
            part = x
            for dim, (at, (stride, padding, dilation, count)) in enumerate(zip(place, self.moves, strict=True)):
                start, end = at * dilation, at * dilation + (count - 1) * stride + 1
                if (start, end, stride) != (0, self.x[2 + dim] + 2 * padding, 1):
                    part = build.call("aten::slice", part, 2 + dim, start, end, stride)
            term = build.call("aten::mul", part, build.call("aten::select", kernels, 2, tap))
            total = term if total is None else build.call("aten::add", total, term, 1)
        assert total is not None
        if not is_none(bias):
            total = build.call("aten::add", total, build.call("aten::reshape", bias, numbers_in(build, [1, channels, *[1] * rank])), 1)
        total.type = self.node.output.type
        return total


def numbers(value: Value, count: int) -> Sequence[int] | None:
    """The numbers of a constant list, one for all dimensions or one for each; None where they are not known."""
    held = [constant(each) for each in value.node.inputs] if value.node.kind == "prim::ListConstruct" else constant(value)
    if isinstance(held, int) and not isinstance(held, bool):
        held = [held]
    if not isinstance(held, list) or len(held) not in (1, count) or any(type(each) is not int for each in held):
        return None
    return held * count if len(held) == 1 else held


def numbers_in(build: Builder, values: Sequence[int]) -> Value:
    """A list of numbers, in the graph."""
    return build.construct_list([build.constant(each) for each in values], INT)
