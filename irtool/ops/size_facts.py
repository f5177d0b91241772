"""Facts about operators, for passes and layers: on what the sizes, the rank, the number and the elements of their results depend."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irtool.ir.effects import RESHAPES
from irtool.ir.structure_kinds import kinds


def aten(words: str) -> frozenset[str]:
    """A set of kinds in the namespace `aten`."""
    return frozenset(f"aten::{word}" for word in words.split())


SIZE_QUESTIONS = aten("""
size stride numel len sym_size sym_numel sym_stride is_contiguous storage_offset is_non_overlapping_and_dense is_same_size
""")
"""Operators that return a tensor's sizes."""
DTYPE_QUESTIONS = aten("""
dim is_complex is_floating_point is_signed is_cuda is_sparse is_quantized device dtype layout get_device result_type can_cast
is_inference is_neg promote_types is_leaf requires_grad is_set_to is_pinned
""")
"""Operators whose result is the same for all tensors of one rank and dtype."""
SIZED_BY_ELEMENTS = aten("""
nonzero nonzero_numpy argwhere masked_select unique_dim unique_consecutive unique_dim_consecutive _unique _unique2 repeat_interleave
bincount one_hot _pack_padded_sequence _pad_packed_sequence segment_reduce linalg_lstsq _reshape_from_tensor gru.data lstm.data
rnn_relu.data rnn_tanh.data tensor_split.tensor_indices_or_sections
""")
"""Operators whose results have sizes that depend on elements."""
COUNTED_BY_SIZES = aten("squeeze squeeze_ unbind split chunk tensor_split meshgrid")
"""Operators whose results have a rank, or a number, that depends on sizes."""
MEMORY_MOVERS = aten("resize_ resize_as_ set_")
"""Operators that give a tensor other memory."""
RESHAPING = RESHAPES | aten("resize_ resize_as_ set_ data set_data detach_")
"""Kinds that change the shape of their operand, or may give the operand other memory."""
DECIDING = aten("Bool Int Float item is_nonzero equal allclose ScalarImplicit IntImplicit")
"""Operators that make a Python value, on which Python can branch, of a tensor's elements."""
CERTAIN_VIEWS = aten("as_strided atleast_1d atleast_2d atleast_3d narrow view view_as view_as_complex view_as_real")
"""Views that never copy, although a batched form of them may have to: writes into the result reach the operand."""
VIEWS_AS = {"aten::expand_as": ("aten::expand", [False]), "aten::view_as": ("aten::reshape", []), "aten::reshape_as": ("aten::reshape", [])}
"""Views in the sizes of another tensor -> the same views by sizes, and the arguments after the sizes."""
CONJUGATES = aten("conj _conj mH adjoint matrix_H")
"""Kinds that return a conjugated view of a complex tensor."""
BY_MEMORY = aten("resolve_conj")
"""Kinds whose result depends on whether an operand is a conjugated view."""
BY_STORAGE = aten("as_strided as_strided_ storage_offset sym_storage_offset _reshape_alias")
"""Kinds that look at the memory around a tensor, of which the tensor may be a part."""
HIDDEN_VIEWS = aten("unsafe_chunk unsafe_split unsafe_split_with_sizes _unsafe_view")
"""Kinds whose results share memory with the operand, which gradients ignore: a write into one changes no other's gradient."""
SEPARATE_PARTS = HIDDEN_VIEWS | aten("chunk split split_with_sizes unbind tensor_split hsplit vsplit dsplit")
"""Kinds whose results share memory with the operand, but none with each other."""
OVERLAPPING_VIEWS = aten("expand expand_as broadcast_to broadcast_tensors as_strided unfold meshgrid")
"""Views in which several elements may have one place in memory: a write into one is a write into all of them."""
ON_TENSORS = {f"aten::__{word}__": f"aten::logical_{word}" for word in ("not", "and", "or")}
"""Operators on bools -> the same operators on tensors."""
NOT_LOGGED = aten("size dim numel is_complex is_floating_point")
"""Questions that a logger does not print."""
CUBIC = aten("inverse cholesky svd qr det slogdet logdet pinverse matrix_exp lstsq")
"""Kinds whose time grows with the cube of the extent of a matrix, as that of all `aten::linalg_` kinds does."""
WRITES_ALL = aten("copy_ fill_ zero_")
"""In-place kinds that write every element of their target."""
TRACEABLE_PRIMS = kinds("""
prim::ConstantChunk prim::FusedChunk prim::FusedConcat prim::ListUnpack prim::TupleUnpack prim::TupleIndex prim::TupleSlice
prim::MMBatchSide prim::SumToSize prim::unchecked_cast prim::profile prim::profile_ivalue prim::ListLen prim::TupleLen
prim::ReplaceIfUndef prim::None prim::Undefined prim::AutogradZero prim::TensorToNum prim::Int prim::Float prim::Bool prim::IntToFloat
prim::FloatToInt
""")
"""Kinds with a handler of their own whose results depend only on their operands, and which write nothing."""
NUMBER_KINDS = aten("Bool Int Float ScalarImplicit FloatImplicit IntImplicit ComplexImplicit Complex")
"""Kinds that return a number of known type."""
NUMBER_CONVERSIONS = kinds("""
aten::Bool aten::Float aten::Int aten::FloatImplicit aten::IntImplicit aten::ScalarImplicit prim::NumToTensor prim::TensorToNum
prim::TensorToBool prim::ImplicitTensorToNum prim::Int prim::Float prim::Bool
""")
"""Conversions between numbers and tensors."""
DETACHING = aten("detach detach_ detach_copy data")
"""Kinds that let no gradient pass."""
STATISTICS_WRITERS = aten("batch_norm native_batch_norm _native_batch_norm_legit _batch_norm_with_update _batch_norm_impl_index")
"""Kinds that write running statistics."""
PLACE_NUMBERS = frozenset((("aten::select", "index"), ("aten::select_backward", "index"), ("aten::narrow", "start"),
                  ("aten::slice_backward", "start"), ("aten::slice_backward", "end"), ("aten::slice_scatter", "start"),
                  ("aten::slice_scatter", "end"), ("aten::select_scatter", "index")))
