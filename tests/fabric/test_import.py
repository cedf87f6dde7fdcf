"""Files of other tools as plans: every form, alone and together; what is refused, with file and line."""

import re
import shutil
from pathlib import Path

import pytest

from cli.main import main
from fabric.facts import FabricError
from fabric.lines import json_value, yaml_value
from fabric.planning import Imported, imported
from fabric.reading import read
from fabric.shape import shape_of
from topo import plan_document
from topo.planfile import load_plan, parse_plan

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES, FILES = ROOT / "docs/templates", Path(__file__).parent / "files"
RACK = {
    "p0l0": "p0-leaf1", "p0l1": "p0-leaf2", "p0s0": "p0-spine1", "p0s1": "p0-spine2",
    "p1l0": "p1-leaf1", "p1l1": "p1-leaf2", "p1s0": "p1-spine1", "p1s1": "p1-spine2",
    "h0": "gpu01", "h1": "gpu02", "h2": "gpu03", "h3": "gpu04",
}  # fmt: skip
FORMS = {
    "containerlab, SONiC, FRR": ("rack",),
    "LLDP": ("rack/config", "rack-lldp"),
    "LLDP beside containerlab": ("rack", "rack-lldp"),
    "NetBox's import form": ("rack/config", "rack-netbox"),
    "NetBox's table": ("rack/config", "rack-netbox-table"),
    "NetBox's API": ("rack/config", "rack-netbox-api"),
    "netlab": ("rack/config", "rack-netlab"),
}


def made(*names: str, roles: tuple[tuple[str, str], ...] = ()) -> Imported:
    facts = read([(TEMPLATES if name.startswith("rack/") or name == "rack" else FILES) / name for name in names])
    return imported(facts, shape_of(facts, roles), "made")


@pytest.mark.parametrize("names", FORMS.values(), ids=FORMS)
def test_every_form_makes_the_same_plan(names: tuple[str, ...]):
    plan = made(*names).plan
    assert dict(plan.names) == RACK
    assert (plan.planes, plan.leaves, plan.spines, plan.hosts_per_leaf, plan.shape) == (2, 2, 2, 2, None)
    assert plan.links.hardware_rate_bps == 400_000_000_000
    assert plan.trimming.size_bytes == 256


def test_frr_alone_is_a_fabric_of_another_block_and_planes_are_what_is_joined():
    plan = made("routed").plan
    assert dict(plan.names) == {
        "p0l0": "leaf1a", "p0l1": "leaf2a", "p0s0": "spine1a", "p0s1": "spine2a",
        "p1l0": "leaf1b", "p1l1": "leaf2b", "p1s0": "spine1b", "p1s1": "spine2b", "h0": "host1", "h1": "host2",
    }  # fmt: skip
    assert any("5f00:0:7:120::/64 is fcbb:bbbb:2000::/48" in each for each in made("routed").differences)


def test_hosts_that_are_called_as_the_lab_calls_others_keep_apart(tmp_path: Path):
    folder = shutil.copytree(TEMPLATES / "rack", tmp_path / "rack")
    for file in (each for each in folder.rglob("*") if each.is_file()):
        file.write_text(re.sub(r"gpu0(\d)", r"h\1", file.read_text()))
    for file in (each for each in folder.rglob("gpu0*")):
        file.rename(file.with_name(file.name.replace("gpu0", "h")))
    facts = read([folder])
    made = imported(facts, shape_of(facts, [("h*", "host")]), "made")
    assert {key: name for key, name in made.plan.names.items() if key.startswith("h")} == {
        f"h{place}": f"host-h{place + 1}" for place in range(4)
    }
    assert [made.plan.node(name).name for name in ("host-h1", "h1")] == ["h0", "h1"]
    said = "names: 4 of the source are the lab's for other nodes: h1 is host-h1 here, and h1 means host-h2"
    assert said in made.differences


