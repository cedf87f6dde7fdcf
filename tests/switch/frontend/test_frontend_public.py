"""Constructs of public teaching programs that our own programs lack. Values are the specification's or p4c's."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4c.frontend import CompileError
from switch.reference import Trace
from switch.stf.programs import ENGINES
from tests.helpers.p4.made import WHOLE, Made


def refused(folder: Path, **parts: str) -> str:
    with pytest.raises(CompileError) as caught:
        Made(folder, **parts)
    return str(caught.value)


# --- the language's own examples -------------------------------------------------------------------------------------


def test_a_string_goes_on_over_line_ends_and_an_annotation_keeps_them(tmp_path: Path) -> None:
    """P4_16, "String literals": a string may hold line terminators. p4_pdpi of sonic-pins has such restrictions."""
    table = 'action n() {}\n@entry_restriction("a == 1;\n  b == 2;") table t { key = { m.x: exact; } actions = { n; } }'
    made = Made(tmp_path, local=table, ingress="t.apply();")
    assert r'annotations: "@entry_restriction(\"a == 1;\n  b == 2;\")"' in made.compiled.p4info_text


@pytest.mark.parametrize("more", ["", '\nlog_msg("three);'])
def test_an_error_behind_a_string_of_several_lines_tells_where_the_string_begins(more: str, tmp_path: Path) -> None:
    text = refused(tmp_path, ingress='log_msg("one);\nlog_msg("two");' + more)
    assert text.count("error[") == 1
    assert "note: the string that begins on line 14 goes on over line ends: is its closing quote missing?" in text


def test_a_header_becomes_invalid_by_its_invalid_value(tmp_path: Path) -> None:
    """P4_16 1.2.4, "Invalid header expression": {#} is an invalid header, and equal to every invalid header."""
    made = Made(tmp_path, ingress="if (hdr.i == {#}) { hdr.i = {7, 8}; } hdr.h = (h_t){#}; if (hdr.h == {#}) m.x = 1;")
    assert made.sent("0102aa") == [(1, "0708aa")]
    assert "{#} can stand only for a header" in refused(tmp_path, ingress="m.x = {#};")


# --- what p4c takes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "today"),
    [
        ("mark_to_drop();", "mark_to_drop(standard_metadata)"),
        ("clone3(CloneType.I2E, 7, {m.x});", "clone_preserving_field_list"),
        ("resubmit({m.x});", "resubmit_preserving_field_list"),
    ],
)
def test_deprecated_names_of_v1model_are_taken_with_a_note_of_todays_names(call, today, tmp_path) -> None:
    """p4c's v1model.p4 (34b86e9) declares them as deprecated, with these names in their place."""
    (warning,) = Made(tmp_path, ingress=call).warnings
    assert "is deprecated" in warning
    assert today in warning


def test_a_deprecated_drop_drops(tmp_path: Path) -> None:
    assert Made(tmp_path, ingress="mark_to_drop();").sent("0102") == []


def test_a_deprecated_resubmit_keeps_the_data_that_it_is_given(tmp_path: Path) -> None:
    """simple_switch.md: the metadata fields of the list keep their values, all others are zero again."""
    ingress = (
        "hdr.h.a = m.x; hdr.h.b = m.y; m.x = 5; m.y = 6; if (s.instance_type != 6) resubmit({m.x, s.ingress_port});"
    )
    assert Made(tmp_path, ingress=ingress).sent("0102") == [(1, "0500")]
    assert Made(tmp_path, egress="if (s.instance_type != 4) { m.x = 9; recirculate(0); } else hdr.h.a = m.x;").json


def test_a_deprecated_checksum_object_is_refused_with_todays_names(tmp_path: Path) -> None:
    """p4c's simple_switch backend has no Checksum16 either."""
    text = refused(tmp_path, local="Checksum16() ck;", ingress="m.x = (bit<8>) ck.get({hdr.h.a});")
    assert "verify_checksum/update_checksum" in text


