"""MRC with switches that send packets back to their sender when the link behind them is down."""

from answers.answer import Answer
from answers.back_to_sender.fabric import NOTIFYING
from running.transport_choice import TransportChoice

MRC_BTS = TransportChoice(
    "mrc-bts",
    "MRC with switches that send packets back when the link behind them is down",
    "mrc",
    {"returned_dscp": NOTIFYING.dscp},
    variant="answers.back_to_sender.fabric:NOTIFYING",
)
ANSWER = Answer(
    "mrc-bts",
    MRC_BTS.description,
    MRC_BTS.name,
    "mrc-bts",
    ("SRv6 uSIDs", "trimming", "ECN", "the state of ports in the pipeline", "packets sent back"),
    ("a state per path", "probes of paths", "a reaction to returned packets"),
    "a state per path (64), one window",
)
