"""Wrong inputs of every command: one line that names what is wrong, and says what would do instead."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_runner import run_here
from sample_studies import write_five

BROKER = Path(__file__).parents[2] / "examples" / "mosquitto_broker.parquet"

FILES = {
    "empty": "",
    "text.txt": "hello\nworld\n",
    "cut.parquet": "PAR1junkPAR1",
    "bad.toml": "name = \n",
    "kind.toml": '[[pool]]\nkind = "genral"\n',
    "key.toml": '[[pool]]\nkind = "general"\nfitt = "best"\n',
    "space.toml": "[[familly]]\n",
    "energy.csv": "size,read\n1,2\n",
    "columns.csv": "a,b\n1,2\n",
    "free.log": "hw- 0x100\n",
    "one.log": "hw+ 0x100 24\n",
}

TELLS_WHAT_WOULD_DO = re.compile(
    r"valid|known|did you mean|[Gg]ive |name |need|no such |No such file|must be|not in the range|is not one of|"
    r"write one|makes one|lists its front|record or import|is one$|no folder|Missing|there are|"
    r"lists what writes one|hold numbers|explore |repair"
)

WRONG = """
replay nope.parquet --heap tlsf
replay empty --heap tlsf
replay cut.parquet --heap tlsf
replay text.txt --heap tlsf
replay s.duckdb --heap tlsf
replay t.parquet --heap tslf
replay t.parquet --heap bad.toml
replay t.parquet --heap kind.toml
replay t.parquet --heap key.toml
replay t.parquet --heap tlsf@3
replay t.parquet --heap s.duckdb:zzzz
replay t.parquet --heap lib:nolib
replay t.parquet --heap tlsf --arena 12Q
replay t.parquet --heap tlsf --arena 16
fit t.parquet --heap tlsf --clients 3
fit t.parquet --heap tlsf --growth 0
explore t.parquet
explore t.parquet -o text.txt --limit 5
explore t.parquet -o s.duckdb --limit 5
explore t.parquet -o x.duckdb --objectives acceses
explore t.parquet -o x.duckdb --objectives accesses/
explore t.parquet -o x.duckdb --space space.toml
explore t.parquet -o x.duckdb --budget abc
explore t.parquet -o x.duckdb --long-run 10
explore t.parquet -o x.duckdb --tolerance 0.1 --objectives accesses/calls
pareto nope.duckdb
pareto t.parquet
pareto s.duckdb --where 'foot <= 3'
pareto s.duckdb --where 'footprint_bytes < = 3'
pareto s.duckdb --where 'footprint_bytes <= 3'
pareto s.duckdb --objectives ns_per_event
import nope.log -o x.parquet
import text.txt -o x.parquet
import empty -o x.parquet
import columns.csv -o x.parquet
import free.log -o x.parquet
import one.log -o x.parquet --arena 10
import one.log -o x.parquet --elf text.txt
import one.log -o nope/x.parquet
live nope -o x.parquet
trace info text.txt
trace merge t.parquet -o x.parquet
trace copies t.parquet -o text.txt --count 1
profile text.txt
profile s.duckdb
zoo nope
workload drr t.parquet -o x.parquet
generate tlsf --platform nope -o g
generate tlsf --prefix 1x -o g
platforms nope
hooks nope -o h
attack nope
prove tlsf --calls 0
measure tlsf t.parquet --cpu z80
report text.txt -o r.html
check t.parquet --heap tlsf --budget x
check t.parquet --heap tlsf --fail-if 'foo > 3'
study merge s.duckdb -o m.duckdb
study again s.duckdb:zzz
suggest text.txt
stress t.parquet --heap nope
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wrong")
    for name, content in FILES.items():
        (made / name).write_text(content)
    shutil.copyfile(BROKER, made / "t.parquet")
    write_five(made / "s.duckdb")
    return made


@pytest.mark.parametrize("command", WRONG.strip().splitlines())
def test_a_wrong_input_is_one_line_that_says_what_would_do(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    done = run_here(*shlex.split(command))
    assert done.returncode in (1, 2), done.stdout
    *_, line = done.stderr.splitlines()
    assert re.match(r"(heapwright|Error): ", line), done.stderr
    assert TELLS_WHAT_WOULD_DO.search(line), line
    assert not re.search(r"Traceback|Binder|\b1 (?:objects|calls|places|studies|bytes|traces)\b|objectives: '", line), (
        line
    )
    assert sorted(folder.iterdir()) == before  # nothing is left behind
