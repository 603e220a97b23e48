"""No command writes over a file that it read, and no name from a file ends a command or breaks a picture."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._report.drawing import svg_of
from heapwright._support.inputs import protecting_inputs
from heapwright._support.names import xml_text
from heapwright._traces.trace import Trace

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"

COMMANDS = (
    "trace cut t.parquet --part :10 -o t.parquet",
    "trace cut t.parquet --part :10 -o ./link.parquet",
    "trace merge t.parquet u.parquet -o u.parquet",
    "trace map t.parquet --size 24:16 -o t.parquet",
    "trace scale t.parquet -o t.parquet",
    "trace resample t.parquet --calls 100 -o t.parquet",
    "trace export t.parquet --format c -o t.parquet",
    "trace repair t.parquet -o t.parquet",
    "import calls.log -o calls.log",
    "report t.parquet --no-plots -o page.html",
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, "t.parquet")
    shutil.copy(EXAMPLE, "u.parquet")
    Path("link.parquet").symlink_to("t.parquet")
    Path("page.html").symlink_to("t.parquet")
    Path("calls.log").write_text("hw+ 0x10 8\nhw- 0x10\n")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_is_never_overwritten(command: str, files: Path) -> None:
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    done = CliRunner().invoke(heapwright, command.split())
    assert done.exit_code == 1, done.output
    assert "is an input of this command; write to another file" in str(done.exception)
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_another_command_may_write_what_an_earlier_one_read(files: Path) -> None:
    for command in ("trace cut t.parquet --part :10 -o v.parquet", "trace cut u.parquet --part :10 -o t.parquet"):
        assert CliRunner().invoke(heapwright, command.split()).exit_code == 0
    trace = hw.read_trace("t.parquet")
    trace.write("t.parquet")  # in Python the caller decides


def test_a_command_may_read_and_replace_what_it_wrote_itself(files: Path) -> None:
    with protecting_inputs():
        trace = hw.read_trace("t.parquet")
        trace.write("new.parquet")
        hw.read_trace("new.parquet").write("new.parquet")
        with pytest.raises(hw.HeapwrightError, match=r"t\.parquet: is an input of this command"):
            trace.write("t.parquet")


@pytest.mark.parametrize("name", ["r.pdf", "r.parquet", "r", "r.png"])
def test_a_report_is_a_page_or_markdown(name: str, files: Path) -> None:
    done = CliRunner().invoke(heapwright, ["report", "t.parquet", "-o", name])
    assert done.exit_code == 2 and f"{name}: a report is a page, FILE.html, or Markdown, FILE.md" in done.output
    assert not Path(name).exists()


NAMES = [chr(code) for code in (*range(1, 9), 11, 12, *range(14, 32), 127, 0x85, 0x9F, 0xFFFE, 0xFFFF)]
NAMES += ["\ud800", "</script><b>", "&amp;", '"', "'", "\n", "\t", "\u202e", "a" * 5000]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name_is_harmless_in_a_picture(name: str) -> None:
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": f"t{name}",
        "data": {"values": [{"site": f"a{name}", "bytes": 1}]},
        "mark": "bar",
        "encoding": {"x": {"field": "site"}, "y": {"field": "bytes", "type": "quantitative"}},
    }
    ET.fromstring(svg_of(spec))


@pytest.mark.parametrize("name", ["\x01", "\x1b[2J", "</script><script>alert(1)</script>", "=cmd()"])
def test_a_page_of_a_trace_with_such_names_is_written(name: str, tmp_path: Path) -> None:
    calls = {"op": [0, 0, 3], "id": [1, 2, 1], "size": [8, 16, 0], "site": [1, 1, 1], "sites": ("", f"a{name}")}
    trace = Trace.from_columns(**calls, phase=[1, 1, 1], phases=("", f"p{name}"), name="t")  # type: ignore[arg-type]
    trace.write(tmp_path / "t.parquet")
    words = ["report", str(tmp_path / "t.parquet"), "--no-plots", "-o", str(tmp_path / "p.html")]
    done = CliRunner().invoke(heapwright, words)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    printed = CliRunner().invoke(heapwright, ["profile", str(tmp_path / "t.parquet")]).output
    assert "\x1b" not in printed and "\x01" not in printed


def test_text_for_xml_keeps_what_may_stand_there() -> None:
    assert xml_text("a\x01b\n\té") == "a\\x01b\n\té"