def test_an_integer_becomes_a_value_of_a_new_type_with_a_warning(tmp_path: Path) -> None:
    """The specification asks for a cast; p4c takes it without (its sample newtype.p4, line 32; sonic-pins)."""
    made = Made(tmp_path, top="type bit<8> vrf_t; const vrf_t NONE = 0;", ingress="vrf_t v = 3; hdr.h.a = (bit<8>) v;")
    assert made.sent("0102") == [(1, "0302")]
    assert made.warnings == [
        f"an integer becomes a vrf_t without a cast, as in p4c; P4_16 asks for one: (vrf_t) {n}" for n in (0, 3)
    ]


@pytest.mark.parametrize("kind", ["action_profile(16)", "action_selector(HashAlgorithm.crc16, 16, 8)"])
def test_a_profile_without_a_name_is_called_as_in_the_json_of_p4c(kind: str, tmp_path: Path) -> None:
    """p4c makes `action_profile_0`, as the extern has the name without a number."""
    key = "m.x: exact; m.y: selector;" if "selector" in kind else "m.x: exact;"
    table = f"action n() {{}} table t {{ key = {{ {key} }} actions = {{ n; }} implementation = {kind}; }}"
    made = Made(tmp_path, local=table, ingress="t.apply();")
    (profile,) = made.json["pipelines"][0]["action_profiles"]
    assert profile["name"] == "action_profile_0"
    assert 'name: "action_profile_0"' in made.compiled.p4info_text
    assert 'write @name("…") before implementation' in made.warnings[0]


def test_a_control_plane_is_told_of_group_sizes_and_of_each_action_once(tmp_path: Path) -> None:
    """P4Info, "ActionProfile": `max_group_size`; of actions that a control calls, as p4c does."""
    table = "table t { key = { m.x: exact; m.y: selector; } actions = { n; } implementation = p; }"
    profile = "@max_group_size(16) action_selector(HashAlgorithm.crc16, 64, 16) p;"
    made = Made(tmp_path, local=f"{profile} action n() {{}} action c() {{}} {table}", ingress="t.apply(); c(); c();")
    assert "max_group_size: 16" in made.compiled.p4info_text
    assert made.compiled.p4info_text.count('name: "I.c"') == 1


@pytest.mark.parametrize("name", ENGINES)
def test_the_base_and_the_range_of_a_hash_may_be_told_at_run_time(name: str, tmp_path: Path) -> None:
    """v1model.p4: base + hash modulo max. 3 + 8 % 3."""
    hashed = "hash(m.y, HashAlgorithm.identity, hdr.h.a, {hdr.h.b}, hdr.h.a); hdr.h.b = m.y;"
    made = Made(tmp_path, ingress=hashed)
    assert made.sent("0308", made.engine(name)) == [(1, "0305")]


def test_a_translated_type_has_the_width_of_its_annotation(tmp_path: Path) -> None:
    """P4Runtime, "Translation of user-defined types": bit<W> is sdn_bitwidth W, string is sdn_string."""
    top = '@p4runtime_translation("a/b", {kind}) type bit<9> port_t;'
    table = "action to(port_t p) { s.egress_spec = (bit<9>) p; } table t { actions = { to; } }"
    for kind, told in (("bit<32>", "sdn_bitwidth: 32"), ("32", "sdn_bitwidth: 32"), ("string", "sdn_string {")):
        made = Made(tmp_path, top=top.format(kind=kind), local=table, ingress="t.apply();")
        assert told in made.compiled.p4info_text


def test_a_switch_in_an_action_is_taken_with_a_warning(tmp_path: Path) -> None:
    """The language has it (1.2.2); p4c's backend for BMv2 refuses it (its sample issue3299)."""
    action = "action a(bit<8> n) { switch (n) { 1: { m.x = 5; } default: { m.x = 6; } } hdr.h.a = m.x; }"
    made = Made(tmp_path, local=action, ingress="a(hdr.h.b);")
    assert made.sent("0001") == [(1, "0501")]
    assert "p4c refuses a switch in an action" in made.warnings[0]


