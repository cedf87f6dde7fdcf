"""A wheel of the compiler brings the lab's ground floor, which it imports; in place, that is the clone's.

Both are in one folder, which `mrclab_p4c.pth` puts on the path, so that no `common` is at the top of site-packages.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).resolve().parent
TREE = "mrclab_p4c"


class WithGroundFloor(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        for root, name in ((HERE, "p4c"), (HERE.parents[1], "common")):
            held = [file for file in (root / name).rglob("*") if file.suffix in (".py", ".p4")]
            build_data["force_include"] |= {str(file): f"{TREE}/{file.relative_to(root)}" for file in held}
        build_data["force_include"][str(HERE / f"{TREE}.pth")] = f"{TREE}.pth"
