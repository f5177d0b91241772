from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


# run: T(2, 3), T(2, 3)
def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, x ** 2, -x, x % 0.7, x // 0.5


# run: T(2, 3), 3, 1.5
def with_numbers(x, n: int, f: float):
    return x + n, n + x, x - f, f - x, 2 / x, x * f, n * x, 2 ** x, x ** f, 1 - x


# run: T(3), T(3)
def comparisons(x, y):
    return x < y, x <= 0.2, x == y, x != 1, 0 < x, x >= y, 1 > x


# run: B(4), I(4)
def bitwise(b, i):
    return b & ~b, b | b, b ^ b, i & 3, i | 4, ~i, i << 1, i >> 1


# run: T(2, 3), T(3, 2)
def matmul_operator(x, y):
    return x @ y, torch.mm(x, y), x.matmul(y)


# run: T(3)
def in_place(x):
    y = x + 0
    y += 1
    y -= 0.5
    y *= 2
    y /= 4
    z = y
    z += 1
    return x, y, z


# run: T(3, 4)
def basic_indexing(x):
    return x[0], x[1, 2], x[:, 1], x[1:], x[:, 1:3], x[-1], x[..., 0], x[None], x[:, None, 1], x[0:2, ::2], x[..., None, 1:]


# run: T(4, 3), I(2)
def tensor_indexing(x, i):
    return x[i], x[:, i], x[i, 1:], x[[0, 2]], x[x > 0], x[i, i]


# run: T(3, 4)
def index_assignment(x):
    y = x.clone()
    y[0] = 1
    y[1, 2] = 7.5
    y[:, 3] = torch.zeros(3)
    y[2] += 1
    y[:, 0] *= 3
    return y


# run: T(5)
def mask_assignment(x):
    y = x.clone()
    y[x > 0] = 0.25
    y[y < 0] *= 2
    return y


# run: T(4)
def index_tensor_assignment(x):
    y = x.clone()
    i = torch.tensor([0, 2])
    y[i] = torch.tensor([5.0, 6.0])
    return y


# run: T(2, 3)
def shapes(x):
    return x.size(), x.size(0), x.shape, x.shape[1], x.dim(), x.numel(), len(x), x.ndim


# run: T(2, 3)
def properties(x):
    return x.dtype == torch.float32, x.T, x.is_floating_point(), x.requires_grad, x.layout == torch.strided


# run: T(2, 6)
def varargs(x):
    return x.view(3, 4), x.reshape(-1), x.permute(1, 0), x.view([4, 3]), x.expand(2, 2, 6), x.reshape(2, -1, 2)


# run: T(2, 3)
def reductions(x):
    return x.sum(), x.sum(0), x.sum(dim=1, keepdim=True), x.mean(), x.mean([0, 1]), x.max(), x.prod(), x.std(), x.norm()


# run: T(3, 4)
def multiple_results(x):
    values, indices = torch.max(x, 1)
    m = x.min(0)
    s, order = x.sort(dim=1, descending=True)
    return values, indices, m.values, m.indices, m[0], s, order


# run: T(3)
def casting_methods(x):
    return x.double(), x.int(), x.long(), x.to(torch.float64), x.float().dtype == torch.float


# run: 2, 3
def factories(n: int, m: int):
    return (torch.zeros(n, m), torch.ones([n]), torch.full([n, m], 2.5), torch.arange(m), torch.arange(1, 7, 2), torch.eye(n),
            torch.linspace(0, 1, m), torch.tensor([1.0, 2.0]), torch.tensor(n), torch.zeros(n, dtype=torch.int64))


# run: T(2, 3)
def likes(x):
    return torch.zeros_like(x), torch.ones_like(x, dtype=torch.double), torch.full_like(x, 3.0), x.new_zeros(2)


# run: T(2, 2), T(2, 2)
def joining(x, y):
    return torch.cat([x, y]), torch.cat([x, y], dim=1), torch.stack([x, y]), torch.cat((x, y), 0)


# run: T(6)
def splitting(x):
    a, b = x.chunk(2)
    parts = x.split(2)
    u = x.unbind()
    return a, b, parts[1], len(u), torch.split(x, [1, 5])[0]


# run: T(2, 3)
def keyword_arguments(x):
    return torch.add(x, x, alpha=2), torch.sum(x, dim=0), torch.transpose(x, dim0=0, dim1=1), torch.clamp(x, min=0.0), x.clamp(max=0.3)


# run: T(2, 3)
def pointwise(x):
    return x.relu(), x.sigmoid(), x.tanh().exp(), torch.sin(x), x.abs().log(), torch.erf(x), x.neg(), torch.where(x > 0, x, -x)


# run: T(2, 3)
def starred_call(x):
    t = (0, 1)
    return x.transpose(*t), torch.sum(x, *(0, True))


# run: T(3, 3)
def triangular(x):
    return x.tril(), x.triu(1), x.diag(), x.trace(), x.t()


# run: T(3), 2
def number_from_tensor(x, n: int):
    k = int(x[0] * 10)
    f = float(x.sum())
    b = bool(x[1] > 0)
    return k + n, f, b, x[0].item()


