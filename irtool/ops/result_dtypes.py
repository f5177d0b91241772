"""The dtypes of an overload's results, if all its floating-point and complex operands have one dtype.

`tools/facts.py` writes `result_dtypes.txt`, a row per overload with a word per result, from runs of its samples in several dtypes.
"""
from __future__ import annotations

from functools import cache
from pathlib import Path

from irtool.ir.graph import Node
from irtool.ir.schema import schema_of

KEEPS, FLOATS, REAL, UNCERTAIN = "keeps", "floats", "real", "?"
"""That of the operands; the same, but known for real operands only; that of the real part. Any other word is itself a dtype."""
MAKES_COMPLEX = frozenset(f"aten::{name}" for name in """
complex view_as_complex polar stft istft fft_rfft fft_rfft2 fft_rfftn fft_irfft fft_irfft2 fft_irfftn fft_fft fft_ifft fft_fft2 fft_ifft2
fft_fftn fft_ifftn fft_hfft fft_hfft2 fft_hfftn fft_ihfft fft_ihfft2 fft_ihfftn linalg_eig _linalg_eigvals linalg_eigvals
""".split())
"""Kinds that give complex numbers, or compute with such, where their operands are real."""
CASTS = MAKES_COMPLEX | frozenset(f"aten::{name}" for name in """
to type_as _to_copy float double half bfloat16 _autocast_to_reduced_precision _autocast_to_full_precision
""".split())
"""Kinds that may make tensors of another floating-point dtype than that of their operands."""
INTO_DTYPE = frozenset(f"aten::{name}" for name in "copy copy_ fill fill_ as_tensor".split())
"""Kinds that convert an operand to the dtype of another, or to that of an argument: numbers of a dtype without gradients, perhaps."""
CASTS_BY_ARGUMENT = frozenset(f"aten::{name}" for name in "softmax log_softmax sum mean prod cumsum cumprod norm logsumexp nansum".split())
"""The same, if they have an argument that is a dtype."""
FIRST_DTYPE = frozenset(f"aten::{name}" for name in """
addbmm addmm addmv addr baddbmm copy fill index_add index_copy index_fill index_put index_reduce masked_fill masked_scatter put
scatter scatter_add scatter_reduce
clone relu dropout linear matmul mm bmm max_pool2d avg_pool2d adaptive_avg_pool2d batch_norm group_norm conv1d conv2d conv3d _convolution
""".split())
"""Kinds whose results have the dtype of the first operand: others are converted, or torch refuses other dtypes."""
PASSING = frozenset(("prim::ConstantChunk", "prim::unchecked_cast", "prim::AutogradAdd", "prim::SumToSize"))
"""Kinds without a schema whose results have the dtype of their operands."""
LISTS = frozenset(("prim::ListConstruct", "prim::ListUnpack", "prim::TupleConstruct", "prim::TupleUnpack", "aten::__getitem__"))
"""The same for kinds that put tensors into lists and tuples and take them out, in graphs that change no list."""
REAL_PARTS = {"complex64": "float32", "complex128": "float64"}


@cache
def _rows() -> dict[str, list[str]]:
    rows = (Path(__file__).parent / "result_dtypes.txt").read_text(encoding="utf-8").splitlines()
    return {name: words for name, *words in map(str.split, rows)}


def result_dtypes(node: Node, dtype: str) -> list[str | None]:
    """The dtype of each result of a node, or of the tensors in it, for operands of one dtype; None if it is uncertain."""
    schema = schema_of(node)
    words = [] if schema is None else _rows().get(schema.name, [])
    if schema is None or len(words) != len(node.outputs):
        return [None] * len(node.outputs)
    for argument, value in zip(schema.arguments, node.inputs, strict=False):
        if argument.type_text.startswith("ScalarType") and value.type.key != "None" or value.type.key in ("complex", "Scalar"):
            return [None] * len(words)
    real = REAL_PARTS.get(dtype, dtype)
    meaning = {KEEPS: dtype, FLOATS: dtype if real == dtype else None, REAL: real, UNCERTAIN: None}
    return [meaning.get(word, word) for word in words]
