"""The options of a run: one table, from which the parser, the defaults, a run's key and its first line follow.

`Choices` are what a user decided by them, printed first and stored with the run.
"""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from common.seeds import check_seed
from running import fault_words
from running.transport_choice import TRANSPORTS, TransportChoice
from scenarios import TimedFault
from topo import Plan
from topo.summaries import SET

WORLDS = ("emulated", "simulated")
TIME_MAX = 100
SECONDS_MAX = 1_000_000
"""The longest time of an option in seconds, over eleven days. The system calls that wait take no more than 24 days."""
RECONVERGENCE_MAX_S = 60
RECONVERGENCE_S = 0.1
"""As deployed: in a Clos of eBGP a switch sees in milliseconds that its link is down, and all others have taken the
withdrawal in well under a second (RFC 7938, section 7)."""
AS_DEPLOYED_S = -1.0
NEVER = "never"
"""In words, a reconvergence that does not come (None)."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Values for everything that a user can choose; what is left out takes the usual value.

    ValueError for values that no run can have, in the words of the command line.
    """

    transport: TransportChoice
    plan: Plan
    seed: int
    world: str = WORLDS[0]
    time_factor: float = 1.0  # of every phase's length, and so of every instant of the timeline
    short: bool = False  # the scenario's short phases
    record_packets_s: tuple[float, float] | None = None  # lab time in which packets are recorded, in virtual time
    until_s: float | None = None  # lab time at which the run is broken off, in virtual time
    reconvergence_s: float | None = AS_DEPLOYED_S  # baseline: until no switch routes over a dead link; None: never
    overrides: Mapping[str, str] = field(default_factory=dict)
    setting_changes: Mapping[str, Any] = field(default_factory=dict)  # the transport's, as --setting gave them
    added_faults: tuple[TimedFault, ...] = ()  # beside the scenario's own, at the usual lengths of its phases
    calibration: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""  # what the user called the scenario: a name or the path of a file; "" for one made in code
    plan_source: str = ""  # the same for the plan

    def __post_init__(self) -> None:
        check_seed(self.seed)
        if self.world not in WORLDS:
            raise ValueError(f"--world must be one of {', '.join(WORLDS)} (got {self.world!r})")
        if not 0 < self.time_factor <= TIME_MAX:
            raise ValueError(f"--time must be a factor above 0 and up to {TIME_MAX} (got {self.time_factor:.15g})")
        virtual, until = self.world == "simulated", self.until_s
        if self.transport.counted and not virtual:
            raise ValueError("--payload counted: only with --world simulated; real links carry every byte")
        if until is not None and not virtual:
            raise ValueError("--until: only with --world simulated; end a run on real links with Ctrl-C")
        if until is not None and not 0 < until <= SECONDS_MAX:
            raise ValueError(f"--until must be above 0 and at most {SECONDS_MAX} s (got {until:.15g})")
        if self.transport.virtual_only and not virtual:
            raise ValueError(f"--transport {self.transport.name}: only with --world simulated, for its switches")
        self.transport.check_algorithms()
        most, single = RECONVERGENCE_MAX_S, self.transport.routed
        if self.reconvergence_s == AS_DEPLOYED_S:
            object.__setattr__(self, "reconvergence_s", RECONVERGENCE_S if single else None)
        if self.reconvergence_s is not None and not (single and 0 <= self.reconvergence_s <= most):
            raise ValueError(
                f"--reconvergence: 0 to {most} s, and only with a transport that has routing: MRC's tables never change"
            )

    @property
    def running_plan(self) -> Plan:
        """The plan that is built: for the baseline, the single-plane equivalent."""
        return self.transport.fabric(self.plan)

    @property
    def never_rerouted(self) -> bool:
        """Whether this is a baseline whose switches keep to their tables, as MRC's always do."""
        return self.transport.routed and self.reconvergence_s is None

    @property
    def pace(self) -> float:
        """Seconds of the run to a second of lab time: every length keeps its number of round trips."""
        return self.plan.pace


__all__ = ["DEFAULTS", "NEVER", "OPTIONS", "heading"]

FOLLOWING = ("settings", "queue_pairs", "single_plane", "priority_flow_control", "pace", "phases", "version", "hashes")
"""Of a run's options, those in its key that follow from the choices, the plan, the scenario or the code."""
IF_CHOSEN = ("program", "program_hosts")
"""Those that most runs do not have."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of `./lab run`. `stored` names what it decides among a run's options, "" for nothing there.

    `decides`: the run's key has that value; others follow from values that it has. The first line of a run has it:
    always, never, or where it is not `usual`. `words` are argparse's.
    """

    name: str
    stored: str
    words: Mapping[str, Any]
    decides: bool
    told: bool | None  # None: where it is not as usual
    usual: Any

    def add(self, parser: argparse.ArgumentParser, **other: Any) -> None:
        """Add the option to a command, perhaps with `other` words than those of `./lab run`."""
        words = {**self.words, **other}
        flag = f"--{self.name.replace('_', '-')}"
        if self.name == "scenario":
            flag = words.pop("name", self.name)
            del words["default"]
        parser.add_argument(flag, **words)

    def add_several(self, parser: argparse.ArgumentParser, **other: Any) -> None:
        """Add the option to a command that takes several values of it, with commas between them."""
        usual = {"metavar": f"{self.words['metavar']},…", "help": f"{self.words['help']}; several with commas"}
        self.add(parser, **{**usual, **other})


