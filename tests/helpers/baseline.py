"""What the RoCE baseline does not hold in the shipped scenarios."""

# What the baseline does not hold in these experiments, from the same seed. Unknown is what it cannot show: with one
# path a flow, a link that fails may be nobody's, and a host with one port has no plateaus.
BASELINE: dict[str, dict[str, bool | None]] = {
    "smoke": {},
    "link-flap": {"fault cost": False},
    "switch-reboot": {"fault cost": False},
    "nic-port": {"messages": False, "no QP error": False, "one by one": None, "half at once": None, "drift": None},
    "grey-link": {"fault cost": None, "drift": False},  # a slow link for good leaves no quiet part of the phase
    "spray": {"fault cost": False},
    "incast": {"incast flows even": False},
    "collision": {"main flows even": False, "line rate": False},
    "cold-start": {"messages": False, "no QP error": False, "fault cost": None, "drift": None},
    "maintenance": {"faults felt": None, "drained": None, "fault cost": None},
}
