"""Reference of lab 9: light first, then both ends of every cable, then the causes of drops."""


def node(interface):
    return interface.split("-")[0]


def find(lab):
    seen = yield "inspect"
    ports = {one["interface"]: one for each in seen["nodes"] for one in each["interfaces"]}
    for name, port in ports.items():
        if port["state"] == "down":
            if ports[port["peer"]]["state"] == "down":
                first, second = sorted((node(name), node(port["peer"])))
                yield f"answer {first}-{second} dead-cable"
            elif name.startswith("h"):
                yield f"answer {node(name)}.p{port['port'] - 1} nic-port-down"

    counts = yield "counters --watch 10"
    rows = {row["IFACE"]: row for row in counts["ports"]}
    for name, row in rows.items():
        far = ports[name]["peer"]
        if "h" in (name[0], far[0]):
            continue  # NICs count other packets than switches
        lost = row["TX_OK"] - rows[far]["RX_OK"]
        if lost >= max(10, 0.02 * row["TX_OK"]):
            yield f"answer {node(name)}>{node(far)} one-way-loss"

    for name, row in rows.items():
        if row["DROPS"].get("unknown_usid", 0) > 0:
            yield f"answer {node(name)} missing-entry"
    yield "answer none"
