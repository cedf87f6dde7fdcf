"""What a C header declares: signatures, layouts and values, as the compiler finds them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

NAME = re.compile(r"(?:struct|union) (mrc_\w+) \{")
MEMBER = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\])?$")


def gcc(*words: str | Path, text: str) -> str:
    """The output of the compiler for a C text; its complaint is the exception's."""
    done = subprocess.run(["gcc", *map(str, words), "-x", "c", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def body(text: str, start: int) -> str:
    """What stands between the brace at `start` and its partner."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[start + 1 : at]
    raise AssertionError(f"no end of {text[start : start + 60]!r}")


def members(inside: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Path and type of each member; of a nested structure, its members."""
    while inside.strip():
        brace, end = inside.find("{"), inside.index(";")
        if 0 <= brace < end:
            nested = body(inside, brace)
            rest = inside[brace + len(nested) + 2 :]
            name, inside = rest.split(";", 1)
            yield from members(nested, f"{prefix}{name.strip()}.")
        else:
            declared, inside = " ".join(inside[:end].split()), inside[end + 1 :]
            found = MEMBER.search(declared)
            assert found, declared
            kind = declared[: found.start(1)] + declared[found.end(1) :]
            yield prefix + found[1], re.sub(r"\s*\*\s*", " *", kind).strip()


def declarations(header: str, include: Path, scratch: Path, words: tuple[str, ...] = ()) -> dict[str, str]:
    """What is declared, by name: signatures of functions, type, size and offset of members, values of constants."""
    flags = ("-std=gnu11", f"-I{include}", *words)
    text = f"#include <{header}>\n"
    pre = " ".join(gcc(*flags, "-E", "-P", text=text).split())
    gcc(*flags, "-fsyntax-only", "-aux-info", scratch / "signatures", text=text)
    found: dict[str, str] = {}
    for line in (scratch / "signatures").read_text().splitlines():
        if signature := re.search(r"\*/ extern (.*\b(mrc_\w+) \(.*);", line):
            found[signature[2]] = signature[1]
    asked = {}
    for struct in NAME.finditer(pre):
        kind = struct[0][:-2]
        asked[kind] = f"sizeof({kind}), 0L"
        for path, declared in members(body(pre, struct.end() - 1)):
            asked[f"{kind}.{path}: {declared}"] = f"sizeof((({kind} *)0)->{path}), (long)offsetof({kind}, {path})"
    for enum in re.finditer(r"enum mrc_\w+ \{", pre):
        for part in body(pre, enum.end() - 1).split(","):
            if name := part.split("=")[0].strip():
                asked[f"{enum[0][:-2]}: {name}"] = f"sizeof({enum[0][:-2]}), (long)(int){name}"
    macros = gcc(*flags, "-dM", "-E", text=text)
    for name in re.findall(r"^#define (MRC_\w+) (?!\(\(struct)", macros, re.M):
        asked[f"#define {name}"] = f"sizeof({name}), (long)({name})"
    rows = "".join(f'printf("%s\\t%zu %ld\\n", "{name}", {values});\n' for name, values in asked.items())
    source = f"#include <stddef.h>\n#include <stdio.h>\n{text}int main(void) {{\n{rows}return 0;\n}}\n"
    gcc(*flags, "-o", scratch / "layouts", text=source)
    printed = subprocess.run([scratch / "layouts"], capture_output=True, text=True, check=True).stdout
    return found | dict(line.split("\t") for line in printed.splitlines())
