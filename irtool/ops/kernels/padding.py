"""Tensors with a border: constant, mirrored, repeated or circular; and the gradients of these."""
from irtool.ir.errors import RunError, UnsupportedError
from irtool.ops.arrays import add_at, as_array, memory_order, to_number
from irtool.ops.checks import channels_last, in_memory_order, only
from irtool.ops.op import OpTable

table = OpTable("padding")


def _border_of(self, pad):
    """`pad` (last dimension first, before and after each) as one (before, after) per dimension."""
    if len(pad) % 2:
        raise RunError("Padding length must be divisible by 2")
    if len(pad) > 2 * self.ndim:
        raise RunError("Padding length should be less than or equal to two times the input dimension but got padding length "
                       f"{len(pad)} and input of dimension {self.ndim}")
    borders = [(pad[place], pad[place + 1]) for place in range(0, len(pad), 2)]
    return [(0, 0)] * (self.ndim - len(borders)) + borders[::-1]


def padded_constant(xp, self, pad, value=0):
    """`self` with borders of `value`; negative borders cut off."""
    borders = _border_of(self, pad)
    shape = []
    for extent, (before, after) in zip(self.shape, borders, strict=True):
        if extent + before + after < 0:
            raise RunError(f"The input size {extent}, plus negative padding {before} and {after} resulted in a negative output size, which "
                           "is invalid. Check dimension 0 of your input.")
        shape.append(extent + before + after)
    for extent, (before, after) in zip(self.shape, borders, strict=True):
        left = extent + min(before, 0)
        if left < 0 or left + min(after, 0) < 0:
            raise RunError("narrow(): length must be non-negative.")
    result = xp.full(shape, as_array(value, self.dtype), self.dtype)
    target = tuple(slice(max(b, 0), n - max(a, 0)) for n, (b, a) in zip(shape, borders, strict=True))
    source = tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(self.shape, borders, strict=True))
    if self.ndim:
        result[target] = self[source]
        return in_memory_order(xp, result, channels_last(self) if any(each > 0 for each in pad) else memory_order(self[source]))
    return self.copy()


@table.op("aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", fits="value")
def constant_pad_nd(xp, self, pad, value):
    """Borders of a constant; negative ones cut off. `pad` names the last dimension first."""
    return padded_constant(xp, self, pad, to_number(value))


def source_places(xp, extent, before, after, mode):
    """For each place of a padded dimension the place of the unpadded one it repeats."""
    places = xp.arange(-before, extent + after)
    if mode == "reflect":
        places = xp.abs(places)
        return xp.where(places >= extent, 2 * (extent - 1) - places, places)
    if mode == "replicate":
        return xp.clip(places, 0, extent - 1)
    low, high = max(-before, 0), extent - max(-after, 0)       # negative borders are cut off first
    return low + (places - low) % (high - low)


