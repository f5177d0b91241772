"""Models as users of torch write them, scripted, traced and frozen: `cases()` gives name, module, method and arguments."""

import enum
from typing import Dict, List, NamedTuple, Optional, Tuple
import torch
import torch.nn.functional as F
from torch import nn, Tensor


class ConvBNAct(nn.Sequential):
    def __init__(self, i, o, k=3, s=1, g=1, act=nn.ReLU6):
        super().__init__(nn.Conv2d(i, o, k, s, (k - 1) // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


class InvertedResidual(nn.Module):
    def __init__(self, i, o, s, e):
        super().__init__()
        h = i * e
        self.use_res = s == 1 and i == o
        layers: List[nn.Module] = []
        if e != 1:
            layers.append(ConvBNAct(i, h, 1))
        layers += [ConvBNAct(h, h, 3, s, h), nn.Conv2d(h, o, 1, bias=False), nn.BatchNorm2d(o)]
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.conv(x) if self.use_res else self.conv(x)


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            ConvBNAct(3, 8, s=2), InvertedResidual(8, 8, 1, 1), InvertedResidual(8, 12, 2, 6), InvertedResidual(12, 12, 1, 6)
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(12, 10))

    def forward(self, x):
        x = self.features(x)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv2d(6, 12, 3, padding=1), nn.InstanceNorm2d(12, affine=True), nn.LeakyReLU(0.1))
        self.up = nn.ConvTranspose2d(12, 6, 2, stride=2)
        self.out = nn.Conv2d(12, 2, 1)

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        u = self.up(b)
        if u.shape[-1] != a.shape[-1] or u.shape[-2] != a.shape[-2]:
            u = F.interpolate(u, size=a.shape[-2:], mode="bilinear", align_corners=False)
        logits = self.out(torch.cat([a, u], 1))
        return {"logits": logits, "mask": logits.argmax(1)}


