"""No text of a user becomes code: in every file that the lab writes, and in every command that it prints to be copied.

Each place gets hostile names and a harmless one. The program must be the same but for its constants, the page must have
the same tags, and a shell must read a command as the words that were meant.
"""

import ast
import json
import os
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from prometheus_client.parser import text_string_to_metric_families

from cli.exporting.routers import frr
from cli.main import main
from cli.metrics import exposition
from common.interpreter import python
from common.journal import Line
from common.terminal.printable import path_line
from controller.pipelines import read_pipeline
from course.bench.bench import trace_look
from course.catalogue import find
from course.exercise import StudentWork
from course.grading import packing, tables
from course.grading.submissions import Submission
from course.labs.window import tests as window
from course.page import page
from course.result import CheckResult, TestOutcome, TestResult
from course.seams.hunt import scenario_of
from course.seams.log import Log
from course.seams.trial import Trial, TrialCase
from judging.reports.report import again
from judging.run import Run
from operations.incident import page as incident_page
from operations.incident.session import AskedCommand
from page import export
from page.browser_files import browser_files
from page.live import written
from page.played import text as played_text
from running.directory import RunDirectory
from scenarios.scenario import TimedFault, Workload
from studies.contest import report as contest_report
from studies.contest.result import Match
from studies.farm.engine import WorkerDiedError
from studies.hunting import found
from studies.hunting.attempt import AttemptOutcome
from studies.sweeping import report as sweep_report
from studies.sweeping.row import Row
from studies.sweeping.statement import statement
from studies.sweeping.task import Task
from studies.sweeping.variant import Variant
from tests.helpers.hostile import HARMLESS, constants, names, skeleton, tags, texts, words
from tests.helpers.tracked import files_of, room_of
from topo.errors import PlanError
from topo.pictures import graph
from topo.planfile import check_plan, load_plan, parse_document, plan_document

