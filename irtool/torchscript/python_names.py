"""The meanings of names of Python and of torch: modules, functions, constants."""
from __future__ import annotations

import builtins
import importlib
import math

from irtool.ir.dtypes import CODES
from irtool.ir.schema import schemas
from irtool.torchscript.environment import Meaning
from irtool.torchscript.meanings import Builtin, Context, ExceptionClass, Known, Namespace, Python, Special

RESERVED = frozenset((
    "print", "tuple", "float", "int", "bool", "complex", "str", "getattr", "hasattr", "isinstance", "len", "hex", "oct", "round", "hash",
    "id", "min", "max", "abs", "all", "any", "divmod", "sum", "list", "dict", "ord", "chr", "bin", "pow", "range", "zip", "enumerate",
    "sorted", "rangelist", "_to_tensor", "AssertionError",
))
"""Names that mean TorchScript's own functions also where the file defines or imports them; only local variables go before, as in torch."""
SPECIALS = RESERVED | frozenset((
    "annotate", "unchecked_cast", "uninitialized", "reversed", "type", "super", "iter", "next", "slice",
))
"""Python's functions, and functions of torch that are no operators."""
ARCHIVE: dict[str, Meaning] = {
    "ops": Namespace("torch.ops"), "fork": Special("fork"), "awaitable": Special("awaitable"), "inf": Known(math.inf),
    "nan": Known(math.nan), "infj": Known(complex(0, math.inf)), "nanj": Known(complex(0, math.nan)),
}
"""Names that only the code of archives and of `irtool decompile` has."""
EXCEPTIONS = frozenset(name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception))
"""Python's classes of exceptions; those that are no `Exception`, such as `KeyboardInterrupt`, torch cannot raise."""
MODULES = frozenset((
    "torch", "torch.nn", "torch.nn.functional", "torch.jit", "torch.linalg", "torch.special", "torch.fft", "torch._C", "torch._C._nn",
    "torch.ops", "torch.ops.aten", "torch.ops.prim", "torch._jit_internal", "torch.functional", "torch._VF", "math", "cmath", "typing",
    "torch.autograd", "torch.overrides", "torch.autograd.profiler", "torch.profiler", "warnings", "collections",
    "torch.amp", "torch.cpu.amp", "torch.cuda.amp", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn", "torch.compiler",
    "torch.nn.modules", "torch.nn.modules.utils",
))
WITHOUT_OPERATORS = frozenset(("torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn", "torch.nn.modules", "torch.nn.modules.utils",
                               "torch.compiler"))
