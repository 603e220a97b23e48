"""`heapwright diagnose` and `hw.diagnose`: what is found out of files, printed, drawn, and refused."""

from __future__ import annotations

import gzip
import json
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest
from command_runner import run_here

import heapwright as hw
from heapwright import _diagnose
from heapwright._support.errors import HeapwrightError

TELEMETRY = "seconds,free,largest\n" + "".join(f"{60 * at},121000,{100_000 - 9_000 * at}\n" for at in range(10))
BROKER = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"


@pytest.fixture
def telemetry(tmp_path: Path) -> Path:
    path = tmp_path / "telemetry.csv"
    path.write_text(TELEMETRY, encoding="utf-8")
    return path


def test_the_answer_is_the_first_line(telemetry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    done = run_here("diagnose", telemetry)
    assert done.returncode == 0
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("Fragmentation (likely): The largest free block falls from 100,000 to 19,000 B")
    assert second == f"{telemetry}: 10 readings"
    assert "Record next: every heap call until a request fails" in done.stdout
    assert done.stderr == ""


def test_json_has_numbers_and_no_text_for_people(telemetry: Path) -> None:
    told = json.loads(run_here("diagnose", telemetry, "--json").stdout)
    assert (told["kind"], told["confidence"]) == ("fragmentation", "likely")
    assert told["files"] == [{"path": str(telemetry), "form": "10 readings"}]
    (finding,) = told["findings"]
    assert finding["numbers"][1] == {
        "": "largest free block, B",
        "first": 100000,
        "last": 19000,
        "lowest": 19000,
        "highest": 100000,
    }
    assert "picture" not in finding


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_a_picture_is_drawn(telemetry: Path, ending: str) -> None:
    output = telemetry.with_suffix(f".{ending}")
    assert run_here("diagnose", telemetry, "-o", output).returncode == 0
    text = output.read_text(encoding="utf-8")
    assert "Fragmentation (likely)" in text
    assert "largest free block" in text


def test_a_picture_of_blocks_is_drawn(tmp_path: Path) -> None:
    path, output = tmp_path / "blocks.txt", tmp_path / "blocks.svg"
    path.write_text("".join(f"{0x1000 + 100 * at:#x} 100 bytes {('used', 'free')[at % 2]}\n" for at in range(9)))
    run_here("diagnose", path, "-o", output).check_returncode()
    assert "The heap by address" in output.read_text(encoding="utf-8")


def test_one_reading_gives_no_picture(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_text("free 1000\n", encoding="utf-8")
    done = run_here("diagnose", path, "-o", tmp_path / "one.svg")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "one.svg").exists()


def test_a_trace_is_replayed_on_the_heap_in_use_and_others() -> None:
    result = hw.diagnose(BROKER, heap=["tlsf", "umm-malloc"])
    assert (result.kind, result.confidence) == ("fragmentation", "sure")
    assert "on tlsf" in result.sentence
    assert any(cure.text == "umm-malloc in place of tlsf" for cure in result.finding.cures)
    assert hw.diagnose(hw.read_trace(BROKER)).kind == "fragmentation"


def test_files_are_judged_together(tmp_path: Path, telemetry: Path) -> None:
    other = tmp_path / "steady.log"
    other.write_text("free 50000\n", encoding="utf-8")
    result = hw.diagnose([other, telemetry])
    assert [item.kind for item in result.findings] == ["fragmentation", "not enough data"]
    assert list(result.files) == [str(other), str(telemetry)]
    assert "fragmentation" in result._repr_html_()


def test_snapshots_of_two_files_are_compared(tmp_path: Path) -> None:
    def dump(count: int) -> str:
        blocks = "".join(f"Block {0x3F803000 + 68 * at:#x} data, size: 64 bytes, Free: No\n" for at in range(count))
        return f"Showing data for heap: 0x3f802968\n{blocks}"

    paths = [tmp_path / "first.txt", tmp_path / "last.txt"]
    for path, count in zip(paths, (10, 30), strict=True):
        path.write_text(dump(count), encoding="utf-8")
    result = hw.diagnose(paths)
    assert (result.kind, result.confidence) == ("leak", "likely")
    assert "20 more objects of 64 B" in result.sentence


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.csv.gz"
    path.write_bytes(gzip.compress(TELEMETRY.encode()))
    assert hw.diagnose(path).kind == "fragmentation"


def test_a_study_stands_for_its_traces(tmp_path: Path) -> None:
    study = tmp_path / "broker.duckdb"
    hw.explore(BROKER, study, limit=3)
    result = hw.diagnose(study)
    assert list(result.files.values()) == ["a trace of 12,620 calls"]
    assert "(assumed)" not in result.sentence or result.finding.confidence != "sure"


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\x7fELF\0\0\0\0\0\0", b"[[pool]]\n"])
def test_what_has_nothing_of_a_heap_is_one_line_of_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    done = run_here("diagnose", path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("text", ["hello world\n", "int free(void *p);\n", "mem=71; tasks=12\n" * 20])
def test_a_text_without_a_figure_of_a_heap_is_not_enough_data(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.txt"
    path.write_text(text)
    result = hw.diagnose(path)
    assert (result.kind, result.finding.confidence) == ("not enough data", "inconclusive")
    assert "a log of heap calls" in result.finding.record_next


def test_calls_in_words_of_their_own_are_read_with_the_patterns_that_import_proposes(tmp_path: Path) -> None:
    lines = []
    for turn in range(60):
        for site, address, size in (("rx", 0x20004A10, 0x200), ("node", 0x20004C18, 0x7C)):
            lines.append(f"{turn:06d}.000  take  {site}  0x{address:x}  0x{size:x}")
        lines.append(f"{turn:06d}.010  take  topic  0x{0x20005000 + turn * 0x50:x}  0x48")
        lines += [f"{turn:06d}.020  give  node  0x20004c18", f"{turn:06d}.030  give  rx  0x20004a10"]
    path = tmp_path / "calls.txt"
    path.write_text("\n".join(lines) + "\n")
    result = hw.diagnose(path)
    assert (result.kind, result.finding.confidence) == ("leak", "likely")
    assert "60 objects of 72 B from topic" in result.sentence
    assert any("with the patterns 'alloc=take {site} {address} {size}'" in note for note in result.notes)


def test_a_file_that_is_absent_or_of_packets_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HeapwrightError, match="No such file"):
        hw.diagnose(tmp_path / "none.log")
    with pytest.raises(HeapwrightError, match="a packet table"):
        hw.diagnose(BROKER.with_name("tcp_transfers.parquet"))
    with pytest.raises(HeapwrightError, match="no file"):
        hw.diagnose([])


def test_names_of_a_file_reach_no_terminal_as_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("name,total,used,free\n\x1b[31mred\x07,100,60,40\n", encoding="utf-8")
    done = run_here("diagnose", path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    run_here("diagnose", path, "-o", tmp_path / "x.svg")


@pytest.mark.parametrize(
    "text",
    [
        "hw+ 08 16\nhw- 08\n",
        "Block 0x10 data, size: 08 bytes, Free: No\n" * 4,
        '<malloc version="1">\n<heap nr="0">\n<size from="a" to="b" count="d"/>\n</heap>\n</malloc>\nfree 9\n',
        '{"a":' * 5000 + "1" + "}" * 5000 + "\nfree 9\n",
        f"free {10**30} largest {2**70}\nfree 9\n",
        "free 12 " + "a1 " * 20_000 + "\n",
        "used 10\nfree_blocks 3\nlargest 5\nheap_size 40\nused 11\n",
        "0 free 0x1000 in Internal\nfreed 0x2000 in Internal\nmalloc(10) = 0x3000\n",
        "word " * 20_000 + "0x20001000 used\nfree 9\n",
    ],
)
def test_a_strange_text_is_read_or_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "strange.txt"
    path.write_text(text, encoding="utf-8")
    done = run_here("diagnose", path)
    assert done.returncode in (0, 1)
    assert len(done.stderr.splitlines()) <= 1


def test_no_pattern_looks_to_the_end_of_a_line_from_each_of_its_characters() -> None:
    """A search tries a pattern at each character: what it looks for first there is not as long as the line."""
    names = [f"{_diagnose.__name__}.{module.name}" for module in pkgutil.iter_modules(_diagnose.__path__)]
    found = {f"{name}.{key}": value for name in names for key, value in vars(import_module(name)).items()}
    looking = re.compile(r"(\(\?[a-z]+\))?(\(\?:|\()*(\(\?<?[=!])[^()]*\.[*+]")
    patterns = {key: value.pattern for key, value in found.items() if isinstance(value, re.Pattern)}
    assert len(patterns) > 50
    assert {key for key, text in patterns.items() if looking.match(text)} == set()


def test_long_telemetry_is_judged_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text(
        "".join(f"I ({1000 * at}) app: free {100_000 + at % 977}\n" for at in range(20_000)), encoding="utf-8"
    )
    assert hw.diagnose(path).kind == "nothing wrong"


@pytest.mark.parametrize(
    ("row", "kind", "taken"),
    [
        ("Mon Apr  6 {hour:02d}:03:12 2015    {fall}", "leak", "free"),
        ("2024-03-02 {hour:02d}:41:01,{flat},/usr/sbin/mosquitto -c /etc/m.conf", "nothing wrong", "free"),
    ],
)
def test_numbers_without_a_name_are_taken_as_memory_and_it_is_said(
    tmp_path: Path, row: str, kind: str, taken: str
) -> None:
    path = tmp_path / "numbers.txt"
    lines = [row.format(hour=at, fall=14_216 - 248 * at, flat=9876 - at % 3 * 4) for at in range(24)]
    path.write_text("\n".join(lines) + "\n")
    result = hw.diagnose(path)
    assert (result.kind, result.finding.confidence) == (kind, "inconclusive")
    assert any(f"they are taken as {taken} memory in bytes" in note for note in result.notes)


def test_calls_of_which_each_failed_are_judged_by_the_readings_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "json.log"
    path.write_text(
        "".join("getFreeHeap()=38104 getMaxFreeBlockSize()=37640\nmalloc(45056) for JSON -> NULL\n" for _ in range(6))
    )
    result = hw.diagnose(path)
    assert (result.kind, result.finding.confidence) == ("too small", "likely")
    assert "45,056 B failed while 38,104 B were free" in result.sentence


def test_the_heap_of_tasmota_is_in_kb(tmp_path: Path) -> None:
    path = tmp_path / "state.log"
    path.write_text(
        "".join(
            f'07:{at:02d}:38 MQT: STATE = {{"UptimeSec":{at * 60},"Heap":{27.4 - at / 4:.1f},"SleepMode":"Dynamic"}}\n'
            for at in range(40)
        )
    )
    result = hw.diagnose(path)
    assert (result.kind, result.finding.confidence) == ("leak", "likely")
    assert "to 18,022 B" in result.sentence  # 17.6 KB
