"""Small sources that cost the compiler unbounded work, or crashed it. Each must end in a program or in a diagnostic."""

import contextlib
from pathlib import Path

import pytest

from p4c.frontend import Compiled, CompileError
from p4c.frontend.compilation import Compilation
from p4c.frontend.diagnostics import Diagnostics
from p4c.frontend.parse.preprocessor import STANDARD_INCLUDE, Preprocessor
from p4c.model.expressions import FieldRef

COMMON = Path(__file__).parent / "bad"  # has common.p4
PROGRAM = """{top}
#include "common.p4"
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    action n() {{ }}
    {before}
    apply {{ {body} }}
}}
V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
"""


def compiled(directory: Path, body: str = "", *, before: str = "", top: str = "", transition: str = "") -> Compiled:
    """A whole program with `body` in the ingress control's apply block, and `transition` in the parser."""
    source = directory / "hostile.p4"
    source.write_text(PROGRAM.format(body=body, before=before, top=top))
    if transition:
        common = (COMMON / "common.p4").read_text()
        (directory / "common.p4").write_text(common.replace("transition accept;", f"transition {transition}"))
    return Compilation(source, [COMMON]).run()


def refused(directory: Path, message: str, body: str = "", **parts: str) -> None:
    """The program is refused with `message` and a place in the source."""
    with pytest.raises(CompileError, match=r"\.p4:\d+:\d+: error") as caught:
        compiled(directory, body, **parts)
    assert message in str(caught.value)


def preprocessed(directory: Path, text: str) -> tuple[list[str], list[str]]:
    """The tokens of `text`, and the messages of its errors."""
    source = directory / "hostile.p4"
    source.write_text(text)
    diagnostics = Diagnostics()
    tokens = Preprocessor(diagnostics).run(source)
    assert all(d.span.line > 0 for d in diagnostics.errors)
    return [t.text for t in list(tokens)[:-1]], [d.message for d in diagnostics.errors]


# --- work that doubles with each level --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("opening", "middle", "closing"),
    [
        ("(hdr.more[(bit<32>)", "hdr.data.a", "].a + 1)"),
        ("(s[", "0", "] + 1)"),
        ("a < t[", "0", "]"),
        ("(bit<(", "8", ")>)"),
    ],
    ids=["casts", "stack types", "type arguments", "widths"],
)
def test_nested_guesses_are_each_made_once(opening: str, middle: str, closing: str, tmp_path: Path) -> None:
    source = tmp_path / "deep.p4"
    source.write_text("const bit<8> x = " + opening * 300 + middle + closing * 300 + ";")
    compilation = Compilation(source)
    with contextlib.suppress(CompileError):
        compilation.parse()
    assert all(d.phase == "parse" for d in compilation.diagnostics.items)


MACROS = {
    "double": ["#define A0 1 +", *(f"#define A{i + 1} A{i} A{i}" for i in range(24)), "A24"],
    "pass arguments on": ["#define D0(x) x x", *(f"#define D{i + 1}(x) D{i}(x) D{i}(x)" for i in range(24)), "D24(1)"],
    "nest arguments": ["#define F(x) x", "F(" * 4000 + "1"],
    "square": ["#define A0 (1 << 4000)", *(f"#define A{i + 1} (A{i} * A{i})" for i in range(12)), "#if A12", "#endif"],
}


@pytest.mark.parametrize("what", MACROS)
def test_macros_without_an_end_are_refused(what: str, tmp_path: Path) -> None:
    _, errors = preprocessed(tmp_path, "\n".join(MACROS[what]))
    message = "must fit in 4096 bits" if what == "square" else "macros must expand to at most"
    assert any(message in error for error in errors)
    assert len(errors) == 1 or what == "nest arguments", errors


def test_a_long_chain_of_macros_is_refused(tmp_path: Path) -> None:
    lines = ["#define A0 1", *(f"#define A{i + 1} A{i}" for i in range(400)), "A400 A100"]
    tokens, errors = preprocessed(tmp_path, "\n".join(lines))
    assert "macros must nest at most" in errors[0]
    assert tokens[-1] == "1"


