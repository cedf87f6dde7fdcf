"""Files and folders in, facts out. Every file is taken for hostile: its size, its depth, its names and its links."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import plain_file
from fabric.facts import FabricError, Facts, Place
from fabric.forms import containerlab, frr, neighbours, netbox, sonic
from fabric.lines import json_value, yaml_value

FILES_MAX = 20_000
FOLDERS_DEEP = 12
FILE_BYTES_MAX = 16 << 20
BYTES_MAX = 512 << 20
ENDINGS = (".yml", ".yaml", ".json", ".conf", ".cfg", ".csv", ".txt")


@dataclass(frozen=True, slots=True)
class Form:
    """A form of file: in which order it is read, and the function that reads a value of it."""

    name: str
    order: int
    fits: Callable[[Any], bool]
    read: Callable[[Any, str, str, Facts], None]
    own: Callable[[Any], str] = lambda value: ""
    """The name of the device that the file itself gives."""


YAML = (
    Form(
        "containerlab", 0, containerlab.is_containerlab, lambda v, f, n, facts: containerlab.containerlab(v, f, facts)
    ),
    Form("netlab", 0, containerlab.is_netlab, lambda v, f, n, facts: containerlab.netlab(v, f, facts)),
)
JSON = (
    Form("sonic", 2, sonic.is_sonic, sonic.sonic, sonic.hostname),
    Form("lldp", 4, neighbours.is_lldp, neighbours.lldp),
    Form("netbox", 1, netbox.is_netbox, lambda v, f, n, facts: netbox.netbox(v, f, facts)),
)
TEXT = (
    Form("lldp", 4, neighbours.is_lldp_table, neighbours.lldp_table),
    Form("frr", 3, frr.is_frr, frr.frr, frr.hostname),
    Form("netbox", 1, netbox.is_netbox_csv, lambda v, f, n, facts: netbox.netbox_csv(v, f, facts)),
)


def read(paths: Sequence[Path]) -> Facts:
    """Everything that files and folders say. FabricError or OSError."""
    facts = Facts()
    found: list[tuple[Form, str, Any]] = []
    size = 0
    for path in paths:
        folder = path.is_dir()
        for file in _files(path, facts) if folder else [path]:
            text = _text(file)
            if (size := size + len(text)) > BYTES_MAX:
                raise FabricError(f"{file}: all files together must have at most {BYTES_MAX >> 20} MiB")
            form, value = _form(text, str(file))
            if form is not None:
                found.append((form, str(file), value))
            elif folder:
                facts.remark(Place(str(file), 1), "of no form that is read; not used")
            else:
                raise FabricError(
                    f"{file}:1: must be a containerlab or netlab topology, a SONiC CONFIG_DB, an FRR configuration, an"
                    " LLDP neighbour table or a list of cables from NetBox"
                )
    if not found:
        raise FabricError(f"{', '.join(map(str, paths))}: no file of a form that is read ({', '.join(ENDINGS)})")
    for form, name, value in sorted(found, key=lambda each: (each[0].order, each[1])):
        facts.files[name] = form.name
        form.read(value, name, _device(form, name, value, facts), facts)
    return facts


def _files(folder: Path, facts: Facts) -> Iterator[Path]:
    """The files of a folder with a known ending, by name. Links are not followed."""
    count = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        if len(Path(place).relative_to(folder).parts) >= FOLDERS_DEEP:
            raise FabricError(f"{place}: folders must be nested at most {FOLDERS_DEEP} deep")
        for name in sorted(names):
            count += 1
            if count > FILES_MAX:
                raise FabricError(f"{folder}: must have at most {FILES_MAX:,} files")
            file = Path(place, name)
            if file.is_symlink() or not file.is_file():
                facts.remark(Place(str(file), 1), "a link or no regular file; not read")
            elif file.suffix.lower() in ENDINGS:
                yield file


def _text(file: Path) -> str:
    try:
        return plain_file.read_named(file, FILE_BYTES_MAX)
    except UnicodeDecodeError as error:
        raise FabricError(f"{file}:1: must be text ({plain_file.text_fault(error)})") from None


def _form(text: str, file: str) -> tuple[Form | None, Any]:
    """The form of a text and its value; None for no form."""
    value: Any = text
    forms: Sequence[Form] = TEXT
    if file.lower().endswith((".yml", ".yaml")):
        forms, value = YAML, yaml_value(text, file)
    elif file.lower().endswith(".json"):
        forms, value = JSON, json_value(text, file)
    return next((form for form in forms if form.fits(value)), None), value


def _device(form: Form, file: str, value: Any, facts: Facts) -> str:
    """The device whose file it is: by its own word, else by a known name in the file's, else by its folder or name."""
    path = Path(file)
    if own := form.own(value):
        return own
    stem = path.name.partition(".")[0]
    names = [path.stem, stem, path.parent.name]
    known = [name for name in names if name in facts.devices]
    general = stem in ("frr", "config_db", "lldp", "neighbors", "neighbours")
    return known[0] if known else path.parent.name if general else stem
