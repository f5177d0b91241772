"""Sets of kinds of nodes that put values together, take them apart, change lists, or stand for gradients that may be undefined."""
from __future__ import annotations

from irtool.ir.constants import CONSTANT_KINDS


def kinds(words: str) -> frozenset[str]:
    """A set of node kinds."""
    return frozenset(words.split())


UNDEFINED_KINDS = kinds("prim::Undefined prim::AutogradZero")
"""Kinds whose result is the undefined gradient."""
GRADIENT_KINDS = kinds("prim::GradOf prim::AutogradAdd")
"""Kinds that take gradients that may be undefined."""
ASKING_DEFINED = kinds("prim::AutogradAnyNonZero prim::AnyDefined")
"""Kinds that ask whether a gradient is defined."""
COMBINING_KINDS = kinds("""
prim::ListConstruct prim::TupleConstruct prim::NamedTupleConstruct aten::add aten::mul aten::slice aten::list aten::copy
prim::AutogradAdd
""")
"""Kinds that put lists, tuples or gradients together."""
ELEMENT_KINDS = kinds("aten::__getitem__ prim::ListUnpack prim::TupleUnpack prim::TupleIndex aten::pop")
"""Kinds whose results are elements of lists and tuples."""
GIVE_CHANGED_LIST = kinds("aten::append aten::_set_item aten::add_")
"""Kinds that change a list and return it."""
CONTAINERS = kinds("""
prim::ListConstruct prim::TupleConstruct prim::DictConstruct prim::SetAttr aten::append aten::_set_item aten::insert aten::update
aten::setdefault aten::extend
""")
"""Kinds that put an operand, or what it contains, into a container."""
ADD_ITEMS = kinds("aten::extend")
"""Those that put what it contains there, not itself."""
SHARING_KINDS = kinds("""
aten::__getitem__ aten::pop prim::TupleUnpack prim::TupleIndex prim::ListUnpack prim::GetAttr aten::get aten::setdefault
prim::unchecked_cast prim::unchecked_unwrap_optional aten::_unwrap_optional prim::CallFunction prim::CallMethod
""")
"""Kinds whose result may be a list that another value refers to as well."""
PARTIAL_GRADIENT_KINDS = kinds("""
aten::__getitem__ aten::select aten::slice aten::add aten::append aten::_set_item aten::insert aten::pop aten::Delete aten::extend
aten::add_ aten::reverse prim::ListConstruct
""")
"""Kinds whose gradients may be lists with undefined elements."""
LIST_RESHAPING_KINDS = kinds("aten::__getitem__ aten::select aten::slice aten::add aten::list aten::copy aten::mul")
"""Kinds that take lists apart and put them together, when their first operand is a list."""
STRUCTURE = kinds("""
prim::ListConstruct prim::TupleConstruct prim::TupleUnpack prim::ListUnpack prim::TupleIndex prim::NamedTupleConstruct
""")
"""Kinds that only put values together and take them apart, which differentiation follows without a formula."""
TYPE_CASTS = kinds("prim::unchecked_cast prim::unchecked_unwrap_optional aten::_unwrap_optional")
"""Kinds whose result is the operand, under another type."""
SIZE_QUESTIONS = kinds("aten::size aten::dim prim::dtype")
"""Kinds that ask for the rank, the sizes or the dtype of a tensor."""
FREE_QUESTIONS = kinds("prim::ListConstruct aten::size aten::dim aten::len prim::dtype")
"""Kinds that ask about a tensor, or make a list of the answers; computing them again costs nothing."""
MOVERS = kinds("""
prim::ListConstruct prim::TupleConstruct prim::NamedTupleConstruct prim::DictConstruct prim::TupleUnpack prim::TupleIndex
prim::TupleSlice prim::ListUnpack prim::unchecked_cast prim::unchecked_unwrap_optional prim::Uninitialized prim::RaiseException
prim::profile prim::CreateObject prim::SetAttr prim::GetAttr
""")
"""Kinds that put values together, take them apart or return them, whatever the values are."""
HANDING_ON = kinds("""
prim::ListConstruct prim::ListUnpack prim::TupleConstruct prim::TupleUnpack prim::TupleIndex prim::unchecked_cast
prim::unchecked_unwrap_optional prim::AutogradAnyNonZero prim::AutogradAllNonZero prim::AutogradZero prim::Uninitialized
prim::DictConstruct prim::RaiseException prim::IfThenElse prim::awaitable_nowait prim::awaitable_wait prim::SetAttr
""")
"""Kinds that layers run without looking at the elements of tensors."""
NO_ELEMENTS_ASKED = kinds("""
aten::size aten::dim aten::len aten::numel prim::Constant prim::dtype aten::is_complex prim::ListConstruct aten::__getitem__
prim::device
""")
"""Kinds that need no elements of a tensor."""
CONSTRUCTS = kinds("prim::TupleConstruct prim::ListConstruct")
"""Kinds that make a tuple or a list of their operands."""
FORK_KINDS = kinds("prim::fork prim::awaitable")
"""Kinds whose result is a future of all results of their graph."""
GROUP_KINDS = kinds("prim::DifferentiableGraph prim::GraphExecutor")
"""Kinds of nodes that own a graph with a gradient."""
NOT_COUNTED = kinds("prim::Constant prim::GradOf prim::TupleConstruct prim::TupleUnpack prim::AutogradZero prim::Undefined")
"""Kinds that measures of a gradient pair leave out: constants, GradOf (the nodes in its block count), tuples, undefined gradients."""
TUPLE_FORWARDING = kinds("""
prim::If prim::Loop prim::Uninitialized prim::Param aten::__getitem__ prim::DifferentiableGraph prim::unchecked_cast
""")
"""Kinds whose tuple results may be replaced by their elements."""
CONTEXT_KINDS = kinds("prim::CreateObject prim::SetAttr prim::Enter prim::Exit")
"""Kinds that a `with` statement is made of."""
UNPACKS = kinds("prim::TupleUnpack TupleUnpack prim::ListUnpack ListUnpack")
"""Kinds that take a tuple or a list apart."""
CHUNKS = kinds("prim::ConstantChunk ConstantChunk prim::FusedChunk FusedChunk")
"""Kinds that take a tensor apart into equal pieces."""
PROFILE_KINDS = CONSTANT_KINDS | kinds("prim::profile prim::profile_ivalue")
"""Kinds whose results torch does not profile."""
PYTHON_OPERATORS = kinds("prim::PythonOp prim::IgnoredPythonOp")
"""Kinds that call a Python function."""
LIST_MAKERS = frozenset(("aten::list", "aten::slice", "aten::unbind", "aten::split", "aten::chunk", "prim::ListConstruct"))
"""Kinds whose result is a new list."""
GROUPED_PRIMS = CONSTANT_KINDS | {"prim::ConstantChunk", "prim::AutogradZero", "prim::Undefined", "prim::AutogradAdd"}
"""Kinds that torch puts into differentiable groups although they have no formula."""
