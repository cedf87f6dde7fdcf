"""The answers that need nothing new: MRC as published, MRC that sprays blindly, and RoCE."""

from answers.answer import Answer

MRC = Answer(
    "mrc",
    "MRC: source routes, path health in the NIC, trimming",
    "mrc",
    "mrc",
    ("SRv6 uSIDs", "trimming", "ECN"),
    ("a state per path", "probes of paths"),
    "a state per path (64), one window",
)
OBLIVIOUS = Answer(
    "mrc-oblivious",
    "MRC that sprays without looking at path health",
    "mrc-oblivious",
    "",
    ("SRv6 uSIDs", "trimming", "ECN"),
    (),
    "one window",
)
ROCE = Answer(
    "roce",
    "RoCE with selective repeat: one path per queue pair, eight of them, on one plane of the summed rate",
    "roce-sr-8qp",
    "roce",
    ("ECMP", "routing around dead links", "ECN"),
    (),
    "one window per queue pair (8)",
    single_plane=True,
)