@pytest.mark.parametrize("word", ["assert", "assume"])
@pytest.mark.parametrize("condition", ["m.x == 0", "hdr.h.a == 2", "hdr.h.isValid() && m.x > 3"])
def test_an_assertion_that_fails_is_told_by_the_trace_and_changes_no_packet(condition, word, tmp_path) -> None:
    """p4c's v1model.p4: what happens is the target's; the intent is to record which failed. SAI P4 has some."""
    made = Made(tmp_path, ingress=f"{word}({condition});")
    trace = Trace()
    assert made.sent("0102", made.engine("reference", trace)) == [(1, "0102")]
    assert [step.kind for step in trace.steps].count("assertion") == (condition != "m.x == 0")
    assert "assertion failed" in trace.text() or condition == "m.x == 0"
    assert made.sent("0102", made.engine("native")) == [(1, "0102")]


def test_a_checksum_covers_joined_fields_like_the_fields_one_by_one(tmp_path: Path) -> None:
    """p4c takes such data (its sample issue1765). RFC 1071 over 0x0102: the complement is 0xfefd."""
    data = {"apart": "{hdr.h.a, hdr.h.b}", "joined": "{hdr.h.a ++ hdr.h.b}", "constant": "{8w1 ++ hdr.h.b}"}
    data["cast"] = "{(bit<24>) hdr.h.a, (bit<8>) hdr.h.b}"  # as in issue1765-1: zeros before the field
    for name, inputs in data.items():
        update = f"update_checksum(true, {inputs}, m.sum, HashAlgorithm.csum16);"
        part = {"compute": update + "update_checksum(true, {m.sum, 16w0xffff}, hdr.i.sum, HashAlgorithm.csum16);"}
        source = WHOLE.replace("struct meta_t {{ ", "struct meta_t {{ bit<16> sum; ")
        source = source.replace("h_t h; h_t i;", "h_t h; sum_t i;")
        source = source.replace("struct headers", "header sum_t {{ bit<16> sum; }}\nstruct headers", 1)
        made = Made(tmp_path, source, ingress="hdr.i.setValid();", **part)
        assert made.sent("0102") == [(1, "01020102")], name


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stack_of_unions_is_assigned_as_a_whole(engine: str, tmp_path: Path) -> None:
    """p4c's sample wrong-warning."""
    source = WHOLE.replace(
        "struct headers {{ h_t h; h_t i; }}",
        "header_union u_t {{ h_t p; h_t q; }} struct headers {{ h_t h; u_t[2] u; }}",
    )
    ingress = "u_t[2] other; other[1].q.setValid(); other[1].q = {7, 8}; hdr.u = other;"
    made = Made(tmp_path, source, ingress=ingress)
    assert made.sent("0102", made.engine(engine)) == [(1, "01020708")]


def test_an_error_is_a_number_in_a_message(tmp_path: Path) -> None:
    """p4c's sample issue2201. NoMatch is the third error of core.p4."""
    made = Made(tmp_path, ingress='log_msg("{}", {error.NoMatch});')
    trace = Trace()
    made.sent("0102", made.engine("reference", trace))
    assert [step.data["message"] for step in trace.steps if step.kind == "log"] == ["2"]


# --- loops (P4_16 1.2.5, "For statement"): each value is worked out by hand -------------------------------------------