def test_sonic_alone_has_its_own_block_and_its_cables_from_the_neighbours_it_expects():
    plan = made("sonic").plan
    assert (plan.names["p0l1"], plan.names["p0s1"], plan.names["h1"]) == ("tor-2", "agg-2", "server-2")
    assert str(plan.usid_block) == "fcbb:bbbb::/32"


def test_every_fact_has_the_file_and_line_that_says_it():
    text = made("rack").text
    origins = re.findall(r"^(?:\w+ = \"(\S+)\"  # |#   (\S+) – \S+  )(\S+):(\d+)$", text, re.MULTILINE)
    assert len(origins) == 12 + 16
    for name, end, file, line in origins:
        said = Path(file).read_text().splitlines()[int(line) - 1]
        assert (name or end.partition(":")[0]) in said, (name or end, said)


def test_the_plan_file_is_a_plan_and_a_run_of_it_takes_the_names_of_the_source(tmp_path: Path, capsys):
    place = tmp_path / "rack.toml"
    assert main(["topo", "import", str(TEMPLATES / "rack"), "-o", str(place)]) == 0
    said = capsys.readouterr().out
    assert "rack: imported from containerlab, frr, sonic: 2 planes, 4 leaves, 4 spines, 4 hosts" in said
    assert "differs: uSIDs: runs use the lab's own for 8 switches, such as p0-spine1 fd10:1:10::/48" in said
    plan = load_plan(place)
    assert plan_document(parse_plan(made("rack").text))["fabric"] == plan_document(plan)["fabric"]
    assert main(["topo", "paths", "gpu01", "gpu04", "--plan", str(place)]) == 0
    assert capsys.readouterr().out.count("EV 0x") == 4


def test_an_uneven_fabric_becomes_a_list_of_cables_with_shares_of_the_rate(tmp_path: Path):
    folder = copy(tmp_path)
    topology = folder / "topology.clab.yml"
    lines = [line for line in topology.read_text().splitlines() if '"p1-spine2:' not in line]
    topology.write_text("\n".join(lines))
    slow = folder / "config/p0-leaf1/config_db.json"
    slow.write_text(slow.read_text().replace('"speed": "400000"', '"speed": "100000"', 1))
    facts = read([folder])
    plan = imported(facts, shape_of(facts), "uneven").plan
    listed = {(str(cable.lower), str(cable.upper)): cable.speed for cable in plan.topology.cables()}
    assert len(listed) == 14
    assert listed["p0l0", "p0s0"] == 0.25
    assert any("p1-spine2 has no cable to another device; left out" in str(each) for each in facts.remarks)


def test_a_fabric_that_the_lab_cannot_hold_is_refused_with_the_names_of_the_source(tmp_path: Path):
    folder = copy(tmp_path)
    topology = folder / "topology.clab.yml"
    lines = [line for line in topology.read_text().splitlines() if '"p1-leaf2:eth2", "p1-spine2:eth2"' not in line]
    topology.write_text("\n".join(lines))
    facts = read([folder])
    with pytest.raises(FabricError, match="every cable must be on a shortest path; p1-leaf1–p1-spine2 is on none"):
        imported(facts, shape_of(facts), "uneven")


def copy(tmp_path: Path) -> Path:
    """The rack's files, to be changed."""
    return Path(shutil.copytree(TEMPLATES / "rack", tmp_path / "rack"))