EMPTY = "table t {{ key = {{ hdr.data.a: range; }} actions = {{ n; }} const entries = {{ {} : n(); }} }}"
HIT = "table t { key = { hdr.data.a: exact; } actions = { n; } }"
MORE = "more; }} state more {{ {} transition accept;"
SQUARES = "const int c0 = 1 << 4096;" + "".join(f"const int c{i + 1} = c{i} @ c{i};" for i in range(40))
NO_BODY = {"top": "#include <core.p4>\nparser Declared(packet_in p);"}
KEYS, RANGES = ", ".join(["hdr.data.wide"] * 8), ", ".join(["1..65534"] * 8)
ON_CHOICES = ("t.apply().action_run : t.apply().action_run", "t.apply() : t.apply()).action_run")


@pytest.mark.parametrize(
    ("message", "body", "parts"),
    [
        *((f"the result of {op} must fit in 65535 bits", "", {"top": SQUARES.replace("@", op)}) for op in ("*", "<<")),
        (
            "the result of ++ must have at most 65535 bits, not 65536",
            "",
            {"top": "const bit<32768> c0 = 1; const bit<8> x = (bit<8>)((c0 ++ c0) ++ (c0 ++ c0));"},
        ),
        (
            "the ranges of a case must become at most 4096 values with masks",
            "",
            {"transition": f"select({KEYS}) {{ ({RANGES}): accept; }}"},
        ),
        ("the range 5..3 is empty", "t.apply();", {"before": EMPTY.format("5..3")}),
        ("the range 250..4 is empty", "t.apply();", {"before": EMPTY.format("250..(250 + 10)")}),
        ("the range 5..3 is empty", "", {"transition": "select(hdr.data.a) { 5..3: accept; }"}),
        (
            "the field p is given twice",
            "pair_t s; s = {p=1, q=2, p=3}; hdr.data.a = s.p;",
            {"top": "struct pair_t { bit<8> p; bit<8> q; }"},
        ),
        ("the field p is given twice", "hdr.data.a = {p=8w1, p=8w3}.p;", {}),
        ("a literal must fit in 65535 bits", f"hdr.data.a = {'9' * 20000};", {}),
        ("a literal must fit in 65535 bits", f"hdr.data.a = 0x1{'0' * 20000};", {}),
        *(
            ("the width of a literal must be at most 65535 bits", f"hdr.data.a = {literal};", {})
            for literal in ("999999999999999w1", "65536s1", "9" * 5000 + "w1")
        ),
        *(
            (
                "a switch on action_run needs table.apply().action_run itself as its subject",
                f"switch ({'(' * choice.count(')).')}hdr.data.a == 1 ? {choice}) {{ n: {{ hdr.data.a = 1; }} }}",
                {"before": HIT},
            )
            for choice in ON_CHOICES
        ),
        (
            "action_run can be used as the subject of a switch only",
            "if (t.apply().action_run == t.apply().action_run) { hdr.data.a = 1; }",
            {"before": HIT},
        ),
        *(
            ("lookahead needs a type of fixed size", "", {"transition": MORE.format(call)})
            for call in ("error x = packet.lookahead<error>();", "packet.lookahead<tuple<bit<8>, error>>();")
        ),
        ("parser Declared has no body", "", NO_BODY | {"transition": MORE.format("Declared.apply(packet);")}),
        ("control Gone has no body", "Gone.apply();", {"top": "control Gone();"}),
        ("@name must have at most 256 characters", "t.apply();", {"before": f'@name("{"." * 9000}") {HIT}'}),
    ],
    ids=lambda given: given[:40] if isinstance(given, str) else "",
)
def test_a_program_that_cannot_be_is_refused(message: str, body: str, parts: dict[str, str], tmp_path: Path) -> None:
    refused(tmp_path, message, body, **parts)


