"""Reports: one HTML page that shows a study or a trace, with everything in it, and its plots as PNG and SVG."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._support.kinds import kind_of
from heapwright._support.subprocesses import processors
from heapwright._support.writing import check_writable, filling, write_text

if TYPE_CHECKING:
    from heapwright._report.page import Content
    from heapwright._studies.study_diff import StudyDiff


def write_report(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    heaps: Sequence[str] = (),
    plots: str | os.PathLike[str] | None = None,
    against: str | None = None,
    changes: StudyDiff | None = None,
    repair: bool = False,
) -> list[Path]:
    """Write the page of the study or trace `source` to the file `output`, and its plots into the folder `plots`.

    `heaps`: the heaps whose timeline and heap map are drawn, named as on the command line (for a study also by an id
    of it); by default a study's balanced pick and what the reader has today, else TLSF, and the zoo's victim-bins for a
    trace. `plots`: None for no files but the page. `against`: the heap of a study that the reader has today, by its
    id or its name in the zoo. `changes`: those since an older study, which the page then begins with. `repair`: drop
    the invalid calls of a trace, which the page then says.

    Returns the files written, the page first: all of them, or none where one fails. Raises HeapwrightError where
    `source` is neither, a heap has no such name, or a file cannot be written; OSError where `source` cannot be read.
    """
    from heapwright._report.figure import Figure, unvalidated
    from heapwright._report.page import render

    source, output = Path(source), Path(output)
    if not output.parent.is_dir():
        raise HeapwrightError(f"{output}: there is no folder {output.parent} to write the page to")
    check_writable(output)
    with unvalidated():
        content = _content(source, heaps, against, repair)
    if changes is not None:
        from heapwright._report.pull_request import fronts_of

        content = replace(content, changes=changes, fronts=fronts_of(changes))
    if plots is None:
        write_text(output, render(content))
        return [output]
    figures = content.figures()
    for figure in figures:
        figure.whole_spec()  # Altair writes it here, in one thread, and once
    with ThreadPoolExecutor(processors()) as pool, filling(Path(plots)) as put:
        drawn = pool.map(Figure.files, figures)  # pixels and compression need no Python
        page = render(content)
        written = [put(name, file) for files in drawn for name, file in files.items()]
        write_text(output, page)
    return [output, *written]


def _content(source: Path, heaps: Sequence[str], against: str | None, repair: bool) -> Content:
    kind = kind_of(source)
    if kind == "study":
        from heapwright._report.study_content import study_content
        from heapwright._studies.analysis import Analysis

        if repair:
            raise ParameterError(
                "a study's traces were repaired when it was explored; give a trace", parameter="repair"
            )
        with Analysis.open(source) as study:
            return study_content(study, heaps, against)
    if kind == "trace":
        from heapwright._report.trace_content import trace_content
        from heapwright._traces.trace import Trace

        if against is not None:
            raise ParameterError("a trace alone ranks nothing; give a study", parameter="against")
        return trace_content(Trace.read(source, repair=repair), heaps)
    raise HeapwrightError(
        f"{source}: neither a study nor a trace; heapwright explore makes one, heapwright record the other"
    )
