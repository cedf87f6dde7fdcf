"""Why figures differ from the paper: what experiments, one knob at a time, have shown, with their numbers."""

from __future__ import annotations

FIRMWARE = (
    "The transport does not need the time: where links take every packet silently and no NIC hears of anything, its"
    " losses alone move all traffic within round trips (experiment), so that no dip is as long as one of our samples,"
    " two round trips. A NIC that hears of its carrier acts in a packet time. The paper calls the remapping of a dead"
    " port's EVs on its NIC not instantaneous: a second of a NIC's firmware, which no network model has."
)
REST = (
    "The length of a marked EV's rest. The specification leaves it open, and its guidance, which is the default here,"
    " passes a marked EV over once: with two EVs every mark on EV-A then sends two packets to EV-B instead of one, so"
    " that two thirds is the most that can move, and EV-A stays full. One knob: with a rest of 64 packets 91 % move and"
    " 95 % of the rate is kept, with 256 packets 96 % and 98 % (experiments); the move itself takes some 0.1 ms of real"
    " time. The paper's NIC therefore rests an EV much longer; for how long is not published."
)
SOFTWARE = (
    "A step of the ring takes 6.5 µs here at 2 and 8 MB, 11.5 at 32 and 22.8 at 64, which is latency and then the"
    " line. By the paper's own numbers a step takes 11.4, 15.2, 28 and 46 µs, for both transports and all numbers of"
    " queue pairs alike. So 5 to 23 µs, more with more data, are most likely the collective's software and the GPU's"
    " sums and copies, which no network model has; the paper's own curves come near the line from 1 GB on only. It is"
    " no cold start: a second round is as fast as the first (experiment)."
)
REPAIR = (
    "When a gap counts as a loss. By the paper's numbers a ring step with a loss takes some 54 µs longer, at 0.1 % and"
    " at 1 % alike; here 5 to 8 µs, because a packet counts as lost when one that was sent a round trip later has"
    " arrived. One knob: with 40 µs more before that, the ring of 2 MB falls from 31.1 to 20.5 Gb/s at 0.1 % and from"
    " 17.4 to 9.6 at 1 %: to 50 and 24 % of its rate without loss, where the paper's falls to 35 and 17 %. What is left"
    " is the software's part, as without loss. When that NIC takes a packet for lost is not published."
)
GO_BACK = (
    "A RoCE with losses hangs on its timer. Go-back-N hears of a gap when something arrives behind it; a message's"
    " lost end waits for the ACK timeout, 4.2 ms here, as assumed for lossless fabrics. One knob: with 0.13 ms the"
    " all-to-all of 8 MB at 0.1 % has 172 Gb/s instead of 15 (paper: 17), that of 2 MB 85 instead of 3.9 (paper: 5),"
    " the ring of 8 MB 117 instead of 26 (paper: 5). In the ring the next step's message tells of most gaps at once: at"
    " 2 MB and 0.1 % 77 losses gave 77 NAKs and no timeout, at a round trip each, where the paper's cost 0.6 ms each."
    " How that NIC comes back from a NAK, and after what time from silence, is not published, and nothing here was"
    " fitted to it."
)
EXCHANGE = (
    "MRC at 2 MB: the receiver's penalty, whose rule is assumed here (endpoint/mrc/paths/penalty.py), leaves each of 63"
    " senders a 63rd of its window, less than its one message; so 10 of 64 ranks end after 129 to 140 µs and the others"
    " after 61 to 72, with no packet trimmed or lost. Without the penalty MRC has 254 Gb/s, and so with a fixed window;"
    " in a second round 256. Then both transports are alike and too fast, as in the ring of figure 16: 2 MB take some"
    " 70 µs of network here and 110 µs in the paper. RoCE has no cold start (second round: 238). So the 40 µs are most"
    " likely the collective's software and the GPU. At 8 MB MRC has 337 Gb/s without the penalty. RoCE on one queue"
    " pair has 178 at 8 MB and 184 at 32 MB, for DCQCN, which marks cut at thresholds that are MRC's: without DCQCN 278"
    " and 290, beside the paper's 264 and 317."
)
ONE_PATH = (
    "One queue pair has one path, which the hash chooses, and DCQCN's marks cut the victim with whatever incast flows"
    " share its links. With three other seeds of the hash the victim has 274, 390 and 186 Gb/s; the paper's 320 lie"
    " among these. Length is not the reason: in a run of 6,000 round trips instead of 1,800 the victim has 239 and is"
    " steady at some 245 from round trip 400 on. The lowest sample is the first, before that."
)
DIPS = (
    "Here the victim's lowest sample is the first one, before DCQCN has settled, and from the second on the victim has"
    " 390 Gb/s. The paper has dips of a second in the midst of the run. None came with another seed of the hash (lowest"
    " 348), with DCQCN's next setting (155, again the first sample), or in a run of 6,000 round trips (362). Unknown."
)
SPREAD = (
    "All incast flows are alike here, 46 to 47 Gb/s: with another seed of the hash, with DCQCN's next setting, and in"
    " 6,000 round trips instead of 1,800. What draws the paper's apart is unknown."
)
SHARED_LINK = (
    "The victim's rate is the luck of the hash: a full leaf lets each of the spines' links have its share of the"
    " receiver, and the victim has what an incast flow has that shares its link. With the seeds 1 to 5 the victim has"
    " 32, 62, 390, 16 and 92 Gb/s on one queue pair; the paper's 97 are those of a victim beside one incast flow, and"
    " 390 of a victim beside none. On eight queue pairs another seed changes little: 36 and 40."
)
SHARED_UPLINK = (
    "RoCE's rates are the luck of the hash. With one queue pair the paper has three flows on an uplink, two on another"
    " and three alone; with seed 1 four share one here. With the seeds 3 and 4 the collisions are the paper's, and so"
    " are all flows: 130, 130, 130, 182, 208 and thrice 390 Gb/s, all within 8 %. With eight queue pairs the same luck"
    " decides how many of 32 meet on an uplink: the paper has 263 to 392 Gb/s, seed 1 has 197 to 389, seed 2 has 165 to"
    " 390."
)
CUT_RATES = (
    "Marks begin at 0.2 Plane_BDP, as MRC's fabrics have them, which cuts DCQCN's rates before a queue is long enough"
    " to bridge the cut. One knob: marks at four times the queue give 2,990 Gb/s in all and 355 to the slowest flow."
    " Another seed of the hash has less (314), a run of 60 round trips instead of 300 as well (307). The paper's"
    " thresholds for RoCE are not published."
)
MARKS = (
    "The queue follows the thresholds, which are MRC's here. One knob: with marks at four times the queue 0.26 and"
    " 0.42 MB wait instead of 0.06 and 0.09; in a buffer with marks and pauses at ten times the queue 0.75 and 1.09,"
    " with 371 Gb/s. The paper's 22 MB, in pauses, are not reached: its default setting cuts so little that ten flows"
    " fill a buffer. Neither that setting nor its switches' thresholds are published. The rates need length: with 30"
    " round trips to a flow instead of 300 DCQCN has not recovered, and the three settings have 268, 146 and 141 Gb/s."
)
HASHED_FLOWS = (
    "Every flow has one path, by a hash, and the most loaded link decides. With the seeds 2 and 3 it takes 939 and 868"
    " µs here, and uet-htsim itself takes 881, 1,003 and 1,041 with its seeds 1 to 3."
)
A_QUARTER = (
    "uet-htsim's validation set says a tenth, but its code runs the eight links at a quarter of their rate"
    " (_failed_link_ratio), and in one direction only, from the core down. With a quarter it takes 285 µs here, with"
    " one direction at a tenth 348. With both, as the simulator has it, it takes 272 and 279 with the seeds 2 and 3;"
    " with seed 1 one flow of 1,024, whose window trims have cut to three packets, takes 349, and all others are"
    " complete by 267. uet-htsim's binary was run, too: 280.8, and 273, 279 and 326 with its seeds 1 to 3."
)
