"""Whatever is fed to it, the compiler answers with a program or with diagnostics."""

from pathlib import Path

import pytest

from p4c.frontend import CompileError
from p4c.frontend.compilation import Compilation

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
