"""An incident under way: commands, the lab time that they take, and the answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from common import files
from common.fields import Fields
from common.journal import Journal
from common.outcome import error_line
from common.terminal import source_names
from common.terminal.choices import no_such
from operations.incident.draw import CALLED_S, Incident, described
from operations.incident.kind import NONE, AnswerError, check_answer, kinds_of
from operations.incident.live_incident import LiveIncident
from operations.incident.score import Named, Score, score
from operations.incident.simulated import SimulatedIncident
from operations.incident.tools import TOOLS
from operations.incident.words import ARGUMENTS, spelled
from running import RunDirectory
from topo.graph import links

SCENARIO = "incident"
ANSWER = "answer.json"
World = Literal["simulated", "emulated"]


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """One command: its words, and the lab time at which its answer was given."""

    words: str
    at_s: float


@dataclass
class IncidentSession:
    """The lab of an incident, run up to the moment at which the operator is called.

    `do` carries commands out, `answer` ends the incident. Nothing of `incident` is in any file before that.
    """

    incident: Incident
    directory: RunDirectory
    called_s: float = CALLED_S
    world: World = "simulated"
    asked: list[AskedCommand] = field(default_factory=list)
    over: bool = False

    def __post_init__(self) -> None:
        self.directory.write_plan(self.incident.plan)
        self.directory.write_options(self.options())
        self.live: LiveIncident
        if self.world == "simulated":
            self.live = SimulatedIncident(self.incident, self.directory)
        else:
            from operations.incident.emulated import EmulatedIncident

            self.live = EmulatedIncident(self.incident, self.directory)
        try:
            self.live.pass_time(self.called_s - self.live.now_s)
        except BaseException:
            self.live.close()
            raise
        self.called_s = self.live.now_s

    def options(self) -> dict[str, Any]:
        """The options that a page shows of the run: nothing that is hidden, and no seed before the end."""
        plan = self.incident.plan
        return {
            "scenario": SCENARIO,
            "transport": "mrc",
            "plan": plan.name,
            "world": self.world,
            "level": self.incident.level,
            "port_rate_bps": plan.links.host_rate_bps,
            "base_rtt_ns": plan.base_rtt_ns,
            "single_plane": False,
            "priority_flow_control": False,
            "pace": 1.0,
            **({source_names.KEY: dict(plan.names)} if plan.names else {}),
            **({"seed": self.incident.seed, "truth": described(self.incident)} if self.over else {}),
        }

    @property
    def used_s(self) -> float:
        """Lab time since the operator was called."""
        return round(self.live.now_s - self.called_s, 3)

    def status(self) -> dict[str, Any]:
        """The facts that an operator knows beforehand, and the time and commands used."""
        plan = self.incident.plan
        return {
            "level": self.incident.level,
            "world": self.world,
            "plan": plan.name,
            "hosts": plan.host_count,
            "switches": plan.switch_count,
            "cables": sum(1 for _ in links(plan)),
            "load": [f"{workload.name}: {workload.kind}" for workload in self.incident.workloads],
            "tickets": self.incident.tickets,
            "allowed_loss_percent": 0.2,
            "lab_s": self.used_s,
            "commands": len(self.asked),
        }

    def do(self, tool: str, arguments: Mapping[str, Any], words: str = "") -> dict[str, Any]:
        """The answer of a tool. ValueError for arguments that cannot be; such a command counts for nothing."""
        if tool not in TOOLS:
            raise ValueError(no_such("tool", tool, TOOLS))
        result = TOOLS[tool](self.live, Fields("", arguments, ValueError, ARGUMENTS[tool]))
        self.asked.append(AskedCommand(words or spelled(tool, arguments), self.used_s))
        return result

    def parsed(self, named: Sequence[str]) -> list[Named]:
        """An answer from its words: `none`, or pairs of component and kind. AnswerError says what is wrong."""
        level = self.incident.level
        if list(named) == [NONE]:
            return []
        if not named or len(named) % 2:
            raise AnswerError(
                "an answer must be COMPONENT KIND, several such pairs, or `none`"
                f" (got {' '.join(named) or 'nothing'}); kinds are {', '.join(kind.name for kind in kinds_of(level))}"
            )
        pairs = [check_answer(self.incident.plan, named[n], named[n + 1], level) for n in range(0, len(named), 2)]
        if len(set(pairs)) < len(pairs):
            raise AnswerError(f"an answer must name each fault once (got {' '.join(named)})")
        return pairs

    def answer(self, named: Sequence[Named], because: str = "") -> tuple[Score, dict[str, Any]]:
        """End the incident: the score, and everything that its page says."""
        result = score(self.incident.plan, self.incident.hidden, named)
        document = {
            "verdict": result.word,
            "points": round(result.points, 3),
            "net": round(result.net, 3),
            "answer": [{"component": component, "kind": kind} for component, kind in named],
            "because": because,
            "truth": described(self.incident),
            "matched": [
                {"component": component, "kind": kind, "points": worth, "answer": " ".join(answered or ())}
                for (component, kind), worth, answered in result.matched
            ],
            "extra": [{"component": component, "kind": kind} for component, kind in result.extra],
            "oddities": [{"kind": odd.kind, "component": odd.component} for odd in self.incident.oddities],
            "level": self.incident.level,
            "seed": self.incident.seed,
            "called_s": round(self.called_s, 3),
            "lab_s": self.used_s,
            "commands": len(self.asked),
            "asked": [asdict(command) for command in self.asked],
        }
        return result, document

    def keep(self, document: Mapping[str, Any]) -> None:
        """Write the answer and the truth. OSError when they cannot be written: the answer counts for nothing then, and
        may be given again."""
        files.write(self.directory.path / ANSWER, json.dumps(document, indent=1) + "\n")

    def close(self) -> list[str]:
        """Take the lab down, and write down what was hidden. Returns what could not be done, with the reason.

        The incident is over in any case; a second call does nothing.
        """
        if self.over:
            return []
        self.over = True
        begin_ns, end_ns = self.live.begin_ns, self.live.now_ns()
        return failures(
            self.live.close,
            lambda: self.directory.write_options(self.options()),
            lambda: self._journal(begin_ns, end_ns),
        )

    def _journal(self, begin_ns: int, end_ns: int) -> None:
        """The lines of a replay beside those that devices have written: the faults, and the commands."""
        journal = Journal(self.directory.journal("runner"), "runner", lambda: end_ns)
        journal.write_process("runner", pid=0, realtime_ns=0)
        journal.write("phase", t_ns=begin_ns, name="faults", state="start")
        for t_ns, line in self.live.told:
            journal.write("fault", t_ns=t_ns, **line)
        for command in self.asked:
            journal.write("asked", t_ns=begin_ns + round((self.called_s + command.at_s) * 1e9), words=command.words)
        journal.write("phase", t_ns=end_ns, name="faults", state="stop")
        journal.close()


def failures(*steps: Callable[[], object]) -> list[str]:
    """Carry out each step, whichever fail; the reasons of those that failed, such as a full disk."""
    reasons = []
    for step in steps:
        try:
            step()
        except Exception as error:  # the next step does not need this one
            reasons.append(error_line(error))
    return reasons
