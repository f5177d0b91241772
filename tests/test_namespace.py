"""irtool.torch: what is written for torch runs as Python on tensors as it does as TorchScript, and so do its gradients."""
from __future__ import annotations

import inspect
import pickle
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest

import irtool
from irtool import torch

F: Any = torch.nn.functional
X = np.random.default_rng(0).standard_normal((4, 6))
TARGET = np.array([0, 2, 1, 5])

EXPRESSIONS = """
F.softmax(x, dim=1)
F.log_softmax(x, dim=-1)
F.cross_entropy(x, target)
F.cross_entropy(x, target, reduction="sum", label_smoothing=0.1)
F.nll_loss(F.log_softmax(x, 1), target, reduction="none")
F.mse_loss(x, x * 0.5 + 1.0)
F.smooth_l1_loss(x, x * 0.5 + 1.0)
F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(x) * 0.5)
F.kl_div(F.log_softmax(x, 1), F.softmax(x * 2.0, 1), reduction="batchmean")
F.gelu(x, approximate="tanh")
F.leaky_relu(x, 0.1)
F.softplus(x)
F.layer_norm(x, [6], x[0], x[1])
F.group_norm(x, 2)
F.batch_norm(x, None, None, training=True)
F.linear(x, x[:3], x[0, :3])
F.conv2d(x[None, None], x[:2, :2][None, None])
F.max_pool2d(x[None, None], 2)
F.adaptive_avg_pool2d(x[None, None], [2, 2])
F.pad(x, [1, 2])
F.unfold(x[None, None], [2, 2])
F.fold(F.unfold(x[None, None], [2, 2]), [4, 6], [2, 2])
F.normalize(x, dim=1)
F.dropout(x, 0.5, training=False)
F.scaled_dot_product_attention(x[None], x[None], x[None])
F.embedding(target.clamp(max=3), x)
F.triplet_margin_loss(x, x + 1.0, x * 2.0)
F.triplet_margin_loss(x, x + 1.0, x * 2.0, swap=True, reduction="sum")
F.cosine_embedding_loss(x, x * x, target - 1, reduction="none")
F.multi_margin_loss(x, target, reduction="sum")
F.multilabel_margin_loss(x[:, :4], target.clamp(max=3)[None].expand(4, 4), reduction="none")
F.poisson_nll_loss(x, x * x, reduction="sum")
F.embedding_bag(target.view(2, 2).clamp(max=3), x)
F.embedding_bag(target.clamp(max=3), x, target[:1] * 0, mode="max")
F.ctc_loss(F.log_softmax(x[:, None], 2), target[None, 1:3], target[1:2] + 2, target[1:2], reduction="sum")
F.interpolate(x[None], scale_factor=2.0)
F.interpolate(x[None, None], size=[2, 3], mode="area")
F.interpolate(x[None, None], size=3, mode="bilinear", antialias=True)
F.grid_sample(x[None, None], x[:, :2][None, None], padding_mode="border", align_corners=True)
F.local_response_norm(x[None], 2)
F.lp_pool1d(x.abs(), 2.0, 2)
F.max_unpool1d(F.max_pool1d(x, 2, return_indices=True)[0], F.max_pool1d(x, 2, return_indices=True)[1], 2)
F.alpha_dropout(x, 0.5, training=False)
F.rrelu(x, 0.1, 0.3, training=False)
torch.linalg.norm(x)
torch.linalg.vector_norm(x, 2, [1])
torch.linalg.svdvals(x)
torch.fft.rfft(x).abs()
torch.special.erf(x)
torch.special.gammaln(x.abs() + 1.0)
""".strip().splitlines()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_as_python_it_is_what_it_is_as_torchscript(text: str) -> None:
    graph = irtool.from_script("import torch.nn.functional as F\n"
                               f"def f(x: Tensor, target: Tensor) -> Tensor:\n    return {text}\n").graph()

    def f(x: Any) -> Any:
        return eval(text, {"x": x, "F": torch.nn.functional, "torch": torch, "target": irtool.Tensor(TARGET)})
    (wanted,) = irtool.run(graph, [X, TARGET])
    assert np.array_equal(np.asarray(f(irtool.Tensor(X))), wanted)
    cotangent = np.random.default_rng(1).standard_normal(wanted.shape)
    (slope,) = irtool.vjp(graph, [X, TARGET], [cotangent], [0])
    for transformed in (irtool.grad, lambda f: irtool.jit(irtool.grad(f))):
        found = transformed(lambda x: (f(x) * irtool.Tensor(cotangent)).sum())(X)
        np.testing.assert_allclose(np.asarray(found), slope, rtol=1e-9, atol=1e-12)


