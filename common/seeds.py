"""Seeds: from the one number of a run to the start of each generator that draws for it.

Every draw of the product begins here, so that this list says what chance decides, and from which number.
"""

from enum import Enum, auto

__all__ = ["SEED_MAX", "Purpose", "check_seed", "derive"]


class Purpose(Enum):
    """A thing that is drawn. Each member says what its generator decides."""

    TIMELINE = auto()  # a scenario's faults: when, where, for how long
    ADDED_FAULT = auto()  # the losses of a fault of `--fault`
    SWITCHES = auto()  # one seed for each switch's engine: losses, ECN marks, spraying
    HOST = auto()  # a NIC's choices: first PSN, paths; for the name of the host
    CONTENTS = auto()  # the bytes that messages carry
    VECTORS = auto()  # the integers that a collective adds up
    MIX = auto()  # the sizes of a mix of messages
    COMPUTE = auto()  # how long a training step computes; for a rank
    MODEL = auto()  # the first weights of the training example
    PICTURES = auto()  # its data
    BATCHES = auto()  # the order in which it sees them
    HUNT = auto()  # the seeds of a hunt's tries
    HUNTED_CASE = auto()  # the fabric, load and faults of one try
    HUNTED_TOPOLOGY = auto()  # whether that fabric has another topology than two even tiers
    HUNTED_FAULT = auto()  # whether that try has a fault of a verb that hunts learned later
    FIGURE = auto()  # the links that a figure of the paper breaks
    PLACEMENT = auto()  # the hosts of the jobs of workload files
    PATTERN = auto()  # a permutation that is written as a connection matrix
    INCIDENT = auto()  # the hidden faults, oddities and load of an incident
    SURVEY = auto()  # the seeds of incidents that programs go through
    BACKGROUND = auto()  # the faults beside a rehearsed change
    LESSON = auto()  # the fabric and the questions of a lab of the course; for what is drawn
    CHECK = auto()  # what one test of the course draws; for the name of the draw
    PART = auto()  # the seeds of the parts of a large job; for the part's title
    DEVICE = auto()  # what a tester sends to a device; for the name of the draw


_TEXTS = {
    Purpose.HOST: "{seed} {name}",
    Purpose.CONTENTS: "contents {seed}",
    Purpose.MIX: "mix {seed}",
    Purpose.COMPUTE: "compute {seed} {name}",
    Purpose.HUNT: "hunt of {seed}",
    Purpose.PLACEMENT: "placement {seed}",
    Purpose.PATTERN: "permutation {seed}",
    Purpose.HUNTED_CASE: "hunt {seed}",
    Purpose.HUNTED_TOPOLOGY: "hunted topology {seed}",
    Purpose.HUNTED_FAULT: "hunted fault {seed}",
    Purpose.INCIDENT: "incident {seed}",
    Purpose.BACKGROUND: "background {seed}",
    Purpose.LESSON: "{name} {seed}",
    Purpose.CHECK: "course {seed} {name}",
    Purpose.PART: "part {seed} {name}",
    Purpose.DEVICE: "device {seed} {name}",
}
FAULT_SEEDS = 1 << 32
SEED_MAX = (1 << 63) - 1
"""Of `--seed`, wherever it is an option: a signed integer of 64 bits."""


def check_seed(seed: int) -> None:
    """ValueError for a `--seed` out of its range."""
    if not 0 <= seed <= SEED_MAX:
        raise ValueError(f"--seed must be between 0 and {SEED_MAX} (got {seed})")


def derive(seed: int, purpose: Purpose, name: object = "") -> int | str:
    """The start of the generator for a purpose, as `random.Random` takes it; an integer where there is no text.

    `name` is that of the host, rank or draw for which HOST, COMPUTE, LESSON and CHECK draw. Seeds without a text of
    their own begin the same stream: numbers of two such purposes are equal, and each draws them for something else.
    """
    if purpose is Purpose.ADDED_FAULT:
        return seed % FAULT_SEEDS
    text = _TEXTS.get(purpose)
    return seed if text is None else text.format(seed=seed, name=name)
