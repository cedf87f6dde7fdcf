"""Cables of NetBox: the list of its API as JSON, the form of its import as CSV, and the export of its table as CSV."""

import csv
import io
from typing import Any

from fabric.facts import Cable, End, FabricError, Facts, Place, checked_name
from fabric.lines import Row, Table, rows

COLUMNS = (
    ("side_a_device", "side_a_name", "side_b_device", "side_b_name"),
    ("Device A", "Termination A", "Device B", "Termination B"),
)
ROWS_MAX = 1_000_000
FIELD_MAX = 4096
GONE = ("planned", "decommissioning", "Planned", "Decommissioning")


def is_netbox(value: Any) -> bool:
    """Whether a JSON document is a list of cables."""
    cables = value.get("results") if isinstance(value, Table) else value
    return isinstance(cables, Row) and bool(cables) and isinstance(cables[0], Table) and "a_terminations" in cables[0]


def is_netbox_csv(text: str) -> bool:
    """Whether the first line of a CSV file names the ends of cables."""
    first = text.partition("\n")[0]
    head = next(csv.reader(io.StringIO(first)), []) if len(first) <= FIELD_MAX else []
    return any(set(columns) <= set(head) for columns in COLUMNS)


def netbox(value: Any, file: str, facts: Facts) -> None:
    """Read the list of cables of the API."""
    for cable, line in rows(value.get("results") if isinstance(value, Table) else value):
        place = Place(file, line)
        if not isinstance(cable, Table):
            facts.remark(place, "a cable must be an object; not used")
            continue
        ends = [end for side in ("a_terminations", "b_terminations") for end in _ends(cable.get(side), place)]
        _cable(facts, ends, cable.table("status").text("value") or cable.text("status"), place)


def _ends(value: Any, place: Place) -> list[End]:
    ends = []
    for each, _ in rows(value):
        thing = each.table("object") if isinstance(each, Table) else Table(place.line)
        if each.text("object_type", "dcim.interface") == "dcim.interface" and thing.text("name"):
            ends.append(_end(thing.table("device").text("name"), thing.text("name"), place))
    return ends


def _end(device: str, port: str, place: Place) -> End:
    return End(checked_name(device, place, "device"), checked_name(port, place, "interface"))


def _cable(facts: Facts, ends: list[End], status: str, place: Place) -> None:
    if status in GONE:
        facts.remark(place, f"cable with the status {status!r}; not used")
    elif len(ends) != 2:
        facts.remark(place, f"cable with {len(ends)} interfaces, not one at each side; not used")
    else:
        facts.cables.append(Cable(ends[0], ends[1], place, "netbox"))


def netbox_csv(text: str, file: str, facts: Facts) -> None:
    """Read a CSV file of cables."""
    reader = csv.DictReader(io.StringIO(text))
    names = next(columns for columns in COLUMNS if set(columns) <= set(reader.fieldnames or ()))
    kinds = [column for column in ("side_a_type", "side_b_type") if column in (reader.fieldnames or ())]
    csv.field_size_limit(FIELD_MAX)
    try:
        for row in reader:
            place = Place(file, reader.line_num)
            if reader.line_num > ROWS_MAX:
                raise FabricError(f"{place}: more than {ROWS_MAX:,} rows")
            texts = [(row[name] or "").strip() for name in names]
            if not all(texts) or any(row[kind] != "dcim.interface" for kind in kinds):
                facts.remark(place, "cable without an interface at each side; not used")
                continue
            ends = [_end(texts[0], texts[1], place), _end(texts[2], texts[3], place)]
            _cable(facts, ends, row.get("status") or row.get("Status") or "", place)
    except csv.Error as error:
        raise FabricError(f"{Place(file, reader.line_num)}: {error}") from None
