"""Wrong solutions of lab 3, and attempts to pass without solving it."""

from course.labs.tables.rows import installed
from course.labs.tables.tests import own_plan
from tests.course.mutants.mutant import Mutant, instead, whole

HOSTS_FIRST = 'return hosts + [usid_of_switch("spine", plane, index) for index in range(plan["spines"])]'
ONLY_LEAVES = 'if switch["role"] == "leaf":\n        for port'
UNKNOWN = '    found.append(("ipv6_route", plan["block"], "drop_unknown_usid"))\n'


def of_one_plan(text: str, seed: int) -> str:
    """The right rows of the student's own plan, as constants."""
    plan = own_plan(seed)
    found = {
        switch.name: [[one.table, str(one.match) if not isinstance(one.match, int) else one.match, one.action]
                      + ([] if one.argument is None else [one.argument]) for one in installed(plan, switch)]
        for switch in plan.switches()
    }  # fmt: skip
    return f"ROWS = {found!r}\n\n\ndef rows(plan, switch):\n    return ROWS.get(switch['name'], [])\n"


MUTANTS = (
    Mutant("planes forgotten in leaf uSIDs", instead("LEAF + plane * 512 + index", "LEAF + index"), "0x1000 \\+ plane"),
    Mutant("spines count planes in steps of 512", instead("SPINE + plane * 256", "SPINE + plane * 512"), "plane × 256|has to be there"),
    Mutant("ports from zero", instead("start=1", "start=0"), "ports count from 1"),
    Mutant("spines before hosts", instead(HOSTS_FIRST, HOSTS_FIRST.replace("hosts + ", "") + " + hosts"), "hosts first"),
    Mutant("NICs numbered through the fabric", instead("[NIC + downlink for", '[NIC + switch["index"] * plan["hosts_per_leaf"] + downlink for'), "at downlink|uSID of a NIC"),
    Mutant("no uSID of its own", instead('found = [("my_sid", prefix(plan, own), "end_un")]', "found = []"), "no row in my_sid"),
    Mutant("prefixes of one address", instead("::/48", "::/128"), "a prefix is /48"),
    Mutant("prefixes of two uSIDs", instead("::/48", "::/64"), "a prefix is /48"),
    Mutant("the block forgotten", instead(UNKNOWN, ""), "needs a row with drop_unknown_usid"),
    Mutant("every port marks the last hop", instead(ONLY_LEAVES, "if True:\n        for port"), "there is no last hop|which it doesn't have"),
    Mutant("the last leaf forgotten", instead('range(plan["leaves"])', 'range(plan["leaves"] - 1)'), "no row leads to port"),
    Mutant("rows for the spines of all planes", instead("    found.append((\"ipv6_route\", plan[\"block\"]", "    for p in range(plan['planes']):\n        usid = usid_of_switch('spine', p, 0)\n        if switch['role'] == 'leaf' and p != switch['plane']:\n            found.append((\"ipv6_route\", prefix(plan, usid), \"set_next_hop\", plan['hosts_per_leaf'] + 1))\n    found.append((\"ipv6_route\", plan[\"block\"]"), "holds neighbours only|and sent it to port"),
    Mutant("two planes in the code", instead('plane = switch["plane"]', 'plane = switch["plane"] % 3'), "nothing of one plan"),
    Mutant("ports of spines from the end", instead('for index in range(plan["spines"])]', 'for index in reversed(range(plan["spines"]))]'), "hosts first"),
    Mutant("DSCP by heart", instead('plan["last_hop_dscp"]', "20"), "last_hop_dscp"),
)  # fmt: skip

CHEATS = (
    Mutant("constants of the student's own plan", of_one_plan, "nothing of one plan"),
    Mutant("one route for everything", instead('prefix(plan, usid), "set_next_hop"', '"::/0", "set_next_hop"'), "two rows|same match"),
    Mutant("a million rows", whole("def rows(plan, switch):\n    return [('my_sid', 'fcbb:bbbb::/48', 'end_un')] * 1000000\n"), "at most .* bytes|at most 512"),
    Mutant("a row that agrees with everything", whole("class Any(str):\n    def __eq__(self, other):\n        return True\n    __hash__ = str.__hash__\ndef rows(plan, switch):\n    return [(Any('my_sid'), Any('::/0'), Any('end_un'))]\n"), "outside the plan's block"),
    Mutant("writes the answer itself", whole("def rows(plan, switch):\n    __builtins__['__import__'].__globals__['os'].write(3, b'{\"value\": []}\\n')\n    return []\n"), "tampered|Bad file|returns an empty list"),
)  # fmt: skip
