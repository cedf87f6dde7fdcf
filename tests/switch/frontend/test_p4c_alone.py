"""The compiler is a package that can be installed and used without the lab."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).resolve().parents[3]
BUILD = "import sys; from hatchling import build; print(build.build_wheel(sys.argv[1]))"


def test_the_compiler_alone_compiles_what_the_clone_compiles(tmp_path: Path) -> None:
    words = [sys.executable, "-c", BUILD, str(tmp_path)]
    subprocess.run(words, cwd=ROOT / "packages" / "p4c", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "installed")
        (named,) = [name for name in packed.namelist() if name.endswith("entry_points.txt")]
        assert {name.partition("/")[0] for name in packed.namelist() if ".dist-info" not in name} == {
            "mrclab_p4c", "mrclab_p4c.pth"
        }  # fmt: skip
        (tree,) = packed.read("mrclab_p4c.pth").decode().split()
        assert b"mrclab-p4c = p4c.__main__:main" in packed.read(named)
    made = {}
    for name, place in (("alone", tmp_path / "installed" / tree), ("clone", f"{ROOT}:{ROOT / 'packages' / 'p4c'}")):
        environment = {"PYTHONPATH": str(place), "XDG_CACHE_HOME": str(tmp_path / name), "PATH": "/usr/bin"}
        command = [sys.executable, "-SP", "-m", "p4c", str(ROOT / "p4" / "leaf.p4"), "-o", str(tmp_path / name)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        made[name] = {file.name: file.read_bytes() for file in (tmp_path / name).glob("leaf.*")}
    assert sorted(made["alone"]) == ["leaf.json", "leaf.p4info.txtpb"]
    assert made["alone"] == made["clone"]
