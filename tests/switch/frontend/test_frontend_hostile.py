"""Small sources that cost the compiler unbounded work, or crashed it. Each must end in a program or in a diagnostic."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from switch.frontend import Compiled, CompileError
from switch.frontend.compilation import Compilation
from switch.frontend.diagnostics import Diagnostics
from switch.frontend.parse.preprocessor import Preprocessor

COMMON = Path(__file__).parent / "bad"  # has common.p4
PROGRAM = """#include "common.p4"
{top}
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {{
    action n() {{ }}
    {before}
    apply {{ {body} }}
}}
V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
"""


def compiled(directory: Path, body: str = "", *, before: str = "", top: str = "") -> Compiled:
    """A whole program with `body` in the ingress control's apply block."""
    source = directory / "hostile.p4"
    source.write_text(PROGRAM.format(body=body, before=before, top=top))
    return Compilation(source, [COMMON]).run()


def refused(directory: Path, message: str, body: str = "", *, before: str = "", top: str = "") -> None:
    """The program is refused with `message` and a place in the source."""
    with pytest.raises(CompileError, match=r"hostile\.p4:\d+:\d+: error") as caught:
        compiled(directory, body, before=before, top=top)
    assert message in str(caught.value)


def preprocessed(directory: Path, text: str) -> tuple[list[str], list[str]]:
    """The tokens of `text`, and the messages of its errors."""
    source = directory / "hostile.p4"
    source.write_text(text)
    diagnostics = Diagnostics()
    tokens = Preprocessor(diagnostics).run(source)
    assert all(d.span.line > 0 for d in diagnostics.errors)
    return [t.text for t in tokens[:-1]], [d.message for d in diagnostics.errors]


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


def test_macros_that_double_are_refused(tmp_path: Path) -> None:
    lines = ["#define A0 1 +", *(f"#define A{i + 1} A{i} A{i}" for i in range(24)), "A24"]
    _, errors = preprocessed(tmp_path, "\n".join(lines))
    assert len(errors) == 1
    assert "macros must expand to at most" in errors[0]


def test_macros_that_pass_arguments_on_forever_are_refused(tmp_path: Path) -> None:
    lines = ["#define D0(x) x x", *(f"#define D{i + 1}(x) D{i}(x) D{i}(x)" for i in range(24)), "D24(1)"]
    _, errors = preprocessed(tmp_path, "\n".join(lines))
    assert "macros must expand to at most" in errors[0]


def test_a_long_chain_of_macros_is_refused(tmp_path: Path) -> None:
    lines = ["#define A0 1", *(f"#define A{i + 1} A{i}" for i in range(400)), "A400 A100"]
    tokens, errors = preprocessed(tmp_path, "\n".join(lines))
    assert "macros must nest at most" in errors[0]
    assert tokens[-1] == "1"


def test_nested_arguments_of_macros_are_bounded(tmp_path: Path) -> None:
    _, errors = preprocessed(tmp_path, "#define F(x) x\n" + "F(" * 4000 + "1")
    assert any("macros must expand to at most" in e for e in errors)


@pytest.mark.parametrize("count", [2, 40])
def test_includes_that_double_are_refused(count: int, tmp_path: Path) -> None:
    for i in range(count):
        (tmp_path / f"f{i}.p4").write_text(f'#include "f{(i + 1) % count}.p4"\n' * 2)
    (tmp_path / "f39.p4").write_text("")
    _, errors = preprocessed(tmp_path, '#include "f0.p4"\n')
    assert any("a program must include at most 1000 files" in e for e in errors)