def test_a_constant_of_the_greatest_size_is_folded(tmp_path: Path) -> None:
    top = "const int big = ((1 << 65534) - 1) + (1 << 65534); const bit<8> x = big / (1 << 65527);"
    assert compiled(tmp_path, "hdr.data.a = x;", top=top).json["actions"]


@pytest.mark.parametrize("count", [2, 40])
def test_includes_that_double_are_refused(count: int, tmp_path: Path) -> None:
    for i in range(count):
        (tmp_path / f"f{i}.p4").write_text(f'#include "f{(i + 1) % count}.p4"\n' * 2)
    (tmp_path / "f39.p4").write_text("")
    _, errors = preprocessed(tmp_path, '#include "f0.p4"\n')
    assert any("a program must include at most 1000 files" in e for e in errors)


@pytest.mark.parametrize(
    ("declared", "body"),
    [
        ("void f{i}() {{ {calls} }}", "f{i}();"),
        ("action f{i}() {{ {calls} }}", "f{i}();"),
        ("control f{i}() {{ apply {{ {calls} }} }}", "f{i}.apply();"),
        ("parser f{i}(packet_in p) {{ state start {{ {calls} transition accept; }} }}", "f{i}.apply(p);"),
    ],
    ids=["functions", "actions", "controls", "parsers"],
)
def test_calls_that_double_are_refused(declared: str, body: str, tmp_path: Path) -> None:
    lines = ["#include <core.p4>", declared.format(i=0, calls="")]
    lines += [declared.format(i=i + 1, calls=2 * body.format(i=i)) for i in range(40)]
    in_parser = declared.startswith("parser")
    call = body.format(i=40).replace("(p)", "(packet)")
    transition = f"more; }} state more {{ {call} transition accept;" if in_parser else ""
    message = "a program must make at most 4096 calls"
    refused(tmp_path, message, "" if in_parser else call, top="\n".join(lines), transition=transition)


WIDE = "struct wide_t {{ {} }}".format(" ".join(f"bit<8> f{i};" for i in range(100)))
PAIR = {"top": WIDE, "before": "wide_t x; wide_t y;"}
ENTRIES = " ".join(f"{i}: n();" for i in range(20))
TABLE = f"table t {{ key = {{ x: exact; }} actions = {{ n; }} const entries = {{ {ENTRIES} }} }}"
CASES = " ".join(f"{i}: accept;" for i in range(100))
STATES = " ".join(f"state s{i} {{ transition s{i + 1}; }}" for i in range(100)) + "state s100 { transition accept; }"
CORE = "#include <core.p4>\n"
MULTIPLIED = {
    "statements of an action": ({"before": "action a() { " + "hdr.data.a = 1; " * 50 + "}"}, "a(); "),
    "statements of a control": (
        {"top": "control c() { bit<8> x; apply { " + "x = x + 1; " * 50 + "} }"},
        "c.apply(); ",
    ),
    "copies of a struct": (PAIR, "x = y; "),
    "comparisons of structs": (PAIR, "if (x == y) { } "),
    "variables": (PAIR, "{ wide_t z; } "),
    "hashed structs": (PAIR, "hash(hdr.data.a, HashAlgorithm.crc16, 8w0, {x}, 8w255); "),
    "structs passed by reference": (
        {"top": WIDE + "control c(inout wide_t w) { apply { } }", "before": "wide_t x; c() i;"},
        "i.apply(x); ",
    ),
    "copies before exits": (
        {"top": WIDE, "before": "action a(inout wide_t w) { " + "exit; " * 50 + "} wide_t x;"},
        "a(x); ",
    ),
    "headers of stacks": ({"top": "header h_t { bit<8> a; }"}, "{ h_t[100] s; } "),
    "declarations": (
        {"top": "control c() { " + " ".join(f"action n{i}() {{ }}" for i in range(50)) + " apply { } }"},
        "c.apply(); ",
    ),
    "entries": (
        {
            "top": f"{CORE}control c(inout bit<8> x) {{ action n() {{ }} {TABLE} apply {{ t.apply(); }} }}",
            "before": " ".join(f"c() i{i};" for i in range(100)),
        },
        "",
    ),
    "states": (
        {"top": f"{CORE}parser q(packet_in p) {{ state start {{ transition s0; }} {STATES} }}"},
        "q.apply(packet); ",
    ),
    "cases": (
        {"top": f"{CORE}parser q(packet_in p) {{ bit<8> x; state start {{ transition select(x) {{ {CASES} }} }} }}"},
        "q.apply(packet); ",
    ),
}


