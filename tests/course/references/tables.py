"""Reference of lab 3: every row is a function of the plan and of the switch's own place in it."""

LEAF, SPINE, NIC = 0x1000, 0x2000, 0x3000


def usid_of_switch(role, plane, index):
    if role == "leaf":
        return LEAF + plane * 512 + index
    return SPINE + plane * 256 + index


def prefix(plan, usid):
    block = plan["block"].split("::")[0]
    return f"{block}:{usid:x}::/48"


def neighbours(plan, switch):
    """The uSIDs of the neighbours in the order of their ports, from 1."""
    plane = switch["plane"]
    if switch["role"] == "spine":
        return [usid_of_switch("leaf", plane, index) for index in range(plan["leaves"])]
    hosts = [NIC + downlink for downlink in range(plan["hosts_per_leaf"])]
    return hosts + [usid_of_switch("spine", plane, index) for index in range(plan["spines"])]


def rows(plan, switch):
    own = usid_of_switch(switch["role"], switch["plane"], switch["index"])
    found = [("my_sid", prefix(plan, own), "end_un")]
    for port, usid in enumerate(neighbours(plan, switch), start=1):
        found.append(("ipv6_route", prefix(plan, usid), "set_next_hop", port))
    found.append(("ipv6_route", plan["block"], "drop_unknown_usid"))
    if switch["role"] == "leaf":
        for port in range(1, plan["hosts_per_leaf"] + 1):
            found.append(("host_facing", port, "mark_last_hop", plan["last_hop_dscp"]))
    return found
