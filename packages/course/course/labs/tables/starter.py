"""Lab 3: static tables from a plan. The page: ./lab course page 3. Check with: ./lab check 3

Your plan is in tables.toml: ./lab topo draw mylab/tables.toml draws it. Your code must serve any plan.
"""


def usid_of_switch(role, plane, index):
    """The uSID of a leaf or a spine."""
    return 0x1000  # GAP 1: the table of lab 1


def prefix(plan, usid):
    """The prefix that matches addresses whose first uSID is this one."""
    block = plan["block"].split("::")[0]  # "fcbb:bbbb" of "fcbb:bbbb::/32"
    return f"{block}:{usid:x}::/128"  # GAP 2: how many bits are the block and one uSID?


def rows(plan, switch):
    """The rows of one switch: (table, match, action), or (table, match, action, number).

    plan:   {"planes", "leaves", "spines", "hosts_per_leaf", "block", "last_hop_dscp"}
    switch: {"name": "p1l2", "role": "leaf" or "spine", "plane": 1, "index": 2}
    """
    own = usid_of_switch(switch["role"], switch["plane"], switch["index"])
    found = [("my_sid", prefix(plan, own), "end_un")]
    # GAP 3: each neighbour's uSID:  ("ipv6_route", prefix, "set_next_hop", port)
    # GAP 4: unknown uSIDs:          ("ipv6_route", plan["block"], "drop_unknown_usid")
    # GAP 5: each port to a host:    ("host_facing", port, "mark_last_hop", plan["last_hop_dscp"])
    return found
