"""einsum with dtypes as in torch, which contracts pair by pair.

Letters that two operands have, and no later operand, are summed by one batched product, which needs one dtype and refuses bools. Letters
that only one operand has are summed before, which makes int64 of integers. Without letters to sum, operands are multiplied, with promotion.
"""
from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, title
from irtool.ops.checks import refuse
from irtool.ops.promotion import result_type


def contract(xp, terms, output, tensors, path):
    """The result of an equation without dots: a term of letters for each operand, and one for the result."""
    letters = output + "".join(sorted(set("".join(terms)) - set(output)))
    grown = [_grown(xp, term, tensor, letters) for term, tensor in zip(terms, tensors, strict=True)]
    having = [sum(tensor.shape[dim] != 1 for tensor in grown) for dim in range(len(letters))]
    inner = range(len(output), len(letters))
    if len(grown) == 1:
        return _summed(xp, grown[0], tuple(inner), False)
    order = list(path or ())
    while len(grown) > 1:
        first, second = (order.pop(0), order.pop(0)) if order else (0, 1)
        a, b = grown[first], grown[second]
        grown = [tensor for place, tensor in enumerate(grown) if place not in (first, second)]
        together, alone = [], ([], [])
        for dim in inner:
            has = a.shape[dim] != 1, b.shape[dim] != 1
            if all(has):
                having[dim] -= 1
                if having[dim] == 1:
                    together.append(dim)
                    having[dim] = 0
            elif any(has) and having[dim] == 1:
                alone[has[1]].append(dim)
                having[dim] = 0
        pair = _pair(xp, _summed(xp, a, tuple(alone[0])), _summed(xp, b, tuple(alone[1])), tuple(together))
        grown = [*grown, pair] if path else [pair, *grown]
    return grown[0].reshape(grown[0].shape[:len(output)])


def check_path(path, count):
    """Raises torch's error unless a path has a pair of places for each product of two of `count` operands (or one number for one)."""
    if path is None:
        return
    size = 1 if count == 1 else 2 * (count - 1)
    if len(path) != size:
        raise RunError(f"einsum(): expected contraction path given in path parameter to have size {size} but got {len(path)}")
    for step, (first, second) in enumerate(zip(path[::2], path[1::2], strict=False)):
        if first == second:
            raise RunError(f"einsum(): invalid contraction ({first}, {second}) cannot contract an operand with itself")
        if not (0 <= first < count - step and 0 <= second < count - step):
            raise RunError(f"einsum(): invalid contraction ({first}, {second}) operand index is out of bounds")


def _grown(xp, term, tensor, letters):
    """An operand with a dimension for each letter, of size 1 for letters that it lacks; a repeated letter is a diagonal."""
    present = "".join(letter for letter in letters if letter in term)
    shown = xp.asarray(xp.einsum(f"{term}->{present}", tensor))
    return shown.reshape([shown.shape[present.index(letter)] if letter in present else 1 for letter in letters])


def _summed(xp, tensor, dims, keep=True):
    if not dims:
        return tensor
    wide = astype(tensor, xp.int64) if tensor.dtype.kind in "biu" else tensor
    return xp.asarray(wide.sum(axis=dims, keepdims=keep, dtype=wide.dtype))


def _pair(xp, a, b, dims):
    if not dims:
        dtype = result_type([a, b])
        return xp.asarray(astype(a, dtype) * astype(b, dtype))
    if a.dtype != b.dtype:
        raise RunError(f"expected scalar type {title(a.dtype)} but found {title(b.dtype)}", code="E0409")
    if a.dtype.kind == "b" and a.size and b.size:
        refuse("baddbmm_with_gemm", a)
    wide = xp.float32 if a.dtype == xp.float16 else a.dtype
    names = list(range(a.ndim))
    remaining = [dim for dim in names if dim not in dims]
    product = xp.einsum(astype(a, wide), names, astype(b, wide), names, remaining, optimize=True)
    return xp.expand_dims(astype(xp.asarray(product), a.dtype), dims)
