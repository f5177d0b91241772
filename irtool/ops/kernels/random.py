"""Random numbers: torch's distributions from NumPy's generator, so that a seed makes a run repeatable, but with other numbers than torch's.

Dropout outside training is exact: the input itself.
"""
import math

from irtool.ir.errors import RunError
from irtool.ops.arrays import astype, default_dtype, fresh_generator, generator, is_array, on_host, title, to_number
from irtool.ops.checks import only, refuse_windows
from irtool.ops.kernels.factory import OPTIONS, check_size, options, whole
from irtool.ops.op import OpTable
from irtool.ops.promotion import float_of

table = OpTable("random")

FORMAT = ", MemoryFormat? memory_format=None"
GENERATOR = OPTIONS.replace("*, ", "*, Generator? generator, ")
DRAW = "*, Generator? generator=None) -> Tensor"


def _floating(name, dtype):
    if dtype.kind not in "fc":
        raise RunError(f"\"{name}\" not implemented for '{title(dtype)}'", code="E0409")


def _uniform(xp, size, dtype, draw=None):
    """Numbers of [0, 1) in a float dtype, never rounded up to 1."""
    check_size(size, 8)
    _floating("check_uniform_bounds", dtype)
    bits = {"float16": 11, "float32": 24, "complex64": 24}.get(dtype.name, 53)

    def part():
        return xp.asarray(generator(draw).integers(0, 1 << bits, tuple(size)) / float(1 << bits))
    return astype(part() + 1j * part() if dtype.kind == "c" else part(), dtype)


def _normal(xp, size, dtype, draw=None):
    """Standard normal numbers; complex ones have variance 1 altogether."""
    check_size(size, 8)
    _floating("normal_kernel_cpu", dtype)
    rng = generator(draw)
    if dtype.kind == "c":
        return astype(xp.asarray((rng.standard_normal(tuple(size)) + 1j * rng.standard_normal(tuple(size))) * math.sqrt(0.5)), dtype)
    return astype(xp.asarray(rng.standard_normal(tuple(size))), dtype)


for _name, _drawn, _what in (("rand", _uniform, "Numbers of [0, 1)"), ("randn", _normal, "Standard normal numbers")):
    table.define(f"aten::{_name}(SymInt[] size, {OPTIONS}) -> Tensor",
                 lambda xp, size, dtype, layout, device, pin_memory, drawn=_drawn:
                 drawn(xp, size, options(dtype, layout, device)), doc=f"{_what} of a size.")
    table.define(f"aten::{_name}.generator(SymInt[] size, {GENERATOR}) -> Tensor",
                 lambda xp, size, generator, dtype, layout, device, pin_memory, drawn=_drawn:
                 drawn(xp, size, options(dtype, layout, device), generator), doc=f"{_what} of a size.")
    table.define(f"aten::{_name}_like(Tensor self, {OPTIONS}{FORMAT}) -> Tensor",
                 lambda xp, self, dtype, layout, device, pin_memory, memory_format, drawn=_drawn:
                 drawn(xp, self.shape, options(dtype, layout, device, self.dtype)), doc=f"{_what} with self's shape and dtype.")
    table.define(f"aten::{_name}_like.generator(Tensor self, {GENERATOR}{FORMAT}) -> Tensor",
                 lambda xp, self, generator, dtype, layout, device, pin_memory, memory_format, drawn=_drawn:
                 drawn(xp, self.shape, options(dtype, layout, device, self.dtype), generator), doc=f"{_what} with self's shape and dtype.")


# ---- whole numbers

def _randint(xp, low, high, size, dtype, draw=None):
    low, high = int(to_number(low)), int(to_number(high))
    if low >= high:
        raise RunError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    check_size(size, 8)
    return astype(xp.asarray(generator(draw).integers(low, high, tuple(size), dtype="int64")), dtype)


LONG = OPTIONS.replace("dtype=None", "dtype=4")
LONG_GENERATOR = GENERATOR.replace("dtype=None", "dtype=4")


