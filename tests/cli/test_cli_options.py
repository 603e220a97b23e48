"""Options: their values, their number, the old ones, and the progress of long commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
import pytest
from case_tables import each
from click.testing import CliRunner

from heapwright._cli import heapwright as command_line
from heapwright._cli.options import Duration
from heapwright._cli.progress import steps
from heapwright._cli.renamed import OPTIONS, Renamed, current_words
from heapwright._cli.workload import FILE, SETTINGS, chosen_settings, settings_of
from heapwright._traffic.workloads import function
from heapwright._traffic.workloads.easyport import easyport


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("1h", 3600), ("1.5h", 5400), ("0.5s", 0.5)])
def test_times_have_units(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds
    assert Duration().convert(seconds, None, None) == seconds


@each("text", ["90", "0s", "-1s", "infs", "nans", "h", "", "5d"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time; write one as 90s, 5m or 1h"):
        Duration().convert(text, None, None)


def commands(command: click.Command, words: str = "") -> Iterator[tuple[str, click.Command]]:
    yield words.strip(), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from commands(subcommand, f"{words} {name}")


def test_the_command_line_has_at_most_229_options() -> None:
    """All options of all commands, --help aside: each is one that some user changes."""
    flags = [
        f"{words} {option.opts[-1]}"
        for words, command in commands(command_line)
        for option in command.params
        if isinstance(option, click.Option)
    ]
    assert len(flags) <= 229, len(flags)


# ---- renamed options -----------------------------------------------------------------------------------------------


def translated(command: str, *words: str) -> list[str]:
    return current_words(click.Context(command_line), command, words)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        ("explore", "a --no-endurance -o s", "a --long-run 0 -o s"),
        ("explore", "a --endurance", "a"),
        ("explore", "a --future=3000", "a --long-run 3000"),
        ("generate", "tlsf --watched -o d --package", "tlsf --also watched -o d --also package"),
        ("measure", "s.duckdb --front --cpu cortex-m4", "s.duckdb --cpu cortex-m4"),
        ("report", "new --baseline old -o x.html", "old new -o x.html"),
        ("report", "s --format github", "s"),
        ("reproduce", "drr --readings all", "drr --reading all"),
        ("workload drr", "p --quantum 1500 --low 3", "p --set quantum=1500 --low 3"),
        ("workload queue", "p --all -- --all", "p --set cycles=all -- --all"),
        ("prove", "tlsf --check --unbounded", "tlsf --method frama-c"),
        ("trace cut", "a --start 2 --stop=5", "a --part 2: --part :5"),
        ("trace cut", "a --last 1s", "a --part -1s:"),
        ("workload poisson", "--min-size 4 --max-size 9", "--set min_size=4 --set max_size=9"),
        ("workload url", "p --count 9 --rate 1e6", "p --set count=9 --set rate=1e6"),
        ("replay", "a --heap tlsf", "a --heap tlsf"),
    ],
)
def test_an_old_option_becomes_the_new_one(
    command: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translated(command, *old.split()) == new.split()
    warned = "the old option goes with the next release" in capsys.readouterr().err
    assert warned == (old != new)


def test_an_option_without_a_successor_is_an_error_with_advice() -> None:
    with pytest.raises(click.UsageError, match=r"--clients is gone from fit: give --growth WANTED/RECORDED"):
        translated("fit", "a", "--clients", "20:50")


def test_old_options_are_of_commands_that_exist_and_new_ones_are_real() -> None:
    existing = dict(commands(command_line))
    for words, changes in OPTIONS.items():
        command = existing["workload" if words.startswith("workload ") else words]
        flags = {flag for option in command.params for flag in option.opts}
        assert not changes.keys() & flags, words
        for change in changes.values():
            if isinstance(change, Renamed):
                assert {word for word in change.words if word.startswith("--")} <= flags, words


@each("name", SETTINGS)
def test_a_workload_lists_its_settings_and_rejects_others(name: str) -> None:
    name = "mine.py" if name == FILE else name
    shown = CliRunner().invoke(command_line, ["workload", name, "--help"]).stdout
    for setting in settings_of(name):
        assert f"\n  {setting.name} " in shown
    context = click.Context(command_line)
    for wrong in ("colour=red", settings_of(name)[0].name):
        with pytest.raises(click.BadParameter, match="valid: NAME=VALUE with NAME one of "):
            chosen_settings(name, [wrong], context, click.Option(["--set"]))


def test_settings_are_parameters_of_the_workload() -> None:
    for name, settings in SETTINGS.items():
        parameters = inspect.signature(easyport if name == FILE else function(name)).parameters
        assert {setting.name for setting in settings} <= {*parameters, "longest_gap", "mtu"}, name


# ---- progress ------------------------------------------------------------------------------------------------------


def test_piped_steps_are_the_first_and_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    with steps() as report:
        for number in range(1, 69):
            report(f"{number} of 68")
    assert capsys.readouterr().err == "heapwright: 1 of 68\nheapwright: 68 of 68\n"


def test_a_long_command_prints_a_step_each_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter(range(0, 200, 4))
    monkeypatch.setattr("heapwright._cli.progress.time.monotonic", lambda: next(seconds))
    with steps() as report:
        for number in range(7):
            report(str(number))
    assert capsys.readouterr().err.split() == ["heapwright:", "0", "heapwright:", "3", "heapwright:", "6"]


def test_a_command_that_fails_prints_no_last_step(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="wrong"), steps() as report:
        report("one")
        report("two")
        raise ValueError("wrong")
    assert capsys.readouterr().err == "heapwright: one\n"


def test_a_terminal_shows_each_step(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with steps() as report:
        report("one")
        report("two")
    assert capsys.readouterr().err == "heapwright: one\nheapwright: two\n"
