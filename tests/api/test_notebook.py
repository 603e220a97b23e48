"""The notebook in examples/ and the script in the README run as they stand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import short_explorations
from run_length import brief as briefly

ROOT = Path(__file__).resolve().parents[2]
FEW = briefly(60, 0)


def shortened(code: str) -> str:
    """What explores some hundred recipes, with fewer but in long runs."""
    return re.sub(r"limit=\d00\b", f"limit={FEW}", code) if FEW else code


def test_the_notebook_runs(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    shutil.copy(ROOT / "examples" / "mosquitto_broker.parquet", tmp_path)
    notebook = nbformat.read(ROOT / "examples" / "tailor.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        cell.source = shortened(cell.source)
    cell = nbformat.v4.new_code_cell(short_explorations.CODE)  # type: ignore[no-untyped-call]
    notebook.cells.insert(0, cell)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("vegaEmbed" in output.get("data", {}).get("text/html", "") for output in outputs), "the chart is drawn"
    texts = [output["data"]["text/plain"] for output in outputs if "text/plain" in output.get("data", {})]
    assert texts[0] == "<Trace mosquitto_broker: 12,620 calls, peak 105,953 B live>"
    assert (tmp_path / "heap" / "broker_heap.c").is_file()


def test_the_notebook_ships_with_what_it_shows() -> None:
    import nbformat

    path = ROOT / "examples" / "tailor.ipynb"
    assert path.stat().st_size <= 300_000
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    shown = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    assert [id for id, outputs in shown.items() if not outputs] == []
    tables = [
        output for outputs in shown.values() for output in outputs if "<table>" in output.data.get("text/html", "")
    ]
    assert len(tables) == 3  # the study, the pick and its arena


def test_the_script_of_the_readme_runs(tmp_path: Path) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(script.strip().splitlines()) <= 15
    command = [sys.executable, "-c", short_explorations.CODE + shortened(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "app_heap: ok" in done.stdout