def _randint_of_size(with_low, with_generator):
    def kernel(xp, *rest):
        low, high, size, *rest = rest if with_low else (0, *rest)
        draw, *rest = rest if with_generator else (None, *rest)
        return _randint(xp, low, high, size, options(rest[0], rest[1], rest[2]), draw)
    return kernel


for _overload, _arguments, _with_low, _with_generator in (
        ("", "SymInt high", False, False), (".generator", "SymInt high", False, True), (".low", "SymInt low, SymInt high", True, False),
        (".low_generator", "SymInt low, SymInt high", True, True)):
    table.define(f"aten::randint{_overload}({_arguments}, SymInt[] size, {LONG_GENERATOR if _with_generator else LONG}) -> Tensor",
                 _randint_of_size(_with_low, _with_generator), doc="Whole numbers of [low, high); int64.")


def _randint_like(with_low, with_generator):
    def kernel(xp, self, *rest):
        low, high, *rest = rest if with_low else (0, *rest)
        draw, *rest = rest if with_generator else (None, *rest)
        return _randint(xp, low, high, self.shape, options(rest[0], rest[1], rest[2], self.dtype), draw)
    return kernel


for _overload, _arguments, _with_low, _with_generator in (
        ("", "SymInt high", False, False), (".Tensor", "Tensor high", False, False), (".low_dtype", "SymInt low, SymInt high", True, False),
        (".generator", "SymInt high", False, True), (".Tensor_generator", "Tensor high", False, True),
        (".low_generator_dtype", "SymInt low, SymInt high", True, True)):
    table.define(f"aten::randint_like{_overload}(Tensor self, {_arguments}, {GENERATOR if _with_generator else OPTIONS}{FORMAT}) -> Tensor",
                 _randint_like(_with_low, _with_generator), doc="Whole numbers of [low, high) with self's shape and dtype.")


def _randperm(xp, n, dtype, draw=None):
    if n < 0:
        raise RunError(f"n must be non-negative, got{n}")
    check_size([n], 8)
    return astype(xp.asarray(generator(draw).permutation(n)), dtype)


table.define(f"aten::randperm(SymInt n, {LONG}) -> Tensor",
             lambda xp, n, dtype, layout, device, pin_memory: _randperm(xp, n, whole(dtype, layout, device)),
             doc="0 ... n - 1 in random order.")
table.define(f"aten::randperm.generator(SymInt n, {LONG_GENERATOR}) -> Tensor",
             lambda xp, n, generator, dtype, layout, device, pin_memory: _randperm(xp, n, whole(dtype, layout, device), generator),
             doc="0 ... n - 1 in random order.")


# ---- new random tensors like self, from which the in-place forms are derived

def _anew(schema, kernel, doc):
    table.define(f"aten::{schema}, {DRAW}", kernel, doc=doc)


def _scaled(xp, self, low, high, generator):
    if low > high:
        raise RunError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    return astype(low + (high - low) * _uniform(xp, self.shape, self.dtype, generator), self.dtype)


_anew("uniform(Tensor self, float from=0., float to=1.", _scaled, "Numbers of [from, to).")


def _check_spread(std):
    if std < 0:
        raise RunError(f"normal expects std >= 0.0, but found std {std:g}")


def _normal_like(xp, self, mean, std, generator):
    _check_spread(std)
    return astype(mean + std * _normal(xp, self.shape, self.dtype, generator), self.dtype)


_anew("normal_functional(Tensor self, float mean=0., float std=1.", _normal_like, "Normal numbers.")


@table.op("aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)")
def normal_into(xp, self, mean, std, generator):
    """Normal numbers written into self."""
    refuse_windows("aten::normal_", self)
    self[...] = _normal_like(xp, self, mean, std, generator)
    return self


table.define("aten::_no_grad_normal_(Tensor(a!) tensor, float mean, float std, Generator? generator=None) -> Tensor(a!)",
             normal_into.kernel, doc="Normal numbers written into a tensor.")