LOOPS = {
    "for (bit<8> i = 1; i <= 4; i = i + 1) { n = n + i; }": 10,
    "for (bit<8> i = 0; i < 10; i = i + 1) { if (i < 5) { n = n + 1; } }": 5,
    "for (bit<3> i = 0; i < 7; i = i + 3) { n = n + (bit<8>) i; }": 0 + 3 + 6 + 1 + 4,
    "bit<3> i; for (i = 0; i < 7; i = i + 3) { n = n + 1; } n = n + (bit<8>) i;": 5 + 7,
    "for (bit<8> i = 0, bit<8> j = i; i < 3; i = i + 1, j = j + 2) { n = n + j; }": 0 + 2 + 4,
    "for (bit<8> i = 0, bit<8> j = i; i < 3; i = i + 1) { j = j + 5; n = n + j; }": 5 + 10 + 15,
    "for (bit<8> i = 0; i < 3; i = i + 1) { for (bit<8> j = i; j < 3; j = j + 1) { n = n + 1; } }": 6,
    "for (bit<8> i = 0; i < 8; i = i + 1) { if (i == hdr.h.a) { break; } n = n + 1; }": 3,
    "for (bit<8> i = 0; i < 8; i = i + 1) { if (i == hdr.h.a) { continue; } n = n + i; }": 28 - 3,
    "for (bit<8> i = 0; i < 8; i = i + 1) { if (i == 1) { continue; } if (i == hdr.h.a) { break; } n = n + i; }": 0 + 2,
    "for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { n = n + 2; }": 6,
    "bit<3> c = (bit<3>) hdr.h.a; for (bit<3> i = 0; i < c; i = i + 1) { for (bit<3> j = 0; j < c; j = j + 1) {"
    " n = n + 1; } }": 9,
    "for (bit<8> i in 1..5) { n = n + i; }": 15,
    "for (bit<8> i in 1..5) { i = i + 1; n = n + i; }": 20,
    "for (bit<8> i in 5..1) { n = n + i; }": 0,
    "bit<8> m = 4; for (bit<8> i in (list<bit<8>>) {1, 2, m, m + 1}) { n = n + i; m = 32; }": 12,
    "for (bit<8> i in 0..3) { bit<8> k = i; k = k + 1; n = n + k; }": 10,
    "for (bit<8> i = 0; i < 4; i = i + 1) { if (i == hdr.h.a) { hdr.h.b = n; return; } n = n + 7; } n = 99;": 21,
    "for (bit<8> i in 0..1) { for (bit<8> j in 0..3) { if (j == 1) { continue; }"
    " if (j == hdr.h.a) { hdr.h.b = n; return; } n = n + 1; } }": 2,
}


RUN_TIME_LOOPS = {
    "for (bit<8> i = 0; i < 8; i = i + 1) { i = i + 1; n = n + 1; }": 4,  # p4c's sample issue4739
    "for (bit<8> i = hdr.h.a; i < 8; i = i + 1) { n = n + i; }": 3 + 4 + 5 + 6 + 7,
    "for (bit<16> i = 0; i < 2000; i = i + 1) { n = n + 1; }": 2000 % 256,
    "for (bit<2> i = 0; hdr.h.a > 0; i = i + 1) { hdr.h.a = hdr.h.a - 1; n = n + (bit<8>) i; } hdr.h.a = 3;": 0 + 1 + 2,
    "for (bit<8> i in 1..hdr.h.a) { n = n + i; i = 9; }": 6,
    "for (bit<8> i in hdr.h.a..255) { n = n + 1; }": 253,
    "for (bit<8> i in hdr.h.a..2) { n = n + 1; }": 0,
    "bit<8> k = 0; for (bit<8> i = k; i < 9; i = i + 1) { if (i == hdr.h.a) { break; } n = n + 1; }": 3,
    "bit<8> k = 0; for (bit<8> i = k; i < 9; i = i + 1) { if (i == hdr.h.a) { continue; } if (i == 6) { break; }"
    " n = n + i; }": 0 + 1 + 2 + 4 + 5,
    "for (bit<8> i in 1..hdr.h.a) { for (bit<8> j in i..hdr.h.a) { if (j == 2) { continue; } n = n + j; } }": 1 + 3 * 3,
    # unrolled, 254 rounds of up to 254: more than a program may become
    "for (bit<8> i = 1; i < hdr.h.a; i = i + 1) { for (bit<8> j = i; j < hdr.h.a; j = j + 1) {"
    " if (j == 1) { n = n + 1; } if (j == 2) { n = n + 5; } if (j == 3) { n = n + 9; } } }": 1 + 5 + 5,
    "for (bit<8> i in 1..hdr.h.a) { if (i == 2) { hdr.h.b = n; return; } n = n + 7; } n = 99;": 7,
    "for (bit<8> i in 1..hdr.h.a) { for (bit<8> j in 0..1) { if (j == 1) { hdr.h.b = n; return; } n = n + 7; } }": 7,
}


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("body", RUN_TIME_LOOPS)
def test_a_loop_that_ends_at_run_time_is_jumps_within_an_action(body: str, name: str, tmp_path: Path) -> None:
    statements = f"bit<8> n = 0; {body} hdr.h.b = n;"
    made = Made(tmp_path, ingress=statements)
    assert made.sent("03ff", made.engine(name)) == [(1, f"03{RUN_TIME_LOOPS[body]:02x}")]
    made = Made(tmp_path, local=f"action run() {{ {statements} }}", ingress="run();")
    assert made.sent("03ff", made.engine(name)) == [(1, f"03{RUN_TIME_LOOPS[body]:02x}")]