def test_interpolate() -> None:
    image = X[None, None]
    assert torch.nn.functional.interpolate(irtool.Tensor(image), scale_factor=2, mode="bilinear").shape == [1, 1, 8, 12]
    found = torch.nn.functional.interpolate(irtool.Tensor(image), size=(2, 3))
    assert np.array_equal(np.asarray(found)[0, 0], X[::2, ::2])
    with pytest.raises(irtool.RunError, match="3 dimensions is not for mode bilinear"):
        torch.nn.functional.interpolate(irtool.Tensor(image[0]), size=2, mode="bilinear")


NOT_OF_TORCH = {"adaptive_avg_pool3d": "out", "normalize": "out"}
"""Parameters that only one of torch and irtool has."""


@pytest.mark.oracle
def test_functions_have_torchs_parameters() -> None:
    torchs: Any = pytest.importorskip("torch").nn.functional
    for name in set(dir(F)) & set(dir(torchs)):
        wanted, found = signature_of(getattr(torchs, name)), signature_of(getattr(F, name))
        if wanted and wanted[:2] != ["args", "kwargs"]:     # a function in C, or one of several
            assert set(wanted) ^ set(found) <= {NOT_OF_TORCH.get(name)}, name


def signature_of(function: Any) -> list[str]:
    """The names of a function's parameters; empty where Python does not know them."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def test_copies() -> None:
    assert np.array_equal(np.asarray(copy(torch.linalg).det(irtool.Tensor(np.eye(2)))), 1)


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="there is no operator aten::linalg_nonsense"):
        torch.linalg.nonsense(X)
    assert np.asarray(torch.tensor([1, 2], dtype=torch.float64)).dtype == np.float64


# -- what is written for torch beside operators
def test_facts_are_as_torch_has_them() -> None:
    x = irtool.Tensor(np.float32([[1, 2, 3], [4, 5, 6]]))
    assert x.shape == (2, 3) and x.shape + (1,) == [2, 3, 1] and (7, *x.shape) == (7, 2, 3) and x.shape[1:].numel() == 3
    assert x.dtype == torch.float32 and str(x.dtype) == "torch.float32" and x.dtype.is_floating_point and x.device.type == "cpu"
    assert x.view(torch.int32).shape == [2, 3] and x.double().view(torch.int64).dtype == torch.int64 and x.view(6, -1).shape == [6, 1]
    assert torch.finfo(x.dtype).eps == np.finfo(np.float32).eps and torch.iinfo(torch.int64).max == 2**63 - 1
    assert not x.requires_grad and irtool.grad(lambda x: (float(x.requires_grad) * x).sum())(np.ones(2)).tolist() == [1, 1]
    assert (x.nbytes, x.type(), x.nelement(), x.is_cuda) == (24, "torch.FloatTensor", 6, False) and x.new_tensor([1, 2]).dtype == x.dtype


def test_distinct_elements() -> None:
    x = torch.tensor([3, 1, 1, 3])
    assert torch.unique(x).tolist() == [1, 3] and [each.tolist() for each in x.unique(return_counts=True)] == [[1, 3], [2, 2]]
    assert [each.tolist() for each in torch.unique(x, return_inverse=True, return_counts=True)] == [[1, 3], [1, 0, 0, 1], [2, 2]]
    assert torch.unique_consecutive(x).tolist() == [3, 1, 3]
    assert [each.tolist() for each in x.unique_consecutive(return_counts=True)] == [[3, 1, 3], [1, 2, 1]]
    assert torch.unique(torch.tensor([[3, 1], [3, 1]]), dim=0).tolist() == [[3, 1]]
    assert [each.tolist() for each in torch.nonzero(torch.eye(2), as_tuple=True)] == [[0, 1], [0, 1]]


def test_the_number_of_results_of_lu_is_that_of_torch() -> None:
    x = torch.tensor([[0.0, 2.0], [4.0, 0.0]])
    source = "def f(x):\n    return torch.lu(x), torch.lu(x, True, True), torch.functional.lu(A=x, get_infos=True)\n"
    found = irtool.run(irtool.from_script(source), [np.asarray(x)])[0]
    for results in (*found, torch.lu(x), x.lu(), torch.lu(x, get_infos=True), x.lu(True, get_infos=True)):
        assert [np.asarray(each).tolist() for each in results] == [[[4, 0], [0, 2]], [2, 2], 0][:len(results)]
    assert [np.asarray(each).tolist() for each in torch.lu(x * 0, get_infos=True)] == [[[0, 0], [0, 0]], [1, 2], 1]
    assert torch.lu(x * 0)[1].tolist() == [1, 2]        # which raises nothing either
    assert [len(results) for results in found] == [2, 3, 3] and len(x.lu()) == 2 and len(torch.lu(x, get_infos=True)) == 3


def test_sizes_that_are_the_input_s() -> None:
    """None in the sizes of an adaptive pool; the lists of TorchScript cannot hold it."""
    x, functional = torch.ones(2, 3, 8, 6, 4), torch.nn.functional
    for kind in ("avg", "max"):
        assert getattr(functional, f"adaptive_{kind}_pool2d")(x[0], (None, 2)).shape == [3, 8, 6, 2]
        assert getattr(functional, f"adaptive_{kind}_pool3d")(x, [3, None, None]).shape == [2, 3, 3, 6, 4]
    assert [each.shape for each in functional.adaptive_max_pool2d(x[0], (5, None), return_indices=True)] == [[3, 8, 5, 4]] * 2
    assert irtool.vmap(lambda x: functional.adaptive_avg_pool2d(x, (None, 2)))(x[0]).shape == [3, 8, 6, 2]


def test_modes_of_distances_have_names() -> None:
    x = torch.arange(6).reshape(3, 2).float()
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist_if_necessary"):
        np.testing.assert_allclose(torch.cdist(x, x, 2.0, mode), torch.cdist(x, x), atol=1e-6)
    with pytest.raises(irtool.RunError, match="x is not a valid value for compute_mode"):
        torch.cdist(x, x, compute_mode="x")


def test_windows_of_a_signal_are_centred() -> None:
    """By the method as by the function; other than by TorchScript's method, as in torch."""
    x = torch.arange(30).float()
    assert x.stft(4, return_complex=True).shape == torch.stft(x, 4, return_complex=True).shape == [3, 31]
    assert x.stft(4, center=False, return_complex=True).shape == [3, 27]
    script = irtool.from_script("def f(x):\n    return x.stft(4, return_complex=True)\n")
    assert irtool.run(script, [np.asarray(x)])[0].shape == (3, 27)


