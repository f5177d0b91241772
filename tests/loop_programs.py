"""TorchScript functions with loops, writes into tensors and lists, and inputs for them: a word says what an argument is.

`x3` is a vector of three normal numbers, `x4,3` a matrix, `+3` positive ones, `[x3]*3` a list of such, anything else a number.
"""
from __future__ import annotations

LOOPS: dict[str, tuple[str, str]] = {
    "wh": ("""
def wh(x, w):
    h = x
    n = 0
    while bool(h.sum() < 5.0) and n < 7:
        h = h * 1.5 + torch.sin(h * w)
        n += 1
    return h
""", "+3 x3"),
    "brk": ("""
def brk(x, w, n: int):
    h = x
    s = x * 0
    for i in range(n):
        h = torch.tanh(h * w)
        if i == 2:
            break
        s = s + h * h
    return s + h
""", "x3 x3 6"),
    "cont": ("""
def cont(x, w, n: int):
    h = x
    for i in range(n):
        if i % 2 == 0:
            continue
        h = torch.tanh(h * w)
    return h
""", "x3 x3 5"),
    "nest": ("""
def nest(x, w, n: int):
    h = x
    for i in range(n):
        k = h * i
        for j in range(i + 1):
            k = torch.sin(k * w + h) * k
        h = h + k
    return h
""", "x3 x3 3"),
    "iff": ("""
def iff(x, w, n: int):
    h = x
    for i in range(n):
        if bool(h.sum() > 0):
            y = h * h
            h = torch.sin(y * w) - y
        else:
            h = torch.cos(h) * w
    return h
""", "x3 x3 4"),
    "inif": ("""
def inif(x, w, n: int):
    h = x * w
    if n > 2:
        for i in range(n):
            h = torch.tanh(h * w) * h
    else:
        h = h * h
    return h * x
""", "x3 x3 4"),
    "zero": ("""
def zero(x, w, n: int):
    h = x * w
    for i in range(n):
        h = torch.tanh(h * w) * h
    return h * x
""", "x3 x3 0"),
    "swap": ("""
def swap(x, w, n: int):
    a = x
    b = w
    for i in range(n):
        a, b = torch.sin(b), a * b
    return a * 2
""", "x3 x3 5"),
    "cols": ("""
def cols(x, w):
    h = torch.zeros_like(w)
    for i in range(x.size(0)):
        h = torch.tanh(torch.mv(x[i], h) + w)
    return h
""", "x4,3,3 x3"),
    "fl": ("""
def fl(x, n: int):
    s = 1.0
    h = x
    for i in range(n):
        s = s * 1.5
        h = h * s + torch.exp(-h)
    return h
""", "x3 4"),
    "unb": ("""
def unb(x, w):
    s = torch.zeros_like(w)
    for t in x.unbind(0):
        s = torch.sin(s + t * w)
    return s
""", "x4,3 x3"),
    "nest3": ("""
def nest3(x, w, n: int):
    h = x
    for i in range(n):
        for j in range(n):
            if j > i:
                for k in range(j):
                    h = torch.sin(h * w) + h
            else:
                h = h * w
    return h
""", "x3 x3 3"),
    "opt": ("""
def opt(x, w, n: int):
    h: Optional[Tensor] = None
    for i in range(n):
        if h is None:
            h = x * w
        else:
            h = torch.sin(h) * w
    assert h is not None
    return h
""", "x3 x3 3"),
    "unused": ("""
def unused(x, w, n: int):
    h = x
    c = w
    for i in range(n):
        c = c * h
        h = torch.sin(h)
    return h
""", "x3 x3 3"),
    "lstm": ("""
def lstm(x, h, c, w, u):
    for i in range(x.size(0)):
        g = torch.mm(x[i], w) + torch.mm(h, u)
        a, b, d, e = g.chunk(4, 1)
        c = torch.sigmoid(a) * c + torch.sigmoid(b) * torch.tanh(d)
        h = torch.sigmoid(e) * torch.tanh(c)
    return h
""", "x3,2,3 x2,3 x2,3 x3,12 x3,12"),
    "state": ("""
def state(x, w, n: int):
    state = (x, w)
    for i in range(n):
        h, c = state
        state = (torch.sin(h * c), c + h * i)
    return state[0] * state[1]
""", "x3 x3 3"),
    "leave": ("""
def leave(x, w, n: int):
    for i in range(n):
        x = x * w + i
        if i == 2:
            return torch.sin(x)
    return x * w
""", "x3 x3 5"),
    "stay": ("""
def stay(x, w, n: int):
    for i in range(n):
        x = x * w + i
        if i == 7:
            return torch.sin(x)
    return x * w
""", "x3 x3 4"),
    "out": ("""
def out(x, w, n: int):
    s = x
    for i in range(n):
        y = s * w
        for j in range(n):
            if j > i:
                break
            y = torch.sin(y) * s
        s = s + y
    return s
""", "x3 x3 3"),
    "newton": ("""
def newton(x, w):
    y = x
    step = torch.ones_like(x)
    while bool(step.abs().max() > 1e-3):
        step = (y * y - x * w.abs() - 1.0) / (2.0 * y)
        y = y - step
    return y
""", "+3 x3"),
    "power": ("""
def power(x, n: int):
    out = torch.ones_like(x)
    base = x
    while n > 0:
        if n % 2 == 1:
            out = out * base
        base = base * base
        n = n // 2
    return out
""", "x3 11"),
    "scan": ("""
def scan(x, w):
    sums: List[Tensor] = []
    total = w
    for i in range(x.size(0)):
        total = total + x[i] * total
        sums.append(total.sum())
    best = sums[0]
    for i in range(1, len(sums)):
        if bool(sums[i] > best):
            best = sums[i]
    return best * torch.stack(sums).mean()
""", "x4,3 x3"),
    "moved": ("""
def moved(x, w, n: int):
    queue = [x, w]
    out = x
    for i in range(n):
        first = queue.pop(0)
        queue.append(torch.sin(first) * queue[0])
        out = out + queue[-1] * first
    return out, torch.stack(queue)
""", "x3 x3 4"),
    "sizes": ("""
def sizes(x, w, n: int):
    shape: List[int] = []
    for i in range(n):
        shape.append(1)
    shape.append(3)
    y = (x * w).reshape(shape)
    return y * torch.sin(w)
""", "x3 x3 2"),
    "mixed": ("""
def mixed(x, w, n: int):
    outs: List[Tensor] = []
    for i in range(n):
        row = [x * i]
        while len(row) < i:
            row.append(torch.sin(row[-1] * w))
            if len(outs) > 0 and len(row) % 2 == 0:
                row[0] = outs[-1] * row[-1]
        outs.append(torch.stack(row).sum(0))
        if i % 3 == 2:
            outs.insert(1, outs.pop() * w)
    return torch.stack(outs)
""", "x3 x3 5"),
    "scales": ("""
def scales(x, w, n: int):
    scale: List[float] = []
    for i in range(n):
        scale.append(0.5 * i + 1.0)
    for s in scale:
        x = torch.sin(x * s) * w
    return x
""", "x3 x3 3"),
    "optional": ("""
def optional(x, w, n: int):
    best: Optional[Tensor] = None
    for i in range(n):
        y = torch.sin(x * i) * w
        if best is None:
            best = y
        elif bool(y.sum() > best.sum()):
            best = y * best
    if best is None:
        return x
    return best
""", "x3 x3 4"),
    "dot": ("""
def dot(x, w):
    total = x.sum() * 0.0
    for i in range(x.size(0)):
        for j in range(x.size(1)):
            total = total + x[i, j] * x[i, j] * w[j]
    return total
""", "x2,3 x3"),
    "steps": ("""
def steps(x, w, n: int):
    many = [x, w * x] * n
    many.append(torch.sin(many[-1]))
    return torch.stack(many[::2]).prod(0), torch.stack(many[1:]).sum(0)
""", "x3 x3 3"),
    "added": ("""
def added(x, w, n: int):
    s = torch.zeros_like(x)
    for i in range(n):
        s += torch.sin(x * i) * w
    return s
""", "x3 x3 3"),
    "twice": ("""
def twice(x, w, n: int):
    s = x * w
    t = s
    for i in range(n):
        s += torch.sin(x * i) * w
    return s * t
""", "x3 x3 3"),
    "scaled": ("""
def scaled(x, w, n: int):
    s = x * w
    for i in range(n):
        s.mul_(torch.sin(w))
        s.add_(x)
    return s * x
""", "x3 x3 3"),
    "rows": ("""
def rows(x, w, n: int):
    out = torch.zeros(3, 3, dtype=x.dtype)
    for i in range(n):
        out[i] = torch.sin(x * i) * w
        out[0, i] = w[i]
    return out * out
""", "x3 x3 3"),
    "row": ("""
def row(x, w):
    out = torch.zeros(2, 3, dtype=x.dtype)
    out[0] = torch.sin(x) * w
    out[1, 1:] = x[1:] * out[0, :2].sum()
    out[:, 0] += x[0]
    return out * out
""", "x3 x3"),
    "branches": ("""
def branches(x, w, n: int):
    out = x * w
    for i in range(n):
        if i % 2 == 0:
            out[i] = w[0] * x[1] * i
        else:
            out += w
    return torch.sin(out)
""", "x3 x3 3"),
}