"""Modules of which each name is one of irtool's own functions, or in a table."""
PYTHON_MODULES = frozenset(("calendar", "datetime", "errno", "logging", "os", "os.path", "string", "sys", "time"))
"""Modules of Python whose numbers and strings functions may read: `sys.maxsize`."""
NUMPY = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "euler_gamma": 0.5772156649015329}
OPERATORS_TOO = {"aten::cpu": "torch.cpu", "aten::cuda": "torch.cuda"}
"""Operators that have the name of a module -> the module: `torch.cpu(x)`, as code is printed, and `torch.cpu.amp.autocast()`."""
CONTEXTS = {
    "torch.no_grad": "torch.autograd.grad_mode.no_grad", "torch.autograd.no_grad": "torch.autograd.grad_mode.no_grad",
    "torch.autograd.profiler.record_function": "torch.autograd.profiler.record_function",
    "torch.profiler.record_function": "torch.autograd.profiler.record_function",
    "torch.jit.strict_fusion": "torch.jit.strict_fusion",
    **dict.fromkeys(("torch.autocast", "torch.amp.autocast"), "torch.amp.autocast_mode.autocast"),
    **{f"torch.{kind}.amp.autocast": f"torch.{kind}.amp.autocast_mode.autocast" for kind in ("cpu", "cuda")},
}
"""Context managers of torch for `with` -> their classes."""
PREFIXES = {"torch.linalg": "linalg_", "torch.special": "special_", "torch.fft": "fft_"}
JIT_SPECIALS = {
    "torch.jit.annotate": "annotate", "torch.jit.isinstance": "isinstance", "torch.jit._unwrap_optional": "unwrap_optional",
    "torch.jit.is_scripting": "is_scripting", "torch.jit.is_tracing": "is_tracing", "torch.overrides.has_torch_function": "never",
    "torch.overrides.has_torch_function_unary": "never", "torch.overrides.has_torch_function_variadic": "never",
    "torch.jit.fork": "fork", "torch.jit._fork": "fork", "torch.jit.wait": "wait", "torch.jit._wait": "wait", "torch._check": "check",
    "torch._assert": "asserted", "torch.compiler.is_compiling": "never", "torch.compiler.is_dynamo_compiling": "never",
    "torch.jit._awaitable": "awaitable", "torch.jit._awaitable_wait": "awaitable_wait",
    "torch.jit._awaitable_nowait": "awaitable_nowait", "collections.OrderedDict": "OrderedDict",
    "torch.jit.unused": "decorator", "torch.jit.script": "decorator",
}
LAYOUTS: dict[str, object] = {"strided": 0, "sparse_coo": 1}
MEMORY_FORMATS: dict[str, object] = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
TORCH_CONSTANTS: dict[str, object] = {
    **LAYOUTS, **MEMORY_FORMATS,
    "inf": math.inf, "nan": math.nan, "pi": math.pi, "e": math.e,
    **CODES, "float": 6, "double": 7, "half": 5, "int": 3, "long": 4, "short": 2, "cfloat": 9, "cdouble": 10, "chalf": 8,
}
"""Attributes of `torch` that are numbers in a graph."""
CONSTRUCTORS = {"BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32",
                "LongTensor": "int64", "HalfTensor": "float16", "FloatTensor": "float32", "DoubleTensor": "float64"}
"""Constructors of torch's first years -> the dtype of their tensors."""
MATH_FUNCTIONS = {
    "math": frozenset((
        "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp expm1 fabs factorial floor fmod frexp gamma "
        "gcd isfinite isinf isnan ldexp lgamma log log10 log1p modf pow radians sin sinh sqrt tan tanh").split()),
    "cmath": frozenset("acos acosh asin asinh atan atanh cos cosh exp isfinite isinf isnan log log10 sin sinh sqrt tan tanh".split()),
}
"""Functions that mean the operator of the same name; of others, such as `math.log2`, torch knows nothing."""
MATH_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}


RENAMED: dict[str, Meaning] = {
    "cmath.infj": Known(complex(0, math.inf)), "cmath.nanj": Known(complex(0, math.nan)), "cmath.phase": Builtin("aten::angle"),
    "cmath.rect": Builtin("aten::polar"), "math.remainder": Builtin("aten::mathremainder"), "warnings.warn": Builtin("aten::warn"),
    "torch.nn.utils.rnn.pad_sequence": Builtin("aten::pad_sequence"),
    "torch.ops.prim.shape": Builtin("aten::size"),      # in archives before torch 1.6
}
"""Names that mean an operator or a constant with another name."""


def python_name(path: str) -> Meaning:
    """The meaning of a dotted name: `torch`, `math.sqrt`, `range`."""
    head, dot, last = path.rpartition(".")
    if path in MODULES or path in PYTHON_MODULES or path == "numpy":
        return Namespace(path)
    if path in ARCHIVE:
        return ARCHIVE[path]
    if not dot:
        if path in EXCEPTIONS:
            return ExceptionClass(path)
        return Special(path) if path in SPECIALS else Python("module" if path.isidentifier() else "object")
    if path in JIT_SPECIALS:
        return Special(JIT_SPECIALS[path])
    if head in MODULES or head in PYTHON_MODULES or head == "numpy":
        meaning = member(head, last)
        if meaning is not None:
            return meaning
    return Python("module")


