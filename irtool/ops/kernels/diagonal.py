"""Diagonals and triangles of matrices; copies of views, views written back into a copy, and gradients of views."""
from irtool.ir.errors import RunError
from irtool.ops.arrays import wrap_dim
from irtool.ops.checks import refuse_growth
from irtool.ops.kernels import shape as views
from irtool.ops.op import OpTable

table = OpTable("diagonal")


# ---- triangles and diagonals

def _triangle(keep_lower):
    def kernel(xp, self, diagonal):
        if self.ndim < 2:
            raise RunError(f"tri{'l' if keep_lower else 'u'}: input tensor must have at least 2 dimensions")
        rows, columns = self.shape[-2:]
        difference = xp.arange(columns) - xp.arange(rows)[:, None]
        return xp.where(difference <= diagonal if keep_lower else difference >= diagonal, self, self.dtype.type(0))
    return kernel


table.define("aten::tril(Tensor self, SymInt diagonal=0) -> Tensor", _triangle(True), doc="Zeros above a diagonal.")
table.define("aten::triu(Tensor self, SymInt diagonal=0) -> Tensor", _triangle(False), doc="Zeros below a diagonal.")


@table.op("aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
def diag_embed(xp, self, offset, dim1, dim2):
    """Matrices with the last dimension on a diagonal and zeros elsewhere, placed in two new dimensions."""
    rank = self.ndim + 1
    first, second = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if first == second:
        raise RunError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    extent = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    for place in sorted((first, second)):
        shape.insert(place, extent)
    result = xp.zeros(shape, self.dtype)
    views.diagonal_view(xp, result, offset, first, second)[...] = self
    return result


@table.op("aten::diag(Tensor self, int diagonal=0) -> Tensor")
def diag(xp, self, diagonal):
    """A vector as the diagonal of a matrix, or a matrix's diagonal."""
    if self.ndim == 1:
        return diag_embed.kernel(xp, self, diagonal, -2, -1)
    if self.ndim != 2:
        raise RunError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")
    return views.diagonal_view(xp, self, diagonal, 0, 1).copy()


@table.op("aten::diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(xp, self, offset):
    """All elements as the diagonal of a matrix."""
    return diag_embed.kernel(xp, self.reshape(-1), offset, -2, -1)


@table.op("aten::trace(Tensor self) -> Tensor")
def trace(xp, self):
    """Sum of the main diagonal of a matrix."""
    if self.ndim != 2:
        raise RunError("trace: expected a matrix, but got tensor with dim " + str(self.ndim))
    dtype = xp.int64 if self.dtype.kind in "biu" else self.dtype
    return xp.asarray(views.diagonal_view(xp, self, 0, 0, 1).sum(dtype=dtype))


@table.op("aten::trace_backward(Tensor grad, SymInt[] sizes) -> Tensor")
def trace_backward(xp, grad, sizes):
    """Gradient of trace."""
    if len(sizes) != 2:
        raise RunError("expected matrix input")
    result = xp.zeros(sizes, grad.dtype)
    views.diagonal_view(xp, result, 0, 0, 1)[...] = grad
    return result


# ---- copies of views

def _copied(op):
    kernel = views.reshape.kernel if op is views.view else op.kernel     # view_copy needs no view

    def copy(xp, *args):
        return xp.array(kernel(xp, *args), order="C", copy=True)
    return copy


def _copy_of(op):
    """The stanza of `NAME_copy` from that of the view."""
    kind = op.kinds[0]
    schema = op.schemas[0].replace("(a)", "").replace(kind, f"{kind}_copy", 1)
    return table.define(schema, _copied(op), doc=f"A copy of what {kind.removeprefix('aten::')} gives.")


COPIES = {_copy_of(_op): _op for _op in (
    views.as_strided, views.diagonal, views.expand, views.narrow, views.permute, views.select, views.slice_dim, views.squeeze,
    views.squeeze_dim, views.squeeze_several, views.transpose_matrix, views.transpose, views.unfold, views.unsqueeze, views.view,
    views.view_dtype, views.view_as_complex, views.view_as_real)}
"""Copies of views -> the views, whose gradients, batching rules and samples they share."""


# ---- a view of a copy overwritten

def _with_view(name, op, takes):
    """Copy of `self` with `src` written into the view that `op` makes of it."""
    def kernel(xp, self, src, *args):
        result = self.copy()
        part = op.kernel(xp, result, *args)
        if part.shape != src.shape:
            raise RunError(f"expected src to have a size equal to the {takes} of self. src size = {list(src.shape)}, {takes} size = "
                           f"{list(part.shape)}")
        part[...] = src
        return result
    return kernel


for _name, _arguments, _op, _takes in (
    ("select_scatter", "int dim, SymInt index", views.select, "slice"),
    ("slice_scatter", "int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1", views.slice_dim, "slice"),
    ("diagonal_scatter", "int offset=0, int dim1=0, int dim2=1", views.diagonal, "slice"),
):
    table.define(f"aten::{_name}(Tensor self, Tensor src, {_arguments}) -> Tensor", _with_view(_name, _op, _takes),
                 doc=f"A copy with a part overwritten, the part that {_op.kinds[0].removeprefix('aten::')} gives.")


@table.op("aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor")
def as_strided_scatter(xp, self, src, size, stride, storage_offset):
    """A copy in which the elements of the view that as_strided makes are overwritten."""
    result = self.copy()
    views.as_strided.kernel(xp, result, size, stride, storage_offset)[...] = src
    return result


# ---- gradients of views: zeros with the part filled

def _filled(op):
    def kernel(xp, grad_output, input_sizes, *args):
        result = xp.zeros_like(grad_output, order="C", shape=tuple(input_sizes))
        part = op.kernel(xp, result, *args)
        if grad_output.ndim > part.ndim:
            refuse_growth(part, grad_output.shape)
        part[...] = grad_output
        return result
    return kernel


for _name, _arguments, _op in (
    ("select_backward", "int dim, SymInt index", views.select),
    ("slice_backward", "int dim, SymInt start, SymInt end, SymInt step", views.slice_dim),
    ("diagonal_backward", "int offset, int dim1, int dim2", views.diagonal),
):
    table.define(f"aten::{_name}(Tensor grad_output, SymInt[] input_sizes, {_arguments}) -> Tensor", _filled(_op),
                 doc=f"Gradient of {_op.kinds[0].removeprefix('aten::')}.")


# ---- dtypes that torch serves

table.takes("uilhfc", "trace")
table.laid_out("C", "tril triu")
table.laid_out("K", "select_scatter slice_scatter diagonal_scatter")
