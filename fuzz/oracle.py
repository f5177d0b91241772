"""torch as an oracle, where it is installed; where it is not, its comparisons are skipped and counted."""
from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

import numpy as np

from fuzz.judge import Outcome

WRITES = re.compile(r"\w_\(|append|extend|insert|pop|clear|out=")
"""What an expression says that changes something."""
LIST_CHANGES = frozenset("append extend insert remove pop clear reverse sort".split())
FAULTS = re.compile(r"INTERNAL ASSERT|isFloatingType\(grad|MKL FFT|Could not run|PythonFallbackKernel|DefaultCPUAllocator|ComplexHalf"
                    "|larger than max_size")
"""Errors that say nothing of the operands: torch fell over, or has no kernel of what it declares."""
GRADIENT_FAULTS = re.compile(FAULTS.pattern + r"|Tensor must have a stride divisible by 2")
"""The same of gradients: that of `view_as_real`, transposed, takes complex numbers of what torch's gradient has not laid out for it."""


@cache
def library() -> Any:
    """The module, set to run graphs as they stand; None where it is not installed."""
    try:
        import torch as module
        import torch.nn.functional as F  # noqa: F401  (sources name it)
    except ImportError:
        return None
    module._C._jit_set_profiling_executor(False)
    module._C._set_graph_executor_optimize(False)  # type: ignore[no-untyped-call, unused-ignore]
    module.set_num_threads(1)
    return module


def compiled(source: str) -> Any:
    """torch's own function `f` of a source text. Raises what torch raises."""
    import math  # noqa: F401  (torch looks names up in the frames of its callers)

    import torch.nn.functional as F  # noqa: F401

    torch = library()
    return torch.jit.CompilationUnit(source).f


SIZES = re.compile(r"\b\w+\.(?:size\(\)|shape\b)")
"""Sizes, which are lists in TorchScript."""


def eager(source: str, whole: bool = True) -> Any:
    """The function `f` of a source text as Python runs it on torch's tensors; `whole`: with what nothing reads."""
    import math
    import typing

    import torch.nn.functional as F

    torch = library()
    source = SIZES.sub(r"list(\g<0>)", source if whole else without_unread(source))
    space: dict[str, Any] = {**vars(typing), "torch": torch, "math": math, "F": F, "Tensor": torch.Tensor}
    exec(compile(source, "<program>", "exec"), space)  # the generator's text
    return space["f"]


IN_PLACE = frozenset(("__setitem__", *(f"__i{name}__" for name in "add sub mul truediv and or xor lshift rshift".split())))


def apart(function: Any) -> Any:
    """A function of torch, in which writes copy operands first that share memory with what they write into. Of a strided tensor and a part
    of it torch reads what it has just written, in an order of its own; where it sees that (in tensors without gaps), it refuses. Medians
    along a dimension read copies of expanded tensors too: of those torch reads memory behind their numbers. Kronecker products keep copies
    for their gradients: torch keeps views that do not notice when the operand is written later, and takes its new numbers. Vectors are rows
    of block_diag: the gradients of torch do not count the row of an empty one. silu_ of complex numbers is x * sigmoid(x): torch refuses
    the gradient of silu, and forgets the conjugate in that of silu_. Of an infinity in a vector gelu gives nan, where it gives the infinity
    of one alone."""
    torch = library()
    from torch.overrides import TorchFunctionMode

    class Apart(TorchFunctionMode):     # type: ignore[misc, unused-ignore]  # without torch it is Any
        def __torch_function__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(called, "__name__", "").partition(".")[0]
            if name in IN_PLACE or name.endswith("_") and not name.endswith("__"):
                target = args[0].untyped_storage().data_ptr()
                args = [args[0], *[each.clone() if isinstance(each, torch.Tensor) and each.untyped_storage().data_ptr() == target
                                   and each is not args[0] else each for each in args[1:]]]
                if name == "silu_" and args[0].is_complex():
                    before = args[0].clone()
                    return args[0].copy_(before * torch.sigmoid(before))
            elif name in ("median", "nanmedian", "kthvalue") and 0 in args[0].stride():
                args = [args[0].contiguous(), *args[1:]]
            elif name == "block_diag":
                args = [each.unsqueeze(0) if each.dim() == 1 else each for each in args]
            elif name == "kron":
                args = [each.clone() for each in args]
            elif name == "gelu" and args[0].isinf().any():
                result, operand = called(*args, **kwargs or {}).flatten(), args[0].flatten()
                for place in operand.isinf().nonzero().flatten().tolist():
                    result[place] = called(operand[place], *args[1:], **kwargs or {})
                return result.view(args[0].shape)
            return called(*args, **kwargs or {})

    def run(*args: Any) -> Any:
        with Apart():
            return function(*args)

    return run


