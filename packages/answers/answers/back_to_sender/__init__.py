"""MRC with switches that send packets back to their sender when the link behind them is down."""

from answers.back_to_sender.fabric import NOTIFYING
from running.transport_choice import TransportChoice

MRC_BTS = TransportChoice(
    "mrc-bts",
    "MRC with switches that send packets back when the link behind them is down",
    "mrc",
    {"returned_dscp": NOTIFYING.dscp},
    variant="answers.back_to_sender.fabric:NOTIFYING",
)