def member(module: str, name: str, is_archive: bool = False) -> Meaning | None:
    """The meaning of `module.name`; None if it has none. In the code of archives, `torch.name` is always an operator."""
    path = f"{module}.{name}"
    if path in MODULES:
        return Namespace(path)
    if module in ("torch", "torch.functional", "torch.nn.functional", "torch.nn.init", "torch.nn.modules.utils") and not is_archive:
        from irtool.torchscript.nn_functional import function, initializer, module_utility, torch_function

        meaning = {"torch.nn.functional": function, "torch.nn.init": initializer,
                   "torch.nn.modules.utils": module_utility}.get(module, torch_function)(name)
        if meaning is not None:
            return meaning
    return _member(module, name, path)


def imported_name(path: str) -> Meaning:
    """The meaning of a name that the file imports by itself: `pi` of `from math import pi` is a value of Python, which torch refuses. As in
    torch, infinity is none."""
    meaning = python_name(path)
    if not isinstance(meaning, Known) or path in ("math.inf", "torch.inf"):
        return meaning
    word = path.rpartition(".")[2]
    if not path.startswith("torch.") or isinstance(meaning.value, float):
        return Python(type(meaning.value).__name__)
    return Python("memory_format" if word in MEMORY_FORMATS else "layout" if word in LAYOUTS else "dtype")


def python_constant(module: str, name: str) -> Meaning | None:
    """A number, a string, or a tuple of them in a module of Python (or numpy, which is not imported for it)."""
    if module == "numpy":
        return Known(NUMPY[name]) if name in NUMPY else Python("type")
    if f"{module}.{name}" in PYTHON_MODULES:
        return Namespace(f"{module}.{name}")
    known = importlib.import_module(module)
    if not hasattr(known, name):
        return None
    value = getattr(known, name)
    parts = value if isinstance(value, tuple) else (value,)
    return Known(value) if all(isinstance(part, bool | int | float | complex | str) for part in parts) else Python(type(value).__name__)


def _member(module: str, name: str, path: str) -> Meaning | None:
    """As `member`, for names that are no function of torch written in Python."""
    if module in PYTHON_MODULES or module == "numpy":
        return python_constant(module, name)
    if path in CONTEXTS:
        return Context(CONTEXTS[path])
    if path in JIT_SPECIALS or module == "torch" and name in CONSTRUCTORS:
        return Special(JIT_SPECIALS.get(path, name))
    if path in RENAMED:
        return RENAMED[path]
    if module in ("math", "cmath"):
        if name in MATH_CONSTANTS:
            return Known(MATH_CONSTANTS[name])
        return Builtin(f"aten::{name}") if name in MATH_FUNCTIONS[module] else None
    if module == "torch" and name in TORCH_CONSTANTS and not (name in ("e",) and schemas(f"aten::{name}")):
        return Known(TORCH_CONSTANTS[name])
    if module == "torch.ops":
        return Namespace(path)
    if module.startswith("torch.ops."):
        if module == "torch.ops.python":        # `^name` in the text
            return Builtin("^" + name)
        kind = f"{module.removeprefix('torch.ops.')}::{name}"
        return Builtin(kind) if schemas(kind) or module not in ("torch.ops.aten", "torch.ops.prim") else None
    if module == "typing":
        return Python("type")
    if module in WITHOUT_OPERATORS:
        return None
    kind = f"aten::{PREFIXES.get(module, '')}{name}"
    return Builtin(kind) if schemas(kind) else Python("type") if name in ("Tensor", "Generator", "Size", "dtype") else None


def members(module: str) -> list[str]:
    """Names to suggest for a misspelt name."""
    from irtool.ir.schema import declared_kinds

    if module in PYTHON_MODULES or module == "numpy":
        return []
    if module in ("math", "cmath"):
        return [*MATH_CONSTANTS, *sorted(MATH_FUNCTIONS[module])]
    prefix = "aten::" + PREFIXES.get(module, "")
    return [kind.removeprefix(prefix) for kind in declared_kinds() if kind.startswith(prefix)] + list(TORCH_CONSTANTS)
