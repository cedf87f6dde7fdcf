"""Hashed entropy, as Ultra Ethernet has it: switches hash a number of each packet, and endpoints recycle good ones."""

from dataclasses import replace

from answers.answer import Answer
from running.transport_choice import TransportChoice

NSCC = TransportChoice(
    "uet",
    "Ultra Ethernet's rules: entropy per packet that switches hash, NSCC, losses by packets behind a hole",
    "mrc",
    {"selection": "reps", "congestion": "nscc", "loss": "sleek"},
    plain=True,
)
RCCC = replace(
    NSCC,
    name="uet-rccc",
    description="the same with receiver credit in place of NSCC",
    settings={**NSCC.settings, "congestion": "rccc"},
)
_NEEDS = ("ECMP", "routing around dead links", "trimming", "ECN")
ANSWER = Answer(
    "uet", NSCC.description, "uet", "uet", _NEEDS, ("recycled entropies",), "a ring of 8 numbers, one window"
)
CREDIT = Answer(
    "uet-rccc",
    RCCC.description,
    "uet-rccc",
    "uet",
    _NEEDS,
    ("recycled entropies", "credit of receivers"),
    "a ring of 8 numbers, a credit",
)
