"""The command line keeps what docs/commands.md says under "Conventions", command by command: help, flags, documents."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from case_tables import each
from click.testing import CliRunner

from heapwright._cli import COMMANDS, attack, explore, import_, live, measure, pareto, reproduce, trace
from heapwright._cli import heapwright as command_line
from heapwright._explore.options import Strategy
from heapwright._measure.boards.compilers import LEVELS
from heapwright._measure.boards.cpus import CPUS
from heapwright._recipes.recipe import CHECKS
from heapwright._replay.adversarial_search import OBJECTIVES
from heapwright._replay.metrics import METRICS
from heapwright._studies.recommendations import PICKS
from heapwright._traces.copies import KINDS
from heapwright._traces.export import FORMATS as EXPORTS
from heapwright._traces.logs import FORMATS as LOGS
from heapwright._traces.logs.live import LIVE_FORMATS
from heapwright._traffic import FORMATS
from heapwright_papers import PAGES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def walk(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*names, name), command
        if isinstance(command, click.Group):
            yield from walk(command, (*names, name))


WALKED = dict(walk(command_line))
LEAVES = {names: command for names, command in WALKED.items() if not isinstance(command, click.Group)}


def options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def choices(command: click.Command, name: str) -> tuple[str, ...]:
    (parameter,) = (param for param in command.params if param.name == name)
    assert isinstance(parameter.type, click.Choice)
    return tuple(parameter.type.choices)


# ---- help ----------------------------------------------------------------------------------------------------------


@each("names", [(), *WALKED], ids=" ".join)
def test_help_tells_every_option(names: tuple[str, ...]) -> None:
    short, long = (CliRunner().invoke(command_line, [*names, flag]) for flag in ("-h", "--help"))
    assert (short.exit_code, short.stderr) == (0, "")
    assert short.stdout == long.stdout
    for option in options(WALKED[names]) if names else []:
        assert option.help and option.help[0].isupper() and option.help.endswith("."), option.name
        assert option.opts[-1] in short.stdout


def test_every_command_has_a_line_and_a_json_flag() -> None:
    assert [names[0] for names in WALKED if len(names) == 1] == list(COMMANDS)
    for names, command in LEAVES.items():
        assert command.get_short_help_str(), names
        assert any(option.opts == ["--json"] for option in options(command)), names


@pytest.mark.parametrize("name", ["explore", "pareto"])
def test_help_lists_every_objective(name: str) -> None:
    help_text = CliRunner().invoke(command_line, [name, "-h"]).stdout
    listed = help_text[help_text.index("Objectives:") :].splitlines()[1:]
    assert [line.split()[0] for line in listed] == list(METRICS)


# ---- flags ---------------------------------------------------------------------------------------------------------


def test_a_flag_takes_the_same_in_every_command() -> None:
    """Limits and defaults of numbers may differ. --budget is a time of `explore` and bytes of `check`; --live is a
    flag of `trace cut` and bytes of `fit`; --heap is an allocator, or a heap in a log of `import`; --size of `trace
    map` is OLD:NEW.
    """
    result: dict[str, set[Any]] = defaultdict(set)
    for command in LEAVES.values():
        for option in options(command):
            for flag in option.opts:
                result[flag].add((type(option.type), option.is_flag, option.multiple))
    assert {flag for flag, kinds in result.items() if len(kinds) > 1} == {"--budget", "--heap", "--live", "--size"}


def test_a_seed_is_0_unless_it_is_given_and_never_negative() -> None:
    seeds = {names: option for names, item in LEAVES.items() for option in options(item) if "--seed" in option.opts}
    assert len(seeds) >= 5
    for names, option in seeds.items():
        assert option.default == 0, names
        done = CliRunner().invoke(command_line, [*names, "--seed", "-1"])
        assert done.exit_code == 2, names
        assert "-1 is not in the range x>=0" in done.stderr


def test_choices_are_those_of_the_library() -> None:
    assert choices(import_.command, "format_name") == (*LOGS, *FORMATS)
    assert sorted(choices(measure.command, "cpu")) == sorted(CPUS)
    assert choices(live.command, "format_name") == LIVE_FORMATS
    assert choices(measure.command, "level") == LEVELS
    assert choices(attack.command, "checks") == CHECKS
    assert sorted(choices(attack.command, "cpu")) == sorted(CPUS)
    assert choices(explore.command, "strategy") == get_args(Strategy)
    assert choices(pareto.command, "pick") == PICKS
    assert choices(reproduce.command, "what") == (*PAGES, "all")
    assert choices(trace.copies, "kinds") == tuple(KINDS)
    assert choices(trace.export, "format_name") == tuple(EXPORTS)
    assert choices(trace.worst, "objective") == OBJECTIVES


CHOICES = [
    (names, one) for names, command in LEAVES.items() for one in command.params if type(one.type) is click.Choice
]


@each(("names", "parameter"), CHOICES, ids=[f"{' '.join(names)} {item.name}" for names, item in CHOICES])
def test_a_value_that_is_no_choice_is_a_usage_error_that_lists_them(
    names: tuple[str, ...], parameter: click.Parameter
) -> None:
    assert isinstance(parameter.type, click.Choice)
    words = [parameter.opts[-1], "nonsense"] if isinstance(parameter, click.Option) else ["nonsense"]
    done = CliRunner().invoke(command_line, [*names, *words])
    assert (done.exit_code, done.stdout) == (2, "")
    valid = ", ".join(map(repr, parameter.type.choices))
    listed = f"is not one of {valid}." if len(parameter.type.choices) > 1 else f"is not {valid}."
    assert f"'nonsense' {listed}" in done.stderr


# ---- documents -----------------------------------------------------------------------------------------------------


def sections() -> dict[str, str]:
    """The text of each command in docs/commands.md."""
    _, *parts = re.split(r"^## (?=[a-z]+$)", (DOCS / "commands.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.split("\n", 1)[0]: part for part in parts}


def flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def test_every_command_is_documented() -> None:
    head = (DOCS / "commands.md").read_text(encoding="utf-8").split("\n## record\n")[0]
    assert re.findall(r"^\| \[(\w+)\]\(#\1\)", head, re.MULTILINE) == list(COMMANDS)
    assert list(sections()) == list(COMMANDS)


@each("name", COMMANDS)
def test_the_documented_options_are_the_real_ones(name: str) -> None:
    text = sections()[name]
    if name == "workload":
        text += (DOCS / "workloads.md").read_text(encoding="utf-8")
    of_command = [option for names, item in LEAVES.items() if names[0] == name for option in options(item)]
    real = {flag for option in of_command for flag in (*option.opts, *option.secondary_opts)}
    assert {flag for flag in real if flag.startswith("--")} <= flags(text) | {"--output"}
    commands = re.findall(rf"^    (?:\$ )?heapwright {name}\b(?:.*\\\n)*.*", text, re.MULTILINE)
    used = {flag for words in commands for flag in flags(re.split(r" [|>] | -- ", words)[0])}
    assert used <= real
    assert {flag for flag in flags(text) if f"| `{flag}" in text} <= real


@pytest.mark.parametrize(("word", "told"), [("exlpore", "did you mean explore"), ("xyz", "valid: record, import, ")])
def test_a_command_that_there_is_not_is_told_with_what_is_near(word: str, told: str) -> None:
    done = CliRunner().invoke(command_line, [word, "a.parquet"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"'{word}' is no command; {told}" in done.stderr