# run: T(4, 5)
def softmax_by_hand(x):
    shifted = x - x.max(dim=1, keepdim=True)[0]
    e = shifted.exp()
    return e / e.sum(dim=1, keepdim=True)


# run: T(4, 5), T(5), T(5), 1e-5
def layer_norm_by_hand(x, w, b, eps: float = 1e-5):
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * w + b


# run: T(3, 4), T(5, 4), T(5, 5), T(5)
def recurrent(x, w, u, b):
    h = torch.zeros(5)
    out: List[Tensor] = []
    for t in range(x.size(0)):
        h = torch.tanh(w @ x[t] + u @ h + b)
        out.append(h)
    return torch.stack(out), h


# run: T(2, 3), None
# run: T(2, 3), T(3)
def optional_tensor(x, bias: Optional[Tensor] = None):
    if bias is not None:
        x = x + bias
    return x * 2


# run: T(2, 3)
def list_of_tensors(x):
    parts = [x, x + 1]
    parts.append(x * 2)
    total = parts[0]
    for p in parts:
        total = total + p
    return total, len(parts), parts[-1]


# run: T(2, 3)
def tensor_comprehension(x):
    rows = [row.sum() for row in x]
    return torch.stack(rows), [int(r) for r in rows]


# run: I(3)
def integer_tensors(i):
    return i / 2, i // 2, i % 2, i + 1.5, i * i, i.sum(), i.float().mean(), i == 1


# run: T(2, 3)
def aug_in_loop(x):
    acc = torch.zeros_like(x)
    for i in range(3):
        acc += x * i
        acc[0] -= 1
    return acc


# run: T(3), T(3)
def swap(a, b):
    a, b = b, a
    a += 1
    return a, b


# run: T(4)
def clone_and_view(x):
    y = x.view(2, 2)
    z = y.clone()
    z[0, 0] = 9
    return x, y, z


# run: T(1, 2, 4, 4), T(3, 2, 3, 3)
def convolution(x, w):
    return torch.conv2d(x, w, padding=1), F.conv2d(x, w, stride=2)


# run: T(2, 4), T(3, 4), T(3)
def linear(x, w, b):
    return F.linear(x, w, b), F.linear(x, w)


# run: T(2, 4)
def functional_pointwise(x):
    return F.relu(x), F.gelu(x), F.softplus(x), F.elu(x), F.leaky_relu(x, 0.2), F.hardtanh(x), F.silu(x), F.logsigmoid(x)


# run: T(2, 4)
def functional_softmax(x):
    return F.softmax(x, dim=1), F.log_softmax(x, 1), F.softmin(x, dim=0)


# run: T(2, 4)
def functional_norm(x):
    return F.layer_norm(x, [4]), F.normalize(x), F.dropout(x, 0.5, False)


# run: T(2, 4), T(2, 4)
def functional_loss(x, y):
    return F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.smooth_l1_loss(x, y)


# run: T(2, 4), I(2)
def functional_classification(x, t):
    return F.cross_entropy(x, t), F.nll_loss(F.log_softmax(x, 1), t)


# run: T(1, 2, 4, 4)
def functional_pool(x):
    return F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1), F.pad(x, [1, 1])


# run: T(2, 3)
def tolist(x):
    rows: List[List[float]] = x.tolist()
    return rows


# run: T(2, 3)
def negative_dims(x):
    return x.sum(-1), x.transpose(-1, -2), x.select(-1, 0), x[..., -1], x.unsqueeze(-1).shape


# run: T(3), 2
def while_tensor_norm(x, n: int):
    while float(x.norm()) < 10:
        x = x * n
    return x


# run: D(3)
def double_tensors(x):
    return x + torch.ones(3), x.float() + x, x * 2, x.dtype == torch.double


# run: T(2, 3), T(3)
def broadcasting(x, y):
    return x + y, x * y[None], y.expand_as(x), x.sum(0).add(y, alpha=0.5)


# run: T(3, 3)
def linear_algebra(a):
    b = a @ a.t() + torch.eye(3)
    return torch.linalg.det(b), torch.linalg.inv(b), b.diagonal(), torch.linalg.norm(a)


# run: T(2, 3)
def is_checks(x):
    y: Optional[Tensor] = None
    return x is None, y is None, x is not None


# run: T(5)
def gather_scatter(x):
    i = torch.tensor([0, 2, 4])
    return x.gather(0, i), x.index_select(0, i), torch.zeros(5).scatter(0, i, 1.0), x.masked_fill(x > 0, -1.0)


# run: T(4, 2), T(3, 2)
def pairwise_distances(a, b):
    out = torch.zeros(a.size(0), b.size(0))
    for i in range(a.size(0)):
        for j in range(b.size(0)):
            d = a[i] - b[j]
            out[i, j] = (d * d).sum().sqrt()
    return out


# run: T(3, 2)
def called_getitem(x):
    return x.__getitem__(torch.tensor([2, 0])), x.__getitem__(x[:, 0] > x.mean())


# run: T(2)
def list_of_one_tensor_is_sorted(x):
    held = [x]
    held.sort()
    return held, sorted(held)