"""(kind, argument): integers that are positions, on which no size depends."""
SIZE_NUMBERS = frozenset((("aten::slice", "start"), ("aten::slice", "end"), ("aten::narrow", "length"), ("aten::arange", "start"),
                    ("aten::arange", "end"), ("aten::arange", "step")))
"""(kind, argument): integers on which sizes of the result depend."""
SIZE_LISTS = frozenset((*[(f"aten::{name}", "size") for name in "zeros ones full empty rand randn expand view".split()],
                   ("aten::reshape", "shape"), ("aten::repeat", "repeats")))
"""(kind, argument): lists of sizes."""
LISTS_IN_FULL = aten("""
_adaptive_avg_pool2d _adaptive_avg_pool3d _slow_conv2d_forward _upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa_backward
_upsample_lanczos2d_aa_backward _upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward
adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d max_unpool3d reflection_pad1d reflection_pad1d_backward
reflection_pad2d reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward replication_pad1d replication_pad1d_backward
replication_pad2d replication_pad2d_backward replication_pad3d replication_pad3d_backward slow_conv3d slow_conv_dilated2d
slow_conv_dilated3d thnn_conv2d upsample_bicubic2d_backward upsample_bilinear2d_backward upsample_linear1d_backward
upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward upsample_trilinear3d_backward
""")
"""Kinds of whose lists of a declared length none may have one number in place of all."""
FACTORIES = frozenset("arange bartlett_window blackman_window empty empty_like eye full full_like hamming_window hann_window kaiser_window "
                      "linspace logspace ones ones_like rand rand_like randint randint_like randn randn_like randperm range scalar_tensor "
                      "tril_indices triu_indices zeros zeros_like".split())
"""Functions that have torch's argument `requires_grad`."""
SIZED_BY_OPERAND = frozenset(("aten::sum_to_size", "aten::_grad_sum_to_size", "aten::expand", "aten::reshape", "aten::view", "aten::zeros"))
"""Kinds whose result has the shape in an operand."""

READS_FIRST = frozenset(f"aten::{name}_" for name in "addmm addmv addbmm baddbmm".split())
"""Kinds that read all operands before they write, so that these may overlap the target."""
BY_INDEX = frozenset(f"aten::{name}_" for name in
                     "index_add index_copy index_fill index_reduce index_put scatter scatter_add scatter_reduce put masked_scatter".split())
"""Kinds that write elements by index: no operand may share memory with the target, not even all of it."""
IN_ORDER = frozenset(("aten::masked_scatter_",))
"""Kinds of BY_INDEX that torch does not refuse then: it reads elements, of the last operand, some of which it may have written."""
NUMBER_FIRST = frozenset(("aten::index_fill_", "aten::masked_fill_"))
"""Kinds that read their last operand, one number, before they write."""


def read_late(kind: str, operands: Sequence[Any]) -> Sequence[Any]:
    """The operands, behind the target, that a kind may still read when it has begun to write: those that may not share memory with it."""
    return () if kind in READS_FIRST else operands[:-1] if kind in NUMBER_FIRST else operands[-1:] if kind in IN_ORDER else operands
