"""Grading: hostile folders, results that are kept, other services' formats, similar submissions."""

import csv
import hashlib
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest
from rich.console import Console

from cli.main import main
from common import user_code
from course import checking
from course.catalogue import LABS, find
from course.exercise import Exercise
from course.grading import formats, grading, packing, tables
from course.grading.grading import part
from course.grading.similarity import similar, tokens
from course.grading.submissions import Submission, find_submissions
from course.result import CheckResult, Gate, TestOutcome, TestResult
from course.student import Student
from course.student_folder import CourseError, StudentFolder, reference
from course.terminal import show
from running import identity

USIDS = find("usids")
ROOT = Path(__file__).parents[2]


def result(passed: bool = False, happened: str = "it\x00did <not>") -> CheckResult:
    gate = Gate("rate", 90.0, 95.0, " %")
    right = TestResult("one", "the first", 1, TestOutcome(True, "so", "so"), 0.1)
    other = TestResult("two", "the second", 2, TestOutcome(passed, "a", happened, (gate,), ("./lab view x",)), 0.2)
    return CheckResult(1, "anna", 7, "0" * 64, (right, other), 0.3, ("memory",))


def test_a_result_survives_json() -> None:
    assert CheckResult.read(json.loads(json.dumps(result().document()))) == result()


def test_seeds_depend_on_name_key_and_lab_only() -> None:
    seeds = {Student(name, key).seed(lab) for name in ("anna", "ben") for key in ("k", "l") for lab in (1, 2)}
    assert len(seeds) == 8
    assert Student(" Anna", "k").seed(1) == Student("anna", "k").seed(1)
    for name in ("a\nb", "a'b", 'a"b', "a\\b", "$HOME", "`id`"):
        with pytest.raises(ValueError, match="1 to 80 printable characters, none of them a quote"):
            Student(name)


def test_gradescope_gets_scores_that_add_up() -> None:
    document = json.loads(formats.gradescope(USIDS, result()))
    assert document["score"] == sum(test["score"] for test in document["tests"]) == 1
    assert [test["status"] for test in document["tests"]] == ["passed", "failed"]
    assert "rate 90 % (≥ 95 %)" in document["tests"][1]["output"]


def test_classroom50_gets_every_field_of_its_schema() -> None:
    document = json.loads(formats.classroom50(USIDS, result(), {"CLASSROOM": "net", "COMMIT_URL": "https://c"}))
    assert set(document) == {
        "schema", "classroom", "assignment", "submission", "commit", "release", "review", "datetime", "score",
        "max-score", "tests",
    }  # fmt: skip
    assert document["schema"] == "classroom50/result/v1"
    assert (document["classroom"], document["review"]) == ("net", "https://c")
    assert all(set(test) == {"test-name", "passed", "score", "max-score"} for test in document["tests"])


def test_junit_is_xml_whatever_a_student_prints() -> None:
    suite = ElementTree.fromstring(formats.junit(USIDS, result()).encode())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite[1][0].get("message") == "it?did <not>"


def test_a_table_has_no_formulas_and_a_page_no_markup_of_students(tmp_path: Path) -> None:
    graded = [(Submission("=cmd()", USIDS, tmp_path), result(happened="<script>"))]
    assert next(csv.DictReader(io.StringIO(tables.grades(graded))))["student"] == "'=cmd()"
    graded = [(Submission("anna", USIDS, tmp_path), result(happened="a\x1b[2J\x9bb"))]
    assert "a\ufffd[2J\ufffdb" in tables.grades(graded)
    assert "<script>" not in tables.overview(graded, [("usids", 0.9, "<b>", "x")])


def test_hostile_folders_are_read_with_suspicion(tmp_path: Path) -> None:
    for name in ("link", "pipe", "large", "good"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "usids.py").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe" / "usids.py")
    (tmp_path / "large" / "usids.py").write_bytes(b"x" * 100_000)
    (tmp_path / "good" / "usids.py").write_text("ANSWERS = {}\n")
    (tmp_path / "outside").symlink_to("/etc")
    submissions = {one.student: one for one in find_submissions(tmp_path, [USIDS], "k")[0]}
    assert set(submissions) == {"link", "pipe", "large", "good"}
    assert submissions["good"].source() == "ANSWERS = {}\n"
    for name in ("link", "pipe", "large"):
        with pytest.raises(OSError, match=r"must be a regular file|must have at most"):
            submissions[name].source()
    with pytest.raises(CourseError, match="no submission"):
        find_submissions(tmp_path / "good", [USIDS], "k")