@pytest.mark.parametrize("name", ENGINES)
def test_a_loop_without_an_end_holds_no_switch(name: str, tmp_path: Path) -> None:
    """65,536 jumps back of an action are taken: here 65,537 rounds, which come to 1 in eight bits."""
    loop = "for (bit<8> i = 0; m.y == 0; m.x = m.x + 1) { } hdr.h.a = m.x;"
    made = Made(tmp_path, local=f"action run() {{ {loop} }}", ingress="run();")
    assert made.sent("0102", made.engine(name)) == [(1, "0102")]


@pytest.mark.parametrize("body", LOOPS)
@pytest.mark.parametrize("place", ["control", "action", "function"])
def test_a_loop_is_unrolled(body: str, place: str, tmp_path: Path) -> None:
    statements = f"bit<8> n = 0; {body} hdr.h.b = n;"
    if place == "control":
        made = Made(tmp_path, ingress=statements)
    elif place == "action":
        made = Made(tmp_path, local=f"action run() {{ {statements} }}", ingress="run();")
    else:
        inside = statements.replace("hdr.h.", "h.")
        made = Made(tmp_path, top=f"void run(inout h_t h) {{ {inside} }}", ingress="run(hdr.h);")
    assert made.sent("03ff") == [(1, f"03{LOOPS[body]:02x}")]


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (
            "for (bit<8> i = m.x; i < 8; i = i + 1) { t.apply(); }",
            "a loop must have at most 1024 rounds, told at compile",
        ),
        ("for (bit<8> i in 1..m.x) { t.apply(); }", "a loop must have at most 1024 rounds, told at compile time"),
        ("for (i in 1..6) { }", "the variable of a loop over a range or list is declared in it"),
        ("for (bit<8> i = 0; i < 8; i = i + 1) { } m.x = i;", "there is nothing named i here"),
        ("for (bit<8> i = 0; i; i = i + 1) { }", "the condition of a loop must be a bool, not bit<8>"),
        ("for (bit<8> i = 0; ; i = i + 1) { m.x = i; } m.y = 1;", "expected an expression, found ';'"),
        ("for (bit<8> i = 0; i < (1; i = i + 1) m.x = 2; m.y = 1;", "expected ')', found ';'"),
        ("break;", "break needs a loop around it"),
        ("continue;", "continue needs a loop around it"),
    ],
)
def test_a_loop_that_cannot_be_is_refused_with_one_error(loop: str, message: str, tmp_path: Path) -> None:
    text = refused(tmp_path, local="table t { actions = { NoAction; } }", ingress=loop)
    assert message in text
    assert text.count("error[") == 1


def test_a_control_is_given_to_a_constructor_by_its_type(tmp_path: Path) -> None:
    """P4_16, "Parameterization": a constructor's parameter may be a control (p4c's samples issue1566, issue496)."""
    top = """control step(inout bit<8> v);
    control add(inout bit<8> v) { apply { v = v + 1; } }
    control twice(inout bit<8> v)(step c) { apply { c.apply(v); c.apply(v); } }"""
    made = Made(tmp_path, top=top, local="add() a; twice(a) t;", ingress="t.apply(hdr.h.a);")
    assert made.sent("0102") == [(1, "0302")]
    wide = top + " control wide(inout bit<16> v) { apply { } }"
    text = refused(tmp_path, top=wide, local="wide() w; twice(w) t;", ingress="t.apply(hdr.h.a);")
    assert "parameter v of wide must be of type bit<8>, not bit<16>" in text


