"""Operators on numbers, strings, lists and dicts have no gradient if no result is a tensor. Operators that return their operand
unchanged pass the gradient on; no gradient passes containers other than lists."""
from __future__ import annotations

from irtool.ops.kernels import dict, list, prim, scalar, string
from irtool.ops.op import OpTable
from irtool.ops.tensor import Tensor, torch


def declare(table: OpTable) -> None:
    """State this for every overload none of whose results is, or may contain, a tensor."""
    for op in table:
        for text, name in zip(op.schemas, op.names, strict=True):
            results = text.rpartition("->")[2].replace("(", " ").replace(")", " ").replace(",", " ").split()
            if not any("Tensor" in word or word[:1] == "t" or word == "Any" for word in results):
                table.no_gradient("numbers, strings and truth values", name)


for _table in (prim.table, scalar.table, list.table, dict.table, string.table):
    declare(_table)
@prim.table.gradient("prim::unchecked_cast prim::unchecked_unwrap_optional aten::_unwrap_optional prim::Guard aten::wait "
                     "prim::awaitable_nowait prim::awaitable_wait")
def unchanged_gradient(value: Tensor):
    def backward(grad: Tensor):
        return grad

    return value, backward


@prim.table.gradient("prim::abs")
def abs_gradient(x: Tensor):
    def backward(grad: Tensor):
        return torch.real(grad) * x.conj().sgn()

    return abs(x), backward


@prim.table.gradient("prim::IfThenElse")
def choice_gradient(cond: bool, x: Tensor, y: Tensor):
    def backward(grad: Tensor):
        return None, grad if cond else torch.zeros_like(x), torch.zeros_like(y) if cond else grad

    return x if cond else y, backward


prim.table.no_gradient("cut off from its history", "prim::data")
prim.table.no_gradient("a record of the profiler", "profiler::_record_function_enter")
prim.table.no_gradient("no value", "prim::AutogradZero prim::Uninitialized")
prim.table.unsupported("differentiation adds gradients itself", "prim::AutogradAdd")
prim.table.unsupported("fused form of operators that have one: differentiate before fusing",
                       "prim::MMTreeReduce prim::VarConcat prim::VarStack")
dict.table.unsupported("tensors are not followed into dicts", " ".join(name for op in dict.table for name in op.names))
prim.table.no_gradient("a number made a tensor", "prim::NumToTensor")
