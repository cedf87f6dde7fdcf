"""When to stop: as soon as a share is known to be large enough, or known not to be.

Two sequential probability ratio tests (A. Wald, Annals of Mathematical Statistics 16, 1945) look at runs one by one. To
know that at least a share t is true, the first bets that only a tenth of 1 − t fails; to refute it, the second bets on
three times 1 − t. Each multiplies its stake by the ratio of the likelihoods of what it bet on and of t, and speaks when
the stake has grown 20 times. Whatever the true share: if it is below t, the stake of the first is a supermartingale, so
by Ville's inequality it ever grows 20 times in at most one sweep of 20, however often somebody looks; and likewise the
second if the share is t or more. So each answer is wrong with a probability of 5 % at most. Without a failure 99 % is
known after 332 runs; looking once, after a number of runs fixed in advance, needs 299.
"""

from dataclasses import dataclass, field
from math import log

ERROR = 0.05
BETTER, WORSE = 0.1, 3.0  # what the tests bet on, as multiples of 1 − t


@dataclass(slots=True)
class Until:
    """`target` is the share of true verdicts that is asked about, above 0.5 and below 1.

    `add` takes runs in the order of their seeds, whichever ends first: a failing run may last longer than others.
    """

    target: float
    known: bool | None = None  # True: at least the target; False: less; None: not known yet
    runs: int = 0
    _stakes: list[float] = field(default_factory=lambda: [0.0, 0.0])  # as logarithms

    def __post_init__(self) -> None:
        if not 0.5 < self.target < 1:
            said = f"--until must be a share above 50% and below 100%, such as 99% (got {100 * self.target:g}%)"
            raise ValueError(said)

    def add(self, verdict: str) -> bool | None:
        """One more run. An unknown one counts against the claim in the one test, and not against it in the other."""
        if self.known is not None:
            return self.known
        self.runs += 1
        fails = 1 - self.target
        for index, (bet, failed) in enumerate(
            ((fails * BETTER, verdict != "true"), (min(fails * WORSE, 0.9), verdict == "false"))
        ):
            self._stakes[index] += log(bet / fails) if failed else log((1 - bet) / self.target)
        if self._stakes[0] >= -log(ERROR):
            self.known = True
        elif self._stakes[1] >= -log(ERROR):
            self.known = False
        return self.known

    def describe(self) -> str:
        """The knowledge so far, for people."""
        share = f"{100 * self.target:g} %"
        if self.known is None:
            return f"not known after {self.runs} runs whether it is true on {share} of all seeds"
        least = f"on at least {share} of all seeds" if self.known else f"on less than {share} of all seeds"
        return f"true {least} (known after {self.runs} runs, error at most {100 * ERROR:g} %)"


def parse_share(text: str) -> float:
    """99% or 0.99. ValueError with an example."""
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(f"--until must be a share such as 99% (got {text!r})") from None