def test_a_typedef_keeps_the_type_arguments_of_an_extern(tmp_path: Path) -> None:
    """P4_16, "typedef": a synonym of the whole type (p4c's sample issue2735)."""
    use = "r.write(1, hdr.h.b); r.read(hdr.h.a, 1);"
    made = Made(tmp_path, top="typedef register<bit<8>> cells_t;", local="cells_t(4) r;", ingress=use)
    assert made.sent("0102") == [(1, "0202")]


def test_a_select_may_have_no_keys(tmp_path: Path) -> None:
    """P4_16, "select expressions": the list of expressions may be empty (p4c's sample issue1291)."""
    assert Made(tmp_path, states="transition select() { default: accept; }").sent("0102") == [(1, "0102")]


def test_a_selector_key_without_a_selector_is_left_out_with_a_warning(tmp_path: Path) -> None:
    """p4c's backend skips such keys, and its P4Info has no selector keys (its sample issue1560)."""
    local = "action n() { m.x = 5; } table t { key = { hdr.h.a: exact; m.y: selector; } actions = { n; } }"
    made = Made(tmp_path, local=local, ingress="t.apply(); hdr.h.b = m.x;")
    assert made.warnings == ["this key of table I.t selects nothing: the table has no action_selector"]
    (table,) = (t for t in made.json["pipelines"][0]["tables"] if t["name"] == "I.t")
    assert [key["match_type"] for key in table["key"]] == ["exact"]
    assert made.compiled.p4info_text.count("match_fields") == 1


HIT = """action set(bit<8> v) { hdr.h.b = v; }
table inner { key = { hdr.h.a: exact; } actions = { NoAction; } const entries = { 1: NoAction(); } }
table outer {
    key = { inner.apply().hit: exact @name("hit"); hdr.h.b: exact; }
    actions = { set; }
    const entries = { (true, 2): set(9); {false, 2}: set(8); }
}"""


@pytest.mark.parametrize("name", ENGINES)
def test_a_key_may_apply_another_table_and_an_entry_stand_in_braces(name: str, tmp_path: Path) -> None:
    """P4_16, "match_action_unit": keys are computed at each apply. p4c's samples issue2362 and action-two-params."""
    made = Made(tmp_path, local=HIT, ingress="outer.apply();")
    assert made.sent("0102", made.engine(name)) == [(1, "0109")]
    assert made.sent("0302", made.engine(name)) == [(1, "0308")]
    with_itself = "table t { key = { t.apply().hit: exact; } actions = { NoAction; } }"
    assert "there is nothing named t here" in refused(tmp_path, local=with_itself, ingress="t.apply();")


@pytest.mark.parametrize("name", ENGINES)
def test_a_lookahead_may_have_a_stack_of_headers(name: str, tmp_path: Path) -> None:
    """P4_16, "lookahead": any type of fixed size (p4c's sample issue2465)."""
    ahead = "w = p.lookahead<two_t>(); hdr.i = w.t[1]; transition accept;"
    made = Made(tmp_path, top="struct two_t { h_t[2] t; }", values="two_t w;", states=ahead)
    assert made.sent("010203040506", made.engine(name)) == [(1, "0102050603040506")]


@pytest.mark.parametrize("name", ENGINES)
def test_next_and_last_of_a_stack_may_be_assigned_and_copied(name: str, tmp_path: Path) -> None:
    """P4_16, "Operations on header stacks": next is the element behind the last one extracted, and stays it.
    p4c's samples next-def-use and issue1607."""
    steps = "p.extract(t.next); t.next = {7, 8}; hdr.i = t.last; m.x = t[1].a; transition accept;"
    made = Made(tmp_path, values="h_t[3] t;", states=steps, ingress="hdr.h.a = m.x;")
    assert made.sent("01020304", made.engine(name)) == [(1, "07020304")]


