"""The arguments of transformed functions: the function has handles of its own for the caller's tensors.

Torch gives a transformed function the caller's memory. So what the function writes reaches the caller (`Lent.hand_back`), and a result that
is an argument, or a view of one, is the caller's tensor, or a view of it (`Lent.returned`): a write into one is a write into the other.
"""
from __future__ import annotations

from typing import Any

from irtool.dispatch.layer_writes import Same, View, another, link, root_of, through
from irtool.dispatch.stack import Boxed, Layer, current, elements_of, layers_from
from irtool.ir.errors import UnsupportedError
from irtool.ops.arrays import is_array
from irtool.ops.tensor import Tensor
from irtool.shared_inputs import overlap


class Loan:
    """One argument. tensor: the caller's; handle: the function's; below: the handle as the layer below sees it, before the function runs;
    dim: the hidden dimension, under a batch. is_variable: is it differentiated for? is_written: did the function write into it?"""

    __slots__ = ("tensor", "handle", "below", "dim", "is_variable", "is_written")

    def __init__(self, tensor: Tensor, handle: Tensor, below: Tensor, dim: int | None, is_variable: bool) -> None:
        self.tensor = tensor
        self.handle = handle
        self.below = below
        self.dim = dim
        self.is_variable = is_variable
        self.is_written = False


class Lent:
    """The arguments of one call of a transformed function."""

    def __init__(self) -> None:
        self.loans: list[Loan] = []
        self.beside: list[Tensor] = []
        self.by_root: dict[int, Loan] = {}

    def lend(self, tensor: Any, handle: Any = None, dim: int | None = None) -> Any:
        """The handle for a tensor: `handle`, or a new one if that is None; any other value unchanged. dim: the hidden dimension, under a
        batch."""
        if not isinstance(tensor, Tensor):
            return tensor
        if handle is None:
            handle = another(tensor)
        self.loans.append(Loan(tensor, handle, tensor if dim is not None else handle, dim, False))
        return handle

    def lend_variable(self, tensor: Tensor, handle: Any) -> Any:
        """The handle for a tensor that the function is differentiated for, a variable of the tape."""
        self.loans.append(Loan(tensor, handle, handle.value, None, True))
        return handle

    def lend_as_it_is(self, tensor: Any) -> Any:
        """A value that the function has no handle for: itself."""
        if isinstance(tensor, Tensor):
            self.beside.append(tensor)
        return tensor

    def hand_back(self, layer: Layer) -> None:
        """Copy the values of handles that were written into the caller's tensors, by operations on the layer that is on top now; tie the
        other handles to the caller's tensors, which later writes change. layer: that of the function, which is over.

        Raises UnsupportedError if the function wrote into memory that several arguments share."""
        top = current()
        lowest = next((each for each in reversed(list(layers_from(top))) if each.inner is not None), None)
        roots = [root_of(loan.handle) for loan in self.loans]
        for loan, root in zip(self.loans, roots, strict=True):
            tensor, dim = loan.tensor, loan.dim
            self.by_root[id(root)] = loan
            if loan.is_variable:
                loan.is_written = not layer.owns(root) or root.value is not loan.below
            else:
                loan.is_written = not ((root.value is tensor) if dim is not None and layer.owns(root) else is_same(root, tensor))
        self.check_apart()
        for loan, root in zip(self.loans, roots, strict=True):
            tensor, dim = loan.tensor, loan.dim
            if not loan.is_written:
                if loan.below is not tensor and lowest is not None and is_of(lowest, root_of(tensor)):
                    link(loan.below, Same(tensor))
            elif not loan.is_variable:
                value = layer.opened(root)
                if dim is not None:
                    tensor, value = top.call("aten::movedim", (tensor, dim, 0), {}), layer.front(root)     # type: ignore[attr-defined]
                top.call("aten::copy_", (tensor, value), {})

    def check_apart(self) -> None:
        """Raises UnsupportedError if the function wrote into an argument that shares memory with another one, which did not show it."""
        for loan in [each for each in self.loans if each.is_written]:
            memory = elements_of(loan.tensor)
            others = [*[each.tensor for each in self.loans if each is not loan], *self.beside]
            if is_array(memory) and any(is_array(each) and overlap(memory, each) for each in map(elements_of, others)):
                raise UnsupportedError("a write into an argument of a transformed function is not supported if another argument shares its "
                                       "memory", code="E0504")

    def returned(self, layer: Layer, value: Any) -> Any:
        """A tensor that the function returned, as the layer below sees it; any other value unchanged. Call it after `hand_back`."""
        return layer.opened(self.tied(layer, value))

    def tied(self, layer: Layer, value: Any) -> Any:
        """A result as the function's layer has it. If it is an argument or a view of one, it is that of the caller's tensor."""
        if not isinstance(value, Tensor):
            return value
        views: list[View] = []
        root = value
        while (loan := self.by_root.get(id(root))) is None and root.links is not None and root.links.origin is not None:
            views.append(root.links.origin)
            root = views[-1].whole
        if loan is None or loan.is_variable and loan.is_written:
            untie(layer, value)
        elif loan.is_written or not layer.owns(value) and layer.owns(root):
            whole = loan.tensor if loan.dim is None else layer.box(loan.tensor, loan.dim)     # type: ignore[attr-defined]
            return through(whole, views[::-1], layer)
        elif not views and loan.dim is None:
            return loan.tensor
        return value


def is_of(lowest: Layer, tensor: Tensor) -> bool:
    """Is a tensor of some layer, so that its memory is not that of an array? lowest: the lowest layer above the backend."""
    return isinstance(tensor, Boxed) or tensor.born > lowest.start


def untie(layer: Layer, value: Tensor) -> None:
    """Make a tensor without a box of a layer, which the layer has noted as a view of one of its own (`detach`), a view of what the layer
    below sees: the layer is over."""
    while value.links is not None and (view := value.links.origin) is not None and not layer.owns(value):
        if layer.owns(view.whole):
            below = View(layer.opened(view.whole), view.name, layer.opened(view.args), view.hole, view.place)
            below.refusal = view.refusal
            link(value, below)
        value = view.whole


def is_same(one: Tensor, other: Tensor) -> bool:
    """Have two handles the same value?"""
    if isinstance(one, Boxed) or isinstance(other, Boxed):
        return isinstance(one, Boxed) and isinstance(other, Boxed) and one.layer is other.layer and one.value is other.value
    return one.array is other.array
