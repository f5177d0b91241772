"""Products of matrices and vectors: mm, bmm, matmul, linear, einsum and the fused addmm family.

Operands must have one dtype (torch does not promote here). float16 is multiplied in float32 and rounded once.
"""
import math

from irtool.ir.errors import RunError
from irtool.ir.shapes import pointwise_strides, view_strides
from irtool.ops.arrays import as_array, astype, broadcast_view, dtype_of, element_strides, strided_view, title, wrap_dim
from irtool.ops.checks import c_name, expands, only, refuse, row_major, same_dtype
from irtool.ops.contraction import check_path, contract
from irtool.ops.kernels.shape import view_as_shape
from irtool.ops.op import OpTable
from irtool.ops.promotion import result_type

table = OpTable("matmul")


def product(xp, a, b):
    """a @ b of one dtype, float16 through float32. Raises torch's errors for dtypes."""
    if a.dtype != b.dtype:
        raise RunError(f"expected m1 and m2 to have the same dtype, but got: {c_name(a.dtype)} != {c_name(b.dtype)}", code="E0409")
    if a.dtype.kind == "b" and a.size and b.size:       # torch looks for a kernel only if there is something to multiply
        refuse("addmm_impl_cpu_", a)
    if a.dtype == xp.float16:
        return xp.matmul(a.astype(xp.float32), b.astype(xp.float32)).astype(xp.float16)
    if a.ndim > 1 and b.ndim > 1 and a.shape[-1] == b.shape[-2] == 1:
        return a * b        # outer products, which matmul makes one number at a time
    return xp.matmul(a, b)


def _matrix(xp, self, mat2):
    if self.ndim != 2:
        raise RunError("self must be a matrix")
    if mat2.ndim != 2:
        raise RunError("mat2 must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RunError(f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})",
                       code="E0407")
    return product(xp, self, mat2)


@table.op("aten::mm(Tensor self, Tensor mat2) -> Tensor")
def mm(xp, self, mat2):
    """Product of two matrices."""
    return _matrix(xp, self, mat2)


@table.op("aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
          "aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor")
def mm_to(xp, self, mat2, out_dtype):
    """Product computed and given in a wider dtype."""
    dtype = dtype_of(out_dtype)
    return xp.matmul(astype(self, dtype), astype(mat2, dtype))


def _batches(xp, batch1, batch2):
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.ndim != 3:
            raise RunError(f"{name} must be a 3D tensor")
    (count, _, inner), (count2, inner2, _) = batch1.shape, batch2.shape
    if (count, inner) != (count2, inner2):
        raise RunError(f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {inner}] but got: [{count2}, {inner2}].")
    return product(xp, batch1, batch2)


@table.op("aten::bmm(Tensor self, Tensor mat2) -> Tensor")
def bmm(xp, self, mat2):
    """Products of two stacks of matrices."""
    return _batches(xp, self, mat2)


