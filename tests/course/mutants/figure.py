"""Wrong solutions of lab 10, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

TIMELINE = 'return [(step, "port-down", f"h0.p{step - 1}") for step in range(1, 7)]'
PREDICTED = "return 2 * links * PORT_GBPS * payload / (payload + OVERHEAD)"
WIRE = "return goodput * (payload + OVERHEAD) / payload"

MUTANTS = (
    Mutant("readings of one direction", instead("383.2}", "383.2}\nREADINGS = {links: rate / 2 for links, rate in READINGS.items()}"), "both directions"),
    Mutant("readings of the links' rate", instead("383.2}", "383.2}\nREADINGS = {links: links * 200 for links in READINGS}"), "off by"),
    Mutant("a step late", instead(TIMELINE, TIMELINE.replace("step - 1}", "step - 2}").replace("range(1, 7)", "range(2, 7)")), "links of h0 must be down"),
    Mutant("ports come back", instead(TIMELINE, TIMELINE.replace('{step - 1}")', '{step - 1}", step + 1)')), "stays down"),
    Mutant("all ports at once", instead(TIMELINE, 'return [(1, "port-down", f"h0.p{port}") for port in range(6)]'), "links of h0 must be down"),
    Mutant("cables above the leaf", instead('"port-down", f"h0.p{step - 1}"', '"link-down", f"p{step - 1}l0-p{step - 1}s0"'), "above the paper's"),
    Mutant("no headers", instead(PREDICTED, "return 2 * links * PORT_GBPS"), "count what a cable carries"),
    Mutant("one direction", instead(PREDICTED, PREDICTED.replace("2 * links", "links")), "direction was left out"),
    Mutant("headers of the paper's packets", instead(PREDICTED, PREDICTED.replace("payload / (payload", "4096 / (4096")), "count what a cable carries"),
    Mutant("headers twice", instead(PREDICTED, PREDICTED.replace("+ OVERHEAD", "+ 2 * OVERHEAD")), "counted twice"),
    Mutant("wire of payload only", instead(WIRE, "return goodput"), "carry the same in both runs"),
    Mutant("a wire that is always full", instead(WIRE, "return 1700.0"), "carry the same in both runs"),
    Mutant("no numbers in the defence", instead("{LOSS:.0f} %", "clearly"), "costs"),
    Mutant("a defence of one line", instead('DEFENCE = f"""', 'DEFENCE = "The loss is 11 %, of 138 bytes."\nREST = f"""'), "words"),
)  # fmt: skip

CHEATS = (
    Mutant("numbers that agree with everything", whole("class Any(float):\n    def __eq__(self, other): return True\n    __hash__ = float.__hash__\nREADINGS = {n: Any(1.0) for n in range(9)}\n"), "both directions"),
    Mutant("a thousand faults", instead(TIMELINE, 'return [(1, "port-down", "h0.p0")] * 1000'), "at most 32 faults"),
    Mutant("a fault of another lab", instead(TIMELINE, 'return [(1, "port-down", "h99.p0; rm")]'), "cannot be carried out"),
    Mutant("not a number", instead(PREDICTED, "return float('nan')"), "JSON compliant"),
    Mutant("a list of numbers for a defence", instead('DEFENCE = f"""', 'DEFENCE = " ".join(f"{n} %" for n in range(300)) + f"""'), "words at most"),
)  # fmt: skip
