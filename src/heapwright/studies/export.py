"""A study as one flat table for other tools: Parquet or CSV."""

from __future__ import annotations

from pathlib import Path

from heapwright.files import database
from heapwright.files.errors import HeapwrightError
from heapwright.files.writing import replacing
from heapwright.studies.study import StudyFile
from heapwright.studies.tables import REPLAYS

FORMATS = {
    ".parquet": "FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false",
    ".csv": "FORMAT csv, HEADER, USE_TMP_FILE false",
}
"""What a file's ending says -> what DuckDB is told."""


def export(path: Path, output: Path) -> int:
    """Write a row for every recipe and trace of the study at `path`, the view ``replays``; returns how many.

    Raises HeapwrightError where `output` ends neither in .parquet nor in .csv, or cannot be written.
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
