"""Wrong solutions of lab 9, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

LOSS = 'yield f"answer {node(name)}>{node(far)} one-way-loss"'
BOUND = 'if lost >= max(10, 0.02 * row["TX_OK"]):'
WATCH = 'counts = yield "counters --watch 10"'
LACKS = 'yield f"answer {node(name)} missing-entry"'
BOTH = 'if ports[port["peer"]]["state"] == "down":'

MUTANTS = (
    Mutant("every dark port is a dead cable", instead(BOTH, "if True:"), "the kind is wrong|the NIC's port|reports its port down"),
    Mutant("every dark port is a NIC's", instead(BOTH, "if False:"), "something was missed|both nodes report|Both nodes report|the kind is wrong"),
    Mutant("NIC ports from one", instead("port['port'] - 1", "port['port']"), "the nic port is not|component must be|both nodes report|Both nodes report|kind is wrong"),
    Mutant("the other direction", instead(LOSS, 'yield f"answer {node(far)}>{node(name)} one-way-loss"'), "the direction is not"),
    Mutant("compares a port with itself", instead('rows[far]["RX_OK"]', 'row["RX_OK"]'), "the direction is not|no fault|another place|kind is wrong"),
    Mutant("every packet under way is lost", instead(BOUND, "if lost > 0:"), "no fault|the direction is not|another place|kind is wrong"),
    Mutant("never looks at counters", instead(WATCH, 'yield "answer none"'), "something was missed"),
    Mutant("watches for a minute", instead("--watch 10", "--watch 60"), "no answer within"),
    Mutant("blames the neighbour", instead(LACKS, LACKS.replace("node(name)", "node(ports[name]['peer'])")), "the switch is not|component of missing-entry must be"),
    Mutant("drops are no sign", instead('row["DROPS"].get("unknown_usid", 0) > 0', "False"), "something was missed"),
    Mutant("something is always wrong", instead('    yield "answer none"', '    yield "answer p0l0 missing-entry"'), "no fault|nothing is wrong"),
    Mutant("asks every node", instead(WATCH, WATCH + "\n    for one in lab[\"switches\"] + lab[\"hosts\"]:\n        yield f\"inspect {one}\""), "answer for all|asks all of them at once"),
    Mutant("a kind that there is not", instead("one-way-loss", "loss"), "no kind 'loss'"),
)  # fmt: skip

CHEATS = (
    Mutant("asks the truth", whole("from operations.incident.draw import draw\ndef find(lab):\n    yield 'answer none'\n"), "can't be imported"),
    Mutant("a constant", whole("def find(lab):\n    yield 'answer h0-p0l0 dead-cable'\n"), "truth is"),
    Mutant("names everything", whole("def find(lab):\n    yield 'answer ' + ' '.join(f'{one} dead-cable' for one in lab['cables'][:6])\n"), "were named|truth is"),
    Mutant("asks for ever", whole("def find(lab):\n    while True:\n        yield 'inspect h0'\n"), "no answer within"),
    Mutant("asks nothing and gives nothing", whole("def find(lab):\n    return 'answer none'\n"), "must yield commands"),
    Mutant("a command of the shell", whole("def find(lab):\n    yield 'inspect; cat /etc/passwd'\n"), "no command and no answer"),
    Mutant("a text that agrees with everything", whole("class Any(str):\n    def __eq__(self, other):\n        return True\n    __hash__ = str.__hash__\n    def startswith(self, *_):\n        return True\ndef find(lab):\n    yield Any('right')\n"), "no command and no answer"),
)  # fmt: skip
