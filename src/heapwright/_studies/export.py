"""Export of a study as one flat table for other tools: Parquet or CSV."""

from __future__ import annotations

from pathlib import Path

from heapwright._studies.study_file import StudyFile
from heapwright._studies.tables import REPLAYS
from heapwright._support import database
from heapwright._support.errors import HeapwrightError
from heapwright._support.writing import replacing

FORMATS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false",
    ".csv": "FORMAT csv, HEADER, USE_TMP_FILE false",
}
"""Options of DuckDB's COPY by the ending of the file."""


def export(path: Path, output: Path) -> int:
    """Write a row for every recipe and trace of the study at `path`, the view ``replays``; returns how many.

    Raises HeapwrightError if `output` ends neither in .parquet nor in .csv, or cannot be written.
    """
    if output.suffix not in FORMATS:
        raise HeapwrightError(f"{output}: valid endings: {', '.join(FORMATS)}", parameter="output")
    StudyFile.open(path).close()
    with replacing(output) as temporary, database.reaching(temporary, databases={"study": path}) as connection:
        rows = f"{REPLAYS.format('study.')} ORDER BY role, trace, recipe"
        try:
            written = connection.execute(f"COPY ({rows}) TO {database.literal(temporary)} ({FORMATS[output.suffix]})")
        except database.Error as error:
            raise HeapwrightError(
                f"{output}: cannot be written ({str(error).splitlines()[0]}); is the disk full?"
            ) from None
        return int(written.fetchall()[0][0])
