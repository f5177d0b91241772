"""Lists of operators in torch 2.13's passes. The passes here follow them, since results depend on these lists, not on properties of
operators."""
UNARY = """
alias celu clamp_max clamp_min clone contiguous dropout elu feature_alpha_dropout feature_dropout flip gelu
glu hardshrink hardtanh leaky_relu neg permute pin_memory relu rot90 rrelu selu slice.Tensor softplus softshrink
t threshold transpose.int tril triu alpha_dropout bernoulli bernoulli.p narrow ceil floor round trunc frac sign pinverse inverse
normal.Tensor_float log_sigmoid hardswish mvlgamma clamp
"""
UNARY_FLOAT = """
acos asin atan cos cosh digamma erf erfc erfinv exp expm1 lgamma log log10 log1p log2 logit reciprocal rsqrt sigmoid sin sinh sqrt tan tanh
"""
FIRST_OPERAND = """
batch_norm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution _convolution
_convolution.deprecated adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d
max_pool3d max_unpool2d max_unpool3d reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
replication_pad3d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
prelu bilinear hardswish_
"""
SYMBOLIC = frozenset(f"aten::{name}" for name in """
_autocast_to_full_precision _autocast_to_reduced_precision _dim_arange _grad_sum_to_size _slow_conv2d_forward abs acos adaptive_avg_pool1d
adaptive_avg_pool2d adaptive_avg_pool3d add.Scalar add.Tensor addcmul addmm asin atan avg_pool2d batch_norm bmm cat ceil clamp clamp.Tensor
contiguous cos cosh div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode dot dropout embedding eq.Scalar erf erfc exp expm1 floor
fmod.Scalar frac ge.Scalar gelu gt.Scalar hardshrink hardsigmoid hardswish hardtanh index.Tensor_hacked_twin layer_norm le.Scalar leaky_relu
lerp.Scalar lerp.Tensor linear log log10 log1p log2 log_softmax.int logsumexp lt.Scalar matmul max.other max_pool2d max_pool2d_with_indices
mean mean.dim min.other mm mul.Scalar mul.Tensor mv native_batch_norm ne.Scalar neg nll_loss nonzero permute pow.Scalar pow.Tensor_Scalar
pow.Tensor_Tensor reciprocal relu relu6 remainder.Scalar round rsqrt rsub.Scalar sigmoid silu sin sinh softmax.int softplus sqrt squeeze
split.Tensor split_with_sizes squeeze.dim stack std std.correction std.dim sub.Scalar sub.Tensor t tan tanh threshold to.prim_Device trunc
type_as unbind.int unsqueeze var var.correction var.dim where.self
""".split())
"""The overloads that torch 2.13 differentiates symbolically."""
NEVER_GROUPED = frozenset(f"aten::{name}" for name in "view view_as reshape transpose expand expand_as".split())
"""Never in a group: as results of a group they would be differentiated wrongly."""
ARITHMETIC = frozenset(("aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor"))
"""The operators whose operands canonicalize-ops turns into numbers."""