@pytest.mark.parametrize("name", ENGINES)
def test_a_list_is_assigned_to_an_element_chosen_at_run_time(name: str, tmp_path: Path) -> None:
    """P4_16, "Evaluation order": the index is evaluated once, before the fields that it reads are written."""
    steps = "h_t[3] t; t[0] = {2, 0}; t[1] = {0, 0}; t[t[0].a & 1] = {1, hdr.h.b}; hdr.i = t[0];"
    made = Made(tmp_path, ingress=steps)
    assert made.sent("0106", made.engine(name)) == [(1, "01060106")]


@pytest.mark.parametrize("name", ENGINES)
def test_an_element_chosen_at_run_time_has_a_validity(name: str, tmp_path: Path) -> None:
    """P4_16, "Operations on header stacks" (p4c's sample control-hs-index-test3). Beyond the stack none is valid."""
    steps = "h_t[3] t; t[1].setValid(); if (t[hdr.h.a].isValid()) { hdr.h.b = 9; }"
    made = Made(tmp_path, ingress=steps)
    sent = [made.sent(frame, made.engine(name)) for frame in ("0002", "0102", "0402")]
    assert sent == [[(1, "0002")], [(1, "0109")], [(1, "0402")]]


PAIRS = """struct pair<T, U> { T a; U b; } header box<T> { T v; T w; }
struct both { box<bit<8>> n; box<bit<16>> w; } typedef pair<bit<8>, box<bit<8>>> mixed;"""


@pytest.mark.parametrize("name", ENGINES)
def test_structs_and_headers_have_type_parameters(name: str, tmp_path: Path) -> None:
    """P4_16, "Generic types": each choice of arguments is one type (p4c's sample issue4835-generic-struct)."""
    steps = """both t; t.n = {hdr.h.a, 7}; t.w = {(bit<16>) hdr.h.b, 0};
    mixed q = {1, t.n}; pair<bit<8>, box<bit<8>>> r = q;
    hdr.h.a = r.b.w + r.a; hdr.h.b = (bit<8>) t.w.v + r.b.v;"""
    made = Made(tmp_path, top=PAIRS, ingress=steps)
    assert made.sent("0102", made.engine(name)) == [(1, "0803")]


@pytest.mark.parametrize(
    ("top", "steps", "message"),
    [
        (PAIRS, "box<bit<8>> a; box<bit<16>> b; a = b;", "value of type header box<bit<8>>, not header box<bit<16>>"),
        (PAIRS, "pair<bit<8>> a;", "pair takes 2 type arguments, not 1"),
        (PAIRS, "pair a;", "pair takes 2 type arguments, not 0"),
        ("struct chain<T> { T head; chain<tuple<T>> tail; }", "chain<bit<8>> a;", "chain takes no type arguments"),
    ],
)
def test_type_arguments_that_do_not_fit_are_told(top: str, steps: str, message: str, tmp_path: Path) -> None:
    text = refused(tmp_path, top=top, ingress=steps)
    assert message in text
    assert text.count("error[") == 1


def test_generic_types_that_double_are_refused_and_take_no_memory(tmp_path: Path) -> None:
    top = "struct none<T, U> { } typedef none<bit<8>, bit<8>> t0;"
    top += "".join(f" typedef none<t{n}, t{n}> t{n + 1};" for n in range(40))
    assert Made(tmp_path, top=top).sent("0102") == [(1, "0102")]
    with pytest.raises(CompileError, match="a type must have at most 65536 fields"):
        Made(tmp_path, top=top.replace("{ }", "{ T a; U b; }"))


