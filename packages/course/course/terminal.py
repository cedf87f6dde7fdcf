"""Results in the terminal: the first failure in full, then a line per test, then the gates."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from common.terminal.printable import printable_text
from course.exercise import Exercise
from course.result import CheckResult, TestResult

PRINTED_LINES = 10
MARKS = {True: "[green]✔[/green]", False: "[red]✘[/red]"}


def plain(text: str) -> str:
    """Text of a student's code for a markup of rich: without commands to the terminal, its brackets as they are."""
    return escape(printable_text(text))


@contextmanager
def progress(console: Console, lab: Exercise) -> Iterator[Callable[[str], None]]:
    """A line on a terminal that says which test runs; the callback is given each name as its test begins."""
    titles = {test.name: test.title for test in lab.tests}
    with console.status("starting the check") as status:
        yield lambda name: status.update(f"test {name}: {titles[name]}")


def show(console: Console, lab: Exercise, result: CheckResult, what: str, whose: str = "") -> None:
    """A result as `./lab check` prints it. `what` is the file that was checked, `whose` says for whom."""
    console.print(f"[bold]Lab {lab.number}: {lab.title}[/bold]\n[dim]{plain(what)}, questions of {plain(whose)}[/dim]")
    if result.trouble:
        console.print(f"[red]could not be run[/red]: {plain(result.trouble)}")
        return
    first = result.first_failure
    if first is not None:
        failure(console, lab, first)
    if result.printed:
        console.print("[dim]the end of what your code printed:[/dim]")
        console.print(plain("\n".join(result.printed.splitlines()[-PRINTED_LINES:])) + "\n")
    table = Table(box=None, pad_edge=False, show_header=False)
    for no_wrap in (True, False, True, False):
        table.add_column(overflow="fold", no_wrap=no_wrap)
    for test in result.tests:
        styles = ((gate, "dim" if gate.open else "red") for gate in test.outcome.gates)
        gates = "\n".join(f"[{style}]{plain(gate.description)}[/{style}]" for gate, style in styles)
        table.add_row(MARKS[test.passed], plain(f"{test.name}: {test.title}"), f"{test.score}/{test.points}", gates)
        if not test.passed and test is not first:
            table.add_row("", f"[dim]{plain(test.outcome.happened)}[/dim]", "", "")
    console.print(table)
    passed = sum(test.passed for test in result.tests)
    words = "[green]passed[/green]" if result.status == 0 else "[yellow]not yet[/yellow]"
    console.print(
        f"{words}: {passed} of {len(result.tests)} tests, {result.score} of {result.points} points,"
        f" in {result.seconds:.1f} s"
    )
    if first is not None:
        console.print(
            f"[dim]a hint: ./lab hint {lab.number}; this test alone: ./lab check {lab.number} {first.name}[/dim]"
        )
    if result.protection and "system calls" not in result.protection:
        console.print("[yellow]this machine has no seccomp: the code ran with limits, but not contained[/yellow]")


def failure(console: Console, lab: Exercise, test: TestResult) -> None:
    """The first failure: expected, happened, and how to look closer."""
    console.print(f"\n[red]✘ {plain(f'{test.name}: {test.title}')}[/red]")
    rows = [("expected", test.outcome.expected), ("happened", test.outcome.happened)]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", width=10, justify="right")
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(name, plain(text))
    console.print(grid)
    for number, line in enumerate(test.outcome.look):  # not broken: people copy these
        console.print(f"[dim]{'look' if number == 0 else '':>10}[/dim]  {plain(line)}", soft_wrap=True)
    console.print()


def listing(console: Console, labs: list[Exercise], notes: dict[str, object], started: set[int], folder: Path) -> None:
    """The labs with what is done."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "lab", "title", "hours", "tests", "file"):
        table.add_column(column)
    done = notes.get("labs")
    for lab in labs:
        own = done.get(str(lab.number), {}) if isinstance(done, dict) else {}
        passed, tests = own.get("passed", 0), own.get("tests", 0)
        mark = MARKS[True] if tests and passed == tests else ("[yellow]…[/yellow]" if lab.number in started else " ")
        progress = f"{passed}/{tests}" if tests else f"–/{len(lab.tests)}"
        hours = f"{lab.minutes / 60:g}"
        table.add_row(mark, str(lab.number), lab.title, hours, progress, lab.file)
    console.print(table)
    console.print(f"[dim]your files are in {plain(str(folder))}/[/dim]", highlight=False)
