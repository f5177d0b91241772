"""Calls of any operator, drawn by its schema; dtype and shape of the result are looked up as in sampled.py."""
from __future__ import annotations

import random
import re
from functools import cache

from fuzz import sampled
from fuzz.expressions import ORDER, Facts, category
from irtool.ir.schema import Argument, Schema, parse_schema, schema_named
from irtool.ops import OPS

Choices = tuple[str, ...]
WORDS: dict[str, Choices] = {
    "Tensor": ("{a}", "{a}", "{b}", "{b}", "{b} * 0.5", "{a}[:1]", "{b}.unsqueeze(0)", "{b} > 0", "torch.tensor([0, 1])", "{b}.sum()",
               "torch.zeros_like({a}, dtype=torch.int64)", "{a} * 0.1 + 0.5", "{a} + 0.111"),
    "Tensor[]": ("[{a}, {b}]", "[{a}]", "[{a}, {a} * 2]", "[{b}, {a}, {b}]"),
    "Tensor?[]": ("[torch.tensor([0, -1])]", "[None, torch.tensor([0])]", "[{b} > 0]"),
    "number": ("{n}", "{r}", "2", "-1", "0.5"),
    "int": ("0", "1", "-1", "2", "{n}", "-2", "3"), "float": ("{r}", "0.5", "2.0", "0.0", "1e-3"),
    "bool": ("True", "False"), "ScalarType": ("torch.float64", "torch.int64", "torch.float32"), "complex": ("0.5j", "1 - 2j"),
}
"""What is given for an argument of a type."""
FEW = {"dim": ("0", "-1", "1", "{n}"), "dims": ("0", "-1", "1"), "index": ("0", "-1", "1", "{n}"), "reduction": ("0", "1", "2"),
       "reduce": ("\"sum\"", "\"prod\"", "\"mean\"", "\"amax\"", "\"min\"", "\"add\""),
       "running_mean": ("None",), "running_var": ("None",), "pin_memory": (), "compute_mode": ("0", "1", "2"), "mode": ("0", "1"),
       "dropout_p": ("0.0",), "check_errors": ("True",),
       "interpolation_mode": ("0", "1", "2"), "padding_mode": ("0", "1", "2"),
       "half_to_float": ("False",), "rtol": ("0.1", "1e-3"), "rcond": ("0.1", "1e-3"), "scale_grad_by_freq": ("False",),
       "assume_unique": ("False",), "eps": ("1e-3", "1e-6", "0.05"), "sparse": ("False",), "sparse_grad": ("False",),
       "sorted": ("True",)}
"""What is given for arguments of some names. (Without sorting, `topk` may give its elements in any order.)"""
INDEXES = ("torch.zeros_like({a}, dtype=torch.int64)", "torch.tensor([0, 0])", "torch.ones_like({b}, dtype=torch.int64)", "torch.tensor(0)")
LEFT_OUT = ("random", "decomposition", "recurrent", "dict", "fake_quantize", "attention")
"""Families whose results are drawn or are not unique; and those that take what none gives."""
ODD = re.compile(
    r"empty|resize|dropout|rrelu|_backward|set_|quantize|_lazy|_pack|lift|coalesced|_tensor_to|_unique|histogramdd|as_strided|unfold|frexp"
    r"|_neg_view|chalf|_weight_norm|segment|hash_tensor|to_dense|pin_memory|fill_diagonal|matrix_rank|cond|::_.*norm|_ctc|fractional|_mm$"
    r"|searchsorted|bucketize"
    r"|_autocast|polygamma|nuclear|_masked_scale|_slow|norm_except|::data$|::_add_relu|::sorted|::as_tensor|::_conj|::to$|::to\.|airy"
    r"|::_chunk|::_unsafe|::expand|::_trilinear|_euclidean|_pdist|embedding_renorm|_fft_|special_zeta|_masked_softmax|view_copy"
    r"|_reshape_alias|_reshape_from|native_\w+_norm|multilabel|_grad_sum|lstsq|cholesky_inverse|_linalg_|linalg_inv_ex|cholesky_ex")
"""Operators that are not drawn: of memory that nobody filled, of random numbers, of layouts, of values that programs do not have."""
TIED = re.compile(r"::(topk|sort|argsort|mode|median|nanmedian|kthvalue|max_pool|adaptive_max|max_unpool)")
"""Operators whose second result says which of equal elements it is."""
BLENDED = re.compile(r"::(addm|addbmm|addr|baddbmm|detach)")
"""Operators that torch lets write into what they multiply, with any result; and one that it refuses for views."""
KINKED = re.compile(r"max|min|sort|median|mode|kthvalue|topk|clamp|clip|relu|hard|shrink|round|floor|ceil|trunc|frac|sign|heaviside|abs"
                    r"|quantile|margin|remainder|fmod|div|threshold|unique|huber|l1|hinge|triplet|norm|dist|pool|renorm|sgn|angle|elu"
                    r"|bessel|index_copy|::put|::scatter|_cast|log_sigmoid_forward|nll_loss|logit$|logit_$|lstsq|pinv|logdet|cholesky_solve"
                    r"|cholesky_inverse|xlog|nextafter|atan2|arctan2|index_put|::embedding$|_cpu_fallback|::pow|float_power")