def test_a_diagonal_is_filled() -> None:
    assert torch.zeros(2, 3).fill_diagonal_(7).tolist() == [[7, 0, 0], [0, 7, 0]]
    assert torch.zeros(5, 2).fill_diagonal_(7, wrap=True).tolist() == [[7, 0], [0, 7], [0, 0], [7, 0], [0, 7]]
    assert torch.zeros(2, 2, 2).fill_diagonal_(7).sum().item() == 14
    assert np.asarray(irtool.grad(lambda x: (x * 1.0).fill_diagonal_(0).sum())(np.ones((2, 2)))).tolist() == [[0, 1], [1, 0]]


def test_a_seed_gives_the_same_numbers_again() -> None:
    torch.manual_seed(3)
    first = torch.rand(4).tolist()
    torch.manual_seed(3)
    assert torch.rand(4).tolist() == first != torch.rand(4).tolist()
    one, other = [torch.Generator().manual_seed(5) for _ in range(2)]
    assert torch.rand(4, generator=one).tolist() == torch.rand(4, generator=other).tolist()


def test_what_is_done_without_gradients_is_a_constant() -> None:
    """The derivatives of x * c(x), where c is x * x, known to be a constant, as torch.func gives them."""
    def f(x: Any) -> Any:
        with torch.no_grad():
            constant = x * x
            with torch.enable_grad():
                kept = x * 3.0
        return (x * constant + kept).sum()
    x = np.array([1.0, 2.0])
    assert np.asarray(irtool.grad(f)(x)).tolist() == [4, 7]
    assert np.asarray(irtool.grad(lambda x: irtool.grad(f)(x).sum())(x)).tolist() == [0, 0]     # of all gradients
    assert np.asarray(irtool.vmap(irtool.grad(f))(x)).tolist() == [4, 7]
    assert np.asarray(irtool.jvp(f, (x,), (np.ones(2),))[1]).tolist() == 21       # of tangents it is none
    with torch.no_grad():       # around it: nothing
        assert np.asarray(irtool.grad(lambda x: (x * x).sum())(x)).tolist() == [2, 4]

    @torch.no_grad()
    def constant(x: Any) -> Any:
        assert not torch.is_grad_enabled()
        return x * x
    assert np.asarray(irtool.grad(lambda x: (x * constant(x)).sum())(x)).tolist() == [1, 4]


