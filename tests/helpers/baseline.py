"""What the RoCE baseline does not hold in the shipped scenarios."""

from __future__ import annotations

# What the baseline does not hold in these experiments, from the same seed. Unknown is what it cannot show: with one
# path a flow, a link that fails may be nobody's, and a host with one port has no plateaus.
BASELINE: dict[str, dict[str, bool | None]] = {
    "smoke": {},
    "link-flap": {"goodput kept": False, "step times": False},
    "switch-reboot": {"goodput kept": False, "step times": False},
    "nic-port": {"messages": False, "no QP error": False, "one by one": None, "half at once": None},
    "grey-link": {"goodput kept": False},
    "spray": {"messages": False, "no QP error": False, "goodput kept": False},
    "incast": {"incast flows even": False},
    "collision": {"main flows even": False, "line rate": False},
    "cold-start": {"messages": False, "no QP error": False, "goodput kept": False},
    "maintenance": {"faults felt": None, "drained": None},
}