def test_every_folder_and_link_that_is_left_out_is_listed_with_the_reason(tmp_path: Path) -> None:
    for name in ("anna", "..evil", ".hidden", "\x1b[2Jx"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "usids.py").write_text("ANSWERS = {}\n")
    (tmp_path / "ben\nnot graded: carl").symlink_to("anna")
    (tmp_path / "dora").symlink_to("/none")
    submissions, left_out = find_submissions(tmp_path, [USIDS], "k")
    assert [one.student for one in submissions] == ["anna"]
    links = [
        f"{tmp_path / name} must be a directory (it is a symbolic link)"
        for name in ("ben\ufffdnot graded: carl", "dora")
    ]
    dots = [f"a student's folder must not begin with a dot (got {name!r})" for name in ("..evil", ".hidden")]
    assert set(left_out) >= {*links, *dots}
    assert len(left_out) == 5
    assert all(why.isprintable() for why in left_out)


def test_parts_are_disjoint_and_whole(tmp_path: Path) -> None:
    submissions = [Submission(f"s{number}", USIDS, tmp_path) for number in range(10)]
    parts = [one for number in (1, 2, 3) for one in part(submissions, f"{number}/3")]
    assert sorted(one.student for one in parts) == sorted(one.student for one in submissions)
    with pytest.raises(ValueError, match="NUMBER/OF"):
        list(part(submissions, "4/3"))


def test_renamed_copies_are_similar_and_own_work_is_not() -> None:
    spray = find("spray")
    text = reference(spray, 0)
    renamed = re.sub(r"\bflying\b", "x", re.sub(r"\bpath\b", "p", text)) + "# my own\n"
    other = "class Spray:\n    def __init__(self, ps):\n        self.at = 0\n    def choose(self, us):\n"
    other += "        self.at += 1\n        for n in range(9):\n            if (self.at + n) % 9 in us:\n"
    other += "                return (self.at + n) % 9\n        return None\n"
    pairs = {(a, b): share for share, a, b in similar({"a": text, "b": renamed, "c": other}, spray.starter(0), ".py")}
    assert pairs["a", "b"] == 1.0
    assert max(pairs.get(("a", "c"), 0.0), pairs.get(("b", "c"), 0.0)) < 0.3


def test_start_never_overwrites_and_hints_come_in_steps(tmp_path: Path) -> None:
    mylab = StudentFolder(tmp_path / "mylab")
    assert [path.name for path in mylab.start(USIDS, Student("anna", "k"))] == ["usids.py", "usids.toml"]
    with pytest.raises(CourseError, match="never overwritten"):
        mylab.start(USIDS, Student("anna", "k"))
    assert mylab.next_hint(USIDS) is None
    failed = TestResult("path-1", "t", 1, TestOutcome(False, "a", "b"), 0.1)
    mylab.record(CheckResult(1, "anna", 7, "", (failed,), 0.1))
    steps = [mylab.next_hint(USIDS) for _ in range(4)]
    assert [step[1] for step in steps if step] == [1, 2, 3, 3]
    more = mylab.start(find("hop"), mylab.student(), from_stage=True)
    assert [path.name for path in more] == ["hop.p4"]  # lab 1 is there already