CLAB = """\
name: x
topology:
  nodes:
    leaf1: {kind: linux}
    spine1: {kind: linux}
    host1: {kind: linux}
    %s
  links:
    - endpoints: [leaf1:eth1, spine1:eth1]
    - endpoints: [leaf1:eth2, host1:eth1]
    %s
"""
FRR = "frr version 10.4\nhostname leaf1\n%s\n"
REFUSED = {
    "no role": (
        "x.yml",
        CLAB % ("box7: {}", "- endpoints: [leaf1:eth3, box7:eth1]"),
        r"x.yml:7: 1 devices have no role: box7",
    ),
    "a name": ("x.yml", CLAB % ("'a b': {}", ""), r"x.yml:7: a device's name must match .* \(got 'a b'\)"),
    "a key twice": ("x.yml", CLAB % ("leaf1: {}", ""), r"x.yml:7: key 'leaf1' is there twice, first in line 4"),
    "no YAML": ("x.yml", "topology: [", r"x.yml:\d: no YAML"),
    "a second document": ("x.yml", CLAB % ("l: {}", "") + "---\na: b\n", r"x.yml:12: a second document"),
    "nested deeply": ("x.yml", "a: " + "[" * 50 + "]" * 50, r"x.yml:1: nested deeper than 40 levels"),
    "a cycle": ("x.yml", "a: &a [*a]", r"x.yml:1: alias 'a' has no value before it"),
    "a bomb": (
        "x.yml",
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        r"x.yml:\d: more than 1,000,000 values",
    ),
    "a spine's host": (
        "x.yml",
        CLAB % ("host2: {}", "- endpoints: [spine1:eth9, host2:eth1]"),
        r"x.yml:11: host2: is cabled to spine1, a spine. Fix: a host hangs on leaves",
    ),
    "two cables": (
        "x.yml",
        CLAB % ("h: {}", "- endpoints: [leaf1:eth8, spine1:eth8]"),
        r"x.yml:11: leaf1: has a second cable to spine1",
    ),
    "a leaf without hosts": (
        "x.yml",
        CLAB % ("leaf2: {}", "- endpoints: [leaf2:eth1, spine1:eth2]"),
        r"x.yml:7: leaf2: has no host",
    ),
    "a port twice": (
        "x.yml",
        CLAB % ("host2: {}", "- endpoints: [leaf1:eth2, host2:eth1]"),
        r"x.yml:11: leaf1: containerlab says leaf1:eth2 – host2:eth1, but .* – host1:eth1 \(.*x.yml:10\)",
    ),
    "no JSON": ("x.json", '{"PORT": {,}}', r"x.json:1: no JSON: key must be here \(got ','\)"),
    "JSON cut short": ("x.json", '{"PORT":\n {', r"x.json:2: no JSON: the file ends too early"),
    "JSON nested deeply": ("x.json", "[" * 100_000, r"x.json:1: nested deeper than 40 levels"),
    "of no form": ("x.json", '{"a": 1}', r"x.json:1: must be a containerlab or netlab topology"),
    "a text": ("x.txt", "hello\n", r"x.txt:1: must be a containerlab or netlab topology"),
    "no text": ("x.conf", b"\xff\xfe", r"x.conf:1: must be text \(byte 0 is not UTF-8\)"),
    "an address": ("x.conf", FRR % "interface swp1\n ipv6 address 2001:db8::g/64", r"x.conf:4: .*2001:db8::g"),
    "an address nowhere": (
        "x.conf",
        FRR % "ipv6 address 2001:db8::/64",
        r"x.conf:3: `ipv6 address` must be below an interface",
    ),
    "a route": ("x.conf", FRR % "ipv6 route fc00::/48", r"x.conf:3: a route must have a next hop"),
    "a SID": (
        "x.conf",
        FRR % "segment-routing\n srv6\n  sid fc00::/48 locator MAIN",
        r"x.conf:5: a SID must be PREFIX",
    ),
    "a SID's word": (
        "x.conf",
        FRR % "  sid fc00::/48 locator MAIN behavior uN colour red",
        r"x.conf:3: a SID must be PREFIX",
    ),
    "block bits": (
        "x.conf",
        FRR % "   prefix fc00::/48 block-len 200",
        r"x.conf:3: must be a whole number between 8 and 96 \(got '200'\)",
    ),
    "a prefix": ("x.json", '{"SRV6_MY_SIDS": {\n"loc1|fcbb::/200": {}}}', r"x.json:2: .*200"),
    "a long first line": ("x.csv", "x" * 200_000, r"x.csv:1: must be a containerlab or netlab topology"),
    "a cable to itself": (
        "x.yml",
        CLAB % ("h: {}", "- endpoints: [leaf1:eth8, leaf1:eth9]"),
        r"x.yml:11: leaf1: containerlab says leaf1:eth8 – leaf1:eth9: a cable from a device to itself",
    ),
    "another key in a number": (
        "x.json",
        '{"DEVICE_METADATA": {"localhost": {"type": "ToRRouter"}}, "SWITCH_TRIMMING": {"GLOBAL": {"size":'
        ' "256\\n[dscp]\\ntrimmed = 9"}}, "DEVICE_NEIGHBOR": {"Ethernet0": {"name": "host1", "port": "e1"}}}',
        r"x.json: .*must be an integer",
    ),
    "only a configuration": ("x.conf", FRR % "!", r"x.conf: a fabric must have at least one host with cables"),
}