def _check(self, pad, mode, rank=None):
    dims = len(pad) // 2
    is_empty = mode != "circular" and 0 in self.shape[self.ndim - dims - 1:]       # the batch alone may be
    if rank is not None and dims != rank or self.ndim not in (dims + 1, dims + 2) or is_empty:
        raise RunError(f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
                       f"for input, but got: {list(self.shape)}" if mode != "circular" else
                       "Invalid padding size, expected 2, 4 or 6 values for a batch of signals, images or volumes")
    for place in range(dims):
        extent, before, after = self.shape[-1 - place], pad[2 * place], pad[2 * place + 1]
        if mode == "reflect" and max(before, after) >= extent:
            raise RunError("Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                           f"({before}, {after}) at dimension {self.ndim - 1 - place} of input {list(self.shape)}")
        if mode == "circular" and max(before, after) > extent + min(before, 0) + min(after, 0) and max(before, after) <= extent:
            raise UnsupportedError("circular padding by elements that negative padding cuts off is not supported: torch does not fill it")
        if mode == "circular" and max(before, after) > extent:
            raise RunError("Padding value causes wrapping around more than once.")
        if mode == "circular" and extent + before + after < 0:
            raise RunError("Negative padding value is resulting in an empty dimension")
    extents = self.shape[self.ndim - dims:]
    sizes = [extent + pad[-2 * place - 2] + pad[-2 * place - 1] for place, extent in enumerate(extents)]
    if mode != "circular" and max(sizes) < 1:       # as in torch, one size that is not 0 is enough
        names = "DHW"[-dims:]
        given, found = (", ".join(f"{name}: {size}" for name, size in zip(names, each, strict=True)) for each in (extents, sizes))
        raise RunError(f"input ({given}) is too small. Calculated output {found}")
    if mode != "circular" and min(sizes) < 0:
        raise RunError(f"Trying to create tensor with negative dimension {min(sizes)}: {[*self.shape[:self.ndim - dims], *sizes]}")


def padded(xp, self, pad, mode):
    """Borders that repeat the tensor: `reflect`, `replicate` or `circular`."""
    _check(self, pad, mode)
    order = range(self.ndim) if mode == "circular" else channels_last(self)
    for place in range(len(pad) // 2):
        before, after = pad[2 * place], pad[2 * place + 1]
        if before or after:
            axis = self.ndim - 1 - place
            self = xp.take(self, source_places(xp, self.shape[axis], before, after, mode), axis)
    return in_memory_order(xp, self, order)


def pad_by_mode(xp, self, pad, mode, value):
    """torch.nn.functional.pad."""
    if mode == "constant":
        return padded_constant(xp, self, pad, 0 if value is None else value)
    if value not in (None, 0):
        raise RunError(f"Padding mode \"{mode}\" doesn't take in value argument")
    if mode not in ("reflect", "replicate", "circular"):
        raise RunError(f"Unrecognised padding mode {mode}")
    if len(pad) not in (2, 4, 6) or self.ndim not in (len(pad) // 2 + 1, len(pad) // 2 + 2):
        raise RunError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    if mode != "circular":
        only(f"{'reflection' if mode == 'reflect' else 'replication'}_pad{len(pad) // 2}d", "uifc", self)
    return padded(xp, self, pad, mode)


@table.op("aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor", fits="value")
def pad(xp, self, pad, mode, value):
    """Borders, the last dimension's first: `constant`, `reflect`, `replicate` or `circular`."""
    return pad_by_mode(xp, self, pad, mode, value)


@table.op("aten::_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", fits="value")
def pad_enum(xp, self, pad, mode, value):
    """pad with the mode as a number."""
    if mode not in (0, 1, 2, 3):
        raise RunError(f"Unrecognised padding mode {mode}")
    return pad_by_mode(xp, self, pad, ("reflect", "replicate", "circular", "constant")[mode], value)


@table.op("aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor")
def pad_circular(xp, self, pad):
    """Borders that go round."""
    return padded(xp, self, pad, "circular")


def unpadded(xp, grad, shape, pad, mode):
    """Gradient of `padded`: that of the borders is added at the positions that they repeat."""
    order = channels_last(grad)
    for place in range(len(pad) // 2):
        axis = grad.ndim - 1 - place
        extent = shape[axis]
        moved = xp.moveaxis(grad, axis, 0)
        result = xp.zeros((extent, *moved.shape[1:]), grad.dtype)
        add_at(result, source_places(xp, extent, pad[2 * place], pad[2 * place + 1], mode), moved)
        grad = xp.moveaxis(result, 0, axis)
    return in_memory_order(xp, grad, order)


def _named(mode, count):
    def forward(xp, self, padding):
        return padded(xp, self, padding, mode)

    def backward(xp, grad_output, self, padding):
        return unpadded(xp, grad_output, self.shape, padding, mode)
    return forward, backward


for _word, _mode in (("reflection", "reflect"), ("replication", "replicate")):
    for _count in (1, 2, 3):
        _name, _forward_backward = f"{_word}_pad{_count}d", _named(_mode, _count)
        table.define(f"aten::{_name}(Tensor self, SymInt[{2 * _count}] padding) -> Tensor", _forward_backward[0],
                     doc=f"Borders by {_word} in {_count} dimension(s).")
        table.define(f"aten::{_name}_backward(Tensor grad_output, Tensor self, SymInt[{2 * _count}] padding) -> Tensor",
                     _forward_backward[1], doc=f"Gradient of {_name}.")


# ---- dtypes that torch serves

table.takes("uilhfc", "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d")
table.takes("hfc", "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward "
             "replication_pad2d_backward replication_pad3d_backward")
