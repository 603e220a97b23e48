"""What a file is, by its content and not by its name."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from heapwright.errors import HeapwrightError
from heapwright.files.kinds import first_bytes, kind_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "kind"), [("mosquitto_broker", "trace"), ("lighttpd_server", "trace"), ("tcp_transfers", "packets")]
)
def test_tables_are_told_by_their_columns(name: str, kind: str, tmp_path: Path) -> None:
    copy = tmp_path / "no.suffix"
    copy.write_bytes((EXAMPLES / f"{name}.parquet").read_bytes())
    assert kind_of(copy) == kind


def test_a_database_is_a_study(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "named.parquet")).close()
    assert kind_of(tmp_path / "named.parquet") == "study"


@pytest.mark.parametrize(
    "content", [b"", b"PAR", b"PAR2" + bytes(60), b"DUCK" + bytes(60), b"\xd4\xc3\xb2\xa1" + bytes(60)]
)
def test_anything_else_is_other(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    assert kind_of(tmp_path / "file") == "other"


def test_damaged_parquet_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes((EXAMPLES / "tcp_transfers.parquet").read_bytes()[:200])
    with pytest.raises(HeapwrightError, match="cut: not a readable Parquet file"):
        kind_of(tmp_path / "cut")
    with pytest.raises(FileNotFoundError):
        kind_of(tmp_path / "none")


def test_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert (first_bytes(tmp_path / "file", 2), first_bytes(tmp_path / "file", 9)) == (b"ab", b"abc")