def _row(
    name: str,
    stored: str,
    help: str,
    default: Any = None,
    *,
    decides: bool = False,
    told: bool | None = None,
    usual: Any = None,
    **words: Any,
) -> Option:
    usual = default if usual is None else usual
    return Option(name, stored, {"help": help, "default": default, **words}, decides, told, usual)


def _seconds_or_never(text: str) -> float | None:
    with suppress(ValueError):
        if text == NEVER or float(text) >= 0:
            return None if text == NEVER else float(text)
    raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 on, or {NEVER!r} (got {text!r})")


def _table() -> Iterator[Option]:
    flag: Mapping[str, Any] = {"default": False, "action": "store_true"}
    yield _row(
        "scenario", "scenario", "a name from 'list', a .py file of your own, or workloads: FILE.cm or FILE.goal[,FILE…]"
        "[@PLACEMENT]", decides=True, told=True,
    )  # fmt: skip
    text = "another plan than the scenario's: a name, a .toml file, or a .topo file of htsim"
    yield _row("plan", "plan", text, told=True, metavar="PLAN")
    text = f"one of {', '.join(TRANSPORTS)} (mrc); two, with a comma, race on a page"
    yield _row("transport", "transport", text, "mrc", decides=True, told=True, metavar="NAME")
    worlds, text = ("emulated", "simulated"), "Mininet, or virtual time without root"
    yield _row("world", "world", text, worlds[0], decides=True, told=True, choices=worlds)
    text = "repeat a run's random choices (a new seed each time)"
    yield _row("seed", "seed", text, decides=True, told=True, type=int)
    text = "rate of a NIC port; without it calibrated, or the plan's (virtual time)"
    yield _row("rate", "port_rate_bps", text, decides=True, told=True, type=float, metavar="MBPS")
    yield _row("calibrate", "", "measure this machine again first", **flag)
    text = "counted: frames carry no payload, and only its place is checked (virtual time)"
    yield _row("payload", "payload", text, "real", decides=True, choices=("real", "counted"))
    yield _row("short", "short", "the shortest phases that still give a verdict: under 30 s", **flag)
    text = "stretch or shorten every phase (1)"
    yield _row("time", "time_factor", text, 1.0, decides=True, type=float, metavar="FACTOR")
    text = "stop then, without a verdict (virtual time, at lab rates)"
    yield _row("until", "until_s", text, decides=True, type=float, metavar="SECONDS")
    text = "log every packet between these seconds of the run (virtual time, at lab rates): packets.jsonl"
    yield _row("record_packets", "record_packets_s", text, metavar="START..END")
    text = f"RoCE: no switch routes over a dead link this long after it fails ({RECONVERGENCE_S}), or never"
    many: Mapping[str, Any] = {"type": _seconds_or_never, "metavar": "SECONDS"}
    yield _row("reconvergence", "reconvergence_s", text, AS_DEPLOYED_S, usual=RECONVERGENCE_S, decides=True, **many)
    many = {"default": [], "action": "append"}
    text = "a setting of the transport (selection=…)"
    yield _row("setting", "setting_changes", text, usual={}, metavar="NAME=VALUE", **many)
    yield _row("set", "overrides", SET, usual={}, metavar="KEY=VALUE", **many)
    text = f"add a fault: '{fault_words.EXAMPLE}' (seconds into phase faults; in PHASE); repeatable"
    yield _row("fault", "added_faults", text, decides=True, metavar="WORDS", **many)
    text = "a command in hosts in place of the scenario's traffic: 'ib_write_bw -D 20 {server}' (docs/libmrc.md)"
    yield _row("program", "program", text, told=False, metavar="COMMAND")
    text = "hosts of --program, rank 0 first: h0..h3,h6 (first and last)"
    yield _row("ranks", "program_hosts", text, told=False, metavar="HOSTS")
    yield _row("processes", "", "processes that share a run in virtual time (1)", 1, type=int, metavar="N")


OPTIONS: Mapping[str, Option] = {option.name: option for option in _table()}
DEFAULTS: Mapping[str, Any] = {option.name: option.words["default"] for option in OPTIONS.values()}
"""The value of each option that the user leaves out."""
DECIDING = (*(option.stored for option in OPTIONS.values() if option.decides), *FOLLOWING)
"""The names of a run's options that are always in its key. Options of a machine are left out."""


def heading(options: Mapping[str, Any]) -> str:
    """The first line of a run: the choices that repeat it, without those that are as usual."""
    chosen: list[str] = []
    for option in OPTIONS.values():
        value = options.get(option.stored, option.usual)
        if not option.stored or option.told is False or (option.told is None and value in (None, option.usual)):
            continue
        if isinstance(value, Mapping):
            chosen += [f"{option.stored}.{name}={entry}" for name, entry in value.items()]
        elif option.stored in options:
            chosen.append(f"{option.stored}={value}")
    return "  ".join(chosen)
