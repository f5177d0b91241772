"""Losses of two tensors, elementwise and reduced: mean, sum or none; and their gradients. Classification is in classification_loss."""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import as_array, astype, title
from irtool.ops.checks import fit, only, refuse_growth
from irtool.ops.kernels.pointwise_binary import no_bool_difference
from irtool.ops.op import OpTable
from irtool.ops.promotion import can_cast, float_of, result_type

table = OpTable("loss")

NONE, MEAN, SUM = 0, 1, 2
"""torch's numbers for reductions."""
LEAST_SPREAD = 9.999999960041972e-13
"""The least x * (1 - x) by which the gradient of binary_cross_entropy divides: 1e-12 as a float, also where tensors are double."""


def check_reduction(reduction):
    """Raises RunError for a number that names no reduction: some of torch's losses take it for `none`, some for `sum`."""
    if reduction not in (NONE, MEAN, SUM):
        raise RunError(f"reduction={reduction}; expected 0 (none), 1 (mean) or 2 (sum)")


def reduced(xp, loss, reduction):
    """The loss of each element, or their mean or sum as a 0-d array."""
    check_reduction(reduction)
    if reduction == NONE:
        return loss
    if loss.dtype.kind in "iu":
        if reduction == MEAN:
            raise RunError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
                           f"{title(loss.dtype)}")
        return xp.asarray(loss.sum(dtype=xp.int64))
    wide = loss.astype(xp.float32) if loss.dtype == xp.float16 else loss
    total = xp.asarray(wide.sum(dtype=wide.dtype))
    if reduction == MEAN:
        total = total / total.dtype.type(loss.size) if loss.size else xp.full((), math.nan, wide.dtype)
    return xp.asarray(total).astype(loss.dtype, copy=False)


def _both(xp, self, target, to_float=False):
    dtype = result_type([self, target])
    if to_float:
        dtype = float_of(dtype)
    return astype(self, dtype), astype(target, dtype)


def _into(dtype, *operands):
    """Raises torch's error unless what is computed of operands may be written into a tensor of the dtype."""
    promoted = result_type([each for each in operands if each is not None])
    if not can_cast(promoted, dtype):
        raise RunError(f"result type {title(promoted)} can't be cast to the desired output type {title(dtype)}")


def _scale(xp, grad, like, reduction):
    """The factor of each element's slope."""
    return grad / like.dtype.type(like.size) if reduction == MEAN else grad