class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.register_buffer("scale", torch.tensor((d // h) ** -0.5))

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.h, C // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        a = (q @ k.transpose(-2, -1)) * self.scale
        if mask is not None:
            a = a.masked_fill(mask == 0, float("-inf"))
        return self.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(B, N, C))


class GPT(nn.Module):
    def __init__(self, vocab=17, d=16, n=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(32, d)
        self.blocks = nn.ModuleList(
            [
                nn.ModuleDict(
                    {
                        "ln1": nn.LayerNorm(d),
                        "att": Attention(d, 4),
                        "ln2": nn.LayerNorm(d),
                        "mlp": nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)),
                    }
                )
                for _ in range(n)
            ]
        )
        self.head = nn.Linear(d, vocab, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, idx: Tensor) -> Tensor:
        T = idx.size(1)
        x = self.tok(idx) + self.pos(torch.arange(T, device=idx.device))
        mask = torch.tril(torch.ones(T, T, device=idx.device))
        for block in self.blocks:
            x = x + block["att"](block["ln1"](x), mask)
            x = x + block["mlp"](block["ln2"](x))
        return self.head(x)

    @torch.jit.export
    def generate(self, idx: Tensor, n: int, temperature: float = 1.0) -> Tensor:
        for _ in range(n):
            logits = self.forward(idx)[:, -1] / temperature
            idx = torch.cat([idx, logits.argmax(-1, keepdim=True)], 1)
        return idx


class Tagger(nn.Module):
    """Strings and dicts: a vocabulary in the module."""

    vocab: Dict[str, int]

    def __init__(self):
        super().__init__()
        self.vocab = {"<unk>": 0, "the": 1, "cat": 2, "sat": 3, "on": 4, "mat": 5}
        self.labels = ["DET", "NOUN", "VERB"]
        self.emb = nn.EmbeddingBag(6, 8, mode="mean")
        self.lin = nn.Linear(8, 3)

    def forward(self, text: str) -> Tuple[Tensor, str]:
        ids = torch.jit.annotate(List[int], [])
        for w in text.lower().split(" "):
            ids.append(self.vocab[w] if w in self.vocab else 0)
        y = self.lin(self.emb(torch.tensor(ids), torch.tensor([0])))
        return y, self.labels[int(y.argmax())] + "/" + str(len(ids))


class LSTMNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(14, 2)

    def forward(self, x: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
        y, state = self.lstm(x, state)
        return self.fc(y), state


class Streaming(nn.Module):
    """State that calls change."""

    history: List[float]

    def __init__(self):
        super().__init__()
        self.gru = nn.GRUCell(4, 6)
        self.register_buffer("h", torch.zeros(1, 6))
        self.n = 0
        self.history = []

    def forward(self, x: Tensor) -> Tuple[Tensor, int, List[float]]:
        for t in range(x.size(0)):
            self.h = self.gru(x[t : t + 1], self.h)
            self.n += 1
            self.history.append(float(self.h.sum()))
        return self.h, self.n, self.history

    @torch.jit.export
    def reset(self) -> None:
        self.h = torch.zeros_like(self.h)
        self.n = 0
        self.history.clear()


class Kind(enum.Enum):
    MEAN = 0
    MAX = 1


class Stats(NamedTuple):
    mean: Tensor
    spread: Tensor
    count: int


class Pool(nn.Module):
    def __init__(self, kind: Kind):
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor, dims: List[int], keep: bool = False) -> Stats:
        if self.kind == Kind.MEAN:
            m = x.mean(dims, keep)
        else:
            m = x.amax(dims, keep)
        return Stats(m, x.var(dims, unbiased=False, keepdim=keep), x.numel())


class BoxHead(nn.Module):
    """Detection: anchors, decoding, greedy suppression with while loops."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 1)
        self.stride = 8

    def iou(self, a: Tensor, b: Tensor) -> Tensor:
        lt = torch.max(a[:2], b[:, :2])
        rb = torch.min(a[2:], b[:, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[:, 0] * wh[:, 1]
        area = area_of(b)
        return inter / ((a[2] - a[0]) * (a[3] - a[1]) + area - inter)

    def forward(self, image: Tensor, threshold: float = 0.5) -> List[Dict[str, Tensor]]:
        y = self.conv(F.avg_pool2d(image, self.stride))
        out: List[Dict[str, Tensor]] = []
        n, _, h, w = y.shape
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centers = torch.stack([gx, gy], -1).reshape(-1, 2).to(y.dtype) * self.stride + self.stride / 2
        for i in range(n):
            p = y[i].permute(1, 2, 0).reshape(-1, 5)
            size = p[:, :2].exp() * self.stride
            boxes = torch.cat([centers - size, centers + size], 1)
            scores = p[:, 4].sigmoid()
            order = scores.argsort(descending=True)
            keep: List[int] = []
            while order.numel() > 0:
                j = int(order[0])
                keep.append(j)
                rest = order[1:]
                order = rest[self.iou(boxes[j], boxes[rest]) <= threshold]
            k = torch.tensor(keep)
            out.append({"boxes": boxes[k], "scores": scores[k]})
        return out


@torch.jit.script
def area_of(b: Tensor) -> Tensor:
    return (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])


class Preprocess(nn.Module):
    """What torchvision's transforms do, on uint8 images."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(-1, 1, 1))

    def forward(self, image: Tensor, size: List[int]) -> Tensor:
        x = image.to(torch.float32).div(255)
        h, w = x.shape[-2], x.shape[-1]
        short, long = (w, h) if w <= h else (h, w)
        new_short, new_long = size[0], int(size[0] * long / short)
        nw, nh = (new_short, new_long) if w <= h else (new_long, new_short)
        x = F.interpolate(x[None], size=[nh, nw], mode="bicubic", align_corners=False, antialias=True)[0]
        top, left = int(round((nh - size[0]) / 2.0)), int(round((nw - size[0]) / 2.0))
        x = x[:, top : top + size[0], left : left + size[0]]
        x = F.pad(x, [1, 1, 2, 2], mode="reflect")
        return (x - self.mean) / self.std


class Mixture(nn.Module):
    """Control flow on data; routing."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6)) for _ in range(3)])

    def forward(self, x: Tensor, k: int = 2) -> Tuple[Tensor, Tensor]:
        w, idx = self.gate(x).softmax(-1).topk(k, -1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            row, col = torch.where(idx == i)
            if row.numel() > 0:
                out.index_add_(0, row, expert(x[row]) * w[row, col].unsqueeze(-1))
        if bool((out > 10).any()):
            raise ValueError("too large")
        return out, idx


class VQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(9, 4))
        self.register_buffer("used", torch.zeros(9, dtype=torch.long))

    def forward(self, z: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        d = torch.cdist(z, self.codes)
        i = d.argmin(-1)
        self.used += torch.bincount(i, minlength=9)
        return z + (self.codes[i] - z).detach(), i, self.used

    @torch.jit.export
    def decode(self, i: Tensor) -> Tensor:
        return F.embedding(i, self.codes)


class Spectrum(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.fb = nn.Parameter(torch.rand(9, 5), requires_grad=False)

    def forward(self, wave: Tensor) -> Tensor:
        s = torch.stft(wave, 16, 8, 16, self.window, center=True, pad_mode="reflect", normalized=False, onesided=True, return_complex=True)
        p = s.abs().pow(2.0)
        m = torch.matmul(p.transpose(-1, -2), self.fb)
        return torch.log(m.clamp_min(1e-5)).transpose(-1, -2)


class SEBlock(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.c1 = nn.Conv2d(c, c, 3, padding=2, dilation=2, groups=2, padding_mode="circular")
        self.fc1 = nn.Conv2d(c, 2, 1)
        self.fc2 = nn.Conv2d(2, c, 1)
        self.prelu = nn.PReLU(c)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x):
        x = self.prelu(self.c1(x))
        s = self.fc2(F.hardswish(self.fc1(F.adaptive_avg_pool2d(x, 1))))
        return self.shuffle(x * F.hardsigmoid(s))


class Tree(nn.Module):
    """A stack machine on a list of words; recursion written as a loop, optional results, asserts."""

    def __init__(self):
        super().__init__()
        self.leaf = nn.Embedding(10, 4)
        self.join = nn.Bilinear(4, 4, 4)

    def forward(self, tokens: List[str]) -> Optional[Tensor]:
        stack: List[Tensor] = []
        for t in tokens:
            if t == "+":
                assert len(stack) >= 2, "stack underflow"
                r = stack.pop()
                l = stack.pop()
                stack.append(torch.tanh(self.join(l, r)))
            elif t.isdigit():
                stack.append(self.leaf(torch.tensor([int(t)])))
            else:
                continue
        return stack[-1] if len(stack) == 1 else None


class Kalman(nn.Module):
    """double precision linear algebra."""

    def __init__(self):
        super().__init__()
        self.A = nn.Parameter(torch.eye(3, dtype=torch.float64) + 0.1)
        self.Q = nn.Parameter(torch.eye(3, dtype=torch.float64) * 0.5)

    def forward(self, obs: Tensor) -> Tuple[Tensor, Tensor]:
        x = torch.zeros(3, dtype=obs.dtype)
        P = torch.eye(3, dtype=obs.dtype)
        xs = torch.jit.annotate(List[Tensor], [])
        for o in obs:
            x = self.A @ x
            P = self.A @ P @ self.A.t() + self.Q
            K = torch.linalg.solve(P + torch.eye(3, dtype=obs.dtype), P).t()
            x = x + K @ (o - x)
            P = P - K @ P
            xs.append(x)
        return torch.stack(xs), torch.linalg.cholesky(P)


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(6, 6)
        self.n = nn.LayerNorm(6)

    def forward(self, x: Tensor) -> Tensor:
        return self.n(self.l(x.half().float())).to(torch.float16)


class Hooked(nn.Module):
    """Hooks of a submodule: torch saves them as methods of the class and as functions of a file with the name of the class."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

        def doubled(self, inputs: Tuple[Tensor]) -> Tensor:
            return inputs[0] * 2

        def residual(self, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
            return output + inputs[0]

        self.layer.register_forward_pre_hook(doubled)
        self.layer.register_forward_hook(residual)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def cases():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    r = lambda *s: torch.randn(*s, generator=g)
    S = torch.jit.script
    mob = MobileNet().eval()
    yield "mobilenet_traced", torch.jit.trace(mob, r(1, 3, 32, 32)), "forward", (r(2, 3, 32, 32),)
    yield "mobilenet_frozen", torch.jit.freeze(S(mob)), "forward", (r(2, 3, 32, 32),)
    yield (
        "optimized",
        torch.jit.optimize_for_inference(torch.jit.trace(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)).eval(), r(1, 6))),
        "forward",
        (r(3, 6),),
    )
    yield "unet", S(UNet().eval()), "forward", (r(1, 1, 13, 15),)
    yield "unet_training", S(UNet()), "forward", (r(2, 1, 12, 12),)
    yield "attention_mask", S(Attention(8, 2)), "forward", (r(2, 5, 8), torch.tril(torch.ones(5, 5)))
    yield "attention_none", S(Attention(8, 2)), "forward", (r(2, 5, 8), None)
    gpt = S(GPT().eval())
    yield "gpt", gpt, "forward", (torch.randint(0, 17, (2, 6), generator=g),)
    yield "gpt_generate", gpt, "generate", (torch.randint(0, 17, (2, 3), generator=g), 4, 0.7)
    yield "tagger", S(Tagger()), "forward", ("The cat sat on the mat today",)
    yield "lstm", S(LSTMNet()), "forward", (r(3, 4, 5), None)
    yield "lstm_state", S(LSTMNet()), "forward", (r(3, 4, 5), (r(4, 3, 7), r(4, 3, 7)))
    yield "streaming", S(Streaming()), "forward", (r(5, 4),)
    yield "pool_mean", S(Pool(Kind.MEAN)), "forward", (r(2, 3, 4), [0, 2], True)
    yield "pool_max", S(Pool(Kind.MAX)), "forward", (r(2, 3, 4), [1], False)
    yield "boxes", S(BoxHead()), "forward", (r(2, 3, 32, 40), 0.4)
    yield "preprocess", S(Preprocess()), "forward", (torch.randint(0, 256, (3, 37, 50), generator=g, dtype=torch.uint8), [24])
    yield "mixture", S(Mixture()), "forward", (r(7, 6), 2)
    yield "vq", S(VQ()), "forward", (r(11, 4),)
    yield "vq_decode", S(VQ()), "decode", (torch.randint(0, 9, (2, 3), generator=g),)
    yield "spectrum", S(Spectrum()), "forward", (r(2, 100),)
    yield "se_traced", torch.jit.trace(SEBlock(), r(1, 8, 6, 6)), "forward", (r(1, 8, 6, 6),)
    yield "tree", S(Tree()), "forward", (["1", "2", "+", "x", "3", "+"],)
    yield "tree_none", S(Tree()), "forward", (["1", "2"],)
    yield "kalman", S(Kalman()), "forward", (r(6, 3).double(),)
    yield "half", S(Half()), "forward", (r(3, 6),)
    yield "streaming_preserved", torch.jit.freeze(S(Streaming().eval()), preserved_attrs=["reset", "n"]), "forward", (r(3, 4),)
    enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, dropout=0.1), 2)
    yield "encoder_eval", S(enc.eval()), "forward", (r(2, 5, 12),)
    yield (
        "encoder_traced",
        torch.jit.trace(nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, norm_first=True), 1), r(5, 2, 12)),
        "forward",
        (r(5, 2, 12),),
    )
    mha = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    yield "mha", S(mha), "forward", (r(2, 4, 8), r(2, 6, 8), r(2, 6, 8))
    yield "hooked", S(Hooked()), "forward", (r(2, 3),)
