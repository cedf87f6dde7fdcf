"""Sweeps: what is varied, what is kept, and that nothing is lost or made twice, whoever dies when."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from cli.choosing import chosen
from cli.commands.seeds import sweep as sweep_module
from cli.commands.seeds.sweep import asked, name_of, parse_seeds
from cli.main import main, parser
from running.options import AS_DEPLOYED_S
from studies.farm.engine import Inline, WorkerDiedError
from studies.farm.pool import Pool
from studies.sweeping import perform as perform_module, report
from studies.sweeping.perform import kept, perform
from studies.sweeping.row import Row
from studies.sweeping.statement import document, statement, statements
from studies.sweeping.subject import with_journals
from studies.sweeping.sweep import RowStore, Sweep
from studies.sweeping.task import Task, VersionError
from studies.sweeping.variant import Variant, split, variants
from tests.helpers.owner import living
from tests.helpers.quick_sweep import (
    DEADLY_SEED,
    fake,
    inline,
    perform_and_always_die,
    perform_and_die_once,
    quick_subjects,
    write_quick,
)
from tests.helpers.waiting import eventually, heeding_interrupts

LIMIT_S = 120


def swept(
    folder: Path, path: Path, count: int, *, made: int | None = None, until: float | None = None, **of: list[str]
) -> str:
    """The document of a sweep whose runs are made up."""
    with RowStore(folder) as store, inline(fake) as engine:
        sweep = Sweep(quick_subjects(path, **of), range(1, count + 1), store, until)
        sweep.run(engine)
        assert made is None or sweep.made == made
        return json.dumps(document(statements(sweep)))


# --- what is varied


def test_variants_are_the_product_of_all_axes_and_name_the_command_that_repeats_them() -> None:
    found = variants(["smoke", "incast"], ["mrc", "roce"], ["tiny", "lab"], ["trimming.enabled=true,false"], [])
    assert len(found) == 16
    assert found[3].command(7) == ("./lab run smoke --transport roce --plan tiny --set trimming.enabled=false --seed 7")
    assert [one.transport for one in found[:2]] == ["mrc", "roce"]


def test_a_value_may_hold_commas_and_seeds_are_a_number_or_a_range() -> None:
    assert split('[1,2],{"a":1,"b":2},"x,y",z') == ["[1,2]", '{"a":1,"b":2}', '"x,y"', "z"]
    assert parse_seeds("3") == [1, 2, 3]
    assert parse_seeds("301-303") == [301, 302, 303]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["smoke", "--seeds", "many"], "a range such as 301-600"),
        (["smoke", "--seeds", "1-" + "9" * 5000], "a range such as 301-600"),
        (["smoke", "--seeds", "9-3"], "the first not above the last"),
        (["smoke", "--transport", "mrc,mrc"], "transport: mrc is given more than once"),
        (["smoke", "--transport", "tcp"], "no transport 'tcp': valid are mrc"),
        (["smoke", "--set", "trimming.enabled"], "must be NAME=VALUE,VALUE…"),
        (["smoke", "--set", "trimming.enabled=true,maybe"], "trimming"),
        (["smoke", "--until", "120%"], "above 50% and below 100%, such as 99% (got 120%)"),
        (["smoke", "--keep-worst", "-1"], "--keep-worst must be 0 or more runs (got -1)"),
        (["nowhere"], "no scenario 'nowhere': valid are smoke"),
        (["smoke,spray"], "'smoke,spray' is one name: where a command takes several"),
        (["smoke", "--setting", "evs_min_active_share=0.5,0.50"], "--setting evs_min_active_share=0.50"),
        (["smoke", "--plan", "lab,topo/plans/lab.toml"], "and smoke --transport mrc --plan topo/plans/lab.toml"),
        (["smoke", "--cluster", "tcp://localhost:1", "--world", "emulated"], "only with --world simulated"),
    ],
)
def test_words_that_cannot_be_are_refused_before_anything_is_run(words, said, tmp_path: Path, refused) -> None:
    assert said in refused("sweep", *words, "--runs", str(tmp_path))


@pytest.mark.parametrize(
    "words",
    [["--rate", "50"], ["--time", "2"], ["--short"], ["--world", "emulated", "--rate", "50"], ["--payload", "real"]],
    ids=lambda words: words[0],
)
def test_each_choice_that_all_variants_share_is_in_the_name_of_the_page(words: list[str]) -> None:
    plain, other = (asked(parser("sweep").parse_args(["sweep", "smoke", *given])) for given in ([], words))
    assert name_of(plain) != name_of(other)
    assert name_of(plain) == name_of(list(plain))


def test_files_of_one_name_have_two_pages_and_rows_name_the_choices_that_all_variants_share(tmp_path: Path) -> None:
    one, other = ([Variant(str(tmp_path / folder / "mine.py"))] for folder in ("a", "b"))
    assert name_of(one) != name_of(other)
    rows = [Row("k", 1, "true")]
    found = [statement(Variant("smoke", others=(("rate", rate),)), "A claim", rows) for rate in ("50", "100")]
    head, first, second = report.csv_text(found).splitlines()
    place = head.split(",").index("options")
    assert [line.split(",")[place] for line in (first, second)] == ["--rate 50", "--rate 100"]
    assert [one["options"] for one in document(found)["variants"]] == ["--rate 50", "--rate 100"]


# --- what is kept


def test_adding_seeds_makes_only_what_is_new_and_a_file_that_changes_is_another_experiment(tmp_path: Path) -> None:
    path = write_quick(tmp_path)
    first = swept(tmp_path, path, 20, made=40)
    assert swept(tmp_path, path, 20, made=0) == first
    swept(tmp_path, path, 30, made=20)
    path.write_text(path.read_text().replace('depth": 2', 'depth": 3'))
    swept(tmp_path, path, 5, made=10)


def test_every_choice_is_in_the_key(tmp_path: Path) -> None:
    path = str(write_quick(tmp_path))
    found = variants([path], ["mrc", "roce"], ["tiny", "lab"], ["trimming.enabled=true,false"], ["evs_active=8,16"])
    from studies.sweeping.subject import subject

    others = [replace(one, others=(("world", "simulated"),)) for one in found if one.transport == "mrc"]
    keys = {subject(one, chosen, 1).key(seed) for one in others for seed in (1, 2)}
    keys |= {subject(replace(one, others=(("world", "simulated"), ("time", 2.0))), chosen, 1).key(1) for one in others}
    assert len(keys) == 3 * len(others)


def test_a_worker_with_other_code_or_files_refuses_the_run(tmp_path: Path) -> None:
    task = quick_subjects(write_quick(tmp_path))[0].task(1)
    with pytest.raises(VersionError, match="judging differ; workers need the same version"):
        perform(str(tmp_path), replace(task, key="other", hashes={**task.hashes, "judging": "0"}))


def test_a_run_that_an_exception_ends_is_unknown_is_shown_and_is_made_again_the_next_time(tmp_path: Path) -> None:
    path = write_quick(tmp_path)

    def full(task: Task) -> Row:
        return replace(fake(task), verdict="unknown", error="OSError: no space") if task.seed == 2 else fake(task)

    with RowStore(tmp_path) as store, inline(full) as engine:
        sweep = Sweep(quick_subjects(path, ["mrc"]), range(1, 4), store)
        sweep.run(engine)
        assert [row.verdict for row in sweep.rows(0)] == ["true", "unknown", "true"]
        assert "no space" in report.html(statements(sweep))
        assert (sweep.made, [row.seed for _, row in sweep.broken]) == (2, [2])
    swept(tmp_path, path, 3, made=1, transports=["mrc"])


def sweep_and_tell(folder: Path, path: Path, line: Connection, at_most: int) -> None:
    """In a process of its own: a long sweep, which tells the number of each run once the run is kept. It waits to be
    killed after so many, however late the one who kills it is."""
    with RowStore(folder) as store, inline(fake) as engine:
        sweep = Sweep(quick_subjects(path, ["mrc"]), range(1, 401), store)

        def tell() -> None:
            line.send(sweep.made)
            if sweep.made == at_most:
                signal.pause()

        sweep.run(engine, tell)


def test_a_sweep_that_is_killed_at_20_random_points_loses_nothing_and_makes_nothing_twice(tmp_path: Path) -> None:
    path, chance = write_quick(tmp_path), random.Random(17)
    quick_subjects(path, ["mrc"])  # compiles the P4 programs, once for all processes
    context = multiprocessing.get_context("fork")
    kept = 0
    for _ in range(20):
        here, there = context.Pipe(duplex=False)
        stop_at, told = chance.randrange(1, 18), 0
        process = context.Process(target=sweep_and_tell, args=(tmp_path, path, there, stop_at + 2))
        process.start()
        there.close()
        while told < stop_at:
            told = here.recv()
        process.kill()
        process.join(LIMIT_S)
        with suppress(EOFError):
            while True:
                told = here.recv()
        with RowStore(tmp_path) as store:
            # What was told was kept. One more may have been: the process died between keeping and telling.
            assert kept + told <= len(store) <= kept + told + 1
            kept = len(store)
    assert kept < 400
    broken_off = swept(tmp_path, path, 400, made=400 - kept, transports=["mrc"])
    assert broken_off == swept(tmp_path / "other", path, 400, made=400, transports=["mrc"])


# --- when enough is known


def test_with_until_a_sweep_stops_when_it_is_known_and_its_table_does_not_depend_on_what_came_after(tmp_path) -> None:
    path = write_quick(tmp_path)
    found = json.loads(swept(tmp_path, path, 500, until=0.9))
    for variant in found["variants"]:
        assert variant["until"]["known"] is not None or variant["runs"] == 500
    alone = json.loads(swept(tmp_path / "all", path, 500))
    assert [one["runs"] for one in alone["variants"]] == [500, 500]
    assert json.loads(swept(tmp_path / "all", path, 500, made=0, until=0.9)) == found


def test_a_test_looks_at_runs_in_the_order_of_seeds_whichever_ends_first(tmp_path: Path) -> None:
    class Backwards(Inline[Task, Row]):
        workers = 8

        def next(self) -> Row:
            return self._work("", self._jobs.pop())

    path = write_quick(tmp_path)
    with RowStore(tmp_path / "a") as store, Backwards(lambda scratch, task: fake(task)) as engine:
        sweep = Sweep(quick_subjects(path), range(1, 501), store, 0.9)
        sweep.run(engine)
        backwards = json.dumps(document(statements(sweep)))
    assert backwards == swept(tmp_path / "b", path, 500, until=0.9)


# --- what is said


def test_the_page_has_the_worst_seeds_first_with_the_command_that_repeats_them(tmp_path: Path) -> None:
    runs = [Row(f"k{n}", n, "true", metrics={"goodput_kept": 0.99}) for n in range(20)]
    runs[4] = replace(runs[4], verdict="unknown")
    runs[9] = replace(runs[9], verdict="false", reasons={"bytes right": "3 bytes differ <somewhere>"})
    found = [statement(Variant("smoke"), "A claim", runs), statement(Variant("smoke", "roce"), "A claim", runs)]
    page = report.write(tmp_path, found).read_text()
    assert page.index("--seed 9</code>") < page.index("--seed 4</code>")
    assert "3 bytes differ &lt;somewhere&gt;" in page
    assert page.count("<svg") >= 2
    head = (tmp_path / "rows.csv").read_text().splitlines()[0].split(",")
    assert head[:6] == ["scenario", "transport", "plan", "options", "seed", "verdict"]
    assert json.loads((tmp_path / "sweep.json").read_text())["variants"][0]["worst"][0]["seed"] == 9


# --- real runs in real processes


def test_tables_are_the_same_made_one_by_one_by_one_process_or_by_two_and_leave_no_file(tmp_path: Path) -> None:
    path = write_quick(tmp_path)
    tables = []
    for name in ("inline", "pool"):
        with RowStore(tmp_path / name) as store:
            sweep = Sweep(quick_subjects(path), range(1, 5), store)
            if name == "inline":
                with inline(partial(perform, str(tmp_path))) as engine:
                    sweep.run(engine)
            else:
                with Pool(2, perform, tmp_path / name) as pool:
                    sweep.run(pool)
                assert pool.died == 0
            tables.append(report.csv_text(statements(sweep)) + json.dumps(document(statements(sweep))))
    assert tables[0] == tables[1]
    assert "true" in tables[0]
    assert sorted(entry.name for entry in (tmp_path / "pool").iterdir()) == ["rows.sqlite"]
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith("run-")]


def test_a_run_is_kept_whole_when_it_is_asked_for_and_says_the_same(tmp_path: Path) -> None:
    task = quick_subjects(write_quick(tmp_path), ["mrc"])[0].task(5)
    alone = perform(str(tmp_path), task)
    kept = perform("", with_journals(task, str(tmp_path / "runs")))
    assert replace(kept, seconds=alone.seconds) == alone
    assert (tmp_path / "runs" / "latest" / "report.html").exists()


def test_a_worker_that_dies_costs_a_retry_and_not_the_sweep(tmp_path: Path) -> None:
    path = write_quick(tmp_path)
    with RowStore(tmp_path) as store, Pool(2, perform_and_die_once, tmp_path) as pool:
        sweep = Sweep(quick_subjects(path, ["mrc"]), range(1, 7), store)
        sweep.run(pool)
        assert pool.died == 1
        assert [row.verdict for row in sweep.rows(0)] == ["true"] * 6


def test_a_run_that_kills_every_worker_is_named(tmp_path: Path) -> None:
    path = write_quick(tmp_path)
    with RowStore(tmp_path) as store, Pool(1, perform_and_always_die, tmp_path) as pool:
        sweep = Sweep(quick_subjects(path, ["mrc"]), range(1, 7), store)
        with pytest.raises(WorkerDiedError, match=rf"3 workers died .*--seed {DEADLY_SEED}"):
            sweep.run(pool)
        assert len(store) == 2


def start(path: Path, runs: Path, seeds: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "cli", "sweep", str(path), "--seeds", str(seeds), "--runs", str(runs)]
    return subprocess.Popen(
        [*words, "--workers", "2", "--plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as a terminal would: a signal goes to the whole group
        preexec_fn=heeding_interrupts,
    )


def wait_for_rows(process: subprocess.Popen[str], runs: Path, count: int) -> None:
    """Until so many rows are kept; fails when the sweep ends before."""
    while process.poll() is None:
        if (runs / "sweeps" / "rows.sqlite").exists():
            with RowStore(runs / "sweeps") as store:
                if len(store) >= count:
                    return
        os.sched_yield()
    pytest.fail(f"the sweep ended with {process.returncode}: {process.communicate()}")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_after_ctrl_c_kill_and_kill_9_no_process_is_left_and_the_sweep_goes_on_where_it_was(how, tmp_path) -> None:
    path, runs = write_quick(tmp_path), tmp_path / "runs"
    process = start(path, runs, 5000)
    wait_for_rows(process, runs, 3)
    if how == signal.SIGKILL:
        process.kill()
        process.communicate(timeout=LIMIT_S)  # returns when the last worker has let go of the pipes
    else:
        (os.killpg if how == signal.SIGINT else os.kill)(process.pid, how)  # a terminal's Ctrl-C goes to the group
        _, errors = process.communicate(timeout=LIMIT_S)
        (page,) = (runs / "sweeps").glob("*/sweep.html")
        told = f"mrclab: the page has the results so far: {page}\nmrclab: interrupted\n"
        assert process.returncode == 130
        assert errors.endswith(told)
    # The helper of multiprocessing ends when nobody is left who could ask it for anything.
    eventually(lambda: not living(process.pid), "no process of the sweep is left", LIMIT_S)
    assert not list((runs / "sweeps").glob("scratch-*"))
    with RowStore(runs / "sweeps") as store:
        kept = len(store)
    assert main(["sweep", str(path), "--seeds", str(kept), "--runs", str(runs), "--plain"]) == 0


def test_a_worst_run_that_could_not_be_kept_is_named(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sweep_module, "make_engine", lambda *_: inline(fake))
    monkeypatch.setattr(perform_module, "make_run", lambda *_: Path("/proc/none").write_text(""))
    words = ["sweep", str(write_quick(tmp_path)), "--seeds", "1", "--runs", str(tmp_path / "runs")]
    assert main([*words, "--plain", "--keep-worst", "1"]) == 0
    assert "could not be kept, broken off: FileNotFoundError: /proc/none: no such file" in capsys.readouterr().out


def test_the_command_says_what_is_known_and_its_exit_status_is_the_answer(tmp_path, capsys) -> None:
    path, runs = write_quick(tmp_path), ["--runs", str(tmp_path / "runs")]
    assert main(["sweep", str(path), "--seeds", "4", *runs, "--plain", "--keep-worst", "1"]) == 0
    said = capsys.readouterr().out
    assert "4: 100 % (at least 47.2)" in said
    assert "4 runs made, 0 kept from before" in said
    assert (tmp_path / "runs" / "latest" / "report.html").exists()
    assert main(["sweep", str(path), "--seeds", "4", *runs, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["variants"][0]["verdicts"]["true"]["count"] == 4
    assert main(["sweep", str(path), "--seeds", "4", *runs, "--until", "99%", "--plain"]) == 3


def make_for_ever(task: Task, told: Connection) -> None:
    """A run that ends only when its process is killed."""

    def make(folder: Path) -> Row:
        (folder / "journal.jsonl").write_text("{}\n")
        told.send(folder)
        signal.pause()
        raise AssertionError

    kept(task, "", make)


def test_the_next_run_removes_the_temporary_folder_of_a_killed_one(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    task = Task("key", {"choices": {"seed": 1}}, "smoke", {})
    hearing, telling = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=make_for_ever, args=(task, telling))
    process.start()
    assert hearing.poll(LIMIT_S)
    left = hearing.recv()
    process.kill()
    process.join()
    assert left.parent == tmp_path
    assert (left / "journal.jsonl").exists()
    assert kept(task, "", lambda folder: fake(task)).seed == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "seconds"), [("0.5", 0.5), ("0", 0.0), ("never", None), (None, 0.1)])
def test_a_sweep_reroutes_roce_alone(text: str | None, seconds: float | None) -> None:
    words = ["sweep", "smoke", "--transport", "mrc,roce", *([] if text is None else ["--reconvergence", text])]
    variants = asked(parser("sweep").parse_args(words))
    mrc, roce = (chosen({**one.asked, "seed": 1}).choices for one in variants)
    assert (mrc.reconvergence_s, roce.reconvergence_s) == (None, seconds)
    again = [parser("run").parse_args(["run", *one.arguments]) for one in variants]
    assert [one.reconvergence for one in again] == [one.asked.get("reconvergence", AS_DEPLOYED_S) for one in variants]
