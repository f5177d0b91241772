"""The kinds of cases. A round of a campaign is `share` cases of each."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from fuzz import gradients, laws, pipelines, programs
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
    Kind("gradients", 1, 30, gradients.draw, gradients.check, gradients.smaller),
    Kind("laws", 1, 40, laws.draw, laws.check, laws.smaller),
    Kind("pipelines", 1, 40, pipelines.draw, pipelines.check, pipelines.smaller),
)
BY_NAME = {kind.name: kind for kind in KINDS}