def test_a_check_of_one_test_chooses_the_hint_and_leaves_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` suggests a hint, so there is one; a test that passes alone leaves the other's hints as they are."""
    folder = ["--folder", str(tmp_path)]
    main(["start", "1", *folder])

    def checked(*words: str, **outcomes: bool) -> str:
        tests = tuple(TestResult(name, "t", 1, TestOutcome(ok, "a", "b"), 0.1) for name, ok in outcomes.items())
        monkeypatch.setattr(checking, "check", lambda *_, **__: CheckResult(1, "me", 7, "", tests, 0.1))
        main(["check", "1", *words, *folder])
        capsys.readouterr()
        main(["hint", "1", *folder])
        return capsys.readouterr().out.split(":")[0]

    assert checked("local", local=False) == "hint 1 of 3 for local"
    assert "passed" not in StudentFolder(tmp_path).notes()["labs"]["1"]
    assert checked(local=False, shift=False) == "hint 2 of 3 for local"
    assert checked("shift", shift=False) == "hint 1 of 3 for shift"
    assert checked("local", local=True) == "hint 2 of 3 for shift"
    assert checked("shift", shift=True).startswith("no test of lab 1 has failed")
    assert StudentFolder(tmp_path).notes()["labs"]["1"]["tests"] == 2


def test_the_archive_runs_without_references_and_is_reproducible(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no clone: git says which files belong to the project")
    sizes = [packing.gradescope(find("hop"), "k", tmp_path / name) for name in ("a.zip", "b.zip")]
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert sizes[0] < 20_000_000
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
        assert {"setup.sh", "run_autograder", "lab", "packages/course/course/worker.py", "p4/leaf.p4"} <= set(names)
        assert not [name for name in names if "references" in name]
        assert archive.getinfo("run_autograder").external_attr >> 16 & 0o111
        for script in ("setup.sh", "run_autograder"):
            subprocess.run(["sh", "-n"], input=archive.read(script), check=True)


def test_a_grading_that_was_killed_goes_on(tmp_path: Path) -> None:
    for number in range(6):
        folder = tmp_path / "in" / f"s{number}"
        folder.mkdir(parents=True)
        (folder / "usids.py").write_text(reference(USIDS, Student(f"s{number}", "k").seed(1)))
    words = [sys.executable, "-m", "cli", "grade", str(tmp_path / "in"), "--key", "k", "--workers", "1"]
    words += ["--output", str(tmp_path / "out")]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("1/6")
    process.send_signal(signal.SIGKILL)
    process.wait()
    again = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "kept from before" in again.stdout
    assert "6 of 6 submissions pass" in again.stdout


@pytest.mark.parametrize("name", ["anna #2", "50%41", "a?b", "ä'\"<"])
def test_links_to_pages_lead_there_whatever_a_folder_is_called(tmp_path: Path, name: str) -> None:
    (link,) = re.findall(r'href="([^"]*)"', tables.overview([(Submission(name, USIDS, tmp_path), result())], []))
    parts = urlsplit(html.unescape(link))
    assert (unquote(parts.path), parts.query, parts.fragment) == (f"pages/{name}/usids.html", "", "")


def test_comments_are_those_of_the_language() -> None:
    assert tokens("x = a // b + secret(1)  # c // d\n", ".py") == tokens("y = c // d + open(2)", ".py")
    assert tokens("x = a // b", ".py") == ["name", "=", "name", "/", "/", "name"]
    assert tokens("x = 1; /* a b\n c */ // d\ny = 2;", ".p4") == tokens("x = 1; y = 2;", ".p4")
    assert tokens("x = 1; /* never closed", ".p4") == ["name", "=", "number", ";"]
    assert tokens("'''a\nb'''\nx = \"# no comment\" + 'it\\'s'", ".py") == ["name", "=", "text", "+", "text"]


@pytest.fixture
def submissions(tmp_path: Path) -> Path:
    """A folder of three students."""
    for name in ("anna", "ben", "carl"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / USIDS.file).write_text(f"ANSWERS = {{}}  # {name}\n")
    return tmp_path / "in"


def failed(lab: Exercise, path: Path, source: str, student: Student, folder: Path, seed: int) -> CheckResult:
    """In place of a check, which takes a second: the result of a file that fails."""
    test = TestResult("path-1", "a path", 1, TestOutcome(False, "a", "b"), 0.1)
    return CheckResult(lab.number, student.name, seed, hashlib.sha256(source.encode()).hexdigest(), (test,), 0.1)


def graded(tmp_path: Path, *words: str) -> int:
    """Grade lab 1 of the folder `in` into `out`; the exit status."""
    given = ["grade", str(tmp_path / "in"), "--key", "k", "--labs", "1", "--workers", "1"]
    return main([*given, "--output", str(tmp_path / "out"), *words])


def rows(tmp_path: Path, name: str = "grades.csv") -> list[dict[str, str]]:
    with (tmp_path / "out" / name).open() as lines:
        return list(csv.DictReader(lines))


def test_a_text_without_a_form_in_utf8_spoils_no_grading_and_no_old_result(tmp_path: Path) -> None:
    (tmp_path / "in" / "eve").mkdir(parents=True)
    (tmp_path / "in" / "eve" / USIDS.file).write_text('raise ValueError("\\ud800 hello")\n')
    for _ in range(2):
        assert graded(tmp_path) == 0
        assert "ValueError: ? hello" in rows(tmp_path)[0]["first failure"]
    # nor does an old result with such a text
    test = TestResult("one", "t", 1, TestOutcome(False, "\ud800", "\udfff", look=("\ud800",)), 0.1, "\ud800")
    document = CheckResult(1, "anna", 7, "", (test,), 0.1, trouble="\ud800").document()
    read = CheckResult.read(json.loads(json.dumps(document)))
    assert json.dumps(read.document(), ensure_ascii=False).encode().count(b"?") == 5


def test_an_error_with_one_submission_is_its_trouble(submissions: Path, tmp_path, monkeypatch) -> None:
    def check(lab: Exercise, path: Path, *rest: Any) -> CheckResult:
        if "anna" in path.parts:
            raise RuntimeError("not this one")
        return failed(lab, path, *rest)

    monkeypatch.setattr(checking, "check", check)
    assert graded(tmp_path) == 1
    assert [row["status"] for row in rows(tmp_path)] == ["not run", "not yet", "not yet"]
    assert "RuntimeError: not this one" in rows(tmp_path)[0]["first failure"]


def test_results_of_a_lab_that_was_changed_are_made_again(submissions: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(checking, "check", failed)
    assert graded(tmp_path) == graded(tmp_path) == 0
    assert capsys.readouterr().out.count("kept from before") == 3
    monkeypatch.setattr(grading, "version", lambda: "another")
    assert graded(tmp_path) == 0
    assert "kept from before" not in capsys.readouterr().out


def test_a_lab_that_is_named_twice_is_graded_once(submissions: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checking, "check", failed)
    graded(tmp_path, "--labs", f"1,{USIDS.name},1")
    assert [row["student"] for row in rows(tmp_path)] == ["anna", "ben", "carl"]


def test_the_version_of_a_result_follows_the_labs_and_what_they_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(identity, "ROOT", tmp_path)
    monkeypatch.setattr(identity, "code_digest", identity.code_digest.__wrapped__)
    course = tmp_path / "packages" / "course" / "course"
    places = [
        course / "labs" / "usids" / "tests.py", course / "seams" / "trial.py", course / "bench" / "around.p4",
        tmp_path / "p4" / "parts" / "headers.p4", tmp_path / "endpoint" / "agent.py",
    ]  # fmt: skip
    seen = {grading.version()}
    for place in places:
        place.parent.mkdir(parents=True)
        place.write_text("LIMIT = 1\n")
        seen.add(grading.version())
    assert len(seen) == 1 + len(places)
    (course / "grading").mkdir()
    (course / "grading" / "tables.py").write_text("LIMIT = 1\n")
    assert grading.version() in seen


def test_whatever_a_check_imports_is_in_the_version_of_its_result() -> None:
    """All but the code of pages, which show what was found."""
    places = (*grading.JUDGES, *(place for places in identity.CODE.values() for place in places))
    known = [identity.placed(place) for place in (*places, "page")]
    reached = user_code.imported(identity.placed("course/worker.py"), known, identity.import_roots())
    inside = [path.relative_to(identity.ROOT) for path in reached if path.is_relative_to(identity.ROOT)]
    assert [str(path) for path in inside if path.name != "__init__.py"] == []


def test_machines_with_a_common_folder_write_tables_of_all_results(submissions, tmp_path, monkeypatch, capsys) -> None:
    for name in ("anna", "ben"):  # in different parts
        (submissions / name / "spray.py").write_text(reference(find("spray"), 0))
    (submissions / "ben" / USIDS.file).unlink()
    (submissions / "ben" / USIDS.file).symlink_to("/etc/passwd")
    monkeypatch.setattr(checking, "check", failed)
    statuses = [graded(tmp_path, "--labs", "1,5", "--part", f"{number}/3") for number in (1, 2, 3)]
    assert statuses == [0, 1, 0]
    assert "the tables have 5 of 5 results" in capsys.readouterr().out
    assert [f"{row['student']} {row['lab']} {row['status']}" for row in rows(tmp_path)] == [
        "anna 1 not yet", "anna 5 not yet", "ben 1 not run", "ben 5 not yet", "carl 1 not yet",
    ]  # fmt: skip
    link = submissions / "ben" / USIDS.file
    assert rows(tmp_path)[2]["first failure"] == f"{link} must be a regular file (it is a symbolic link)"
    assert "root:" not in (tmp_path / "out" / "pages" / "ben" / "usids.html").read_text()
    assert {"one": "anna", "other": "ben", "lab": "spray", "share": "1.00"} in rows(tmp_path, "similar.csv")
    assert "carl" in (tmp_path / "out" / "index.html").read_text()


def test_a_part_without_students_is_refused(submissions: Path, tmp_path, capsys) -> None:
    assert graded(tmp_path, "--part", "4/4") == 2
    assert "--part 4/4 must have a student (got 3 students for 4 parts)" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


HOSTILE = ('a""";__import__("os").system("id>&2");"""', "\\users", "x$(id)y", "x" * 81, "an\u200bna", "`id`")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_folders_bad_name_costs_no_other_student_the_grade(name, submissions, tmp_path, monkeypatch, capsys) -> None:
    (submissions / name).mkdir()
    (submissions / name / USIDS.file).write_text("ANSWERS = {}\n")
    monkeypatch.setattr(checking, "check", failed)
    assert graded(tmp_path) == 1
    assert [row["student"] for row in rows(tmp_path)] == ["anna", "ben", "carl"]
    rule = "not graded: a student's name must have 1 to 80 printable characters, none of them a quote, a backslash"
    assert rule in (said := capsys.readouterr().err)
    assert repr(name)[1:20] in said
    assert "Not graded" in (tmp_path / "out" / "index.html").read_text()


def test_a_folder_of_bad_names_alone_is_refused_with_the_rule(tmp_path, capsys) -> None:
    (tmp_path / "in" / "$x").mkdir(parents=True)
    (tmp_path / "in" / "$x" / USIDS.file).write_text("ANSWERS = {}\n")
    assert graded(tmp_path) == 2
    assert "has no submission" in (said := capsys.readouterr().err)
    assert "none of them a quote" in said


ANSWERED = [lab for lab in LABS.values() if lab.answers]
OTHER = "this file was started without the course key"


@pytest.fixture
def mylab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mylab"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The requests of checks, which a worker in place of the usual one answers at once."""
    seen: list[dict[str, Any]] = []
    test = TestResult("path-1", "a path", 1, TestOutcome(False, "a", "b"), 0.1)

    def answered(request: dict[str, Any], tell: object) -> CheckResult:
        seen.append(request)
        return CheckResult(request["lab"], request["student"], request["seed"], "", (test,), 0.1)

    monkeypatch.setattr(checking, "carried_out", answered)
    return seen


def test_without_a_key_every_step_says_that_it_counts_for_no_class(mylab: Path, quick, capsys) -> None:
    for words in (["start", "1"], ["check", "1"]):
        main(words)
        said = " ".join(capsys.readouterr().out.split())
        assert "'me', without a course key" in said
        assert "./lab course join" in said
    assert main(["course"]) == 0
    assert "without a course key" in capsys.readouterr().out


def test_under_a_key_every_step_says_whose_questions_these_are(mylab: Path, quick, capsys) -> None:
    assert main(["course", "join", "anna@net-2026"]) == 0
    assert "'anna', with the course key" in capsys.readouterr().out
    for words in (["start", "1"], ["check", "1"]):
        main(words)
        said = capsys.readouterr().out
        assert "'anna', with the course key" in said
        assert "join" not in said
    assert quick[0]["seed"] == Student("anna", "net-2026").seed(1)


@pytest.mark.parametrize("lab", ANSWERED, ids=lambda lab: lab.name)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), OTHER),
        (("--student", "anna"), OTHER),
        (("--student", "ben", "--key", "net-2026"), "this file was started under another name or key"),
    ],
)
def test_a_file_with_other_questions_is_not_graded(lab, words, said: str, mylab: Path, quick, tmp_path, capsys) -> None:
    main(["start", str(lab.number), *words])
    (tmp_path / "in" / "anna").mkdir(parents=True)
    (mylab / lab.file).rename(tmp_path / "in" / "anna" / lab.file)
    assert main(["grade", str(tmp_path / "in"), "--key", "net-2026", "--output", str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().out
    (row,) = csv.DictReader((tmp_path / "out" / "grades.csv").open())
    assert (row["status"], row["score"]) == ("not run", "0")
    assert row["first failure"].startswith(said)
    there = ["check", str(lab.number), str(tmp_path / "in" / "anna" / lab.file), "--student=anna", "--key=net-2026"]
    assert main(there) == 2
    assert quick == []


def test_the_file_of_the_student_is_graded_and_code_for_any_seed_always(mylab: Path, quick, tmp_path: Path) -> None:
    main(["start", "1", "--student", "Anna", "--key", "net-2026"])
    (tmp_path / "in" / "anna").mkdir(parents=True)
    (mylab / "usids.py").rename(tmp_path / "in" / "anna" / "usids.py")
    StudentFolder(tmp_path / "own").start(find("spray"), Student("me"))
    (tmp_path / "own" / "spray.py").rename(tmp_path / "in" / "anna" / "spray.py")
    assert main(["grade", str(tmp_path / "in"), "--key", "net-2026", "--output", str(tmp_path / "out")]) == 0
    assert sorted(request["lab"] for request in quick) == [1, 5]


def test_every_started_file_names_its_seed_in_a_comment(mylab: Path) -> None:
    for lab in LABS.values():
        anna, ben = Student("anna", "k"), Student("ben", "k")
        StudentFolder(mylab).start(lab, anna)
        text = (mylab / lab.file).read_text()
        assert anna.mark(lab.number) in text.splitlines()[-1]
        assert ben.mark(lab.number) not in text
        assert text.splitlines()[-1].startswith("//" if lab.file.endswith(".p4") else "#")


@pytest.mark.parametrize(
    "words",
    [
        ("start", "1", "--student", ""),
        ("start", "1", "--student", " "),
        ("start", "1", "--key", ""),
        ("course", "join", "@net-2026"),
        ("course", "join", "anna@"),
        ("course", "join", "anna"),
        ("course", "join"),
    ],
)
def test_empty_names_and_keys_are_refused(words: tuple[str, ...], mylab: Path, refused) -> None:
    assert "must" in refused(*words)
    assert not mylab.exists()


def test_a_class_is_joined_once_and_work_for_any_seed_is_kept(mylab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["start", "3"])
    (mylab / "tables.py").write_text("my work\n")
    before = (mylab / "tables.toml").read_text()
    assert main(["course", "join", "anna@example.org@net-2026"]) == 0
    assert (mylab / "tables.py").read_text() == "my work\n"
    assert (
        (mylab / "tables.toml").read_text()
        == find("tables").extra(Student("anna@example.org", "net-2026").seed(3))["tables.toml"]
        != before
    )
    notes = json.loads((mylab / ".course.json").read_text())
    assert notes["student"] == {"name": "anna@example.org", "key": "net-2026"}


def test_a_class_is_not_joined_over_answers_to_other_questions(mylab: Path, refused) -> None:
    main(["start", "1"])
    assert "usids.py must be moved away" in refused("course", "join", "anna@net-2026")
    assert StudentFolder(mylab).student().name == "me"


def test_a_terminal_does_not_obey_what_a_student_prints() -> None:
    lab = find("1")
    words = "one\n\x1b]0;passed\x07 [b]two[/b]\n"
    test = TestResult("name", "title", 1, TestOutcome(False, words, words, look=(words,)), 0.1, printed=words)
    result = CheckResult(lab.number, "s1", 1, "", (test,), 0.1)
    for one in (result, replace(result, trouble="\x1b[2J [b]two[/b]")):
        text = io.StringIO()
        show(Console(file=text, width=100), lab, one, "router.py")
        assert "\x1b" not in text.getvalue()
        assert "\N{REPLACEMENT CHARACTER}" in text.getvalue()
        assert "[b]two[/b]" in text.getvalue()


def test_a_result_has_the_names_of_tests_as_handouts_do() -> None:
    lab = find("9")
    test = TestResult("cable", "a cable without light", 1, TestOutcome(False, "this", "that"), 0.1)
    text = io.StringIO()
    show(Console(file=text, width=100), lab, CheckResult(lab.number, "s1", 1, "", (test,), 0.1), "faults.py")
    assert text.getvalue().count("cable: a cable without light") == 2  # in the list, and above the first failure


def test_a_lab_that_was_started_is_told_in_the_list_and_has_a_page(tmp_path, capsys, refused) -> None:
    folder = ["--folder", str(tmp_path / "mylab")]
    assert main(["start", "5", "--student", "s1", "--key", "k", *folder]) == 0
    assert (tmp_path / "mylab" / find("5").file).read_text()
    assert "fill the gaps, then ./lab check 5" in capsys.readouterr().out
    assert main(["course", "list", "--format", "json", *folder]) == 0
    assert [row["number"] for row in json.loads(capsys.readouterr().out) if row["started"]] == [5]
    assert main(["course", "list", *folder]) == 0
    assert find("5").title in capsys.readouterr().out
    assert main(["course", "page", "5"]) == 0
    assert "Goal" in capsys.readouterr().out
    assert "must have lab, service and key" in refused("course", "pack", "5")
