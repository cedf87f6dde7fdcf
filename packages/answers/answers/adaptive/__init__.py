"""Adaptive routing: switches choose the shortest queue per packet, and the NIC balances planes."""

from dataclasses import replace

from answers.answer import Answer
from running.transport_choice import TRANSPORTS, TransportChoice

_VARIANT = "answers.adaptive.fabric:ADAPTIVE"
_SWITCHES = ("the shortest queue per packet", "routing around dead links", "trimming", "ECN")
PER_PLANE = TransportChoice(
    "adaptive",
    "switches choose the shortest queue per packet; the NIC balances planes, a congestion context for each",
    "mrc",
    {"selection": "plane_balance", "congestion": "plane_contexts"},
    plain=True,
    variant=_VARIANT,
)
ONE_CONTEXT = replace(
    PER_PLANE,
    name="adaptive-one",
    description="the same with one congestion context for all planes",
    settings={"selection": "plane_balance"},
)
ROCE = replace(
    TRANSPORTS["roce-sr-8qp"],
    name="roce-adaptive",
    description="RoCE with selective repeat on one plane, whose switches choose the shortest queue per packet",
    variant=_VARIANT,
)
ANSWER = Answer(
    "adaptive",
    PER_PLANE.description,
    "adaptive",
    "adaptive",
    _SWITCHES,
    ("out-of-order placement",),
    "a window per plane (4)",
)
ONE = Answer(
    "adaptive-one",
    ONE_CONTEXT.description,
    "adaptive-one",
    "adaptive",
    _SWITCHES,
    ("out-of-order placement",),
    "one window",
)
OPPONENT = Answer(
    "roce-adaptive",
    ROCE.description,
    "roce-adaptive",
    "",
    _SWITCHES,
    ("out-of-order placement",),
    "one window per queue pair (8)",
    single_plane=True,
)
