"""`topo check`: clean fabrics are clean, and each planted misconfiguration is found, with device, line and fix.

The misconfigurations are in `planted.toml`.
"""

import shutil
import tomllib
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from cli.main import main
from fabric.checking import Checked, check
from fabric.reading import read

ROOT = Path(__file__).resolve().parents[2]
RACK, FILES = ROOT / "docs/templates/rack", Path(__file__).parent / "files"
CLEAN = {
    "containerlab, SONiC, FRR": ([RACK], 40),
    "with LLDP": ([RACK, FILES / "rack-lldp"], 40),
    "LLDP alone for cables": ([RACK / "config", FILES / "rack-lldp"], 40),
    "with NetBox": ([RACK, FILES / "rack-netbox"], 40),
    "netlab": ([RACK / "config", FILES / "rack-netlab"], 40),
    "FRR alone, another block": ([FILES / "routed"], 8),
    "SONiC alone": ([FILES / "sonic"], 4),
}


@pytest.mark.parametrize("paths", CLEAN.values(), ids=CLEAN)
def test_nothing_is_found_in_a_clean_fabric_and_every_ev_is_walked(paths: tuple[list[Path], int]):
    folders, evs = paths
    checked = check(read(folders))
    assert list(map(str, checked.findings)) == []
    assert (checked.walked, checked.right) == (evs, evs)


@dataclass(frozen=True)
class Planted:
    """A text in a file that is replaced, and parts of the finding: its device, text, line and fix."""

    file: str
    old: str
    new: str
    device: str
    text: str
    at: str = ""
    fix: str = ""
    all: bool = False


PLANTED = {
    name: Planted(**fields)
    for name, fields in tomllib.loads(Path(__file__).with_name("planted.toml").read_text()).items()
}


def planted(case: Planted, tmp_path: Path) -> tuple[Checked, list[str]]:
    """The checked fabric with one change, and the lines of the changed file."""
    top = case.file.partition("/")[0]
    folders = [top, "rack"] if top in ("rack-lldp", "rack-netbox") else [top]
    for name in folders:
        shutil.copytree(RACK if name == "rack" else FILES / name, tmp_path / name)
    file = tmp_path / case.file
    text = file.read_text()
    assert case.old in text
    file.write_text(text.replace(case.old, case.new, -1 if case.all else 1))
    return check(read([tmp_path / name for name in folders])), file.read_text().splitlines()


@pytest.mark.parametrize("case", PLANTED.values(), ids=PLANTED)
def test_a_planted_misconfiguration_is_found_with_device_line_and_fix(case: Planted, tmp_path: Path):
    checked, _ = planted(case, tmp_path)
    told = "\n".join(map(str, checked.findings))
    found = [
        each
        for each in checked.findings
        if each.device == case.device and case.text in each.text and case.fix in each.fix
    ]
    assert found, told
    lines = [Path(each.place.file).read_text().splitlines()[each.place.line - 1] for each in found]
    assert any(case.at in line for line in lines), (lines, told)


def test_more_than_twenty_kinds_are_planted():
    assert len(PLANTED) >= 20


def test_findings_end_with_1_and_a_clean_fabric_with_0(tmp_path: Path, capsys):
    assert main(["topo", "check", str(RACK)]) == 0
    assert (
        capsys.readouterr().out
        == "nothing found: 8 configurations, 40 of 40 EVs lead where they must, over 16 links, by uA\n"
    )
    shutil.copytree(FILES / "sonic", tmp_path / "sonic")
    (tmp_path / "sonic/agg-2.json").unlink()
    assert main(["topo", "check", str(tmp_path / "sonic"), "--json"]) == 1
    assert '"walked": 4' in capsys.readouterr().out


def test_uas_lists_of_a_foreign_plan_go_over_the_links_that_its_own_numbers_say():
    """Function bits of the template: f00S up to spine S + 1, e00L down to leaf L + 1, d000 into the job's VRF."""
    facts = read([RACK])
    checked = check(facts)
    for plane in range(2):
        for here in range(2):
            for spine in range(2):
                for there in range(2):
                    da = IPv6Address(f"fd10:{plane + 1}:f00{spine}:e00{there}:d000::")
                    host = f"gpu0{2 * there + 1}"
                    walk = checked.tables.walk(f"p{plane}-leaf{here + 1}", int(da), host)
                    assert walk.delivered
                    assert walk.last == host
                    assert list(map(str, walk.links)) == [
                        f"p{plane}-leaf{here + 1}:Ethernet{8 * spine}",
                        f"p{plane}-spine{spine + 1}:Ethernet{8 * there}",
                        f"p{plane}-leaf{there + 1}:Ethernet16",
                    ]
