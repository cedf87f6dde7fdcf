"""An answer: a transport with its switches, and what it asks of NICs and switches."""

from dataclasses import dataclass

from common.door import added, of_packages, thing

GROUP = "mrclab.answers"
"""Entry points of packages: `NAME = "MODULE:ANSWER"`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`predicted` names the predictions that hold for this answer; "" for an opponent without any.

    `switches` and `nics` say in words what the answer takes that plain forwarding does not. `state` is what a NIC keeps
    per queue pair for choosing paths and windows.
    """

    name: str
    title: str
    transport: str
    predicted: str
    switches: tuple[str, ...]
    nics: tuple[str, ...]
    state: str
    single_plane: bool = False


def answers() -> dict[str, Answer]:
    """All answers by name, the reference first. ValueError for two of one name."""
    found: list[Answer] = [thing(place) for place in {**of_packages(GROUP), **added(GROUP)}.values()]
    return {answer.name: answer for answer in sorted(found, key=lambda answer: answer.name != "mrc")}
