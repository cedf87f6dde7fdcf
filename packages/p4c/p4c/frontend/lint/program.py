"""Warnings that need all paths of a compiled program."""

from p4c.frontend.diagnostics import Diagnostics, SourceSpan
from p4c.frontend.draft import Draft
from p4c.frontend.lint.paths import DROP, Paths, Place
from p4c.model.expressions import Const
from p4c.model.externs import Checksum
from p4c.model.program import Program


def lint(program: Program, draft: Draft, diagnostics: Diagnostics) -> None:
    """Warn of reads of nothing, accesses to invalid headers, and writes that no packet shows."""

    def tell(bit: int, never: bool, place: Place) -> None:
        span = _span(place)
        if span is None:
            return
        name = paths.effects.names[bit]
        if bit & paths.effects.headers:
            how = "is valid on no path to here" if never else "may be invalid here"
            note = "the value of a field of an invalid header is undefined, and what is written to it is lost"
            first = f"extract it or call {name}.setValid() first" if never else f"test {name}.isValid() first"
            diagnostics.warning("lint", f"header {name} {how}", span, note, first)
        else:
            how = "no value here" if never else "no value on some paths to here"
            diagnostics.warning("lint", f"variable {name} has {how}", span, "give it one where it is declared")

    paths = Paths(program, draft, tell)
    paths.walk()
    for one in program.checksums:
        _read_by_checksum(paths, one)
    _writes(program, paths, diagnostics)


def _read_by_checksum(paths: Paths, one: Checksum) -> None:
    places = [one.target, *paths.effects.inputs(one.calculation)]
    for place in places:
        paths.read["egress"] = paths.read.get("egress", 0) | paths.effects.place(place)


def _writes(program: Program, paths: Paths, diagnostics: Diagnostics) -> None:
    """Warn of headers that are changed and never emitted, and of metadata that comes too late."""
    emitted = {h.index for h in program.deparser.order}
    known = program.intrinsics
    late = {
        ("egress", known.egress_spec): "the egress port is chosen before egress",
        ("egress", known.mcast_grp): "packets are replicated before egress",
        ("egress", known.egress_port): "the egress port is chosen before egress",
        ("ingress", known.egress_port): "egress_port is set behind ingress, from egress_spec",
    }
    told = 0
    for part, p, target in paths.writes:
        span = _span(p.source)
        bit = paths.effects.place(target)
        if span is None:
            continue
        if bit & paths.effects.headers:
            if bit & paths.extracted & ~told & ~paths.removed and target.header.index not in emitted:
                told |= bit
                message = f"header {target.header.name} is changed here, but the deparser never emits it"
                diagnostics.warning(
                    "lint", message, span, f"write in the deparser: packet.emit(hdr.{target.header.name});"
                )
        elif (why := late.get((part, target))) is not None and not paths.read.get(part, 0) & bit:
            drops = target == known.egress_spec and isinstance(p.args[-1], Const) and p.args[-1].value == DROP
            if not drops:
                diagnostics.warning("lint", f"writing {target.field.name} in {part} has no effect: {why}", span)


def _span(place: Place) -> SourceSpan | None:
    if place is None or isinstance(place, SourceSpan):
        return place
    return SourceSpan(place.filename, place.line, place.column)
