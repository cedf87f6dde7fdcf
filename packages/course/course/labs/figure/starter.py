"""Lab 10: read the paper. The page: ./lab course page 10. Check with: ./lab check 10

Your change: packets carry @PAYLOAD@ bytes of payload instead of 4096.
"""

PAYLOAD = int("@PAYLOAD@")
LINKS, PORT_GBPS = 8, 100

READINGS = {8: 0.0, 7: 0.0, 6: 0.0, 5: 0.0, 4: 0.0, 3: 0.0, 2: 0.0}  # GAP 1: links up, and the paper's Gb/s


def timeline():
    """The faults of steps 0 to 6: (step, verb, target), or (step, verb, target, until)."""
    return []  # GAP 2: in step 1 the NIC h0 loses a port, in step 2 another one, ...: "port-down", "h0.p0"


def predicted(links, payload):
    """Goodput of both directions together, in Gb/s, with so many links up and so many bytes of payload per packet."""
    return 0.0  # GAP 3: which share of the bytes on a cable is payload?


def wire(goodput, payload):
    """What the cables carried, in Gb/s, if so much payload arrived."""
    return goodput  # GAP 4: the inverse of GAP 3. It should not change with the payload


# GAP 5: 60 to 250 words: how large is the difference at 8 links in %, how many bytes of headers does a packet have,
# why does one explain the other, and what else could explain it?
DEFENCE = """
"""