@table.op("aten::mv(Tensor self, Tensor vec) -> Tensor")
def mv(xp, self, vec):
    """Matrix times vector."""
    if self.ndim != 2 or vec.ndim != 1:
        raise RunError(f"vector + matrix @ vector expected, got {vec.ndim}, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.shape[0]:
        raise RunError(f"size mismatch, got input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}), vec ({vec.shape[0]})",
                       code="E0407")
    return product(xp, self, vec)


def _dot(xp, self, other):
    if self.ndim != 1 or other.ndim != 1:
        raise RunError(f"1D tensors expected, but got {self.ndim}D and {other.ndim}D tensors")
    if self.dtype == other.dtype == bool:
        refuse("dot", self)
    if self.dtype != other.dtype:
        raise RunError(f"dot : expected both vectors to have same dtype, but found {title(self.dtype)} and {title(other.dtype)}",
                       code="E0409")
    if self.size != other.size:
        raise RunError(f"inconsistent tensor size, expected tensor [{self.size}] and src [{other.size}] to have the same number of "
                       f"elements, but got {self.size} and {other.size} elements respectively", code="E0407")
    return xp.asarray(product(xp, self, other))


@table.op("aten::dot(Tensor self, Tensor tensor) -> Tensor")
def dot(xp, self, tensor):
    """Sum of the products of two vectors."""
    return _dot(xp, self, tensor)


@table.op("aten::vdot(Tensor self, Tensor other) -> Tensor")
def vdot(xp, self, other):
    """dot with the first vector conjugated."""
    return _dot(xp, xp.conj(self) if self.dtype.kind == "c" else self, other)


@table.op("aten::inner(Tensor self, Tensor other) -> Tensor")
def inner(xp, self, other):
    """Sums of products over the last dimensions; with a number, the product."""
    if not self.ndim or not other.ndim:
        dtype = result_type([self, other])
        return astype(self, dtype) * astype(other, dtype)
    same_dtype("inner", self, other)
    if self.shape[-1] != other.shape[-1]:
        raise RunError("inner() the last dimension must match on both input tensors but got shapes "
                       f"{list(self.shape)} and {list(other.shape)}")
    if self.ndim == other.ndim == 1 and self.dtype.kind == "b":
        refuse("dot", self)
    flat = product(xp, self.reshape(-1, self.shape[-1]) if self.size else self.reshape(math.prod(self.shape[:-1]), self.shape[-1]),
                   other.reshape(math.prod(other.shape[:-1]), other.shape[-1]).T)
    return xp.asarray(flat).reshape(self.shape[:-1] + other.shape[:-1])


def _outer(xp, self, vec2):
    if self.ndim != 1 or vec2.ndim != 1:
        raise RunError(f"outer: Expected 1-D argument self, but got {self.ndim}-D" if self.ndim != 1 else
                       f"outer: Expected 1-D argument vec2, but got {vec2.ndim}-D")
    from irtool.ops.promotion import result_type

    dtype = result_type([self, vec2])
    return astype(self, dtype)[:, None] * astype(vec2, dtype)


table.define(("aten::outer(Tensor self, Tensor vec2) -> Tensor", "aten::ger(Tensor self, Tensor vec2) -> Tensor"), _outer,
             doc="Products of all pairs of elements of two vectors.")


FEW_ROWS = 32
"""Rows of a matrix up to which one product of a copy of the stack is faster than a product, which lays out its right factor, of each."""


def matmul_any(xp, a, b):
    """a @ b as torch.matmul: vectors, matrices, stacks with broadcasting. A stack times one matrix is one product."""
    if not a.ndim or not b.ndim:
        raise RunError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    inner_a, inner_b = a.shape[-1], b.shape[-2] if b.ndim > 1 else b.shape[0]
    if inner_a != inner_b:
        _complain(a, b)
    if a.ndim == b.ndim == 1:
        only("dot", "iufc", a)
    if b.ndim <= 2 < a.ndim and a.size and (a.flags.c_contiguous or b.ndim == 2 and a.shape[-2] < FEW_ROWS):
        return product(xp, a.reshape(-1, inner_a), b).reshape(a.shape[:-1] + b.shape[1:])
    return xp.asarray(product(xp, a, b))


def _complain(a, b):
    if a.ndim == 1 and b.ndim == 1:
        raise RunError(f"inconsistent tensor size, expected tensor [{a.size}] and src [{b.size}] to have the same number of elements, but "
                       f"got {a.size} and {b.size} elements respectively", code="E0407")
    if b.ndim == 1 and a.ndim == 2:
        raise RunError(f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})", code="E0407")
    if a.ndim > 2 and b.ndim > 2:
        raise RunError("Expected size for first two dimensions of batch2 tensor to be: "
                       f"[{math.prod(a.shape[:-2])}, {a.shape[-1]}] but got: [{math.prod(b.shape[:-2])}, {b.shape[-2]}].")
    rows = math.prod(a.shape[:-1]) if a.ndim > 1 else 1
    columns = b.shape[-1] if b.ndim > 1 else 1
    raise RunError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and "
                   f"{b.shape[-2] if b.ndim > 1 else b.shape[0]}x{columns})", code="E0407")


