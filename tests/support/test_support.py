"""Support: numbers and errors as people write and read them, kinds of files, packages, shipped files."""

from __future__ import annotations

import gc
import io
import signal
from pathlib import Path

import numpy as np
import pytest
from case_tables import each

from heapwright._support import database, kinds, parquet, remote, resources, subprocesses, temporary, units
from heapwright._support.engine import Engine, build, engine
from heapwright._support.errors import HeapwrightError, did_you_mean, unknown_key
from heapwright._support.names import addressed
from heapwright._support.notebook import number, pairs, table
from heapwright._support.version import __version__

EXAMPLE = Path(__file__).parents[2] / "examples" / "mosquitto_broker.parquet"


@each(
    ("text", "value"),
    [("131072", 131072), ("128K", 131072), ("128 KiB", 131072), ("1.5m", 1572864), ("1G", 1 << 30), (".5K", 512),
     ("1e3", 1000), (" 7 ", 7), ("-2kb", -2048)],
)  # fmt: skip
def test_bytes_are_read_as_people_write_them(text: str, value: float) -> None:
    assert units.number_of(text) == value


@pytest.mark.parametrize("text", ["", "K", "1T", "1 2", "0x10", "1.5.2"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        units.number_of(text)


def test_a_change_too_small_to_be_seen_is_not_none() -> None:
    output = [units.per_cent(1000, after) for after in (1042, 900, 1000, 1000.4, 1000.5, 999.6, 999.5)]
    assert output == ["+4.2%", "-10.0%", "+0.0%", "under 0.1%", "+0.1%", "under 0.1%", "-0.1%"]


def test_names_near_a_wrong_one_are_proposed_and_else_all_are_told() -> None:
    known = iter(["lea-2.7.2", "tlsf", "half-fit"])
    assert did_you_mean("tslf", known) == "did you mean tlsf?"
    assert did_you_mean("tls", ["tlsf", "tlsg", "other"]) == "did you mean tlsg or tlsf?"
    assert did_you_mean("qqqq", ["tlsf", "half-fit"], "known") == "known: tlsf, half-fit"
    assert unknown_key("fitt", ["fit", "order"]) == 'unknown key "fitt"; did you mean "fit"? valid: fit, order'
    assert unknown_key("zzz", ["fit", "order"]) == 'unknown key "zzz"; valid: fit, order'


def test_an_address_in_a_message_has_both_slashes() -> None:
    assert (
        str(HeapwrightError(f"{Path('s3://lab/a')}: no, nor {Path('https://h/x')}"))
        == "s3://lab/a: no, nor https://h/x"
    )
    assert addressed("a/s3:/b and xs3:/b and http:/ ") == "a/s3:/b and xs3:/b and http:/ "


def test_what_a_file_is_its_content_tells(tmp_path: Path) -> None:
    short, text, parquet = tmp_path / "short", tmp_path / "text.parquet", tmp_path / "begins.parquet"
    short.write_bytes(b"PAR")
    text.write_text("no table")
    parquet.write_bytes(b"PAR1 and nothing more")
    assert [kinds.kind_of(path) for path in (EXAMPLE, short, text)] == ["trace", "other", "other"]
    assert kinds.first_bytes(short, 2) == b"PA"
    with pytest.raises(HeapwrightError, match=r"begins\.parquet: not a readable Parquet file"):
        kinds.kind_of(parquet)
    study = tmp_path / "study"
    study.write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 100)
    assert kinds.kind_of(study) == "study" and kinds.is_study(study) and not kinds.is_study(short)


def test_tables_are_joined_with_all_columns_or_without_some(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    parquet.write(paths[0], {"a": np.array([1, 2]), "b": np.array([3, 4])}, {})
    parquet.write(paths[1], {"a": np.array([5])}, {})
    parquet.join(paths, tmp_path / "all", {"name": "it's"})
    parquet.join(paths, tmp_path / "some", {}, without=["b"])
    with database.reaching(tmp_path / "all", tmp_path / "some") as connection:
        results = [
            connection.execute(f"SELECT * FROM {parquet.source(tmp_path / name)}").fetchall()
            for name in ("all", "some")
        ]
        assert results == [[(1, 3), (2, 4), (5, None)], [(1,), (2,), (5,)]]
        assert parquet.rows(connection, tmp_path / "all") == 3
        assert parquet.metadata(connection, tmp_path / "all") == {"name": "it's"}


def test_the_engine_is_told_by_the_first_digits_of_its_digest_and_commit() -> None:
    digest, commit = "0123456789abcdef", "fedcba9876543210"
    assert Engine(digest, commit).sentence() == "engine 0123456789ab, commit fedcba987654"
    assert Engine(digest, None).sentence() == "engine 0123456789ab"
    assert len(engine().digest) == 64 and build().startswith(f"{__version__}, engine {engine().digest[:12]}, Python ")


def test_the_manual_says_how_large_a_file_is_fetched() -> None:
    manual = (EXAMPLE.parents[1] / "docs" / "traces.md").read_text(encoding="utf-8")
    assert f"at most {remote.MOST_FETCHED / 2**30:g} GiB" in manual


def test_no_more_than_that_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MOST_FETCHED", 5000)
    file = tmp_path / "fetched"

    def fetch(sent: int, told: int | None) -> int:
        remote._copied(io.BytesIO(bytes(sent)).read, told, "s3://lab/a", file)
        return file.stat().st_size

    assert fetch(5000, 5000) == fetch(5000, None) == 5000
    with pytest.raises(HeapwrightError, match=r"^s3://lab/a: 5,001 bytes; .* takes 5,000 at most$"):
        fetch(5001, 5001)
    with pytest.raises(HeapwrightError, match="more than 5,000 bytes"):
        fetch(5001, None)
    for sent in (3999, 4001):
        with pytest.raises(HeapwrightError, match=rf"was cut off after {sent:,} of 4,000 bytes"):
            fetch(sent, 4000)


def test_files_that_ship_are_told_by_name() -> None:
    result = resources.toml_files("heapwright._recipes.zoo")
    assert list(result) == sorted(result, key="{}.toml".format) and "tlsf" in result
    text = resources.toml_text("heapwright._recipes.zoo", "tlsf", "no heap", "valid", "a file")
    assert text == result["tlsf"].read_text("utf-8")
    with pytest.raises(HeapwrightError, match=r"^tslf: no heap; did you mean .*tlsf.*\? \(or give a file\)$"):
        resources.toml_text("heapwright._recipes.zoo", "tslf", "no heap", "valid", "a file")


def test_a_temporary_folder_goes_with_its_block_or_its_owner_or_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    class Owner:
        pass

    monkeypatch.setattr(temporary, "_living", set())  # other tests' folders stay

    with temporary.temporary_folder("test") as folder:
        (folder / "a").write_text("kept so long")
        assert folder.name.startswith("heapwright-test-")
    assert not folder.exists()
    owner = Owner()
    owned, remaining = temporary.folder_for(owner, "owned"), temporary._make("left")
    assert owned.is_dir()
    del owner
    gc.collect()
    assert not owned.exists() and remaining.is_dir()
    temporary.remove_living()
    assert not remaining.exists()


def test_a_table_of_a_notebook_is_text_under_a_title() -> None:
    html = table("<t>", ["a", "b"], [["1 & 2", "3"]], after="<p>")
    assert html == (
        "<table><caption>&lt;t&gt;</caption><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr>"
        '<td style="text-align:left">1 &amp; 2</td><td style="text-align:right">3</td></tr></tbody></table><p>'
    )
    assert "<tr><td" in pairs("t", {"key": "value"}) and ">key</td>" in pairs("t", {"key": "value"})
    assert [number(value) for value in (None, 12345, 1234.56, 0.5)] == ["-", "12,345", "1,235", "0.5"]


def test_at_most_three_names_are_offered_for_one_that_is_near_many() -> None:
    assert did_you_mean("list", ["list1", "list2", "list3", "list4"]).count(" or ") == 2


def test_signals_that_waited_are_handled_as_before() -> None:
    heard: list[int] = []
    before = {item: signal.signal(item, lambda number, _: heard.append(number)) for item in subprocesses._INTERRUPTIONS}
    try:
        mine = list(map(signal.getsignal, before))
        with subprocesses._interruptions_held():
            for item in before:
                signal.raise_signal(item)
            assert heard == []
        assert heard == list(before)
        assert list(map(signal.getsignal, before)) == mine
    finally:
        for item, handler in before.items():
            signal.signal(item, handler)