@table.op("aten::_no_grad_uniform_(Tensor(a!) tensor, float a, float b, Generator? generator=None) -> Tensor(a!)")
def uniform_into(xp, tensor, a, b, generator):
    """Numbers of [a, b) written into a tensor."""
    tensor[...] = _scaled(xp, tensor, a, b, generator)
    return tensor


def _log_normal(xp, self, mean, std, generator):
    _floating("log_normal", self.dtype)
    if std <= 0:
        raise RunError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return astype(xp.exp(mean + std * _normal(xp, self.shape, default_dtype, generator)), self.dtype)


_anew("log_normal(Tensor self, float mean=1., float std=2.", _log_normal, "Numbers whose logarithms are normal.")


def _exponential(xp, self, lambd, generator_given):
    _floating("exponential", self.dtype)
    if not lambd > 0:
        raise RunError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return astype(xp.asarray(generator(generator_given).exponential(1 / lambd, self.shape)), self.dtype)


_anew("exponential(Tensor self, float lambd=1.", _exponential, "Exponentially distributed numbers.")


def _cauchy(xp, self, median, sigma, generator_given):
    _floating("cauchy", self.dtype)
    if not sigma > 0:
        raise RunError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return astype(xp.asarray(median + sigma * generator(generator_given).standard_cauchy(self.shape)), self.dtype)


_anew("cauchy(Tensor self, float median=0., float sigma=1.", _cauchy, "Numbers of a Cauchy distribution.")


def _geometric(xp, self, p, generator_given):
    if not 0 < p < 1:
        raise RunError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return astype(xp.asarray(generator(generator_given).geometric(p, self.shape)), self.dtype)


_anew("geometric(Tensor self, float p", _geometric, "How many trials until the first success.")

_MANTISSA = {"float16": 11, "float32": 24, "float64": 53, "bool": 1, "uint8": 8, "int8": 7, "int16": 15, "int32": 31, "int64": 63}


def _random(xp, self, low, high, generator_given):
    if high is None:
        high = 2 ** _MANTISSA[self.dtype.name] + (self.dtype.kind == "f")
    return _randint(xp, low, high, self.shape, self.dtype, generator_given)


_anew("random(Tensor self", lambda xp, self, generator: _random(xp, self, 0, None, generator), "Whole numbers over all the dtype has.")
_anew("random.to(Tensor self, int to", lambda xp, self, to, generator: _random(xp, self, 0, to, generator), "Whole numbers of [0, to).")
_anew("random.from(Tensor self, int from, int? to", _random, "Whole numbers of [from, to).")


# ---- parameters that are tensors

def _normal_of(xp, mean, std, generator):
    """Normal numbers with means and deviations that broadcast."""
    if hasattr(std, "dtype"):
        if std.size and (std < 0).any():
            raise RunError("normal expects all elements of std >= 0.0")
    else:
        _check_spread(std)
    shape = xp.broadcast_shapes(getattr(mean, "shape", ()), getattr(std, "shape", ()))
    dtype = mean.dtype if hasattr(mean, "dtype") else std.dtype
    return astype(xp.asarray(mean + std * _normal(xp, shape, dtype, generator)), dtype)


for _overload, _parameters in ((".Tensor_Tensor", "Tensor mean, Tensor std"), (".Tensor_float", "Tensor mean, float std=1."),
                               (".float_Tensor", "float mean, Tensor std")):
    _anew(f"normal{_overload}({_parameters}", _normal_of, "Normal numbers with means and deviations that broadcast.")


@table.op(f"aten::normal.float_float(float mean, float std, SymInt[] size, {GENERATOR.replace('generator,', 'generator=None,')}) -> Tensor")
def normal_of_size(xp, mean, std, size, generator, dtype, layout, device, pin_memory):
    """Normal numbers of a size."""
    _check_spread(std)
    chosen = options(dtype, layout, device)
    return astype(xp.asarray(mean + std * _normal(xp, size, chosen, generator)), chosen)


