"""A study for a pull request: Markdown of at most `MOST_LINES` lines as GitHub and GitLab show it, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heapwright._report.figure import Figure
from heapwright._report.fronts import fronts
from heapwright._studies.analysis import Analysis
from heapwright._studies.comparison import HeapComparison, side_by_side
from heapwright._studies.decision import Decision, decide
from heapwright._studies.study_diff import StudyDiff, Verdict, compare, side_of
from heapwright._support.names import printable
from heapwright._support.version import __version__
from heapwright._support.writing import write_text

MOST_LINES = 40

_NOTED: dict[Verdict, str] = {"same": "", "noise": " (noise)", "change": "", "unknown": " (a change or noise)"}


def pull_request(
    study: Analysis, output: Path | None, old: Analysis | None, *, moved: Sequence[Path] = ()
) -> tuple[str, list[Path]]:
    """The Markdown for a study, against an ``old`` one if there is any (`heapwright._studies.study_diff.compare`).

    It is written to ``output``, with a picture of the same name in .svg in its folder. Without ``output``, nothing is
    written and the text shows no picture. Returns the text and the files. Raises `HeapwrightError`.
    """
    picture = None if output is None else output.with_suffix(".svg")
    changes = None if old is None else compare(old, study, moved=moved)
    if changes is None:
        decision = decide(study)
        drawn = fronts([("ship", side_of(study, study.objectives), decision.pick.id)])
        lines = _alone(study, decision)
    else:
        drawn, lines = fronts_of(changes), _against(changes)
    if picture is not None:
        lines[2:2] = [f"![{_text(drawn.title)}](<{picture.name}>)", ""]
    text = "\n".join([*lines, "", f"<sub>heapwright {__version__}, {_text(study.path.name)}</sub>"]) + "\n"
    if output is None or picture is None:
        return text, []
    write_text(picture, drawn.drawing())
    write_text(output, text)
    return text, [output, picture]


def fronts_of(changes: StudyDiff) -> Figure:
    """Both fronts in one picture."""
    before, after = changes.balanced
    return fronts([("before", changes.before, before.id), ("after", changes.after, after.id)])


def _alone(study: Analysis, decision: Decision) -> list[str]:
    reserve = decision.reserve_bytes
    report = "no arena serves" if reserve is None else f"reserve {reserve:,} bytes"
    return [
        f"### Heap: {report}",
        "",
        _text(decision.evidence()),
        "",
        *_table(side_by_side(decision)),
        "",
        _text(
            f"{study.tried} recipes tried on {', '.join(info.name for info in study.traces())}. "
            f"{' '.join(decision.long_run())}"
        ),
    ]


def _against(changes: StudyDiff) -> list[str]:
    before, after = (item.reserve_bytes for item in changes.balanced)
    info = "no arena serves" if after is None else f"reserve {after:,} bytes"
    if before is not None and after is not None:
        info += ", as before" if before == after else f", before {before:,}{_NOTED[changes.reserve]}"
    return [
        f"### Heap: {info}",
        "",
        _text(changes.decision.evidence()),
        "",
        *_table(changes.table),
        "",
        *(f"- {_text(sentence)}" for sentence in changes.sentences()),
    ]


def _table(table: HeapComparison) -> list[str]:
    """Rows of figures under the names of the heaps and their titles."""
    heads = [f"{heap.role}: {heap.candidate.label}" if heap.role else heap.candidate.label for heap in table.heaps]
    return [
        _row("", *heads),
        _row("---", *["---:"] * len(heads)),
        _row("", *(heap.title for heap in table.heaps)),
        *(
            _row(
                f"{row.words}{f', {row.unit}' if row.unit else ''}",
                *(f"{cell.text} ({cell.against})" if cell.against else cell.text for cell in row.cells),
            )
            for row in table.rows
        ),
    ]


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")


def _text(text: str) -> str:
    """Words of a person's files may not become marks of Markdown or HTML."""
    for mark in "\\`*_[]<>#|":
        text = text.replace(mark, f"\\{mark}")
    return printable(text)
