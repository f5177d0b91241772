"""The state of a module as a whole: written from a dict, converted to another dtype, copied."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from irtool.accepted_values import arrays_in, copied
from irtool.ir.errors import Error, RunError, UnsupportedError, did_you_mean
from irtool.ops.array_library import np
from irtool.ops.arrays import dtype_named, dtype_of, is_array
from irtool.ops.structure import Object
from irtool.ops.tensor import unwrapped
from irtool.ops.tensor_facts import Dtype

Trainable = dict[int, tuple[Any, bool]]
"""The id of a tensor -> the tensor, and whether it requires gradients."""


class Keys(NamedTuple):
    """The names that only the module has, and those that only the dict has."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def load_state_dict(state: Mapping[str, Any], source: Any, strict: bool, owner: str) -> Keys:
    """Write the arrays of a dict into those of the state of `owner`: all, or none if one does not fit. Raises RunError."""
    new_state = read_state(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(new_state, Mapping):
        raise RunError(f"load_state_dict: expected a dict of arrays, or a path, got {type(new_state).__name__}", code="E0403")
    keys = Keys([name for name in state if name not in new_state], [name for name in new_state if name not in state])
    errors = []
    if strict and keys.unexpected_keys:
        names = [f"'{name}'{did_you_mean(str(name), keys.missing_keys)}" for name in keys.unexpected_keys[:8]]
        errors.append(f"it has no {', '.join(names)}")
    if strict and keys.missing_keys:
        errors.append("the dict lacks " + ", ".join(map(repr, keys.missing_keys[:8])))
    arrays = {}
    for name in state:
        if name in new_state:
            array = arrays[name] = as_numbers(new_state[name], name)
            if array.shape != state[name].shape and not (state[name].ndim == 0 and array.size == 1):
                errors.append(f"'{name}' is of size {list(state[name].shape)}, the dict's of {list(array.shape)}")
    if errors:
        raise RunError(f"load_state_dict: the state does not fit {owner}: {'; '.join(errors)}", code="E0403")
    for name, array in arrays.items():
        state[name][...] = array.reshape(state[name].shape)
    return keys


def as_numbers(value: Any, name: str) -> Any:
    """An entry of a state dict as an array. Raises RunError."""
    value = unwrapped(value)
    if hasattr(value, "detach"):        # a tensor of torch
        value = value.detach()
    try:
        array = value if is_array(value) else np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise RunError(f"load_state_dict: '{name}' is no array: {error}", code="E0403") from None
    if array.dtype.kind not in "biufc":
        raise RunError(f"load_state_dict: '{name}' is no array of numbers", code="E0403")
    return array


def read_state(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The arrays by name of a file of weights, or of another archive. Raises Error; OSError if the file cannot be read."""
    from irtool.archives.container import in_memory
    from irtool.archives.file_kinds import weights_in

    return weights_in(*in_memory(path)).arrays


def convert(instances: Iterable[Object], arrays: Iterable[Any], trainable: Trainable, dtype: Any) -> None:
    """Convert arrays of floating-point or complex numbers to another dtype, in all instances. Raises RunError."""
    wanted = wanted_dtype(dtype)
    converted: dict[int, Any] = {}
    for array in arrays:
        if array.dtype.kind in "fc" and array.dtype != wanted:
            converted[id(array)] = array.real.astype(wanted) if wanted.kind == "f" else array.astype(wanted)
            held = trainable.get(id(array))
            if held is not None:
                trainable[id(converted[id(array)])] = converted[id(array)], held[1]
    for instance in instances:
        for name, value in instance.attributes.items():
            instance.attributes[name] = exchanged(value, converted)


def wanted_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype from NumPy's or torch's name, torch's number, or a NumPy dtype. Raises RunError."""
    try:
        wanted = dtype_of(dtype) if isinstance(dtype, Dtype) else dtype_named(dtype.removeprefix("torch.")) if isinstance(dtype, str) else \
            np.dtype(dtype)
    except (TypeError, Error):
        raise RunError(f"to: {dtype!r} is no dtype", code="E0403") from None
    if "bfloat16" in str(dtype):
        raise UnsupportedError("to: bfloat16 is not supported: irtool computes in float32, torch would round each result to bfloat16",
                               code="E0409")
    if wanted.kind not in "fc":
        raise RunError(f"to: a module takes a dtype of real or complex numbers, not {wanted}", code="E0403")
    return wanted


def exchanged(value: Any, others: Mapping[int, Any]) -> Any:
    """A value in which arrays are exchanged, by their id; lists and dicts stay the same objects."""
    if isinstance(value, list):
        value[:] = [exchanged(each, others) for each in value]
    elif isinstance(value, dict):
        for key, each in value.items():
            value[key] = exchanged(each, others)
    elif isinstance(value, tuple):
        return tuple([exchanged(each, others) for each in value])
    return others.get(id(value), value)


def copy_of(instance: Object, trainable: Trainable) -> tuple[Object, Trainable]:
    """A copy of an instance, and of the table of trainable tensors. Arrays that were one array, or shared memory, still do."""
    (other,) = copied([instance])
    pairs = zip(arrays_in(instance), arrays_in(other), strict=True)
    return other, {id(new): (new, trainable[id(old)][1]) for old, new in pairs if id(old) in trainable}