def test_numbers_stand_for_fractions() -> None:
    x = irtool.Tensor(np.float32([[1, 2, 3]]))
    assert F.pad(x, (1, 0), "constant", 0).tolist() == [[0, 1, 2, 3]] and F.dropout(x, 0).tolist() == [[1, 2, 3]]


def test_an_int_is_a_float_rather_than_a_tensor() -> None:
    x = irtool.Tensor(np.float32([3, 1, 2]))
    assert [float(x.quantile(q)) for q in (0, 1, True)] == [1, 3, 3] and float(torch.nanquantile(x, 0, dim=0)) == 1
    assert np.asarray(irtool.jit(lambda x, q: x.quantile(q))(x, 1)) == 3


@pytest.mark.parametrize("text", ["randint(0, 3, [2], {})", "randperm(3, {})", "tril_indices(2, 2, {})", "triu_indices(2, 2, {})"])
def test_no_dtype_is_the_default_of_a_factory(text: str) -> None:
    for given in ("dtype=None", "dtype=None, device='cpu'", "requires_grad=False"):
        assert eval(f"torch.{text.format(given)}").dtype is torch.int64


def test_windows_say_where_the_largest_is() -> None:
    values, places = F.max_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 2, return_indices=True)
    assert places.flatten().tolist() == [5, 7, 13, 15] == values.flatten().tolist()
    assert F.adaptive_max_pool2d(torch.arange(16.0).reshape(1, 1, 4, 4), 1).tolist() == [[[[15]]]]


