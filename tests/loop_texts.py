"""Loops as text: recurrent cells, loops over the rows of a tensor, loops that fill lists; and arrays for them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

HEAD = """  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
  %four : int = prim::Constant[value=4]()
  %true : bool = prim::Constant[value=1]()
  %n : int = aten::size(%x, %zero)
"""
LSTM = f"""graph(%x : Tensor, %h0 : Tensor, %c0 : Tensor, %wi : Tensor, %wh : Tensor, %b : Tensor):
{HEAD}  %h : Tensor, %c : Tensor = prim::Loop(%n, %true, %h0, %c0)
    block0(%t : int, %h1 : Tensor, %c1 : Tensor):
      %1 : Tensor = aten::select(%x, %zero, %t)
      %2 : Tensor = aten::mm(%1, %wi)
      %3 : Tensor = aten::mm(%h1, %wh)
      %4 : Tensor = aten::add(%2, %3, %one)
      %5 : Tensor = aten::add(%4, %b, %one)
      %i : Tensor, %f : Tensor, %u : Tensor, %o : Tensor = prim::ConstantChunk[chunks=4, dim=1](%5)
      %6 : Tensor = aten::sigmoid(%f)
      %7 : Tensor = aten::mul(%6, %c1)
      %8 : Tensor = aten::sigmoid(%i)
      %9 : Tensor = aten::tanh(%u)
      %10 : Tensor = aten::mul(%8, %9)
      %11 : Tensor = aten::add(%7, %10, %one)
      %12 : Tensor = aten::sigmoid(%o)
      %13 : Tensor = aten::tanh(%11)
      %14 : Tensor = aten::mul(%12, %13)
      -> (%true, %14, %11)
  return (%h, %c)
"""
GRU = f"""graph(%x : Tensor, %h0 : Tensor, %wi : Tensor, %wh : Tensor, %b : Tensor):
{HEAD}  %h : Tensor = prim::Loop(%n, %true, %h0)
    block0(%t : int, %h1 : Tensor):
      %1 : Tensor = aten::select(%x, %zero, %t)
      %2 : Tensor = aten::linear(%1, %wi, %b)
      %3 : Tensor = aten::t(%wh)
      %4 : Tensor = aten::matmul(%h1, %3)
      %5 : Tensor[] = aten::chunk(%2, %three, %one)
      %r : Tensor, %z : Tensor, %n1 : Tensor = prim::ListUnpack(%5)
      %6 : Tensor[] = aten::chunk(%4, %three, %one)
      %hr : Tensor, %hz : Tensor, %hn : Tensor = prim::ListUnpack(%6)
      %7 : Tensor = aten::add(%r, %hr, %one)
      %8 : Tensor = aten::sigmoid(%7)
      %9 : Tensor = aten::add(%z, %hz, %one)
      %10 : Tensor = aten::sigmoid(%9)
      %11 : Tensor = aten::mul(%8, %hn)
      %12 : Tensor = aten::add(%n1, %11, %one)
      %13 : Tensor = aten::tanh(%12)
      %14 : Tensor = aten::rsub(%10, %one, %one)
      %15 : Tensor = aten::mul(%14, %13)
      %16 : Tensor = aten::mul(%10, %h1)
      %17 : Tensor = aten::add(%15, %16, %one)
      -> (%true, %17)
  return (%h)
"""
ELMAN = f"""graph(%x : Tensor, %h0 : Tensor, %wi : Tensor, %wh : Tensor, %b : Tensor):
{HEAD}  %h : Tensor, %before : Tensor, %largest : Tensor = prim::Loop(%n, %true, %h0, %h0, %h0)
    block0(%t : int, %h1 : Tensor, %h2 : Tensor, %most : Tensor):
      %1 : Tensor = aten::select(%x, %zero, %t)
      %2 : Tensor = aten::addmm(%b, %1, %wi, %one, %one)
      %3 : Tensor = aten::mm(%h1, %wh)
      %4 : Tensor = aten::add(%2, %3, %one)
      %5 : Tensor = aten::relu(%4)
      %6 : Tensor = aten::maximum(%most, %5)
      -> (%true, %5, %h1, %6)
  return (%h, %before, %largest)
"""
LSTM_SOURCE = """
def lstm(x, h, c, wi, wh, b):
    for t in range(x.size(0)):
        g = torch.mm(x[t], wi) + torch.mm(h, wh) + b
        i, f, u, o = g.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h
