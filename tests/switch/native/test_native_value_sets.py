"""Value sets and clone sessions, on both engines; here, so that the sanitizers see them."""

from __future__ import annotations

import pytest

from switch.engine import EngineError, Replica
from switch.stf.programs import ENGINES
from tests.helpers.p4.made import Made

SETS: dict[str, tuple[str, list[tuple[int, ...]], list[str], list[str]]] = {
    "bit<8>": ("hdr.h.a", [(1,), (7,)], ["0100", "0700", "0701"], ["0001", "0200"]),
    "pair_t": ("hdr.h.a, hdr.h.b", [(1, 2), (3, 4)], ["0102", "0304"], ["0104", "0302", "0202"]),
    "bit<100>": ("(bit<100>) hdr.h.a ++ hdr.h.b", [(1 << 8 | 2,)], ["0102"], ["0201", "0002"]),
    "wide_t": ("92w1 ++ hdr.h.a, hdr.h.b", [(1 << 8 | 5, 9)], ["0509"], ["0905"]),
}


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", SETS)
def test_a_parser_selects_by_the_members_of_a_value_set(kind: str, name: str, tmp_path) -> None:
    key, members, inside, outside = SETS[kind]
    made = Made(
        tmp_path,
        top="struct pair_t { bit<8> a; bit<8> b; } struct wide_t { bit<100> a; bit<8> b; }",
        values=f"value_set<{kind.replace('bit<100>', 'bit<108>')}>(4) chosen;",
        states=f"transition select({key}) {{ chosen: marked; default: accept; }} }}"
        " state marked { m.x = 9; transition accept;",
        ingress="hdr.h.b = m.x;",
    )
    engine = made.engine(name)

    def marked() -> list[str]:
        return [frame for frame in (*inside, *outside) if made.sent(frame, engine) == [(1, frame[:2] + "09")]]

    assert marked() == []
    engine.set_value_set("P.chosen", members)
    assert marked() == inside
    engine.set_value_set("P.chosen", members[:1])
    assert marked() == [f for f in inside if f != inside[-1]] or len(members) == 1 or kind == "bit<8>"
    engine.set_value_set("P.chosen", [])
    assert marked() == []
    for wrong in ([(0,) * len(members[0])] * 5, [(1 << 200,) * len(members[0])], [(0, 0, 0)]):
        with pytest.raises(EngineError, match=r"value set P\.chosen"):
            engine.set_value_set("P.chosen", wrong)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", ["I2E", "E2E"])
def test_a_clone_has_the_class_of_service_of_its_session(kind: str, name: str, tmp_path) -> None:
    """P4Runtime, "CloneSessionEntry". v1model's class of service is standard_metadata.priority, queue 7 first."""
    call = f"if (s.instance_type == 0) clone(CloneType.{kind}, 5);"
    egress = "hdr.h.a = (bit<8>) s.priority; hdr.h.b = (bit<8>) s.instance_type;"
    made = Made(tmp_path, **{"ingress": call, "egress": egress} if kind == "I2E" else {"egress": egress + call})
    engine = made.engine(name)
    for service in (0, 6):
        engine.set_clone_session(5, [Replica(3, 0)], 0, service)
        instance = 1 if kind == "I2E" else 2
        assert sorted(made.sent("0102", engine)) == [(1, "0000"), (3, f"{service:02x}{instance:02x}")]
