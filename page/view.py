"""The subject of a view: a plan, recorded runs, or a run that goes on; as the document that the page starts from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from common import plain_file
from common.outcome import error_line
from page.scene import all_refusals, scene, verbs
from running import directory
from topo import Plan, PlanError, load_plan
from topo.planfile import shipped_plans

Mode = Literal["plan", "replay", "live"]


@dataclass(frozen=True, slots=True)
class View:
    """One lane a fabric. `runs` are the folders of the lanes' journals, None where nothing is journalled."""

    title: str
    words: str
    mode: Mode
    plans: tuple[Plan, ...]
    runs: tuple[Path | None, ...]
    options: tuple[Mapping[str, Any], ...]
    titles: tuple[str, ...]
    virtual: bool = field(default=False)

    def document(self) -> dict[str, Any]:
        """`scene.json`."""
        return {
            "title": self.title,
            "words": self.words,
            "mode": self.mode,
            "virtual": self.virtual,
            "verbs": verbs(),
            "lanes": [
                {"title": title, "scene": scene(plan, options), "refusals": all_refusals(plan)}
                for title, plan, options in zip(self.titles, self.plans, self.options, strict=True)
            ],
        }


def what_is(root: Path, name: str) -> Path | Plan:
    """A run's folder, or else a plan, by what a person calls it; FileNotFoundError names what there is of both."""
    if name in shipped_plans() or name.endswith(".toml"):
        return load_plan(name)
    try:
        return directory.find(root, name)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; plans are {', '.join(shipped_plans())}, or a .toml file") from None


def plan_view(plan: Plan) -> View:
    """A fabric without time."""
    words = f"{plan.topology.describe()}; nothing runs: a plan"
    return View(f"plan {plan.name}", words, "plan", (plan,), (None,), ({},), (f"plan {plan.name}",))


def replay_view(runs: Sequence[Path]) -> View:
    """Recorded runs, from their folders. ValueError when a folder lacks its plan."""
    options = [plain_file.read_object(run / "options.json") for run in runs]
    plans = [running_plan(run, own) for run, own in zip(runs, options, strict=True)]
    titles = [title(own) for own in options]
    what = " against ".join(titles)
    words = " · ".join(f"{run.parent.name}/{run.name}" for run in runs)
    return View(what, f"replay of {words}", "replay", tuple(plans), tuple(runs), tuple(options), tuple(titles))


def title(options: Mapping[str, Any]) -> str:
    return f"{options.get('scenario', 'run')}, {options.get('transport', '')}, seed {options.get('seed', '?')}"


def running_plan(run: Path, options: Mapping[str, Any]) -> Plan:
    """The plan that was built: the baseline's is the single-plane equivalent of the run's own."""
    try:
        plan = directory.RunDirectory(run).plan()
    except (OSError, PlanError) as error:
        raise ValueError(f"{run} has no plan to be drawn from: {error_line(error)}") from None
    built = plan.single_plane() if options.get("single_plane") else plan
    return built.with_pfc() if options.get("priority_flow_control") else built
