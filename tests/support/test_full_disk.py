"""A disk that is full: every command that writes names the file, and leaves nothing half made."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import heapwright as hw
from heapwright._traces.trace import Trace

HEAPWRIGHT = str(Path(sys.executable).with_name("heapwright"))
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mosquitto_broker.parquet"
CALLS = 1_000


def limited(folder: Path, *line: str, most: int) -> subprocess.CompletedProcess[str]:
    """Run a program that can write files of `most` bytes at most; a program that it starts may raise that again."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    whole = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python keeps modules that it wrote in part
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=limit, env=whole)


PACKETS = "time,length\n" + "".join(f"{at / 997:.6f},{60 + at * at % 1451}\n" for at in range(5000))
PAGE = """
from pathlib import Path
from heapwright._support.errors import HeapwrightError
from heapwright_papers.page import Page

page = Page("paper", "A paper", "Anon")
page.text("words " * 5000)
try:
    page.write(Path("out/papers"))
except HeapwrightError as error:
    print(f"heapwright: {error}", file=__import__("sys").stderr)
    raise SystemExit(1)
"""

RAISED = "ulimit -S -f unlimited; exec ls -lR /usr/include"

COMMANDS = {
    "generate": (8000, "out/heap/app_heap.c", (HEAPWRIGHT, "generate", "tlsf", "-o", "out/heap")),
    "report": (8000, "page_plots/", (HEAPWRIGHT, "report", "TRACE", "-o", "page.html")),
    "page": (250_000, "page.html", (HEAPWRIGHT, "report", "TRACE", "-o", "page.html")),
    "import": (2000, "new.parquet", (HEAPWRIGHT, "import", "packets.csv", "-o", "new.parquet")),
    "workload": (
        2000,
        "new.parquet",
        (HEAPWRIGHT, "workload", "poisson", "--set", "requests=9999", "-o", "new.parquet"),
    ),
    "record": (2000, "new.parquet", (HEAPWRIGHT, "record", "-o", "new.parquet", "--", "sh", "-c", RAISED)),
    "reproduce": (8000, "out/papers/paper-details.html", (sys.executable, "-c", PAGE)),
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("few") / "few.parquet"
    hw.cut(hw.read_trace(EXAMPLE), first=CALLS).write(path)
    return str(path)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_file_is_named_and_nothing_half_made_is_left(name: str, trace: str, tmp_path: Path) -> None:
    most, file, line = COMMANDS[name]
    line = tuple(trace if word == "TRACE" else word for word in line)
    (tmp_path / "packets.csv").write_text(PACKETS)
    done = limited(tmp_path, *line, most=most)
    messages = done.stderr.splitlines()
    assert (done.returncode, len(messages)) == (1, 1)
    assert messages[0].startswith(f"heapwright: {file}")
    assert "cannot be written" in messages[0] and "File too large" in messages[0]
    assert [path.name for path in tmp_path.iterdir()] == ["packets.csv"]


def test_what_was_there_stays(tmp_path: Path) -> None:
    Trace.from_columns(op=[0], id=[1], size=[8]).write(tmp_path / "new.parquet")
    before = (tmp_path / "new.parquet").read_bytes()
    line = (HEAPWRIGHT, "workload", "poisson", "--set", "requests=9999", "-o", "new.parquet")
    assert limited(tmp_path, *line, most=2000).returncode == 1
    assert (tmp_path / "new.parquet").read_bytes() == before
