"""Lab 1: uSIDs by hand. The page: ./lab course page 1.

Your plan: @PLAN@.
It is in usids.toml: ./lab topo draw mylab/usids.toml draws it.

Fill in every GAP with a text. Addresses in any form of IPv6, EVs as 0x…, hosts as h3, switches as p1l2 or p1s0.
Check with: ./lab check 1
"""

ANSWERS = {
    # @QUESTIONS@
}