ROOT = Path(__file__).parents[2]
TINY = load_plan("tiny")
LOAD = Workload("write_bw", {"size": 4096, "depth": 2, "qps": 1, "messages": 0}, ("h0", "h1"), name="load0")
CASE = TrialCase(
    1,
    {"planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 1},
    (LOAD,),
    (TimedFault(0.1, "blackhole", "p0l0-p0s0", 0.5),),
    seam="health",
)
few = settings(max_examples=40)
shell_texts = texts.filter(lambda text: "\0" not in text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("place")


# --- Python ----------------------------------------------------------------------------------------------------------


def repeated(source: str) -> str:
    """The command in a comment of a scenario."""
    (line,) = re.findall(r"^# (?:Repeat|Run it): (.*)$", source, re.MULTILINE)
    return str(line)


@given(name=names, sentence=texts, rounds=texts)
@few
def test_a_found_scenario_is_the_same_program_whatever_was_found(place: Path, name: str, sentence, rounds) -> None:
    def made(folder: str, what: str, setting: str) -> str:
        case = replace(CASE, settings={"selection": f"/{setting}.py:Mine"}, repeats=2)
        return found.write(place / folder, "lost", case, AttemptOutcome({what: what}), 1, 3).read_text()

    source = made(name, sentence, rounds)
    assert skeleton(source) == skeleton(made(HARMLESS, HARMLESS, HARMLESS))
    assert f"{sentence}: {sentence}" in constants(source)
    path = str(place / name / "lost.py")
    assert words(repeated(source)) == ["run", path, "--world", "simulated", "--seed", "1"]


@given(name=names)
@few
def test_a_counterexample_is_the_same_program_whatever_the_student_is_called(place: Path, name: str) -> None:
    def made(folder: str) -> tuple[Path, list[str]]:
        work = StudentWork("", place / folder / "health.py", 1, place / folder / "checked")
        path = scenario_of(work, CASE, AttemptOutcome({"lost": "too many"}), 1, 3)
        return path, [path.read_text(), path.with_name("adapter.py").read_text()]

    path, sources = made(name)
    assert list(map(skeleton, sources)) == list(map(skeleton, made(HARMLESS)[1]))
    assert str(place / name / "health.py") in constants(sources[1])
    assert f"{path.with_name('adapter.py')}:OfStudent" in constants(sources[0])
    assert words(repeated(sources[0]))[1] == str(path)


@given(name=names, text=texts)
@few
def test_a_played_scenario_is_the_same_program_whatever_was_played(name: str, text: str) -> None:
    def made(folder: str, told: str) -> str:
        faults = [TimedFault(0.1, told, told, 0.5, phase=told)]
        options = {"scenario": told, "source": told, "plan": told, "transport": told, "seed": told}
        return played_text(faults, options, Path(folder) / f"{folder}.py", 1)

    source = made(name, text)
    assert skeleton(source) == skeleton(made(HARMLESS, HARMLESS))
    assert words(repeated(source))[0] == "run"
    assert Path(words(repeated(source))[1]) == Path(name) / f"{name}.py"


# --- commands --------------------------------------------------------------------------------------------------------


@given(text=shell_texts)
@few
def test_commands_that_repeat_a_run_are_the_words_that_were_meant(text: str) -> None:
    variant = Variant(text, "mrc", text, (("a", text),), (("b", text),))
    assert words(variant.command(7)) == ["run", *variant.arguments, "--seed", "7"]
    task = Task("key", {}, variant.command(7), {})
    (line,) = re.findall(r"\./lab .*", str(WorkerDiedError(task)))
    assert words(line) == ["run", *variant.arguments, "--seed", "7"]
    options = {"source": text, "transport": text, "seed": 7, "plan": "tiny", "plan_source": text, "program": text}
    lines: list[Line] = [{"t_ns": 0, "node": "runner", "kind": "options", **options}]
    told = words(again(Run(lines)))
    assert told[:2] == ["run", text]
    assert {name: told[told.index(name) + 1] for name in ("--plan", "--program", "--transport")} == {
        "--plan": text, "--program": text, "--transport": text,
    }  # fmt: skip


@given(name=names)
@few
def test_what_a_check_shows_to_look_closer_is_a_command_for_that_folder(place: Path, name: str) -> None:
    folder = place / name
    folder.mkdir(exist_ok=True)
    trial = Trial(CASE, Run([]), Log(), folder=folder)
    for line in window.look(trial):
        assert words(line)[1:] == [str(folder)]
    (line,) = trace_look(StudentWork("", folder / "x.p4", 1, folder), "", 1, b"\x01")
    program, entries = str(folder / "program.p4"), str(folder / "entries.stf")
    assert words(line) == [
        "switch", "trace", program, "--entries", entries, "--port", "1", "--packet", "01",
    ]  # fmt: skip


@given(name=names)
@few
def test_an_error_that_names_a_command_names_that_folder(place: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        read_pipeline("leaf", place / name / "none")
    (line,) = re.findall(r"\./lab .*", str(raised.value))
    assert words(line)[-1] == str(place / name / "none")


@given(name=names)
@few
def test_the_command_of_what_was_played_names_its_file(place: Path, name: str) -> None:
    run = place / name / "run"
    (run / "journal").mkdir(parents=True, exist_ok=True)
    lines = [
        {"t_ns": 0, "node": "runner", "kind": "options", "scenario": "smoke", "plan": "tiny", "world": "simulated"},
        {"t_ns": 10**9, "node": "runner", "kind": "phase", "name": "faults", "state": "start"},
        {"t_ns": 2 * 10**9, "node": "lab", "kind": "fault", "verb": "drain", "target": "p0l0", "state": "begin"},
    ]
    (run / "journal" / "lab.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for one in run.glob("played*"):
        one.unlink()
    RunDirectory(run).write_plan(TINY)
    told = written(run, run / "played.py", lambda *_: None)
    assert Path(words(told["command"])[1]).resolve() == run / "played.py"
    assert ast.parse((run / "played.py").read_bytes())


def literals() -> Iterator[tuple[str, str, ast.expr]]:
    """Every value that is put behind `./lab …` in a string of the product: file, text before, expression."""
    for file in files_of_the_product():
        text = file.read_text()
        for node in ast.walk(ast.parse(text if "./lab " in text else "")):
            if not isinstance(node, ast.JoinedStr):
                continue
            before = ""
            for part in node.values:
                if isinstance(part, ast.Constant):
                    before += str(part.value)
                elif isinstance(part, ast.FormattedValue):
                    if re.search(r"\./lab [^;:(]*$", before):
                        yield str(file.relative_to(ROOT)), before, part.value
                    before += "x"


def files_of_the_product() -> Iterator[Path]:
    for path in files_of(ROOT):
        if path.suffix == ".py" and room_of(path.relative_to(ROOT)) not in ("tests", "benchmarks"):
            yield path


NO_USERS_TEXT = {
    "lab.number", "self.incident.level", "self.incident.seed", "at", "meant", "line", "line.strip()", "SWITCH",
    "quoted(name)", "plan.leaves", "package", "lab", "first.name", "name.option()",
}  # fmt: skip
"""Numbers (`lab` is an exercise's), the option of a lab's name, and words of this project; a text needs `quoted`."""


@pytest.mark.smoke
def test_no_command_is_put_together_from_unquoted_text() -> None:
    found = {(file, ast.unparse(value)) for file, _, value in literals()}
    assert {value for _, value in found} & {"lab.number", "quoted(name)"}, "the search finds nothing"
    assert not {(file, value) for file, value in found if value not in NO_USERS_TEXT}


def test_the_grader_of_the_archive_gives_names_as_values(tmp_path: Path) -> None:
    """A name that begins with hyphens is no option, and a shell reads the script."""
    text = packing.RUN.format(lab=5, file="spray.py")
    subprocess.run(["sh", "-n", "-c", text], check=True)
    assert '--student="$name"' in text
    assert '--key="$(cat course-key)"' in text


# --- pages and other files -------------------------------------------------------------------------------------------


def checked(text: str) -> CheckResult:
    outcome = TestOutcome(False, text, text, look=(text,))
    return CheckResult(1, text, 7, text, (TestResult("one", text, 1, outcome, 0.1),), 0.1, (text,))


def pages(text: str) -> Iterator[str]:
    """Every page that a text of a user is on."""
    name = text.encode(errors="replace").decode()  # of a student: printable
    lab = find("usids")
    yield page(lab, checked(text), text)
    yield tables.overview([(Submission(name, lab, Path(text)), checked(text))], [("usids", 0.9, text, text)], [text])
    variant = Variant(f"{text}.py", "mrc", text, (("a", text),), (("b", text),))
    row = Row("key", 7, "false", {text: False}, {text: text}, error=text)
    statements = [statement(variant, text, [row])]
    yield sweep_report.html(statements)
    yield contest_report.html(Path("/place"), [Match(text, [text], text, statements)], lambda *_: None)
    document = {
        "verdict": "wrong", "lab_s": 1.0, "commands": 1, "level": 1, "seed": 1, "points": 0.0, "net": 0.0,
        "because": text, "truth": [], "extra": [], "oddities": [],
        "evidence": [{"component": text, "kind": text, "commands": [text], "hint": text, "shows": text}],
    }  # fmt: skip
    yield incident_page.html(document, [AskedCommand(text, 1.0)])


@given(text=texts)
@few
def test_a_page_has_the_same_tags_whatever_the_names(text: str) -> None:
    for made, harmless in zip(pages(text), pages(HARMLESS), strict=True):
        assert tags(made) == tags(harmless)


@given(text=texts)
@few
def test_a_replay_carries_names_as_values(text: str) -> None:
    text = text.encode(errors="replace").decode()
    own = {name: content.decode() for name, content in browser_files().items()}
    made = export.document({"title": text}, own)
    assert tags(made) == tags(export.document({"title": HARMLESS}, own))
    (carried,) = re.findall(r'id="carried">(.*?)</script>', made, re.DOTALL)
    assert json.loads(carried) == {"title": text}


@given(text=texts)
@few
def test_a_plan_keeps_its_texts_and_other_gear_gets_no_line_of_them(place: Path, text: str) -> None:
    plan = replace(TINY, description=text.encode(errors="replace").decode(), name=text or HARMLESS)
    if not text.isprintable():
        with pytest.raises(PlanError, match="name must be one line"):
            check_plan(plan)
        plan = replace(plan, name="".join(one for one in text if one.isprintable()) or HARMLESS)
    RunDirectory(place).write_plan(plan)
    document: dict[str, Any] = tomllib.loads((place / "plan.toml").read_text())
    assert (document["name"], document.get("description", "")) == (plan.name, plan.description)
    assert parse_document(plan_document(plan)).name == plan.name
    switch = next(iter(plan.switches()))
    assert frr(plan, switch).splitlines()[1:] == frr(TINY, switch).splitlines()[1:]
    first, *rest = graph.dot(graph.graph_of(plan)).splitlines()
    assert rest == graph.dot(graph.graph_of(TINY)).splitlines()[1:]
    assert re.fullmatch(r'graph "(?:[^"\\]|\\.)*" \{', first)
    info = exposition.ExposedMetric("mrclab_lab_info", "gauge", "x")
    info.add(1, plan=plan.name)
    (family,) = text_string_to_metric_families(exposition.text([info]))
    assert family.samples[0].labels == {"plan": plan.name}


# --- lines that name files -------------------------------------------------------------------------------------------

LABELS = "wrote|new:|report:|page:|CSV:|grades:"
PATH_LABEL = re.compile(rf"(?:^|[\s;])(?:{LABELS}) *$")


def lines_with_paths() -> Iterator[str]:
    """Texts of the product that put a value behind a label of a path as it is, and not by `path_line`."""
    for file in files_of_the_product():
        if room_of(file.relative_to(ROOT)) == "docs":
            continue
        source = file.read_text()
        for node in ast.walk(ast.parse(source if re.search(LABELS, source) else "")):
            for before, part in pairwise(node.values) if isinstance(node, ast.JoinedStr) else ():
                value = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
                harmless = not value or re.match(r"printable\(|plan\.switch_count$", value)
                if isinstance(before, ast.Constant) and not harmless and PATH_LABEL.search(str(before.value)):
                    yield f"{file.relative_to(ROOT)}: {ast.unparse(node)}"


@pytest.mark.smoke
def test_each_line_that_names_a_file_is_made_by_path_line() -> None:
    assert PATH_LABEL.search("\nreport: "), "the search finds nothing"
    assert not list(lines_with_paths())


@given(name=texts)
@few
def test_a_line_that_names_a_file_is_one_line_that_no_terminal_obeys(name: str) -> None:
    line = path_line("wrote", Path(name))
    assert line.endswith("\n")
    assert line[:-1].replace("\t", "").replace("\xa0", "").isprintable()


@pytest.fixture(scope="module")
def hostile_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs in folders of another party."""
    root = tmp_path_factory.mktemp("place") / "runs\x1b[2J\nreport: mine"
    for seed in ("1", "2"):
        words_ = ("run", "smoke", "--time", "0.3", "--world", "simulated", "--plain", "--seed", seed)
        assert main([*words_, "--runs", str(root)]) in (0, 1, 3)
    for number, run in enumerate(sorted((root / "smoke").iterdir())):
        run.rename(run.with_name(f"{number}\nreport: other\x9b2J"))
    (root / "smoke").rename(root / "sm\x1b]0;t\x07oke\nreport: third")
    (root / "latest").unlink()
    return root


@pytest.mark.parametrize(
    "command",
    [
        "report", "report --csv {new}", "report nope", "export perfetto", "export perfetto -o {new}", "compare",
        "export json -o {new}", "export frr -o {new}", "graph tiny -o {new}.dot", "topo draw -o {new}.svg",
        "compare {newest}", "view {newest} --export {new}", "view nope", "export cm nope -o {new}",
    ],
)  # fmt: skip
def test_no_command_prints_a_folders_name_raw(command: str, hostile_runs: Path, tmp_path, capsys) -> None:
    new, newest = f"{tmp_path}/new\x1b[1m\nwrote nothing", str(sorted(hostile_runs.glob("*/*"))[-1])
    given_words = [word.format(new=new, newest=newest) for word in command.split()]
    reads = any(word in given_words for word in ("report", "compare", "view", "perfetto", "nope"))
    capsys.readouterr()
    status = main([*given_words, *(["--runs", str(hostile_runs)] if reads else [])])
    said = capsys.readouterr()
    assert status in ((2,) if "nope" in command else (0, 1, 2, 3)), said.err
    for line in (said.out + said.err).split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.startswith(("report: mine", "report: other", "report: third", "wrote nothing")), said


HOSTILE = "x\x1b]0;title\x07\nreport: mine\x9b2J"
P4 = f'#include "{HOSTILE}.p4"\nerror {{ \x1b[31mA }}\n// \x1b]0;title\x07\nbit<8> x = y;\n'


def hostile_commands(place: Path) -> dict[str, list[str]]:
    """Commands that name a file, or show a line of it."""
    file = place / f"{HOSTILE}.p4"
    file.write_text(P4)
    (place / f"{HOSTILE}.json").write_text(json.dumps({HOSTILE: 1}))
    plain = place / "plain.p4"
    plain.write_text(P4)
    config, leaf = place / f"{HOSTILE}.json", str(ROOT / "p4" / "leaf.p4")
    return {
        "a line of a program": ["switch", "compile", str(plain), "-o", str(place)],
        "a program": ["switch", "compile", str(file), "-o", str(place)],
        "no program": ["switch", "compile", str(place / f"none{HOSTILE}")],
        "no folder": ["switch", "compile", leaf, "-o", str(config)],
        "trace": ["switch", "trace", str(file), "--port", "1", "--packet", "00"],
        "trace of JSON": ["switch", "trace", str(config), "--port", "1", "--packet", "00"],
        "entries": ["switch", "trace", leaf, "--port", "1", "--packet", "00", "--entries", str(file)],
        "stf": ["switch", "stf", str(file), "--program", str(file)],
        "a key": ["switch", "serve", "--config", str(config)],
        "no configuration": ["switch", "serve", "--config", str(place / f"none{HOSTILE}")],
        "a packet's way": ["trace", "h0", "h2", "--plan", str(file)],
        "a host": ["trace", HOSTILE, "h2", "--plan", "tiny"],
        "push": ["controller", "push", "--plan", "tiny", "--addresses", str(config)],
        "verify": ["controller", "verify", "--plan", "tiny", "--addresses", str(place / f"none{HOSTILE}")],
        "an option": ["list", HOSTILE],
        "a command": [HOSTILE],
    }  # fmt: skip


with tempfile.TemporaryDirectory() as folder_of_names:
    COMMANDS = list(hostile_commands(Path(folder_of_names)))


@pytest.mark.parametrize("name", COMMANDS)
def test_no_error_has_what_a_terminal_obeys_or_a_line_of_another_party(name: str, tmp_path, capfd) -> None:
    with suppress(SystemExit):
        assert main(hostile_commands(tmp_path)[name]) in (1, 2)
    said = capfd.readouterr()
    assert said.err
    for line in (said.out + said.err).split("\n"):
        assert line.isprintable(), ascii(line)
        assert not line.startswith("report: mine"), said


TO_STANDARD_ERROR = re.compile(r"sys\.stderr\.write|file=sys\.stderr|, sys\.stderr\)")
PLAIN = {"printable", "printable_text", "path_line", "ascii", "len"}
"""Functions whose results a terminal only shows."""
NO_TEXT_OF_OTHERS = {
    "', '.join(words)": "names of links: a plan's, which are checked",
    "', '.join(missing)": "names of switches: a plan's, which are checked",
    "verb": "one of two words",
    "what": "one of the messages of cli/compiled_form.py",
    "words": "what the build of a wheel says to who builds it",
    "name": "a switch's: a plan's, which is checked",
    "counted(max(0, pieces - 1), 'packet')": "a number",
    "counted(len(words), 'link')": "a number",
    "done": "a number",
    "total": "a number",
    "converter.unreadable": "a number",
    "view.viewer.address": "made by this process",
    "why": "made in common/cache.py, paths by `ascii`",
    "program": "the name by which the command calls itself",
    "text.used(answer)": "numbers, checked when the incident's answer is read",
    "error": "a CompileError, whose diagnostics are made by `printable`",
    "compiled.warnings": "diagnostics, made by `printable`",
}
"""Each other expression in what is written to standard error, and why a terminal only shows it."""


def shown_as_they_are(tree: ast.AST) -> Iterator[str]:
    """The expressions in calls that write to standard error, but for literals, rounded numbers and what PLAIN makes."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if ast.unparse(call.func) == "sys.stderr.write" or "sys.stderr" in map(ast.unparse, given):
            yield from (ast.unparse(node) for each in given[:1] for node in parts(each))


def parts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        values = [value for value in node.values if isinstance(value, ast.FormattedValue) and not value.format_spec]
        yield from (part for value in values for part in parts(value.value))
    elif isinstance(node, ast.BinOp):
        yield from (part for side in (node.left, node.right) for part in parts(side))
    elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        inner = node.value if isinstance(node, ast.Subscript) else cast(ast.Attribute, node.func).value
        yield from parts(inner) if isinstance(inner, ast.Call) else [node]
    elif not isinstance(node, ast.Constant) and not (isinstance(node, ast.Call) and ast.unparse(node.func) in PLAIN):
        yield node


@pytest.mark.smoke
def test_messages_are_written_by_write_error() -> None:
    """`write_error` replaces what a terminal obeys. Other messages have no text of others, or make it plain."""
    trees = [ast.parse(text) for text in map(Path.read_text, files_of_the_product()) if TO_STANDARD_ERROR.search(text)]
    assert {part for tree in trees for part in shown_as_they_are(tree)} - {"sys.stderr"} == set(NO_TEXT_OF_OTHERS)


def test_a_message_that_shows_a_name_as_it_is_is_found() -> None:
    text = "sys.stderr.write(f'{ascii(a)[1:-1]} {b} {c:,.1f} {printable(d).strip()}' + e)\nwrite_out(g, sys.stderr)"
    assert list(shown_as_they_are(ast.parse(text))) == ["b", "e", "g"]


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LC_ALL": "C"}])
def test_a_terminal_that_lacks_characters_ends_no_command(variables: Mapping[str, str]) -> None:
    """`trace` draws arrows."""
    environment = {**os.environ, "PYTHONCOERCECLOCALE": "0", **variables}
    words_ = python("-m", "cli", "trace", "h0", "h2", "--plan", "tiny")
    done = subprocess.run(words_, env=environment, capture_output=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(rb"h0 \u2192 h2")