def without_unread(source: str) -> str:
    """The source without assignments to names that nothing reads, and without writes into lists that nothing else reads: Python runs what
    TorchScript drops, and may raise in it.

    Calls of functions that write stay. TorchScript drops such a call too, if a loop without rounds hides what it writes into.
    """
    tree = ast.parse(source)
    writers = {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and may_write(each)}
    while True:
        own = lists_of_their_own(tree)
        changes = {each: name for each in ast.walk(tree) if (name := changed_list(each)) in own}
        inside = {part for each in changes for part in ast.walk(each) if isinstance(part, ast.Name) and part.id == changes[each]}
        read = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each not in inside}
        read |= {each.target.id for each in ast.walk(tree) if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)}
        dropped = False
        for node in ast.walk(tree):
            blocks = [getattr(node, name, None) for name in ("body", "orelse")]
            for body in [each for each in blocks if isinstance(each, list)]:
                for each in list(body):
                    name = changed_list(each)
                    if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                        name = each.targets[0].id
                    elif name not in own:
                        continue
                    operands = [each.value] if isinstance(each, ast.Assign) else each.value.args
                    if name not in read and not any(WRITES.search(ast.unparse(operand)) for operand in operands) \
                            and not any(isinstance(part, ast.Name) and part.id in writers for part in ast.walk(each.value)):
                        body[body.index(each)] = ast.Pass()
                        dropped = True
        if not dropped:
            return ast.unparse(tree)


def changed_list(node: ast.AST) -> str:
    """The name that a statement like `x.remove(3)` or `x = [1, 2]` changes the list of; empty for others."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), method))) if method in LIST_CHANGES:
            return name
        case ast.Assign([ast.Name(name)], ast.List() | ast.ListComp()):
            return name
    return ""


def lists_of_their_own(tree: ast.AST) -> set[str]:
    """Names that only lists written out there are assigned to."""
    lists = {each.targets[0] for each in ast.walk(tree) if isinstance(each, ast.Assign) and changed_list(each)}
    others = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each not in lists}
    others |= {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    return {each.id for each in lists if isinstance(each, ast.Name)} - others


def may_write(function: ast.FunctionDef) -> bool:
    """May a function write into its arguments?"""
    return bool(WRITES.search(ast.unparse(function))) or any(
        isinstance(each, ast.AugAssign) or isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)
        for each in ast.walk(function))


def is_script(function: Any) -> bool:
    """Is it TorchScript's, and not Python's?"""
    return hasattr(function, "graph")


def graph_text(function: Any) -> str:
    """The graph that torch made of a function, calls inlined, as text; empty where it does not stand alone."""
    graph = function.graph
    for _ in range(3):      # calls of functions that call functions
        library()._C._jit_pass_inline(graph)
        for fork in graph.findAllNodes("prim::fork"):
            library()._C._jit_pass_inline(fork.g("Subgraph"))
    text = "".join(line for line in str(graph).splitlines(keepends=True) if "prim::Constant[name=" not in line)    # what was inlined
    return "" if "prim::CallFunction" in text else text


def ran(function: Any, values: list[Any]) -> Outcome:
    """What torch's function makes of the values, as arrays."""
    try:
        return "value", to_numpy(function(*[to_torch(each) for each in values]))
    except Exception as error:
        return "error", str(error).strip().rpartition("\n")[2]


def tangents(source: str, values: list[Any], places: list[int], given: list[Any]) -> Outcome:
    """Tangents of the floating-point tensors of a source's results, as arrays, where the values at `places` have the tangents `given`."""
    torch = library()
    function = eager(source)

    def floats(*arrays: Any) -> Any:
        operands = [to_torch(each) for each in values]
        for place, array in zip(places, arrays, strict=True):
            operands[place] = array
        return [leaf for leaf in leaves(function(*operands)) if leaf.is_floating_point()]

    primals = tuple(to_torch(values[place]) for place in places)
    try:
        return "value", to_numpy(torch.func.jvp(floats, primals, tuple(map(to_torch, given)))[1])
    except Exception as error:
        return "error", str(error).strip().rpartition("\n")[2]


def to_torch(value: Any) -> Any:
    """Arrays become tensors of the same memory layout, with memory of their own."""
    if isinstance(value, list | tuple):
        return type(value)(to_torch(each) for each in value)
    if not isinstance(value, np.ndarray):
        return value
    if not value.size:      # NumPy's strides of an array of no elements are zeros, torch's are not
        return library().empty(value.shape, dtype=getattr(library(), value.dtype.name))
    if any(step < 0 for step in value.strides):
        return library().tensor(value.copy())
    strides = [step // value.itemsize for step in value.strides]
    result = library().empty_strided(value.shape, strides, dtype=getattr(library(), value.dtype.name))
    return result.copy_(library().tensor(value.copy()))


def to_numpy(value: Any) -> Any:
    """Tensors become arrays, also inside of structures."""
    if isinstance(value, library().Tensor):
        return value.detach().resolve_conj().resolve_neg().numpy(force=True).copy()
    if isinstance(value, list | tuple):
        return tuple(map(to_numpy, value)) if isinstance(value, tuple) else [to_numpy(each) for each in value]
    return {key: to_numpy(each) for key, each in value.items()} if isinstance(value, dict) else value


def leaves(value: Any) -> list[Any]:
    """Tensors in results, in order; of dicts in order of insertion."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [value] if isinstance(value, library().Tensor) else []
