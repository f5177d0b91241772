"""The kinds of cases. A round of a campaign is `share` cases of each."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from fuzz import archives, calls, changed, gradients, laws, modules, orders, passes, pipelines, programs, texts
from fuzz.case import Case
from fuzz.judge import Check, Finding, attempt
from fuzz.reduction import Smaller, reduced


@dataclass(frozen=True)
class Kind:
    """How cases of a kind are drawn from a seed, checked within `limit` seconds, and made smaller."""

    name: str
    share: int
    limit: float
    draw: Callable[[int], Case]
    check: Check
    smaller: Smaller

    def attempt(self, case: Case, tally: Counter[str]) -> Finding | None:
        """Check a case under the time limit."""
        return attempt(self.check, case, tally, self.limit)

    def reduced(self, case: Case, finding: Finding, seconds: float) -> tuple[Case, Finding]:
        """The smallest case with the same symptom that `seconds` suffice for."""
        return reduced(self.check, self.smaller, case, finding, seconds, self.limit)


KINDS = (
    Kind("programs", 4, 30, programs.draw, programs.check, programs.smaller),
    Kind("calls", 10, 10, calls.draw, calls.check, calls.smaller),
    Kind("changed", 10, 10, changed.draw, changed.check, changed.smaller),
    Kind("gradients", 1, 120, gradients.draw, gradients.check, gradients.smaller),
    Kind("laws", 1, 40, laws.draw, laws.check, laws.smaller),
    Kind("orders", 1, 60, orders.draw, orders.check, orders.smaller),
    Kind("passes", 1, 60, passes.draw, passes.check, passes.smaller),
    Kind("pipelines", 1, 40, pipelines.draw, pipelines.check, pipelines.smaller),
    Kind("texts", 40, 10, texts.draw, texts.check, texts.smaller),
    Kind("archives", 4, 20, archives.draw, archives.check, archives.smaller),
    Kind("modules", 40, 5, modules.draw, modules.check, modules.smaller),
)


def warm() -> None:
    """Load what cases need before processes are forked for them. Nothing here starts a thread."""
    import numpy as np

    import irtool

    texts.corpus()
    module = irtool.from_script("def f(x: Tensor):\n    return torch.tanh(x) * x\n", "f")
    values = [np.ones(2)]
    irtool.compile(module, native=False).run(values)
    irtool.vjp(module, values, values, [0])
    irtool.PassManager("propagate-shapes,O1,differentiate,specialize-undef").run(module)
    irtool.jit(irtool.vmap(irtool.grad(lambda x: (x * x).sum())))(np.ones((2, 3)))


BY_NAME = {kind.name: kind for kind in KINDS}