def whole(path: Path) -> Imported:
    facts = read([path])
    return imported(facts, shape_of(facts), "x")


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_file_that_makes_no_fabric_is_refused_with_its_line(case: tuple[str, str | bytes, str], tmp_path: Path):
    name, text, why = case
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FabricError, match=why):
        whole(tmp_path / name)


def test_files_are_read_within_limits_and_links_are_not_followed(tmp_path: Path):
    folder = copy(tmp_path)
    (folder / "secret.yml").symlink_to("/etc/passwd")
    (folder / "notes.yml").write_text("hello: world\n")
    facts = read([folder])
    told = [str(remark) for remark in facts.remarks]
    assert any("secret.yml:1: a link or no regular file; not read" in each for each in told)
    assert any("notes.yml:1: of no form that is read; not used" in each for each in told)
    (folder / "big.json").write_bytes(b" " * ((16 << 20) + 1))
    with pytest.raises(OSError, match="must have at most 16777216 bytes"):
        read([folder])
    deep = tmp_path / "deep"
    (deep / "/".join("abcdefghijklmn")).mkdir(parents=True)
    with pytest.raises(FabricError, match="folders must be nested at most 12 deep"):
        read([deep])
    (tmp_path / "none").mkdir()
    with pytest.raises(FabricError, match="no file of a form that is read"):
        read([tmp_path / "none"])


def test_what_is_not_understood_is_listed_with_its_line(tmp_path: Path):
    folder = copy(tmp_path)
    config = folder / "config/p0-leaf1/frr.conf"
    last = len(config.read_text().splitlines()) + 1
    with config.open("a") as file:
        file.write("frobnicate 7\nrouter bgp 65001\n neighbor fe80::1 remote-as 65002\n")
    table = folder / "config/p0-leaf1/config_db.json"
    table.write_text(
        table.read_text().replace('{\n  "DEVICE_METADATA"', '{\n  "VXLAN_TUNNEL": {},\n  "DEVICE_METADATA"', 1)
    )
    with (folder / "topology.clab.yml").open("a") as file:
        file.write("    - endpoints: [p0-leaf1:eth30, host:veth7]\n    - type: mgmt-net\n")
    told = "\n".join(map(str, read([folder]).remarks))
    assert re.search(rf"frr.conf:{last}: p0-leaf1: line not understood: 'frobnicate 7'", told)
    assert re.search(rf"frr.conf:{last + 1}: 'router bgp 65001': only static tables are read", told)
    assert "neighbor" not in told
    assert re.search(r"config_db.json:2: p0-leaf1: table VXLAN_TUNNEL is not read", told)
    assert re.search(r"host:veth7: the topology has no such node; not used", told)
    assert re.search(r"link of type 'mgmt-net' with 0 endpoints", told)


