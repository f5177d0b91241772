"""Random programs in which tensors are written into, through views of them too, as TorchScript source."""
from __future__ import annotations

import random

VIEWS = ("{a}[{i}]", "{a}[{i}:{j}]", "{a}.t()", "{a}.view(-1)", "{a}.unsqueeze(0)", "{a}.diagonal()", "{a}.transpose(0, 1)[{i}]",
         "{a}[:, {i}]", "{a}[{i}][{i}:]", "{a}.view(-1)[::2]", "{a}.expand(2, 3, 3)", "{a}.detach()", "{a}.view(3, 3)[1:].t()",
         "torch.broadcast_tensors([{a}, {a}])[0]")
"""Of a tensor of 3 by 3, or a part of one."""
PARTS = ("torch.unsafe_chunk({a}, 3)", "torch.unsafe_chunk({a}, 3, 1)", "torch.unsafe_split({a}, 1)",
         "{a}.unsafe_split_with_sizes([1, 1, 1], 1)", "torch.unsafe_chunk({a}.t() * 2, 3)",
         "torch.unsafe_split(torch.exp({a}), 1, 1)", "torch.unsafe_chunk({a} * {b} + {v}.sum(), 3)",
         "{a}.chunk(3)", "(x - {a}).unbind(1)", "torch.tensor_split({a} + {b}, 3)")
"""Three parts of a tensor, in its memory; for gradients what an `unsafe_` operator gives is no part of anything."""
WRITES = ("{v}.mul_({n})", "{v}.add_({v})", "{v}.exp_()", "{v}.tanh_()", "{v}.relu_()", "{v}.zero_()", "{v}.fill_({n})", "{v}.copy_({s})",
          "{v}.mul_({s})", "{v}.add_({s}, alpha=2)", "{v}.sigmoid_()", "{v}.neg_()", "{v}.clamp_(-0.5, 0.5)", "{v}.sub_({s})",
          "{v}.masked_fill_({v} > 0, {n})", "{v}.pow_(2)", "{v}.div_({s} * {s} + 1)", "{v}.atan2_({s})", "{v}.lerp_({s} * 2, 0.5)")
MAKES = ("{a} * {b}", "torch.tanh({a})", "{a} + x", "{a} * y + {b}", "torch.sin({b})", "torch.relu({a} - {b})", "{a}.clone()")


SAME = ("{a}.to(x.dtype)", "{a}.to(torch.float64)", "{a}.double()", "{a}.contiguous()", "torch.dropout({a}, 0.5, False)",
        "{a}.type_as(y)", "{a}.view_as(x)", "torch.detach({a})")
"""What may give the very tensor back, or a view of it."""

CHANGES = ("l.append({a})", "l += [{a}]", "l = [{a}]", "l = l + [{a}]", "l[-1] = {a}", "l.insert(0, {a})")
"""Of the list `l`, which is never empty."""


def write_program(seed: int, most: int = 8, control: bool = False) -> str:
    """`def f(x, y)` of two tensors of 3 by 3; gives a tuple of 3 by 3 tensors and numbers. control: with branches, loops and a list of
    tensors, which it gives, too."""
    rng = random.Random(seed)
    wholes, lines = ["w0", "w1"], ["def f(x, y):", "    w0 = x * 1", "    w1 = y * x"]
    views: list[str] = []
    if control:
        lines.append("    l = [w1]")

    def filled(text: str) -> str:
        i = rng.randrange(3)
        return text.format(a=rng.choice(wholes), b=rng.choice(wholes), i=i, j=rng.randint(i, 3), n=rng.choice((0.5, -1.5, 2.0)),
                           v=rng.choice(views or wholes), s=f"{rng.choice([*wholes, 'x', 'y'])}[{i}, {rng.randrange(3)}]")

    def write() -> str:
        text = rng.choice(WRITES)
        return filled(text if rng.random() < 0.7 else text.replace("{v}", "{a}"))

    def within() -> list[str]:
        """A branch or a loop, with writes and new values of names in it."""
        inside = [write() if (kind := rng.random()) < 0.5 else rng.choice(CHANGES).format(a=rng.choice(wholes)) if kind < 0.7
                  else f"{rng.choice(wholes)} = {filled(rng.choice(MAKES))}" for _ in range(rng.randint(1, 4))]
        head = f"if bool({filled('{s}')} > 0):" if rng.random() < 0.6 else "for i in range(2):"
        return [f"    {head}", *[f"        {each}" for each in inside]]

    for count in range(rng.randint(3, most)):
        what = rng.random()
        if control and what < 0.2:
            lines += within() if what < 0.15 else [f"    l.append({rng.choice(wholes)})", f"    n{count} = l[{rng.choice((0, -1))}]"]
            wholes += [f"n{count}"] * (what >= 0.15)
        elif control and what < 0.3:
            lines.append(f"    m{count} = {filled(rng.choice(SAME))}")
            wholes.append(f"m{count}")
        elif what < 0.45 or not views:
            views.append(f"v{count}")
            lines.append(f"    v{count} = {filled(rng.choice(VIEWS))}")
        elif what < 0.55:
            names = [f"{letter}{count}" for letter in "pqr"]
            lines.append(f"    {', '.join(names)} = {filled(rng.choice(PARTS))}")
            views += names
        elif what < 0.8:
            lines.append(f"    {write()}")
        else:
            lines.append(f"    m{count} = {filled(rng.choice(MAKES))}")
            wholes.append(f"m{count}")
    results = [f"{each} * 1" for each in wholes] + [f"({each} * {each}).sum()" for each in views] + ["l"] * control
    return "\n".join([*lines, f"    return {', '.join(results)}", ""])
