"""Random programs in which tensors are written into, through views of them too, as TorchScript source."""
from __future__ import annotations

import random

VIEWS = ("{a}[{i}]", "{a}[{i}:{j}]", "{a}.t()", "{a}.view(-1)", "{a}.unsqueeze(0)", "{a}.diagonal()", "{a}.transpose(0, 1)[{i}]",
         "{a}[:, {i}]", "{a}[{i}][{i}:]", "{a}.view(-1)[::2]", "{a}.expand(2, 3, 3)", "{a}.detach()", "{a}.view(3, 3)[1:].t()")
"""Of a tensor of 3 by 3, or a part of one."""
WRITES = ("{v}.mul_({n})", "{v}.add_({v})", "{v}.exp_()", "{v}.tanh_()", "{v}.relu_()", "{v}.zero_()", "{v}.fill_({n})", "{v}.copy_({s})",
          "{v}.mul_({s})", "{v}.add_({s}, alpha=2)", "{v}.sigmoid_()", "{v}.neg_()", "{v}.clamp_(-0.5, 0.5)", "{v}.sub_({s})",
          "{v}.masked_fill_({v} > 0, {n})", "{v}.pow_(2)", "{v}.div_({s} * {s} + 1)", "{v}.atan2_({s})", "{v}.lerp_({s} * 2, 0.5)")
MAKES = ("{a} * {b}", "torch.tanh({a})", "{a} + x", "{a} * y + {b}", "torch.sin({b})", "torch.relu({a} - {b})", "{a}.clone()")


def write_program(seed: int, most: int = 8) -> str:
    """`def f(x, y)` of two tensors of 3 by 3; gives a tuple of 3 by 3 tensors and numbers."""
    rng = random.Random(seed)
    wholes, lines = ["w0", "w1"], ["def f(x, y):", "    w0 = x * 1", "    w1 = y * x"]
    views: list[str] = []

    def filled(text: str) -> str:
        i = rng.randrange(3)
        return text.format(a=rng.choice(wholes), b=rng.choice(wholes), i=i, j=rng.randint(i, 3), n=rng.choice((0.5, -1.5, 2.0)),
                           v=rng.choice(views or wholes), s=f"{rng.choice([*wholes, 'x', 'y'])}[{i}, {rng.randrange(3)}]")

    for count in range(rng.randint(3, most)):
        what = rng.random()
        if what < 0.3 or not views:
            views.append(f"v{count}")
            lines.append(f"    v{count} = {filled(rng.choice(VIEWS))}")
        elif what < 0.75:
            write = rng.choice(WRITES)
            lines.append(f"    {filled(write if rng.random() < 0.7 else write.replace('{v}', '{a}'))}")
        else:
            lines.append(f"    m{count} = {filled(rng.choice(MAKES))}")
            wholes.append(f"m{count}")
    results = [f"{each} * 1" for each in wholes] + [f"({each} * {each}).sum()" for each in views]
    return "\n".join([*lines, f"    return {', '.join(results)}", ""])