def test_roles_may_be_said_and_a_wrong_one_is_refused(tmp_path: Path, capsys):
    text = CLAB % ("box7: {}", "- endpoints: [leaf1:eth3, box7:eth1]")
    (tmp_path / "x.yml").write_text(text)
    facts = read([tmp_path])
    assert imported(facts, shape_of(facts, [("box*", "host")]), "x").plan.host("box7").index in (0, 1)
    assert main(["topo", "import", str(tmp_path), "--role", "box*=server"]) == 2
    assert "--role must be PATTERN=ROLE with one of leaf, spine, core, host" in capsys.readouterr().err


def test_hosts_numbered_with_zeros_in_front_are_hosts_and_keep_their_names(tmp_path: Path):
    """h01 looks like a name of the lab's, and is none."""
    ends = "".join(f"    - endpoints: [p0l0:eth{n}, h0{n}:eth1]\n" for n in (1, 2))
    nodes = "topology:\n  nodes: {p0l0: {}, p0s0: {}, h01: {}, h02: {}}\n  links:\n"
    (tmp_path / "x.yml").write_text(f"{nodes}    - endpoints: [p0l0:eth9, p0s0:eth1]\n{ends}")
    plan = whole(tmp_path / "x.yml").plan
    assert [plan.host(name).index for name in ("h01", "h02")] == [0, 1]


@pytest.mark.parametrize(("key", "value"), [("speed", "²"), ("mtu", "²"), ("speed", "9" * 5000)])
def test_digits_that_make_no_number_are_no_number(key: str, value: str, tmp_path: Path):
    folder = copy(tmp_path)
    table = folder / "config/p0-leaf1/config_db.json"
    text, count = re.subn(rf'"{key}": "\d+"', f'"{key}": "{value}"', table.read_text(), count=1)
    assert count == 1
    table.write_text(text)
    assert whole(folder).plan.host_count == 4


def test_lists_in_lists_by_aliases_are_no_commands_and_no_ends(tmp_path: Path):
    """Deeper than Python writes lists out, and within the budget of values."""
    deep = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 1200))
    text = CLAB % ("spine2: {exec: [*a1199]}", "- endpoints: [*a1199, *a1199]")
    (tmp_path / "x.yml").write_text(deep + text)
    told = "\n".join(str(remark) for remark in read([tmp_path]).remarks)
    assert "x.yml:1207: spine2: command not understood" in told
    assert "x.yml:1211: link of type 'veth' with 2 endpoints: no cable between two nodes" in told


def test_what_a_neighbour_calls_itself_reaches_no_terminal(tmp_path: Path):
    folder = copy(tmp_path)
    shutil.copytree(FILES / "rack-lldp", folder / "lldp")
    table = folder / "lldp/p0-leaf1.txt"
    table.write_text(table.read_text().replace("p0-spine1", "p0-spine1\x1b[2J", 1))
    facts = read([folder])
    (told,) = (str(remark) for remark in facts.remarks if "neighbour" in remark.text)
    assert "p0-leaf1.txt:" in told
    assert told.isprintable()
    assert all(each.isprintable() for finding in shape_of(facts).findings for each in str(finding).split("\n"))


def test_yaml_is_text_with_lines_and_merge_keys():
    value = yaml_value("base: &base\n  kind: linux\n  no: 22:22\nx:\n  <<: *base\n  kind: other\n", "x.yml")
    assert value["x"] == {"kind": "other", "no": "22:22"}
    assert (value["x"].lines["kind"], value["x"].lines["no"]) == (6, 3)
    with pytest.raises(FabricError, match=r"x.yml:1: a key must be text"):
        yaml_value("? [a, b]\n: c\n", "x.yml")
    assert json_value('{"a": [1,\n null, "\\u00e9\\ud83d\\ude00"],\n "b": {}}', "x.json") == {
        "a": ["1", None, "é😀"],
        "b": {},
    }
    assert json_value('{"a": 1,\n "b": 2}', "x.json").lines == {"a": 1, "b": 2}
