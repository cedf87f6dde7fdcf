"""Lab 9: find the fault. The page: ./lab course page 9. Check with: ./lab check 9

find is a generator: it yields a command, as you would type it behind ./lab incident, and gets the "result" of what
--json prints. In the end it yields the answer: "answer none", or component and kind, "answer p0l0-p0s1 dead-cable".
"""


def node(interface):
    """The node of an interface: p0l0 of p0l0-eth3."""
    return interface.split("-")[0]


def find(lab):
    # lab: {"level", "hosts": ["h0", ...], "switches": ["p0l0", ...], "cables": ["h0-p0l0", ...], ...}
    seen = yield "inspect"
    ports = {one["interface"]: one for each in seen["nodes"] for one in each["interfaces"]}
    dark = [name for name, port in ports.items() if port["state"] == "down"]
    if dark:
        yield f"answer {node(dark[0])} dead-cable"  # GAP 1: a cable has two ends. What does ports[dark[0]]["peer"] say?

    # GAP 2: ask for counters with --watch 10; rows of "ports" by their IFACE.
    # GAP 3: which port has sent what the other end has not received? Look at cables between switches.

    # GAP 4: DROPS of a row tell why a switch dropped what came in there. Which cause means that a row is missing?
    yield "answer none"
