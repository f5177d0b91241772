"""TorchScript functions with lists that change, and inputs for them as in `loop_programs`."""
from __future__ import annotations

LISTS: dict[str, tuple[str, str]] = {
    "app": ("""
def app(x, w):
    outs: List[Tensor] = []
    h = torch.zeros_like(w)
    for i in range(x.size(0)):
        h = torch.tanh(x[i] * w + h)
        outs.append(h)
    return torch.stack(outs), h
""", "x4,3 x3"),
    "straight": ("""
def straight(x, w):
    outs = [x]
    outs.append(x * w)
    y = torch.stack(outs)
    outs.append(torch.sin(x))
    z = torch.cat(outs)
    return y, z * 2, outs[0] * outs[-1]
""", "x3 x3"),
    "seti": ("""
def seti(x, w, n: int):
    outs = [x, w, x * w]
    for i in range(n):
        outs[i % 3] = torch.sin(outs[(i + 1) % 3]) * w
        outs[-1] = outs[0] + outs[-1] * 0.5
    return torch.stack(outs)
""", "x3 x3 4"),
    "insp": ("""
def insp(x, w, n: int):
    outs = [x, w]
    for i in range(n):
        outs.insert(i % 2, outs[0] * w)
        outs.insert(-1, torch.sin(outs[1]))
        y = outs.pop(1)
        z = outs.pop()
        outs.append(y * z)
    return torch.stack(outs)
""", "x3 x3 3"),
    "ext": ("""
def ext(x, w, n: int):
    a = [x]
    b = [w]
    for i in range(n):
        a.extend(b)
        a += [torch.sin(a[-1])]
        b.append(a[i] * w)
    return torch.stack(a), torch.stack(b)
""", "x3 x3 3"),
    "rev": ("""
def rev(x, w):
    a = [x, w, x * w]
    a.reverse()
    a.append(torch.sin(a[0]))
    del a[1]
    b = a.copy()
    b.append(a[0] * 2)
    return torch.stack(a), torch.stack(b)
""", "x3 x3"),
    "clear": ("""
def clear(x, w):
    a = [x, w, x * w]
    y = a[2] * a[0]
    a.clear()
    a.append(torch.sin(y))
    return torch.stack(a)
""", "x3 x3"),
    "func": ("""
def func(x, w, n: int):
    outs: List[Tensor] = []
    h = x
    for i in range(n):
        h = torch.sin(h * w)
        outs = outs + [h]
    return torch.stack(outs[1:]), torch.cat(outs[:2]), torch.stack(outs[-2:])
""", "x3 x3 4"),
    "cond": ("""
def cond(x, w, n: int):
    outs: List[Tensor] = []
    h = x
    for i in range(n):
        h = torch.sin(h * w)
        if i % 2 == 0:
            outs.append(h * h)
        else:
            outs.append(torch.cos(h))
            outs.append(w * h)
    s = x
    for t in outs:
        s = s * torch.sin(t)
    return s
""", "x3 x3 4"),
    "readback": ("""
def readback(x, w, n: int):
    outs = [x]
    for i in range(n):
        outs.append(torch.sin(outs[-1] * w) + outs[0])
    return outs[len(outs) - 1]
""", "x3 x3 4"),
    "grow": ("""
def grow(x, w):
    outs = [x]
    while bool(outs[-1].sum() < 6.0) and len(outs) < 6:
        outs.append(outs[-1] * 1.3 + torch.abs(w))
    return torch.stack(outs).sum(0)
""", "+3 x3"),
    "ll": ("""
def ll(x, w, n: int):
    rows: List[Tensor] = []
    for i in range(n):
        row: List[Tensor] = []
        for j in range(i + 1):
            row.append(torch.sin(x * j) * w)
        rows.append(torch.stack(row).sum(0))
    return torch.stack(rows)
""", "x3 x3 3"),
    "lists": ("""
def lists(xs: List[Tensor], w):
    s = w
    for x in xs:
        s = torch.sin(s * x)
    return s
""", "[x3]*3 x3"),
    "outl": ("""
def outl(x, w, n: int):
    outs: List[Tensor] = []
    for i in range(n):
        outs.append(torch.sin(x * i) * w)
    return outs
""", "x3 x3 3"),
    "chunks": ("""
def chunks(x, w):
    outs: List[Tensor] = []
    for t in x.chunk(3, 0):
        outs.append(t * torch.sin(t) * w)
    return torch.cat(outs, 0)
""", "x6,3 x3"),
    "early": ("""
def early(x, w):
    ts = x.unbind(0)
    s = w
    for i in range(len(ts)):
        if i == 2:
            break
        s = s * ts[i] * ts[i]
    return s
""", "x4,3 x3"),
    "comp": ("""
def comp(x, w, n: int):
    ys = [torch.sin(x * i) * w for i in range(n)]
    return torch.stack(ys).prod(0)
""", "x3 x3 3"),
    "zipl": ("""
def zipl(x, w):
    s = w
    for a, b in zip(x.unbind(0), x.unbind(1)):
        s = torch.sin(s * a) + b
    return s
""", "x3,3 x3"),
    "enum": ("""
def enum(x, w):
    outs: List[Tensor] = []
    for i, a in enumerate(x.unbind(0)):
        if i > 0:
            outs.append(a * outs[i - 1])
        else:
            outs.append(a * w)
    return torch.stack(outs)
""", "x3,3 x3"),
    "cell": ("""
def cell(x, w, u, n: int):
    h = torch.zeros_like(x[0])
    c = torch.zeros_like(x[0])
    outs: List[Tensor] = []
    for t in range(n):
        g = torch.mm(x[t], w) + torch.mm(h, u)
        i, f, o, k = g.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(k)
        h = torch.sigmoid(o) * torch.tanh(c)
        outs.append(h)
    return torch.stack(outs)
""", "x3,2,3 x3,12 x3,12 3"),
    "bidir": ("""
def bidir(x, w):
    fw: List[Tensor] = []
    bw: List[Tensor] = []
    h = w
    n = x.size(0)
    for i in range(n):
        h = torch.tanh(x[i] + h * w)
        fw.append(h)
    h = w
    for i in range(n):
        h = torch.tanh(x[n - 1 - i] * h)
        bw.insert(0, h)
    outs: List[Tensor] = []
    for i in range(n):
        outs.append(torch.cat([fw[i], bw[i]]))
    return torch.stack(outs)
""", "x3,2 x2"),
    "phi": ("""
def phi(x, w, n: int):
    if n > 2:
        outs = [x]
        outs.append(w)
    else:
        outs = [x * w]
    outs.append(torch.sin(x))
    return torch.stack(outs).sum(0)
""", "x3 x3 3"),
    "reset": ("""
def reset(x, w, n: int):
    outs = [x]
    s = w
    for i in range(n):
        outs.append(torch.sin(outs[-1]) * w)
        if len(outs) > 2:
            s = s * torch.stack(outs).sum(0)
            outs = [outs[-1] * 2]
    return s
""", "x3 x3 5"),
    "nestl": ("""
def nestl(x, w, n: int):
    ll: List[List[Tensor]] = []
    for i in range(n):
        row: List[Tensor] = []
        for j in range(i + 1):
            row.append(torch.sin(x * j) * w)
        ll.append(row)
    s = x
    for row in ll:
        for y in row:
            s = s * y
    return s
""", "x3 x3 3"),
}
