"""Batching rules against the loop: vmap of an operator is the operator on each slice, stacked."""
from __future__ import annotations

import numpy as np
import pytest

import irtool
from irtool.dispatch import vmap
from irtool.dispatch.batching import find
from irtool.ir.effects import facts_of
from irtool.ops import OPS
from irtool.ops.call import overload
from irtool.ops.tensor import Tensor, unwrapped

LENGTH = 3
NOT_BATCHED = {"aten::gradient.tensorarrayint": (1,), "aten::gradient.tensorarray": (1,), "aten::stft": (4,), "aten::stft.center": (4,),
               "aten::istft": (4,), **dict.fromkeys(("aten::quantile", "aten::nanquantile"), (1,)), "aten::_thnn_fused_lstm_cell": (3, 4)}
"""Arguments that a rule takes only without a hidden dimension, and says so."""


BATCHED = dict.fromkeys(("aten::batch_norm", "aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::_batch_norm_with_update",
                         "aten::_batch_norm_impl_index"), (3, 4))
"""Arguments that must be batched when others are: they are written into."""


def samples():
    """(overload, call, which call) of each sample of an operator that has a rule."""
    for name in OPS:
        op = OPS[name]
        for place, call in enumerate((op.samples or {}).get(name, ())):
            if find(name) is not None and not facts_of(name.partition(".")[0]).is_random:
                yield pytest.param(name, call, id=f"{name.removeprefix('aten::')}-{place}")


def leaves(args):
    """Places of arrays among the arguments: (argument,) or (argument, place in its list)."""
    for i, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            yield (i,)
        elif isinstance(arg, list):
            yield from ((i, j) for j, each in enumerate(arg) if isinstance(each, np.ndarray))


def at(args, path):
    return args[path[0]] if len(path) == 1 else args[path[0]][path[1]]


def replaced(args, values):
    """The arguments with other values at some places."""
    found = [list(arg) if isinstance(arg, list) else arg for arg in args]
    for path, value in values.items():
        if len(path) == 1:
            found[path[0]] = value
        else:
            found[path[0]][path[1]] = value
    return found


def variants(array, path):
    """One array per place of the batch, the first the sample itself."""
    random = np.random.default_rng(len(path) + array.size)
    if array.dtype.kind in "fc":
        return [array, *[np.asarray(array * random.uniform(0.9, 1.1)) for _ in range(LENGTH - 1)]]
    return [array, *[array.copy() for _ in range(LENGTH - 1)]]


def result_leaves(value):
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in result_leaves(each)]
    return [value]


def check(name, args, paths, dims):
    """vmap over the arrays at `paths`, their batch dimension at `dims`, against a loop."""
    found = overload(name)
    batches = {path: variants(at(args, path), path) for path in paths}
    expected = []
    for place in range(LENGTH):
        with np.errstate(all="ignore"):
            expected.append(result_leaves(found([np.array(v) if isinstance(v, np.ndarray) else v for v in
                                                 replaced(args, {path: each[place] for path, each in batches.items()})])))
    stacked = [np.stack(each, dim) for each, dim in zip(batches.values(), dims, strict=True)]

    def one(*given):
        values = replaced(args, dict(zip(paths, given, strict=True)))
        wrap = [[Tensor(e) if isinstance(e, np.ndarray) else e for e in v] if isinstance(v, list) else
                Tensor(v) if isinstance(v, np.ndarray) else v for v in values]
        from irtool.dispatch import current

        return [leaf for leaf in result_leaves(current().apply(name, wrap))]

    outs = vmap(lambda *given: [each for each in one(*given) if isinstance(each, Tensor)], in_dims=tuple(dims))(*stacked)
    wanted = [[row[i] for row in expected] for i, leaf in enumerate(expected[0]) if isinstance(leaf, np.ndarray)]
    assert len(outs) == len(wanted)
    for out, rows in zip(outs, wanted, strict=True):
        out, rows = unwrapped(out), np.stack(rows)
        assert out.shape == rows.shape and out.dtype == rows.dtype
        np.testing.assert_allclose(out, rows, rtol=1e-6 if out.dtype.itemsize < 8 else 1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "call"), list(samples()))
def test_vmap_is_the_loop(name, call):
    op = OPS[name]
    args = call.arguments(op.schemas[op.names.index(name)])
    paths = [path for path in leaves(args) if at(args, path).dtype.kind in "fc"]
    subsets = {tuple(paths), *[(path,) for path in paths]}
    for chosen in sorted(subsets):
        if overload(name).schema.is_mutable and (0,) not in chosen:
            continue        # nothing batched is written into what is the same for all
        if any(isinstance(args[place], np.ndarray) and (place,) not in chosen for place in BATCHED.get(name, ())):
            continue
        if chosen and not any(path[0] in NOT_BATCHED.get(name, ()) for path in chosen):
            check(name, args, chosen, [0] * len(chosen))
            check(name, args, chosen, [-1] * len(chosen))


def test_what_has_no_rule_says_so():
    with pytest.raises(irtool.UnsupportedError, match="aten::nonzero under vmap is not supported: its sizes depend on the values"):
        vmap(lambda x: x.nonzero())(np.ones((3, 2)))