def _coins(xp, shape, p, draw):
    """True with probability p (a number, or an array that broadcasts to shape)."""
    if is_array(p):
        only("bernoulli_tensor_cpu_p_", "f", p)
    within = ((p >= 0) & (p <= 1)).all() if hasattr(p, "dtype") else 0 <= p <= 1
    if not within:
        raise RunError("Expected p_in >= 0 && p_in <= 1 to be true" if hasattr(p, "dtype") else
                       f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    check_size(shape, 8)
    return xp.asarray(generator(draw).random(tuple(shape))) < p


@table.op("aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
def bernoulli(xp, self, generator):
    """1 with the probability in each element, else 0."""
    return astype(_coins(xp, self.shape, self, generator), self.dtype)


_anew("bernoulli.p(Tensor self, float p", lambda xp, self, p, generator: astype(_coins(xp, self.shape, p, generator), self.dtype),
       "1 with probability p, else 0, with self's shape and dtype.")
_anew("bernoulli.Tensor(Tensor self, Tensor p", lambda xp, self, p, generator: astype(_coins(xp, self.shape, p, generator), self.dtype),
       "1 with the probabilities p, else 0, with self's shape and dtype.")


@table.op("aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
          "aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)")
def bernoulli_into(xp, self, p, generator):
    """1 with probability p, else 0, written into self."""
    refuse_windows("aten::bernoulli_", self)
    self[...] = _coins(xp, self.shape, p, generator)
    return self


@table.op("aten::poisson(Tensor self, Generator? generator=None) -> Tensor")
def poisson(xp, self, generator_given):
    """Poisson numbers with the means of self."""
    only("poisson_cpu", "f", self)
    return astype(xp.asarray(generator(generator_given).poisson(on_host(self))), self.dtype)


@table.op("aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor")
def binomial(xp, count, prob, generator_given):
    """How many of `count` trials succeed with probability `prob`."""
    return astype(xp.asarray(generator(generator_given).binomial(on_host(count.astype(xp.int64)), on_host(prob))), count.dtype)


@table.op("aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor")
def standard_gamma(xp, self, generator_given):
    """Gamma numbers with the shapes of self."""
    only("gamma", "f", self)
    return astype(xp.asarray(generator(generator_given).standard_gamma(on_host(self))), self.dtype)


@table.op("aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor")
def sample_dirichlet(xp, self, generator_given):
    """Dirichlet numbers with the concentrations in the last dimension of self."""
    drawn = standard_gamma.kernel(xp, self.astype(xp.float64), generator_given)
    return astype(drawn / drawn.sum(axis=-1, keepdims=True), self.dtype)


@table.op("aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor")
def multinomial(xp, self, num_samples, replacement, generator_given):
    """Indices drawn with the weights in each row of self, `num_samples` a row; int64."""
    if not 1 <= self.ndim <= 2:
        raise RunError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RunError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > self.shape[-1]:
        raise RunError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    only("multinomial", "f", self)
    if not (xp.isfinite(self) & (self >= 0)).all():
        raise RunError("probability tensor contains either `inf`, `nan` or element < 0")
    rows = self.reshape(-1, self.shape[-1]).astype(xp.float64)
    if (rows.sum(axis=1) <= 0).any():
        raise RunError("invalid multinomial distribution (sum of probabilities <= 0)")
    rng = generator(generator_given)
    if replacement:
        edges = xp.cumsum(rows, axis=1)
        drawn = xp.asarray(rng.random((len(rows), num_samples, 1))) * edges[:, None, -1:]
        chosen = (edges[:, None, :] <= drawn).sum(axis=-1)
    else:
        # the largest keys u ** (1 / w) are a sample without replacement (Efraimidis and Spirakis)
        keys = xp.where(rows > 0, xp.log(xp.asarray(rng.random(rows.shape))) / rows, -math.inf)
        chosen = xp.argsort(-keys, axis=1, kind="stable")[:, :num_samples]
    return chosen.astype(xp.int64).reshape(*self.shape[:-1], num_samples)


# ---- dropout

def check_share(p):
    """Raises RunError for what is no probability."""
    if not 0 <= p <= 1:
        raise RunError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def kept_by_dropout(xp, shape, p):
    """Random bools, False with probability p. Every form of dropout draws them here, so that all forms drop the same elements."""
    return _coins(xp, shape, 1 - p, None)


def _dropped(xp, x, p, shape):
    """x with whole places of `shape` (which broadcasts to x's) made 0, the rest scaled so that the mean stays."""
    if p == 1:
        return x * x.dtype.type(0)
    return astype(x * (kept_by_dropout(xp, shape, p) / (1 - p)), x.dtype)


def _alpha_dropped(xp, x, p, shape):
    """Dropout to SELU's negative saturation, scaled and shifted so that mean and variance stay."""
    if p == 1:
        return x * x.dtype.type(0)
    saturation = 1.7580993408473766
    scale = 1 / math.sqrt((saturation * saturation * p + 1) * (1 - p))
    mask = kept_by_dropout(xp, shape, p)
    return astype(x * (mask * scale) + (saturation * scale * (mask - 1.0) + saturation * scale * p), x.dtype)


def _feature_shape(x):
    if x.ndim < 2:
        raise RunError("Feature dropout requires at least 2 dimensions in the input")
    return x.shape[:2] + (1,) * (x.ndim - 2)


for _name, _how, _by_feature in (("dropout", _dropped, False), ("feature_dropout", _dropped, True),
                                 ("alpha_dropout", _alpha_dropped, False), ("feature_alpha_dropout", _alpha_dropped, True)):
    def _kernel(xp, input, p, train, how=_how, by_feature=_by_feature):
        check_share(p)
        if p == 0 or not train or input.size == 0:
            return input
        return how(xp, input, p, _feature_shape(input) if by_feature else input.shape)
    table.define(f"aten::{_name}(Tensor input, float p, bool train) -> Tensor", _kernel,
                 doc="In training: elements (whole channels of feature_dropout) left out with probability p. Else the input.")


@table.op("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
def native_dropout(xp, input, p, train):
    """Dropout, and the bool mask of the elements that remain; outside training a copy, and all True."""
    if train is False or input.size == 0:
        return input.copy(), xp.ones(input.shape, bool)
    if p == 1:
        return xp.zeros_like(input), xp.zeros(input.shape, bool)
    mask = kept_by_dropout(xp, input.shape, p)
    return astype(input * mask / (1 - p), input.dtype), mask


@table.op("aten::_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor")
def masked_scale(xp, self, mask, scale):
    """self times the mask times `scale`."""
    return astype(self * mask * scale, self.dtype)


@table.op("aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
def native_dropout_backward(xp, grad_output, mask, scale):
    """grad_output where the mask holds, times `scale`."""
    return astype(grad_output * (mask * scale), float_of(grad_output.dtype))


table.laid_out("KK", "native_dropout")


# ---- generators

@table.op("aten::Generator(*, Device? device=None, int? seed=None) -> Generator")
def new_generator(xp, device, seed):
    """A new random generator; 67280421310721 is torch's seed if none is given."""
    return fresh_generator(67280421310721 if seed is None else seed)


@table.op("aten::manual_seed.generator(Generator(a!) self, int seed) -> Generator(a!)")
def seed_generator(xp, self, seed):
    """The generator, which then draws the numbers of a new one with this seed."""
    self.bit_generator.state = fresh_generator(seed).bit_generator.state
    return self


@table.op("aten::manual_seed(int seed) -> ()")
def seed_all(xp, seed):
    """From now on numbers are drawn as after a start with this seed."""
    seed_generator.kernel(xp, generator(), seed)
table.laid_out("K", "dropout feature_dropout alpha_dropout feature_alpha_dropout")
