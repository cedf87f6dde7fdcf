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
ONE_PATH = (
    "One queue pair has one path, which the hash chooses, and DCQCN's marks on a shared link cut the victim with the"
    " incast. A longer run changes nothing: in 6,000 round trips the victim settles at 245 Gb/s after some 400."
)
DIPS = (
    "Here the victim has its lowest sample at the start and is near its full rate from the second one on, also in a run"
    " of 6,000 round trips. The paper's dips of a second do not come out."
)
SPREAD = (
    "With 8 queue pairs here all incast flows have nearly the same rate, and lie the nearer together the longer the"
    " run: 44 to 47 Gb/s in 600 round trips, 46.7 to 47.4 in 6,000."
)
SHARED_LINK = (
    "The victim's rate is the luck of the hash: a full leaf lets each of the spines' links have its share of the"
    " receiver, and the victim has what an incast flow has that shares its link. The paper's 97 are those of a victim"
    " beside one incast flow, and 390 of a victim beside none."
)
SHARED_UPLINK = (
    "RoCE's rates are the luck of the hash. With one queue pair the paper's flows of 131 Gb/s share an uplink, its"
    " two of 196 another; here four share one, with 97 Gb/s each, and two another. With eight queue pairs the same"
    " luck decides how many of 32 meet on an uplink."
)
CUT_RATES = "DCQCN's first cuts take some hundred round trips to recover from; a run of ten times the length has more."
MARKS = (
    "The queue here ends where marks begin, at 0.2 to 0.8 Plane_BDP, and pauses at 2: some 0.8 MB a port. The paper's"
    " queues of 3 and 22 MB need thresholds that are as far away; its switches' are not published."
)