@pytest.mark.parametrize("what", MULTIPLIED)
def test_what_a_program_becomes_has_a_total(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of each has at most 400 of the parts that are counted, and calls put them in place 200 times."""
    monkeypatch.setattr("p4c.frontend.lower.context.PARTS_MAX", 1500)
    parts, call = MULTIPLIED[what]
    body, transition = call * 200, ""
    if what == "entries":
        body = " ".join(f"i{i}.apply(hdr.data.a);" for i in range(100))
    elif what in ("states", "cases"):
        body, transition = "", f"more; }} state more {{ {body} transition accept;"
    refused(tmp_path, "a program must become at most 1500 statements", body, transition=transition, **parts)


def test_the_total_is_told_with_its_largest_parts(tmp_path: Path) -> None:
    before = "action a() { " + "hdr.data.a = hdr.data.b; " * 1000 + "}"
    with pytest.raises(CompileError) as caught:
        compiled(tmp_path, "a(); " * 100, before=before)
    (only,) = caught.value.diagnostics
    assert only.message.startswith(
        "a program must become at most 200000 statements, operations and fields of structs, with all calls put in place"
        " (the largest parts so far: MyIngress.a 199"
    )


@pytest.mark.parametrize("call", ["hash(hdr.data.a, HashAlgorithm.crc16, 8w0, {input}, 8w255);", "digest(1, {input});"])
def test_equal_calculations_and_digests_are_found_without_a_look_at_all(call, tmp_path, monkeypatch) -> None:
    """10,000 different ones took 40 s."""
    compared = 0
    equal = FieldRef.__eq__

    def counted(self: FieldRef, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(self, other)

    monkeypatch.setattr(FieldRef, "__eq__", counted)
    calls = [call.replace("input", f"{{hdr.data.b, 16w{i % 200}}}") for i in range(400)]
    made = compiled(tmp_path, " ".join(calls)).json
    assert len(made["calculations"] if "hash" in call else made["learn_lists"]) == 200
    assert compared < 10_000


def test_labels_of_a_switch_share_its_body(tmp_path: Path) -> None:
    tables = [f"table t{i} {{ key = {{ hdr.data.a: exact; }} actions = {{ n; m; }} }}" for i in range(40)]
    nested = " ".join(f"switch (t{i}.apply().action_run) {{ n: m: {{" for i in range(40))
    made = compiled(tmp_path, nested + " hdr.data.a = 1; " + "}}" * 40, before="action m() { }" + "\n".join(tables))
    assert len(made.json["pipelines"][0]["tables"]) == 41


@pytest.mark.parametrize(
    ("first", "one"),
    [
        ("struct t0 {{ bit<8> a; }}", "struct t{i} {{ t{j} a; t{j} b; }}"),
        ("struct t0 {{ }}", "struct t{i} {{ t{j} a; t{j} b; }}"),
        ("typedef tuple<bit<8>> t0;", "typedef tuple<t{j}, t{j}> t{i};"),
    ],
    ids=["structs", "empty structs", "tuples"],
)
def test_types_that_double_are_refused(first: str, one: str, tmp_path: Path) -> None:
    lines = [first.format(), *(one.format(i=i + 1, j=i) for i in range(40))]
    refused(tmp_path, "a type must have at most 65536 fields", "t40 x;", top="\n".join(lines))


# --- conditions of #if ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("defined(N) && 10 / N > 2", False), ("!defined(N) || 10 / N > 2", True),
        ("defined(N) && (1 << -1 || 10 % N)", False), ("0 && 0 && 1 / 0 || 1", True), ("1 ? 2 : 1 / 0", True),
        ("0 ? 1 / 0 : 0", False), ("1 << 3 >> 1 == 4", True), ("+1 - -1 == 2 && ~0 == -1", True),
        ("-7 / 2 == -3 && -7 % 2 == -1", True),
    ],
)  # fmt: skip
def test_conditions_follow_c(condition: str, expected: bool, tmp_path: Path) -> None:
    tokens, errors = preprocessed(tmp_path, f"#if {condition}\nyes\n#else\nno\n#endif")
    assert not errors
    assert tokens == ["yes" if expected else "no"]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("(1", "expected ')' to close this '(' in #if"),
        ("((1) + 2", "expected ')' to close this '(' in #if"),
        ("1 && 1 / 0", "division by zero in #if"),
        ("1 << -1", "a shift in #if must be by 0 to 4096 bits, not -1"),
        ("1 >> -1", "a shift in #if must be by 0 to 4096 bits, not -1"),
        ("1 << 0xffffffffff", "a shift in #if must be by 0 to 4096 bits, not 1099511627775"),
        ("(1 << 4096) << 4096 << 4096 << 4096", "a number in #if must fit in 4096 bits"),
        (")", "expected a number, found ')' in #if"),
        ("1 +", "the expression of #if ends too soon"),
        ("1 ? 2", "expected ':' after '?' in #if"),
        ("defined(N", "expected ')' to close this '(' in #if"),
        ("defined", "defined in #if needs the name of a macro"),
    ],
)
def test_a_wrong_condition_is_refused(condition: str, message: str, tmp_path: Path) -> None:
    _, errors = preprocessed(tmp_path, f"#if {condition}\nyes\n#endif")
    assert any(message in e for e in errors), errors


@pytest.mark.parametrize("name", ["a" * 300, "a" * 9000, "nul\0byte"], ids=["long", "very long", "zero"])
def test_a_file_name_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    _, errors = preprocessed(tmp_path, f'#include "{name}"\n')
    assert "cannot find the file" in errors[0]


# --- literals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("literal", ["0x_", "8w_", "0b__", "8s0o_"])
def test_a_literal_without_digits_is_refused(literal: str, tmp_path: Path) -> None:
    refused(tmp_path, "a literal must have digits", f"hdr.data.a = {literal};")
    _, errors = preprocessed(tmp_path, f"#if {literal}\n#endif")
    assert errors == ["a literal must have digits"]


@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 4000, "0b" + "1" * 60000], ids=["ten", "sixteen", "two"])
def test_a_long_literal_is_read_and_its_value_printed_short(digits: str, tmp_path: Path) -> None:
    warnings = compiled(tmp_path, f"hdr.data.a =\n{digits};").warnings
    (message,) = (line for line in warnings.splitlines() if "does not fit bit<8>" in line)
    assert len(message) < 200 + len(str(tmp_path))


HUGE = "0x" + "f" * 8000


@pytest.mark.parametrize(
    "body",
    [
        f"hdr.data.a = {HUGE} / 0;", f"hdr.data.a = hdr.data.a[{HUGE}:0];", f"hdr.more[{HUGE}].a = 1;",
        f"bit<{HUGE}> x;", f"bit<(-{HUGE})> x;", f"data_t[{HUGE}] x;", f"hdr.data.a = 1 << -{HUGE};",
    ],
    ids=["dividend", "slice", "index", "width", "negative", "stack", "shift"],
)  # fmt: skip
def test_a_huge_number_in_the_wrong_place_is_refused(body: str, tmp_path: Path) -> None:
    refused(tmp_path, "error[types]", body)


def test_a_stack_is_pushed_by_no_more_than_its_size(tmp_path: Path) -> None:
    made = compiled(tmp_path, f"hdr.more.push_front({HUGE});").json
    (push,) = (p for a in made["actions"] for p in a["primitives"] if p["op"] == "push")
    assert int(push["parameters"][1]["value"], 16) == 2


@pytest.mark.parametrize(
    "before",
    [
        f"table t {{ key = {{ hdr.data.a: exact; }} actions = {{ n; }} size = {HUGE}; }}",
        "table t { key = { hdr.data.a: exact; } actions = { n; } size = 1 << 31; }",
        f"@id({HUGE}) table t {{ key = {{ hdr.data.a: exact; }} actions = {{ n; }} }}",
        f"@max_group_size({HUGE}) action_profile(8) p; table t {{ actions = {{ n; }} implementation = p; }}",
    ],
    ids=["size", "size of 32 bits", "id", "group"],
)
def test_a_huge_number_for_the_control_plane_is_refused(before: str, tmp_path: Path) -> None:
    refused(tmp_path, "must ", "t.apply();", before=before)


# --- switch -----------------------------------------------------------------------------------------------------------


def test_a_state_named_no_match_is_not_where_unmatched_packets_go(tmp_path: Path) -> None:
    more = "select(hdr.data.a) { 1: noMatch; } } state noMatch { transition accept;"
    states = compiled(tmp_path, transition=more).json["parsers"][0]["parse_states"]
    found = {s["name"]: s for s in states}
    (default,) = (t["next_state"] for t in found["start"]["transitions"] if t["type"] == "default")
    assert default != "noMatch"
    assert [o["op"] for o in found[default]["parser_ops"]] == ["verify"]


# --- parsers and the library ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["NoAction", "NoMatch"])
def test_a_library_that_lacks_a_part_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "core.p4").write_text((STANDARD_INCLUDE / "core.p4").read_text().replace(name, "Other"))
    body = "t.apply();"
    refused(tmp_path, "core.p4 must declare", body, top='#include "core.p4"', before="table t { actions = { n; } }")


SIX = ", ".join(["P()"] * 6)


@pytest.mark.parametrize("package", ["package V1Switch(); V1Switch() main;", f"V1Switch({SIX}) main;"])
def test_another_v1switch_is_refused(package: str, tmp_path: Path) -> None:
    source = tmp_path / "other.p4"
    parameters = ", ".join(f"C c{i}" for i in range(6))
    control = f"control C(); control P() {{ apply {{ }} }} package V1Switch({parameters});" if "P()" in package else ""
    source.write_text(f"#include <core.p4>\n{control}\n{package}")
    with pytest.raises(CompileError, match=r"other\.p4:\d+:\d+: error.* must have"):
        Compilation(source).run()


PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    "text",
    [
        "const bit<8> x = " + "(" * 9000 + "1" + ")" * 9000 + ";",
        "const bit<8> x = " + "-" * 20000 + "8w1;",
        "control C() { apply { " + "{" * 9000 + "}" * 9000 + " } }",
        "#if " + "(" * 9000 + "1" + ")" * 9000 + "\n#endif",
        "",
        "\0",
        "/*",
    ],
    ids=["brackets", "signs", "blocks", "conditions", "nothing", "zero", "comment"],
)
def test_extremes_are_refused_with_a_place(text: str, tmp_path: Path) -> None:
    source = tmp_path / "extreme.p4"
    source.write_text(text)
    with pytest.raises(CompileError, match=r"extreme\.p4:\d+:\d+: error"):
        Compilation(source).run()


def test_long_chains_compile(tmp_path: Path) -> None:
    """A thousand terms and five hundred branches are much, and still a program."""
    text = (PROGRAMS / "tunnel.p4").read_text()
    terms = " + ".join(["hdr.tunnel.id"] * 1000)
    branches = " else ".join(f"if (hdr.tunnel.id == {i}) {{ hdr.tunnel.inner_type = {i}; }}" for i in range(500))
    text = text.replace(
        "        if (!hdr.tunnel", f"        hdr.tunnel.id = {terms};\n{branches}\n        if (!hdr.tunnel", 1
    )
    (tmp_path / "common.p4").write_text((PROGRAMS / "common.p4").read_text().replace("../..", str(PROGRAMS.parents[1])))
    (tmp_path / "long.p4").write_text(text)
    assert len(Compilation(tmp_path / "long.p4").run().json["pipelines"][0]["conditionals"]) >= 500
