"""Reports: one HTML page that shows a study or a trace, with everything in it, and its plots as PNG and SVG."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright.errors import HeapwrightError
from heapwright.files.kinds import kind_of
from heapwright.files.writing import replacing

if TYPE_CHECKING:
    from heapwright.report.page import Content


def write_report(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    heaps: Sequence[str] = (),
    plots: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Write the page of the study or trace `source` to the file `output`, and its plots into the folder `plots`.

    `heaps`: the heaps whose timeline and heap map are drawn, named as on the command line (for a study also by an id
    of it); by default a study's balanced pick and the best of the zoo, and the zoo's victim-bins for a trace.
    `plots`: None for no files besides the page.

    Returns the files written, the page first. The page is written last and whole or not at all. Raises
    HeapwrightError where `source` is neither, or a heap has no such name; OSError where a file cannot be written.
    """
    from heapwright.report.page import render

    source, output = Path(source), Path(output)
    if not output.parent.is_dir():
        raise HeapwrightError(f"{output}: there is no folder {output.parent} to write the page to")
    content = _content(source, heaps)
    written = []
    if plots is not None:
        folder = Path(plots)
        folder.mkdir(parents=True, exist_ok=True)
        written = [path for figure in content.figures() for path in figure.save(folder)]
    _write_whole(output, render(content))
    return [output, *written]


def _content(source: Path, heaps: Sequence[str]) -> Content:
    kind = kind_of(source)
    if kind == "study":
        from heapwright.explore.study import Study
        from heapwright.report.study_content import study_content

        with Study.open(source) as study:
            return study_content(study, heaps)
    if kind == "trace":
        from heapwright.report.trace_content import trace_content
        from heapwright.traces.trace import Trace

        return trace_content(Trace.read(source), heaps)
    raise HeapwrightError(
        f"{source}: neither a study nor a trace; heapwright explore makes one, heapwright record the other"
    )


def _write_whole(path: Path, text: str) -> None:
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