@table.op("aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def mse_loss(xp, self, target, reduction):
    """Squared difference."""
    self, target = _both(xp, self, target)
    only("mse_cpu", "fc", self)
    return reduced(xp, xp.square(self - target), reduction)


@table.op("aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
def mse_loss_backward(xp, grad_output, self, target, reduction):
    """Gradient of mse_loss."""
    return (_scale(xp, grad_output, self, reduction) * 2 * (self - target)).astype(self.dtype, copy=False)


@table.op("aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def l1_loss(xp, self, target, reduction):
    """Absolute difference."""
    no_bool_difference([self, target])
    self, target = _both(xp, self, target)
    difference = xp.abs(self - target)
    if reduction == MEAN:
        if difference.dtype.kind not in "fc":
            raise RunError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
                           + title(difference.dtype))
    if reduction == SUM and difference.dtype.kind in "iub":
        return xp.asarray(difference.sum(dtype=xp.int64))
    return reduced(xp, difference, reduction)


@table.op("aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor")
def smooth_l1_loss(xp, self, target, reduction, beta):
    """Half the square over beta for differences below beta, |difference| - beta / 2 above."""
    if not beta >= 0:       # nan, too
        raise RunError("smooth_l1_loss does not support negative values for beta.")
    self, target = _both(xp, self, target)
    only("smooth_l1_cpu", "f", self)
    z, kind = xp.abs(self - target), self.dtype.type
    if beta == 0:
        return reduced(xp, z, reduction)
    return reduced(xp, xp.where(z < kind(beta), kind(0.5) * z * z / kind(beta), z - kind(0.5 * beta)), reduction)


@table.op("aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor")
def smooth_l1_loss_backward(xp, grad_output, self, target, reduction, beta):
    """Gradient of smooth_l1_loss."""
    difference, kind = self - target, self.dtype.type
    slope = xp.sign(difference) if beta == 0 else xp.clip(difference / kind(beta), kind(-1), kind(1))
    return (_scale(xp, grad_output, self, reduction) * slope).astype(self.dtype, copy=False)


@table.op("aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor")
def huber_loss(xp, self, target, reduction, delta):
    """Half the square for differences up to delta, delta * (|difference| - delta / 2) above."""
    if not delta > 0:       # nan, too
        raise RunError("huber_loss does not support non-positive values for delta.")
    dtype = self.dtype
    self, target = _both(xp, self, target)
    only("huber_cpu", "f", self)
    if dtype.kind != "f":
        raise RunError(f"result type {title(self.dtype)} can't be cast to the desired output type {title(dtype)}")
    z, kind = xp.abs(self - target), self.dtype.type
    loss = xp.where(z <= kind(delta), kind(0.5) * z * z, kind(delta) * (z - kind(0.5 * delta)))
    return reduced(xp, loss.astype(dtype, copy=False), reduction)


@table.op("aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor")
def huber_loss_backward(xp, grad_output, self, target, reduction, delta):
    """Gradient of huber_loss."""
    kind = self.dtype.type
    return (_scale(xp, grad_output, self, reduction) * xp.clip(self - target, kind(-delta), kind(delta))).astype(self.dtype, copy=False)


@table.op("aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def soft_margin_loss(xp, self, target, reduction):
    """log(1 + exp(-target * x)), targets 1 and -1. The product is rounded to the dtype of x, in which torch writes it in place."""
    dtype = self.dtype
    refuse_growth(self, xp.broadcast_shapes(self.shape, target.shape))
    self, target = _both(xp, self, target, True)
    _into(dtype, self)
    product = (-self * target).astype(dtype, copy=False)
    return reduced(xp, xp.log1p(xp.exp(product)), reduction)


@table.op("aten::soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
def soft_margin_loss_backward(xp, grad_output, self, target, reduction):
    """Gradient of soft_margin_loss. As in torch, products are in the dtype of x, quotients as wide as those of x and the target."""
    dtype = self.dtype
    _into(dtype, self, target)
    self, target = _both(xp, self, target)
    z = xp.exp(-target * self)
    slope = (-target * z).astype(dtype, copy=False)
    if reduction == MEAN:
        slope = slope / dtype.type(self.size)
    slope = (slope / (z + 1)).astype(dtype, copy=False)
    return (slope * grad_output).astype(dtype, copy=False)


@table.op("aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor")
def kl_div(xp, self, target, reduction, log_target):
    """target * (log target - x), x being a log-probability; `log_target`: the target is one too."""
    for each in (self, target):
        if each.dtype.kind != "f":
            raise RunError(f"kl_div: {'Complex' if each.dtype.kind == 'c' else 'Integral'} inputs not supported.")
    self, target = _both(xp, self, target)
    if log_target:
        loss = xp.exp(target) * (target - self)
    else:
        logged = xp.where(target == 0, target.dtype.type(0), target * xp.log(target))
        loss = logged - target * self
    return reduced(xp, loss, reduction)


# ---- probabilities

def _check_bce(self, target):
    if self.shape != target.shape:
        raise RunError(f"Using a target size ({list(target.shape)}) that is different to the input size ({list(self.shape)}) is "
                       "deprecated. Please ensure they have the same size.")


@table.op("aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor")
def binary_cross_entropy(xp, self, target, weight, reduction):
    """-(target * log x + (1 - target) * log(1 - x)), logarithms not below -100."""
    _check_bce(self, target)
    if self.size and not bool(((self >= 0) & (self <= 1)).all()):
        raise RunError("all elements of input should be between 0 and 1")
    if target.size and target.dtype.kind == "f" and not bool(((target >= 0) & (target <= 1)).all()):
        raise RunError("all elements of target should be between 0 and 1")
    if self.dtype != target.dtype:
        raise RunError(f"Found dtype {title(target.dtype)} but expected {title(self.dtype)}")
    _into(self.dtype, self, weight)
    if weight is not None:
        refuse_growth(self, xp.broadcast_shapes(self.shape, weight.shape))
    kind = self.dtype.type
    loss = (target - 1) * xp.maximum(xp.log1p(-self), kind(-100)) - target * xp.maximum(xp.log(self), kind(-100))
    return reduced(xp, loss if weight is None else astype(loss * weight, self.dtype), reduction)


@table.op("aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) "
          "-> Tensor")
def binary_cross_entropy_backward(xp, grad_output, self, target, weight, reduction):
    """Gradient of binary_cross_entropy."""
    slope = (self - target) / xp.maximum((1 - self) * self, self.dtype.type(LEAST_SPREAD))
    result = _scale(xp, grad_output, self, reduction) * slope
    return (result if weight is None else result * weight).astype(self.dtype, copy=False)


@table.op("aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
          "int reduction=1) -> Tensor")
def binary_cross_entropy_with_logits(xp, self, target, weight, pos_weight, reduction):
    """binary_cross_entropy of sigmoid(x), stable; `pos_weight` weighs the positive term."""
    for each in (target, pos_weight):
        no_bool_difference([each, 1])
    _into(target.dtype, self, target, weight, pos_weight)
    refuse_growth(target, xp.broadcast_shapes(self.shape, target.shape))
    if pos_weight is not None:
        refuse_growth(self, xp.broadcast_shapes(self.shape, target.shape, pos_weight.shape))
        _into(self.dtype, self, target, pos_weight)
    softplus = xp.log1p(xp.exp(-xp.abs(self))) + xp.maximum(-self, 0)
    loss = (1 - target) * self + softplus if pos_weight is None else (1 - target) * self + ((pos_weight - 1) * target + 1) * softplus
    if weight is not None:
        loss = loss * weight
    return reduced(xp, astype(loss, target.dtype), reduction)


@table.op("aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor")
def poisson_nll_loss(xp, input, target, log_input, full, eps, reduction):
    """exp(x) - target * x, or x - target * log(x + eps); `full`: with Stirling's term for targets above 1."""
    if reduction not in (NONE, MEAN, SUM):
        raise RunError(f"{reduction} is not a valid value for reduction")
    x, t = astype(input, float_of(input.dtype)), target
    dtype = result_type([x, t])
    product = result_type([input, t]).type(0)
    no_bool_difference([product if log_input else input, 1])
    if full:
        no_bool_difference([t, 1])
        only("le_cpu", "biuf", t)
    loss = xp.exp(x) - t * x if log_input else x - t * xp.log(x + x.dtype.type(eps))
    if full:
        f = astype(t, float_of(t.dtype))
        stirling = f * xp.log(f) - f + f.dtype.type(0.5) * xp.log(f.dtype.type(2 * math.pi) * f)
        loss = loss + xp.where(t <= 1, f.dtype.type(0), stirling)
    return reduced(xp, loss.astype(dtype, copy=False), reduction)


# ---- margins and distances

def _mean_margin(xp, value):
    return xp.maximum(value, value.dtype.type(0))


@table.op("aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor")
def margin_ranking_loss(xp, input1, input2, target, margin, reduction):
    """max(0, -target * (input1 - input2) + margin); differences and products of whole numbers wrap in their dtypes, as in torch."""
    no_bool_difference([input1, input2])
    difference = xp.subtract(*_both(xp, input1, input2))
    sign, difference = _both(xp, xp.asarray(-target), xp.asarray(difference))
    dtype = sign.dtype
    if dtype.kind == "c":
        raise RunError("clamp is not supported for complex types")
    if isinstance(margin, float):
        dtype = float_of(dtype)
    return reduced(xp, _mean_margin(xp, astype(xp.asarray(sign * difference), dtype) + dtype.type(margin)), reduction)


def minus_one(xp, target):
    """What torch compares a target with where it says -1: the same in the target's dtype if that is whole, 255 for bytes."""
    return 255 if target.dtype == xp.uint8 else -1


@table.op("aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor")
def hinge_embedding_loss(xp, self, target, margin, reduction):
    """x where the target is 1, max(0, margin - x) where it is -1; the margin is rounded to whole numbers if x has them."""
    no_bool_difference([self, self])
    if self.dtype.kind == "c":
        raise RunError("clamp is not supported for complex types")
    zero = as_array(0, self.dtype)
    below = xp.where(target != 1, xp.maximum(as_array(fit(margin, self.dtype), self.dtype) - self, zero), zero)
    is_other = target != minus_one(xp, target)
    return reduced(xp, below + xp.where(is_other, self, zero), reduction)


@table.op("aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor")
def cosine_embedding_loss(xp, input1, input2, target, margin, reduction):
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    dim = target.ndim
    if target.ndim not in (0, 1):
        raise RunError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == dim + 1:
        raise RunError(f"{dim}D target tensor expects {dim + 1}D input tensors, but found inputs with sizes {list(input1.shape)} and "
                       f"{list(input2.shape)}.")
    a, b = (astype(each, float_of(each.dtype)) for each in (input1, input2))
    dtype = result_type([a, b])
    if dtype.kind == "c":
        raise RunError("clamp is not supported for complex types")
    eps = dtype.type(1e-12)

    def total(one, other):
        """Their product's sum; products of whole numbers have their dtype, in which those of bytes wrap, as in torch."""
        product = xp.multiply(*_both(xp, one, other))
        return product.sum(dim, dtype=product.dtype if product.dtype.kind in "fc" else xp.int64).astype(dtype, copy=False)

    products = total(input1, input2)
    sizes = (total(input1, input1) + eps) * (total(input2, input2) + eps)
    cosine = products / xp.sqrt(sizes)
    zero, minus = dtype.type(0), minus_one(xp, target)
    loss = xp.where(target == 1, 1 - cosine, zero) + xp.where(target == minus, xp.maximum(cosine - dtype.type(margin), zero), zero)
    return reduced(xp, xp.asarray(loss), reduction)


@table.op("aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float eps="
          "9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor")
def triplet_margin_loss(xp, anchor, positive, negative, margin, p, eps, swap, reduction):
    """max(0, |anchor - positive| - |anchor - negative| + margin)."""
    from irtool.ops.kernels.distance import pairwise

    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RunError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                       f"{anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    near, far = pairwise(xp, anchor, positive, p, eps, False), pairwise(xp, anchor, negative, p, eps, False)
    if swap:
        far = xp.minimum(far, pairwise(xp, positive, negative, p, eps, False))
    return reduced(xp, xp.asarray(_mean_margin(xp, xp.asarray(near - far + near.dtype.type(margin)))), reduction)


# ---- dtypes that torch serves

table.takes("hf+", "mse_loss")
table.takes("hf", "huber_loss_backward binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits")
table.takes("uilhf", "margin_ranking_loss")
table.takes("uilhf+", "mse_loss_backward smooth_l1_loss_backward")
table.takes("builhf", "cosine_embedding_loss")
table.takes("uilhfc+", "poisson_nll_loss")
table.takes("hfc+", "soft_margin_loss_backward")
table.laid_out("C", "mse_loss_backward smooth_l1_loss_backward huber_loss_backward")