"""
"""TorchScript."""
CELLS: dict[str, tuple[str, Callable[[int, int, int, int], list[tuple[int, ...]]]]] = {
    "lstm": (LSTM, lambda n, b, i, h: [(n, b, i), (b, h), (b, h), (i, 4 * h), (h, 4 * h), (4 * h,)]),
    "gru": (GRU, lambda n, b, i, h: [(n, b, i), (b, h), (3 * h, i), (3 * h, h), (3 * h,)]),
    "elman": (ELMAN, lambda n, b, i, h: [(n, b, i), (b, h), (i, h), (h, h), (h,)]),
}
"""A cell, and the shapes of its inputs for so many rounds, rows, widths of the input and of what goes around."""
ROW = "%r : Tensor = aten::select(%x, %zero, %t)"


def arrays(dtype: Any, *shapes: tuple[int, ...]) -> list[Any]:
    """Normal numbers of these shapes; matrices are scaled so that products with them stay as large as what they multiply."""
    return [(np.random.default_rng([3, i]).standard_normal(shape) / (shape[0] if len(shape) == 2 else 1) ** .5).astype(dtype)
            for i, shape in enumerate(shapes)]


def loop(body: str, carried: str = "%h0", names: str = "%h", inputs: str = "%x : Tensor, %h0 : Tensor", head: str = "",
         results: str = "") -> str:
    """A graph of one loop over the rows of x: `body` is what a round does, `carried` what goes around, `names` what it is called inside."""
    outs = ", ".join(f"{name}.out : Tensor" for name in names.split(", "))
    inner = ", ".join(f"{name} : Tensor" for name in names.split(", "))
    lines = "".join([f"      {line.strip()}\n" for line in body.strip().split("\n")])
    returned = results or ", ".join(f"{name}.out" for name in names.split(", "))
    return (f"graph({inputs}):\n{HEAD}{head}  {outs} = prim::Loop(%n, %true, {carried})\n    block0(%t : int, {inner}):\n{lines}"
            f"  return ({returned})\n")


# -- lists
KEEPS = """graph(%x : Tensor, %h0 : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %n : int = aten::size(%x, %zero)
  %kept : Tensor[] = prim::ListConstruct()
  %rows : Tensor[] = prim::ListConstruct()
  %h : Tensor = prim::Loop(%n, %true, %h0)
    block0(%t : int, %h1 : Tensor):
      %1 : Tensor[] = aten::append(%kept, %h1)
      %r : Tensor = aten::select(%x, %zero, %t)
      %2 : Tensor[] = aten::append(%rows, %r)
      %s : Tensor = aten::mul(%h1, %r)
      %u : Tensor = aten::add(%s, %r, %one)
      -> (%true, %u)
  %last : int = aten::sub(%n, %one)
  %g : Tensor = prim::Loop(%n, %true, %h)
    block0(%t : int, %g1 : Tensor):
      %k : int = aten::sub(%last, %t)
      %a : Tensor = aten::__getitem__(%kept, %k)
      %b : Tensor = aten::__getitem__(%rows, %t)
      %v : Tensor = aten::mul(%g1, %a)
      %w : Tensor = aten::sub(%v, %b, %one)
      -> (%true, %w)
  %i : Tensor = aten::__getitem__(%kept, %zero)
  return (%g, %i, %h)
"""
FILLED = """graph(%x : Tensor, %count : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %n : int = aten::size(%x, %zero)
  %kept : Tensor[] = prim::ListConstruct()
  %sizes : int[][] = prim::ListConstruct()
  %start : Tensor = aten::select(%x, %zero, %zero)
  %h : Tensor = prim::Loop(%n, %true, %start)
    block0(%t : int, %h1 : Tensor):
      %r : Tensor = aten::select(%x, %zero, %t)
      %s : Tensor = aten::mul(%h1, %r)
      %1 : Tensor[] = aten::append(%kept, %s)
      %2 : int[] = aten::size(%s)
      %3 : int[][] = aten::append(%sizes, %2)
      %u : Tensor = aten::add(%s, %r, %one)
      -> (%true, %u)
  %last : int = aten::sub(%n, %one)
  %g : Tensor = prim::Loop(%n, %true, %h)
    block0(%t : int, %g1 : Tensor):
      %k : int = aten::sub(%last, %t)
      %item : Tensor = aten::__getitem__(%kept, %k)
      %size : int[] = aten::__getitem__(%sizes, %k)
      %v : Tensor = aten::mul(%g1, %item)
      %w : Tensor = aten::sum_to_size(%v, %size)
      -> (%true, %w)
  MORE
"""
"""MORE is what comes after, and returns."""
ALL_ROUNDS = loop("""%r : Tensor = aten::select(%x, %zero, %t)
    %p : Tensor = aten::mm(%h, %w)
    %s : Tensor = aten::add(%p, %r, %one)
    %u : Tensor = aten::tanh(%s)
    %1 : Tensor[] = aten::append(%all, %u)
    %2 : int[] = aten::size(%u)
    %3 : int[][] = aten::append(%sizes, %2)
    -> (%true, %u)""", inputs="%x : Tensor, %h0 : Tensor, %w : Tensor", results="%h.out, OTHERS",
                  head="  %all : Tensor[] = prim::ListConstruct()\n  %sizes : int[][] = prim::ListConstruct()\n")