def test_the_body_of_an_annotation_is_free_text(tmp_path: Path) -> None:
    """P4_16, "Free-form annotations": any tokens with matching parentheses; p4c's sample free-form-annotation."""
    table = "@note(- That's (it): it's\n`all`.) table t { actions = { NoAction; } }"
    assert Made(tmp_path, local=table, ingress="t.apply();").sent("0102") == [(1, "0102")]
    text = refused(tmp_path, local="@note(it's) table t { actions = { NoAction; }' }", ingress="t.apply();")
    assert text.count('the character "\'" has no meaning in P4') == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_union_of_a_stack_may_be_chosen_at_run_time(engine: str, tmp_path: Path) -> None:
    """P4_16, "Operations on header unions": making a member valid makes the others invalid (p4c's sample
    invalid-hdr-warnings6). Outside of the stack nothing is valid, and what is written is lost."""
    top = "header a_t { bit<8> v; } header b_t { bit<8> v; } header_union u_t { a_t a; b_t b; }"
    steps = """u_t[2] u; u[1].a = {5}; bit<8> i = hdr.h.a; u[0] = u[i]; if (u[i].a.isValid()) { hdr.h.b = u[i].a.v; }
    u[i].b = {6}; if (u[1].a.isValid() || !u[i].isValid()) { hdr.h.b = 99; } hdr.h.a = u[i].b.v + u[0].a.v;"""
    made = Made(tmp_path, top=top, ingress=steps)
    assert made.sent("0102", made.engine(engine)) == [(1, "0b05")]
    assert made.sent("0702", made.engine(engine)) == [(1, "0063")]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copied_header_that_is_invalid_leaves_the_fields_of_the_target(engine: str, tmp_path: Path) -> None:
    """As simple_switch's assign_header does. Found by random programs: the native engine copied the fields of invalid
    headers in stacks and unions as well."""
    top = "header a_t { bit<8> v; } header b_t { bit<8> v; } header_union u_t { a_t a; b_t b; }"
    steps = """a_t[2] k; a_t[2] q; k[1] = {7}; k[1].setInvalid(); q[1] = {9}; q[1].setInvalid(); k = q;
    hdr.h.a = k[1].v; u_t[2] u; u[0].a = {3}; u[1].a = {5}; u[1].b = {6}; u[hdr.h.b] = u[1];
    hdr.h.b = u[0].a.v + u[0].b.v;"""
    made = Made(tmp_path, top=top, ingress=steps)
    assert made.sent("0100", made.engine(engine)) == [(1, "0709")]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_parser_extracts_into_an_element_chosen_at_run_time(engine: str, tmp_path: Path) -> None:
    """P4_16, "Operations on header stacks", and p4c's sample parser-unroll-test1, which p4c unrolls: an index outside
    of the stack is StackOutOfBounds. An int at run time has no limit until it is cast."""
    top = "header a_t { bit<8> v; } header b_t { bit<16> v; } header_union u_t { a_t a; b_t b; }"
    states = """k[0].setInvalid(); p.extract(k[hdr.h.a]); u[1].a = {9}; p.extract(u[hdr.h.a - 1].b); hdr.i.setValid();
    hdr.i.a = (bit<8>) ((int) (int<8>) hdr.h.b + 1); if (k[2].isValid()) hdr.i.b = k[2].a + (bit<8>) u[1].b.v;
    transition accept;"""
    ingress = """if (s.parser_error == error.StackOutOfBounds) s.egress_spec = 3;
    if ((int) hdr.h.b * 300 - 5 > 38094) hdr.h.b = (bit<8>) (((int) hdr.h.b << 9) >> 8);"""
    made = Made(tmp_path, top=top, values="h_t[3] k; u_t[2] u;", states=states, ingress=ingress)
    for frame, sent in (
        ("0207aabb0102", (1, "020708ac")),
        ("0280aabb0102", (1, "020081ac")),
        ("017faabb0102", (1, "01fe8000")),
        ("0307aabb", (3, "0307aabb")),
        ("0007aabb0102", (3, "00070102")),
    ):
        assert made.sent(frame, made.engine(engine)) == [sent]


@pytest.mark.parametrize(
    "states", ["transition select((int) hdr.h.a + 1) { 3: accept; }", "p.extract(k[(int) m.x + 1]); transition accept;"]
)
def test_an_int_at_run_time_has_no_field(states: str, tmp_path: Path) -> None:
    text = refused(tmp_path, values="h_t[3] k;", states=states)
    assert "an int that is known at run time only must be cast to a type with a width here" in text
