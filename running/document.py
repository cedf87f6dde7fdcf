"""A run as JSON, so that other processes and machines can make it: everything that `RunSpec` has.

A scenario that has a name or a file is named. One that was made in code is written out, if it is data.
"""

from dataclasses import dataclass
from typing import Any

from common.fields import document, read
from running.options import Choices
from running.spec import RunSpec, scenario_of
from scenarios import Command, PlainScenario

__all__ = ["spec_of", "written"]


class RunDocumentError(ValueError):
    """A document that describes no run; the message names the key, the rule and the choices."""


@dataclass(frozen=True, slots=True)
class _Document:
    """`scenario` is written out where `choices` name none; `command` takes the place of a named one's traffic."""

    choices: Choices
    scenario: PlainScenario | None = None
    command: Command | None = None


def written(spec: RunSpec) -> dict[str, Any]:
    """The document of a run; `spec_of` is the inverse. ValueError for a scenario that has no name and is no data."""
    scenario, named = spec.scenario, bool(spec.choices.source)
    if not named and scenario.plain is None:
        raise ValueError(f"the scenario {scenario.name} was made in code and is no data: it can be sent by name only")
    encoded: dict[str, Any] = document(
        _Document(spec.choices, None if named else scenario.plain, scenario.command if named else None)
    )
    return encoded


def spec_of(values: object) -> RunSpec:
    """The run of a document. Runs the scenario file that it names. RunDocumentError says what is wrong with it."""
    whole = read(_Document, values, RunDocumentError)
    choices, own = whole.choices, whole.scenario
    if (own is None) == (not choices.source):
        raise RunDocumentError("choices.source must name a scenario, or scenario must be one, and not both")
    if own is not None:
        return RunSpec(own.scenario(choices.plan.name), choices)
    return RunSpec(scenario_of(choices.source, choices.short, whole.command), choices)