def _matmul(xp, self, other):
    return matmul_any(xp, self, other)


table.define(("aten::matmul(Tensor self, Tensor other) -> Tensor", "aten::linalg_matmul(Tensor self, Tensor other) -> Tensor"), _matmul,
             doc="Product of vectors, matrices or broadcast stacks of matrices.")


@table.op("aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
def linear(xp, input, weight, bias):
    """input @ weight.T + bias."""
    if weight.ndim > 2:
        raise RunError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    result = matmul_any(xp, input, weight.T)
    if bias is None:
        return result
    same_dtype("linear", input, bias)
    if input.ndim == 2 or bias.ndim == 1 or sum(size != 1 for size in bias.shape) == 1:     # torch adds to the product of two matrices
        if weight.ndim < 2:
            raise RunError(f"mat2 must be a matrix, got {weight.ndim}-D tensor")
        whole = (math.prod(input.shape[:-1]), result.shape[-1])
        if bias.ndim > 2 or not expands(bias.shape, whole):
            raise RunError(f"The expanded size of the tensor ({list(whole)}) must match the existing size ({list(bias.shape)})",
                           code="E0407")
        if bias.ndim == 2:
            return (result.reshape(whole) + bias).reshape(result.shape)
    elif not expands(bias.shape, result.shape):
        raise RunError(f"output with shape {list(result.shape)} doesn't match the broadcast shape of {list(bias.shape)}", code="E0407")
    result = xp.asarray(result)
    result += bias
    return result


@table.op("aten::linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
def linear_backward(xp, self, grad_output, weight, output_mask):
    """Gradients of linear for input, weight and bias."""
    flat = grad_output.reshape(-1, grad_output.shape[-1])
    return (matmul_any(xp, grad_output, weight) if output_mask[0] else None,
            product(xp, flat.T, self.reshape(-1, self.shape[-1])) if output_mask[1] else None,
            flat.sum(0, dtype=flat.dtype) if output_mask[2] else None)


@table.op("aten::matmul_backward(Tensor grad, Tensor self, Tensor other, bool[2] mask) -> (Tensor, Tensor)")
def matmul_backward(xp, grad, self, other, mask):
    """Gradients of matmul."""
    from irtool.ops.kernels.joining import sum_to_shape

    a, b = self[None] if self.ndim == 1 else self, other[:, None] if other.ndim == 1 else other
    g = xp.expand_dims(grad, -1) if other.ndim == 1 else grad
    g = xp.expand_dims(g, -2) if self.ndim == 1 else g
    conj_a, conj_b = (xp.conj(a), xp.conj(b)) if a.dtype.kind == "c" else (a, b)
    first = sum_to_shape(xp, product(xp, g, conj_b.swapaxes(-1, -2)), a.shape).reshape(self.shape) if mask[0] else None
    second = sum_to_shape(xp, product(xp, conj_a.swapaxes(-1, -2), g), b.shape).reshape(other.shape) if mask[1] else None
    return first, second


# ---- fused: beta * self + alpha * product

def fused(xp, self, result, beta, alpha, shape=None):
    """beta * self + alpha * result; with beta 0, `self` counts only by its shape (its nan do not spread)."""
    dtype = result.dtype
    if self.dtype != dtype:
        raise RunError(f"self and mat2 must have the same dtype, but got {title(self.dtype)} and {title(dtype)}", code="E0409")
    expanded = broadcast_view(self, result.shape)
    result = scaled(result, alpha)
    return result if beta == 0 or dtype.kind in "iu" and int(beta) == 0 else result + scaled(expanded, beta)


def scaled(x, factor):
    """factor * x in the dtype of x, to which torch converts the number."""
    if x.dtype.kind in "iu":
        factor = int(factor)
    return x if factor == 1 else x * as_array(factor, x.dtype)


_FACTORS = ", *, Scalar beta=1, Scalar alpha=1) -> Tensor"


@table.op("aten::addmm(Tensor self, Tensor mat1, Tensor mat2" + _FACTORS, fits="beta+ alpha+")
def addmm(xp, self, mat1, mat2, beta, alpha):
    """beta * self + alpha * mat1 @ mat2."""
    if mat1.ndim != 2 or mat2.ndim != 2:
        raise RunError(f"mat1 must be a matrix, got {mat1.ndim}-D tensor" if mat1.ndim != 2 else
                       f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    return fused(xp, self, _matrix(xp, mat1, mat2), beta, alpha)


@table.op("aten::addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype" + _FACTORS,
          "aten::baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype" + _FACTORS)
def addmm_to(xp, self, mat1, mat2, out_dtype, beta, alpha):
    """beta * self + alpha * mat1 @ mat2, computed in `out_dtype`."""
    dtype = dtype_of(out_dtype)
    return fused(xp, astype(self, dtype), xp.matmul(astype(mat1, dtype), astype(mat2, dtype)), beta, alpha)


@table.op("aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
          fits="beta+ alpha+")
def addmm_activation(xp, self, mat1, mat2, beta, alpha, use_gelu):
    """addmm followed by relu, or gelu."""
    result = addmm.kernel(xp, self, mat1, mat2, beta, alpha)
    if not use_gelu:
        if result.dtype.kind == "c":
            raise RunError("clamp is not supported for complex types")
        return xp.maximum(result, result.dtype.type(0))
    from irtool.ops.kernels.activation import gelu

    return gelu.kernel(xp, result, "none")


@table.op("aten::addmv(Tensor self, Tensor mat, Tensor vec" + _FACTORS, fits="beta alpha")
def addmv(xp, self, mat, vec, beta, alpha):
    """beta * self + alpha * mat @ vec."""
    return fused(xp, self, mv.kernel(xp, mat, vec), beta, alpha)


def check_factors(kind, **factors):
    """Raises torch's error for a factor of addr that a result of this kind of dtype does not take."""
    for name, number in factors.items():
        if isinstance(number, float) and kind in "iub":
            raise RunError(f"For integral input tensors, argument {name} must not be a floating point number.", code="E0409")
        if isinstance(number, bool) and kind != "b":
            raise RunError(f"Boolean {name} only supported for Boolean results.")


@table.op("aten::addr(Tensor self, Tensor vec1, Tensor vec2" + _FACTORS, fits="beta alpha")
def addr(xp, self, vec1, vec2, beta, alpha):
    """beta * self + alpha * outer(vec1, vec2)."""
    from irtool.ops.promotion import result_type

    if vec1.ndim != 1 or vec2.ndim != 1:
        raise RunError(f"addr: Expected 1-D argument vec{1 if vec1.ndim != 1 else 2}, but got {(vec1 if vec1.ndim != 1 else vec2).ndim}-D")
    dtype = result_type([self if self.ndim else self.reshape(1), vec1, vec2])       # torch expands it before it promotes
    check_factors(dtype.kind, beta=beta, alpha=alpha)
    column, row = astype(vec1, dtype)[:, None], astype(vec2, dtype)
    if dtype.kind == "b":
        result = column & row
        grown = xp.broadcast_to(self, result.shape)
        return (grown & bool(beta)) | (result & bool(alpha))
    # alpha * vec1 first, as in torch: vec1 * vec2 may be infinite where the product of all three is not
    return fused(xp, astype(self, dtype), scaled(column, alpha) * row, beta, 1)


@table.op("aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2" + _FACTORS, fits="beta+ alpha+")
def baddbmm(xp, self, batch1, batch2, beta, alpha):
    """beta * self + alpha * batch1 @ batch2, stacks of matrices."""
    return fused(xp, self, _batches(xp, batch1, batch2), beta, alpha)


@table.op("aten::addbmm(Tensor self, Tensor batch1, Tensor batch2" + _FACTORS, fits="beta+ alpha+")
def addbmm(xp, self, batch1, batch2, beta, alpha):
    """beta * self + alpha * the sum of all products of two stacks of matrices."""
    products = _batches(xp, batch1, batch2)
    return fused(xp, self, products.sum(0, dtype=products.dtype), beta, alpha)


# ---- sums over named or numbered dimensions

@table.op("aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
def einsum(xp, equation, tensors, path):
    """Einstein summation: letters name dimensions, `...` the rest; a view of a single operand where nothing is summed."""
    equation = equation.replace(" ", "")
    operands, arrow, output = equation.partition("->")
    terms = operands.split(",")
    if len(terms) != len(tensors):
        raise RunError(f"einsum(): {'fewer' if len(tensors) < len(terms) else 'more'} operands were provided than specified in the "
                       f"equation")
    check_path(path, len(tensors))
    for place, (term, tensor) in enumerate(zip(terms, tensors, strict=True)):
        letters = len(term.replace("...", ""))
        if letters > tensor.ndim or ("..." not in term and letters < tensor.ndim):
            raise RunError(f"einsum(): the number of subscripts in the equation ({letters}) "
                           f"{'is more than' if '...' in term else 'does not match'} the number of dimensions ({tensor.ndim}) for operand "
                           f"{place}" + ("" if "..." in term or letters > tensor.ndim else " and no ellipsis was given"))
    _check_subscripts(terms, output, tensors)
    if "..." in equation:
        equation = _spelled_out(terms, arrow, output, tensors)
        terms = equation.partition("->")[0].split(",")
    dtype, result = tensors[0].dtype, _result_term(equation)
    is_view = len(terms) == 1 and set(terms[0]) == set(result)
    if is_view or dtype.kind in "bu" or dtype.kind == "i" and dtype != xp.int64 or any(tensor.dtype != dtype for tensor in tensors):
        return contract(xp, terms, result, tensors, path)
    wide = [t.astype(xp.float32) for t in tensors] if dtype == xp.float16 else tensors
    product = xp.asarray(xp.einsum(equation, *wide, optimize=len(tensors) > 1))
    return row_major(xp, product).reshape(product.shape).astype(dtype, copy=False)


def _result_term(equation):
    """The letters of the result: those in the equation, or all that occur once, in their order."""
    operands, arrow, output = equation.partition("->")
    return output if arrow else "".join(sorted(c for c in set(operands) - {","} if operands.count(c) == 1))


def _check_subscripts(terms, output, tensors):
    seen = {}
    for place, (term, tensor) in enumerate(zip(terms, tensors, strict=True)):
        head, _, tail = term.partition("...")
        sizes = [*zip(head, tensor.shape, strict=False), *zip(tail, tensor.shape[tensor.ndim - len(tail):], strict=True)]
        own = {}
        for letter, size in sizes:
            if own.setdefault(letter, size) != size:        # NumPy reads beyond the memory of such an operand if it has no elements
                raise RunError(f"einsum(): subscript {letter} is repeated for operand {place} but the sizes don't match, {size} != "
                               f"{own[letter]}", code="E0407")
        for letter, size in sizes:
            known = seen.get(letter, 1)
            if size != known and size != 1 and known != 1:
                raise RunError(f"einsum(): subscript {letter} has size {size} for operand {place} which does not broadcast with previously "
                               f"seen size {known}", code="E0407")
            seen[letter] = max(size, known) if size else size
    for letter in output.replace("...", ""):
        if letter not in seen:
            raise RunError(f"einsum(): output subscript {letter} does not appear in the equation for any input operand")


def _spelled_out(terms, arrow, output, tensors):
    """An equation with letters instead of `...`; torch sums over the dots when the output does not repeat them."""
    letters = [c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" if all(c not in term for term in terms)]
    rank = max(t.ndim - len(term) + 3 for t, term in zip(tensors, terms, strict=True) if "..." in term)
    dots = "".join(letters[:rank])
    spelled = [term.replace("...", dots[len(dots) - (t.ndim - len(term) + 3):]) for t, term in zip(tensors, terms, strict=True)]
    if not arrow:
        every = "".join(terms).replace(".", "")
        output = "..." + "".join(sorted(c for c in set(every) if every.count(c) == 1))
    return ",".join(spelled) + "->" + output.replace("...", dots)


@table.op("aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor")
def tensordot(xp, self, other, dims_self, dims_other):
    """Sum of products over pairs of dimensions."""
    if len(dims_self) != len(dims_other):
        raise RunError("both dimension lists should have same length")
    same_dtype("tensordot", self, other)
    first, second = [wrap_dim(d, self.ndim) for d in dims_self], [wrap_dim(d, other.ndim) for d in dims_other]
    for a, b in zip(first, second, strict=True):
        n, m = self.shape[a], other.shape[b]
        if n == m:
            continue
        if n == 1:
            other = other.sum(b, keepdims=True, dtype=other.dtype)
        elif m == 1:
            self = self.sum(a, keepdims=True, dtype=self.dtype)
        else:
            raise RunError(f"contracted dimensions need to match, but first has size {n} in dim {a} and second has size {m} in dim {b}")
    wide = xp.float32 if self.dtype == xp.float16 else self.dtype
    return xp.asarray(xp.tensordot(astype(self, wide), astype(other, wide), (first, second))).astype(self.dtype, copy=False)


@table.op("aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
def bilinear(xp, input1, input2, weight, bias):
    """input1 @ weight[k] @ input2 for each output k, plus bias."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RunError("bilinear(): input batch dimensions do not match")
    if input1.shape[-1] != weight.shape[1] or input2.shape[-1] != weight.shape[2]:
        raise RunError(f"bilinear(): input size does not match weight size: got {input1.shape[-1]} but expected {weight.shape[1]}")
    if bias is not None and bias.shape[:1] != weight.shape[:1]:
        raise RunError(f"bilinear(): bias size does not match weight size: got {bias.shape[0] if bias.ndim else 1} but expected "
                       f"{weight.shape[0]}")
    first, second = input1.reshape(-1, input1.shape[-1]), input2.reshape(-1, input2.shape[-1])
    result = xp.einsum("bi,kij,bj->bk", first, weight, second, optimize=True).astype(input1.dtype, copy=False)
    result = result.reshape(input1.shape[:-1] + weight.shape[:1])
    return result if bias is None else result + bias


@table.op("aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
          "int unroll_dim=1) -> Tensor")
def trilinear(xp, i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    """Product of three tensors with dimensions inserted, summed over some."""
    rank = i1.ndim + len(expand1)
    if not 0 <= unroll_dim < rank:
        raise RunError(f"unroll_dim must be in [0,{rank - 1}]")
    grown = [xp.expand_dims(t, tuple(wrap_dim(d, rank) for d in dims)) for t, dims in ((i1, expand1), (i2, expand2), (i3, expand3))]
    return (grown[0] * grown[1] * grown[2]).sum(axis=tuple(wrap_dim(d, rank) for d in sumdim))


@table.op("aten::kron(Tensor self, Tensor other) -> Tensor")
def kron(xp, self, other):
    """Kronecker product: every element of one times the whole other."""
    rank = max(self.ndim, other.ndim)
    a, b = (each.reshape((1,) * (rank - each.ndim) + each.shape) for each in (self, other))
    dtype = result_type([a, b])
    spread = [m for n in a.shape for m in (n, 1)], [m for n in b.shape for m in (1, n)]
    shape = tuple([m for each in zip(a.shape, b.shape, strict=True) for m in each])
    strides = pointwise_strides(shape, [(sizes, view_strides(x.shape, element_strides(x), sizes))
                                        for x, sizes in zip((self, other), spread, strict=True)])
    product = strided_view(xp.empty(math.prod(shape), dtype), shape, strides)
    xp.multiply(*[astype(x, dtype).reshape(sizes) for x, sizes in zip((a, b), spread, strict=True)], out=product)
    return view_as_shape(xp, product, [n * m for n, m in zip(a.shape, b.shape, strict=True)])


def _chain(xp, tensors):
    if not tensors:
        raise RunError("chain_matmul(): Expected one or more matrices")
    for each in tensors:
        if each.ndim != 2:
            raise RunError(f"Tensor dimension is {each.ndim}, expected 2 instead.")
    return chain_product(xp, tensors)


def chain_product(xp, tensors):
    """Product of a chain of matrices in the cheapest order (dynamic programming)."""
    if len(tensors) == 1:
        return tensors[0].copy()
    sizes = [t.shape[0] for t in tensors] + [tensors[-1].shape[1]]
    count = len(tensors)
    cost = {(i, i): (0, i) for i in range(count)}
    for span in range(1, count):
        for i in range(count - span):
            j = i + span
            cost[i, j] = min((cost[i, k][0] + cost[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))

    def multiply(i, j):
        if i == j:
            return tensors[i]
        middle = cost[i, j][1]
        return _matrix(xp, multiply(i, middle), multiply(middle + 1, j))
    return multiply(0, count - 1)


table.define("aten::chain_matmul(Tensor[] matrices) -> Tensor", _chain, doc="Product of a chain of matrices.")


@table.op("aten::linalg_multi_dot(Tensor[] tensors) -> Tensor")
def multi_dot(xp, tensors):
    """Product of a chain of matrices; the first and last may be vectors."""
    if len(tensors) < 2:
        raise RunError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    same_dtype("multi_dot()", *tensors)
    chain = list(tensors)
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    if row:
        chain[0] = chain[0][None]
    if column:
        chain[-1] = chain[-1][:, None]
    for place, tensor in enumerate(chain):
        if tensor.ndim != 2:
            raise RunError(f"multi_dot(): tensor {place} must be 2D but got {tensor.ndim}D")
    result = chain_product(xp, chain)
    return result.reshape(result.shape[row:2 - column])


@table.op("aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor")
def grouped_mm(xp, self, mat2, offs, bias, out_dtype):
    """Products of groups of rows (or columns) with a matrix each; `offs` has the ends of the groups."""
    if bias is not None:
        raise RunError("Bias not supported yet")
    ends = [] if offs is None else offs.tolist()
    starts = [0, *ends[:-1]]
    if self.ndim == 3 and mat2.ndim == 3:
        return product(xp, self, mat2)
    if self.ndim == 2 and mat2.ndim == 3:
        result = xp.zeros((self.shape[0], mat2.shape[2]), self.dtype)
        for group, (start, end) in enumerate(zip(starts, ends, strict=True)):
            result[start:end] = product(xp, self[start:end], mat2[group])
    elif self.ndim == 3:
        result = xp.zeros((self.shape[1], mat2.shape[1]), self.dtype)
        for group, (start, end) in enumerate(zip(starts, ends, strict=True)):
            result[:, start:end] = product(xp, self[group], mat2[:, start:end])
    else:
        result = xp.stack([product(xp, self[:, start:end], mat2[start:end]) for start, end in zip(starts, ends, strict=True)])
    return result


# ---- dtypes that torch serves

table.takes("uilhfc=", "tensordot bilinear")
table.laid_out("K", "addr")
table.laid_out("C", "_trilinear bilinear bmm baddbmm matmul linalg_matmul")