REFUSED = {
    "torch.sinn": "did you mean 'sin'?", "x.summ()": "did you mean 'sum'?", "torch.linalg.slove": "did you mean 'solve'?",
    "F.relux": "torch.nn.functional has no 'relux' (did you mean 'relu'?)",
    "torch.nn.Linear(3, 4)": "parameters are arguments of functions", "torch.optim": "update parameters with what irtool.grad gives",
    "torch.jit.script": "see irtool.trace", "torch.func.gard": "did you mean 'grad'?",
    "x.backward()": "gradients are asked for by irtool.grad", "x.requires_grad_()": "tensors do not collect gradients",
    "torch.zeros(2, requires_grad=True)": "tensors do not collect gradients", "x.cuda()": "backend='cupy'",
    "F.dropout(x, 2.0)": "dropout probability has to be between 0 and 1, but got 2.0",
    "F.mse_loss(x, x, reduction='avg')": "reduction='avg'; expected 'none', 'mean', 'sum'",
    "F.mse_loss(x, x, reduction='meam')": "did you mean 'mean'?", "F.grid_sample(x, x, mode='linear')": "did you mean 'bilinear'?",
    "torch.tensor([1, 2]) + 2**70": "is too big for an integer of 64 bits", "x * -2**64": "is too big for an integer",
    "torch.finfo(torch.int32)": "finfo: expected a dtype of float or complex numbers, got int32",
    "torch.iinfo('int23')": "did you mean 'int32'?", "torch.manual_seed('x')": "expected an integer that is not negative",
    "torch.set_default_dtype(torch.float64)": "the default is float32", "torch.from_numpy([1])": "expected a NumPy array, got list",
    "Tensor([[1], [1, 2]])": "of lists of equal length of them, not of list [[1], [1, 2]]", "Tensor('a')": "not of str a",
    "Tensor(None)": "not of NoneType", "torch.zeros(2, 3, 3).fill_diagonal_(1)": "all dimensions of input must be of equal length",
    "torch.device(3)": "expected a name such as 'cpu'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_there_says_what_is(text: str) -> None:
    with pytest.raises(irtool.Error) as caught:
        eval(text, {"torch": torch, "F": F, "Tensor": irtool.Tensor, "x": irtool.Tensor(np.ones((2, 3)))})
    assert REFUSED[text] in str(caught.value)


INSIDE = {
    "np.sin(x)": "np.sin takes arrays; use irtool.torch.sin", "np.concatenate([x, x])": "use irtool.torch.cat",
    "np.sum(x)": "use irtool.torch.sum", "np.add.reduce(x)": "np.add takes arrays",
    "np.asarray(x)": "take functions of irtool.torch", "x.numpy()": "take functions of irtool.torch",
    "f'{x.sum():.2f}'": "take functions of irtool.torch",
    "copy(x)": "use x.clone()", "deepcopy(x)": "use x.clone()", "dumps(x)": "it cannot be copied or pickled",
}

TEXT = "f'{x.sum():.2f}'"
FOLLOWED = {(TEXT, "grad"): "must give a tensor, it gave str", (TEXT, "vmap"): "aten::item under vmap is not supported"}
"""What some ways follow: a text is decided by the number in it, and jit returns it."""


@pytest.mark.parametrize(("text", "way"), [(text, way) for text in INSIDE for way in ("grad", "vmap", "jit")
                                           if (text, way) != (TEXT, "jit")])
def test_what_takes_arrays_says_what_takes_tensors(text: str, way: str) -> None:
    space = {"np": np, "copy": copy, "deepcopy": deepcopy, "dumps": pickle.dumps}
    with pytest.raises(irtool.Error) as caught:
        getattr(irtool, way)(lambda x: eval(text, {**space, "x": x}))(np.ones((2, 2)))
    assert FOLLOWED.get((text, way), INSIDE[text]) in str(caught.value)


def test_arrays_beside_tensors_are_operands() -> None:
    a = np.array([1.0, 2.0])
    for text in ("a - x", "a / x", "a @ x", "a ** x", "np.float64(2) * x", "np.add(a, x)", "(a <= x) * x"):
        wanted = eval(text, {"a": a, "x": a + 1, "np": np})
        found = irtool.jit(lambda x, text=text: eval(text, {"a": a, "x": x, "np": np}))(a + 1)      # type: ignore[misc]
        assert np.allclose(np.asarray(found), wanted), text


ROWS = np.array([[1.0, 2.0, 0.5], [3.0, -1.0, 2.5]])
OF_ARRAYS: dict[str, Any] = {
    "softmax": lambda torch, x: torch.nn.functional.softmax(x, 1), "normalize": lambda torch, x: torch.nn.functional.normalize(x),
    "batch_norm": lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "interpolate": lambda torch, x: torch.nn.functional.interpolate(x[None], 2),
    "cosine_similarity": lambda torch, x: torch.nn.functional.cosine_similarity(x, x), "norm": lambda torch, x: torch.norm(x, dim=1),
    "tensordot": lambda torch, x: torch.tensordot(x, x, 2), "as_tensor": lambda torch, x: torch.as_tensor(x),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_functions_take_arrays_as_operators_do(name: str) -> None:
    call = OF_ARRAYS[name]
    assert np.array_equal(np.asarray(call(irtool.torch, ROWS)), np.asarray(call(irtool.torch, irtool.Tensor(ROWS))))