"""Operators that are not smooth everywhere (pow: at exponent 0), whose gradient is not the slope (of padding in embedding), or that torch
has none of."""


@cache
def callable_operators(is_smooth: bool) -> tuple[Schema, ...]:
    """Overloads that give tensors, and whose arguments can be drawn."""
    found = []
    for name, op in OPS.items():
        schema = parse_schema(op.schemas[op.names.index(name)])
        if not name.startswith("aten::") or op.family in LEFT_OUT or ODD.search(name) or not schema.returns:
            continue
        if any(each.type_text != "Tensor" and each.type.text != "Tensor[]" for each in schema.returns):
            continue
        if is_smooth and (KINKED.search(name) or name in op._no_gradient or not op.formulas):
            continue
        if "Tensor" in schema.arguments[0].type.text if schema.arguments else False:
            if all(choices(each) or each.has_default for each in schema.arguments):
                found.append(schema)
    return tuple(found)


def choices(argument: Argument) -> Choices:
    """What may be given for an argument; nothing where it has a default only."""
    text = argument.type_text
    base = text.removesuffix("?").removeprefix("Sym").replace("SymInt", "int").lower() if "Sym" in text else text.removesuffix("?")
    if argument.name in ("indices", "index", "target") and base == "Tensor":
        return INDEXES
    if re.fullmatch(r"(int|Int|SymInt)(\[\d*\])", base):
        return ("list",)
    if base == "Scalar":        # TorchScript makes an int of True, eager torch does not
        return WORDS["number"]
    return FEW[argument.name] if argument.name in FEW and base in ("int", "bool", "float", "str", "Tensor") else WORDS.get(base, ())


def drawn(rng: random.Random, argument: Argument) -> str | None:
    """A text for an argument; None where it is left out."""
    words = choices(argument)
    if not words or argument.has_default and rng.random() < 0.4:
        return None
    if argument.type_text.endswith("?") and rng.random() < 0.25:
        return "None"
    if words == ("list",):
        if "size" in argument.name and rng.random() < 0.5:
            return "{b}.size()"
        count = argument.fixed_size or rng.choice((1, 1, 2))
        few = FEW.get(argument.name, WORDS["int"])
        return f"[{', '.join(rng.choice(few) for _ in range(count))}]"
    return rng.choice(words)


def text_of(rng: random.Random, schema: Schema, ending: str = "") -> str:
    """A call of an overload with drawn arguments."""
    words, named = [], False
    for argument in schema.arguments:
        word = drawn(rng, argument)
        if word is None and argument.has_default:
            named = True
            continue
        named |= argument.keyword_only
        words.append(f"{argument.name}={word}" if named else str(word))
    if not words[0].startswith("[") and (ending or rng.random() < 0.8):
        words[0] = "{a}"
    name = schema.name.removeprefix("aten::").partition(".")[0]
    return f"torch.ops.aten.{name}{ending}({', '.join(words)})"


def call(rng: random.Random, is_smooth: bool) -> str:
    """A call that gives a tensor."""
    schema = rng.choice(callable_operators(is_smooth))
    text, count = text_of(rng, schema), len(schema.returns)
    if count == 1:
        return f"{text}[{rng.choice((0, -1))}]" if schema.returns[0].type.text == "Tensor[]" else text
    return f"{text}[{0 if TIED.search(schema.name) else rng.randrange(count)}]"


def facts(text: str, a: Facts, b: Facts, is_smooth: bool) -> Facts | None:
    """Dtype and shape of a call; None where irtool refuses it, or where rounded elements would decide."""
    if max(a.count, b.count) > sampled.MOST or "16" in a.dtype + b.dtype:
        return None
    if not (is_smooth or a.is_exact and b.is_exact):
        return None
    result = sampled.facts_of(text, (a.dtype, b.dtype), (a.shape, b.shape))
    if result is None or result[0] not in ORDER or is_smooth and category(result[0]) < 2:
        return None
    return Facts(*result, None)


@cache
def writers() -> tuple[Schema, ...]:
    """Overloads that write into their first operand."""
    found = []
    for schema in callable_operators(False):
        kind, _, overload = schema.name.partition(".")
        written = schema_named(f"{kind}_.{overload}" if overload else f"{kind}_")
        if written is not None and not TIED.search(kind) and not BLENDED.search(kind):
            found.append(schema)
    return tuple(found)


def write(rng: random.Random, is_smooth: bool) -> str:
    """A call that writes into {a}."""
    allowed = [each for each in writers() if not (is_smooth and KINKED.search(each.name))]
    return text_of(rng, rng.choice(allowed), "_")
