"""Samples of operators that return their operand."""
from irtool.ops.kernels.prim import table
from irtool.ops.samples.draw import call, real

table.sample("prim::unchecked_cast prim::unchecked_unwrap_optional aten::_unwrap_optional prim::Guard", call(real(2, 3)))
table.sample("prim::abs", call(real(2, 3)))
table.sample("aten::wait prim::awaitable_nowait prim::awaitable_wait", call(real(2, 3)).rough("a tensor stands for what is waited for"))
table.sample("prim::IfThenElse", call(True, real(2), real(3)), call(False, real(2), real(2)))
