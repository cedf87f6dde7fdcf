"""Why figures differ from the paper: what experiments, one knob at a time, have shown, with their numbers."""

from __future__ import annotations

from collections.abc import Mapping

FIRMWARE = (
    "The transport does not need the time: where links take every packet silently and no NIC hears of anything, its"
    " losses alone move all traffic within round trips (experiment), so that no dip is as long as one of our samples,"
    " two round trips. A NIC that hears of its carrier acts in a packet time. The paper calls the remapping of a dead"
    " port's EVs on its NIC not instantaneous: a second of a NIC's firmware, which no network model has."
)
ONE_REPAIR = (
    "The device profile has one repair time, set from the all-to-all of 2 MB at 0.1 %. The paper's"
    " ring asks for a longer one at 0.1 % and for a shorter one at 1 %, so that NIC's repair depends on what else"
    " arrives. How it finds a loss is not published."
)
LATE_REPAIR = (
    "The device profile has one repair time, set from the all-to-all of 2 MB at 0.1 %. With a longer one the all-to-all"
    " of 32 MB at 1 % comes near to the paper's, and that of 4 MB, which is near, falls behind it. How that NIC finds a"
    " loss is not published."
)
GO_BACK = (
    "The device profile has one time for going back, after a NAK and after silence, set from the all-to-all of 2 MB"
    " at 0.1 %. In the paper's ring NAKs help at larger sizes and not at small ones. How that NIC comes back from"
    " either is not published."
)
FASTER = (
    "Here the all-to-all at 1 % is faster than the paper's at every size, and the ring slower. One time for going back"
    " fits one of them at most. What else that NIC does is unknown."
)
COLLISIONS = (
    "Each hop crosses a spine on one path by a hash, so that some flows share an uplink at every size. In the paper"
    " one queue pair falls behind from 128 MB on only. How ranks were placed, and how many channels the ring had, is"
    " not said."
)
RING: Mapping[tuple[str, float], str] = {
    ("RoCE 1 QP", 0.0): COLLISIONS,
    **{("MRC", loss): ONE_REPAIR for loss in (0.1, 1.0)},
    **{(f"RoCE {pairs} QP", loss): GO_BACK for pairs in (1, 16) for loss in (0.1, 1.0)},
}
CUT_PEERS = (
    "DCQCN's published constants, made for 40 Gb/s, cut the flows that begin together, and let them rise slowly."
    " Without DCQCN the all-to-all of 64 MB has 297.8 Gb/s, and some changes of one constant give as much (`dcqcn.md`)."
    " At 64 MB another hash moves it less; at 32 MB one of 20 draws nearly has the paper's number. The paper does not"
    " say which constants its RoCE had."
)
EXCHANGE: Mapping[tuple[str, float], str] = {
    **RING,
    **{("MRC", loss): LATE_REPAIR for loss in (0.1, 1.0)},
    **{(f"RoCE {pairs} QP", loss): why for pairs in (1, 16) for loss, why in ((0.0, CUT_PEERS), (1.0, FASTER))},
}
"""By transport and loss in percent, for figures 16 and 17."""
ONE_PATH = (
    "One queue pair has one path, which the hash chooses, and DCQCN's marks cut the victim with whatever incast flows"
    " share its links. The lowest sample is an early one, while DCQCN settles."
)
DIPS = (
    "Here the victim's lowest sample is an early one, before DCQCN has settled. The paper has dips of a second in the"
    " midst of the run. Unknown."
)
SPREAD = "All incast flows are nearly alike here, with every seed of the hash. What draws the paper's apart is unknown."
SHARED_LINK = (
    "The victim's rate is the luck of the hash: a full leaf lets each of the spines' links have its share of the"
    " receiver, and the victim has what an incast flow has that shares its link."
)
SHARED_UPLINK = (
    "RoCE's rates are the luck of the hash. With one queue pair the paper has three flows on an uplink, two on another"
    " and three alone. With eight queue pairs the same luck decides how many of 32 meet on an uplink."
)
CUT_RATES = "DCQCN's cuts and recoveries hang on its constants and on the switches' marks. The paper publishes neither."
MARKS = (
    "The queue follows the marks and DCQCN's setting. Neither the three settings nor the switches' marks are published;"
    " ours have sources of their own."
)
UNFILLED = (
    "Only the queue at which a port is paused was set from it, 22 MB over seven ports. Here DCQCN's default setting"
    " keeps the queue below that."
)
TRIMMED_HEADERS = (
    "A window is at least one packet, and 127 packets are more than a round trip holds, so most are trimmed: of the"
    " receiver's 347,000 frames 285,000 are trimmed headers, an eighth of all bytes on its line. uet-htsim's headers"
    " are half as long; how many packets it trims was not counted."
)
HASHED_FLOWS = (
    "Every flow has one path, by a hash, and the most loaded link decides. With the seeds 2 and 3 it takes 939 and 868"
    " µs here. uet-htsim's number is with its default seed, 13; with its seeds 1 to 3 it takes 881, 1,003 and 1,041."
)
A_QUARTER = (
    "uet-htsim's validation set says a tenth, but its code runs the eight links at a quarter of their rate"
    " (_failed_link_ratio), and in one direction only, from the core down. With a quarter it takes 310 µs here, with"
    " one direction at a tenth 361. With both, as the simulator has it, it takes 283, 322 and 272 with the seeds 1 to"
    " 3. uet-htsim's binary was run as well: 280.8 with its default seed, 13, and 273, 279 and 326 with its seeds 1 to"
    " 3."
)
