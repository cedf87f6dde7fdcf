"""What experiments have shown about figures 16 and 17 alike, one knob at a time, with the numbers that they gave."""

from __future__ import annotations

SOFTWARE = (
    "A step of the ring takes 6.3 µs here, which is the network alone. By the paper's own numbers a step takes 11.4"
    " µs at 2 MB and 14.5 µs at 8 MB. Both transports and all numbers of queue pairs are off by about the same, so"
    " the 5 to 8 µs are most likely the collective's software and the GPU, which no network model has; the paper's"
    " own curves come near the line's rate from 1 GB on only. No experiment here can show that."
)
REPAIR = (
    "By the paper's numbers a ring step with a loss takes 54 µs longer, at 0.1 % and at 1 % alike; here it takes 5"
    " to 8 µs, because a packet counts as lost when one that was sent a round trip later has arrived. One knob: with"
    " 40 µs more before a gap counts as a loss (setting jitter_ns) the ring at 0.1 % and 2 MB falls from 30.6 to"
    " 22.3 Gb/s, towards the paper's 8. The rest is unknown; when that NIC takes a packet for lost is not published."
)
GO_BACK = (
    "RoCE's go-back-N is far too good here. At 0.1 % and 2 MB of the ring, 77 losses gave 77 NAKs and no timeout,"
    " and each cost a round trip; by the paper's numbers each cost 0.6 ms. One knob: an ACK timeout of 4.2 ms"
    " instead of 0.1 ms changes nothing (40.1 Gb/s). So the time is not the timer's; how that NIC comes back from a"
    " NAK is not published, and nothing here was fitted to it."
)
FIRST = (
    "One all-to-all is measured, with every queue pair new and all 63 peers at once; the paper's benchmark repeats"
    " it. That this is the reason has not been tried."
)

DIPS = "to be written DIPS"

ONE_PATH = "to be written ONE_PATH"

SPREAD = "to be written SPREAD"

SHARED_LINK = "to be written SHARED_LINK"

SHARED_UPLINK = "to be written SHARED_UPLINK"

CUT_RATES = "to be written CUT_RATES"

MARKS = "to be written MARKS"
