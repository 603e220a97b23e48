"""- is stdin where a trace, a log or a recipe is read, and stdout where a trace or a log is written."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result
from sample_traces import trace_of

from heapwright._cli import heapwright as command_line
from heapwright._cli.pipes import called
from heapwright._recipes.zoo import catalogue as zoo

LOG = b"hw+ 0x100 24 0\nhw+ 0x200 40 5\nhw- 0x100 10\n"


def run(*words: str, given: bytes = b"") -> Result:
    return CliRunner().invoke(command_line, words, input=given)


def test_a_trace_goes_from_one_command_to_the_next() -> None:
    imported = run("import", "-", "-o", "-", given=LOG)
    assert imported.exit_code == 0
    assert imported.stdout_bytes.startswith(b"PAR1")
    assert imported.stderr == "stdout: 3 calls of a text log, peak 64 B in 2 objects\n"
    cut = run("trace", "cut", "-", "--part", ":2", "-o", "-", given=imported.stdout_bytes)
    assert cut.stdout_bytes.startswith(b"PAR1")
    assert run("trace", "info", "-", given=cut.stdout_bytes).stdout.startswith("stdin: 4 calls")  # it frees both
    exported = run("trace", "export", "-", "--format", "malloclab", "-o", "-", given=cut.stdout_bytes)
    assert exported.stdout.splitlines()[-1][0] == "f"


def test_a_recipe_comes_through_a_pipe(tmp_path: Path) -> None:
    trace_of((0, 1, 40), (3, 1, 0)).write(tmp_path / "a.parquet")
    shown = run("replay", str(tmp_path / "a.parquet"), "--heap", "-", given=zoo.text("tlsf").encode())
    assert "stdin.toml" in shown.stdout.splitlines()[1]
    both = run("replay", "-", "--heap", "-", given=LOG)
    assert both.exit_code == 2
    assert "stdin is a trace and a heap at once; give one of them as a file" in both.stderr


def test_a_command_that_fails_writes_nothing() -> None:
    done = run("trace", "export", "-", "--format", "c", "-o", "-", given=b"")
    assert (done.exit_code, done.stdout_bytes) == (1, b"")


def test_messages_call_pipes_by_their_names() -> None:
    assert called("/tmp/heapwright-stdin-ab_12/stdin.toml: no heap") == "stdin: no heap"
    assert called(Path("/var/tmp/heapwright-stdout-ab_12/stdout")) == "stdout"
    assert called("a.parquet: no such file") == "a.parquet: no such file"
