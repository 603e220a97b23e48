"""Statements for an SQL shell: rows of bounded tables come, change and go; joins, sorts, groups, temporary tables."""

from __future__ import annotations

import random

from long.running import Run

ROWS = 120
START = """\
PRAGMA cache_size = 40;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, content BLOB, weight REAL);
CREATE INDEX by_name ON item(name);
CREATE TABLE journal(item INTEGER, note TEXT);
"""


def record(run: Run) -> None:
    """Record the shell of SQLite on a database in memory."""
    draw = run.random("statements")
    statements: list[str] = []
    while len(statements) < run.requests:
        statements += _burst(draw) if draw.random() < 0.01 else [_statement(draw)]
    run.record("sqlite3", ":memory:", text=START + "\n".join(statements) + "\n")


def _word(draw: random.Random) -> str:
    return "".join(draw.choices("abcdefgh", k=draw.randrange(1, 24)))


def _insert(draw: random.Random) -> str:
    size = int(min(draw.lognormvariate(4, 1), 1800))
    values = f"{draw.randrange(ROWS)}, '{_word(draw)}', zeroblob({size}), {draw.random():.6f}"
    return f"INSERT OR REPLACE INTO item VALUES({values});"


def _burst(draw: random.Random) -> list[str]:
    """Many rows in one transaction, which is undone in one of three."""
    rows = [_insert(draw) for _ in range(draw.randrange(10, 80))]
    return ["BEGIN;", *rows, draw.choice(("COMMIT;", "COMMIT;", "ROLLBACK;"))]


def _statement(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.3:
        return _insert(draw)
    if kind < 0.45:
        return f"DELETE FROM item WHERE id = {draw.randrange(ROWS)};"
    if kind < 0.6:
        return f"SELECT count(*), max(weight) FROM item WHERE name > '{_word(draw)}' ORDER BY weight;"
    if kind < 0.7:
        return f"UPDATE item SET name = '{_word(draw)}' || id WHERE weight < {draw.random() * 0.05:.6f};"
    if kind < 0.8:
        taken = f"INSERT INTO journal SELECT id, name FROM item WHERE weight > {0.9 + draw.random() * 0.1:.6f};"
        return (
            f"{taken} DELETE FROM journal WHERE rowid % {draw.randrange(2, 4)} = 0 OR rowid < "
            "(SELECT max(rowid) FROM journal) - 200;"
        )
    if kind < 0.9:
        low, high = draw.randrange(ROWS // 2), draw.randrange(ROWS // 2, ROWS)
        inner = f"SELECT name FROM item WHERE id BETWEEN {low} AND {high} ORDER BY name DESC LIMIT {draw.randrange(30)}"
        return f"SELECT group_concat(name, '-') FROM ({inner});"
    if kind < 0.97:
        return (
            "SELECT item.name, journal.note FROM item JOIN journal ON item.id = journal.item "
            f"WHERE item.weight > {draw.random():.6f} GROUP BY item.name HAVING count(*) > 0 LIMIT 5;"
        )
    table = f"kept{draw.randrange(7)}"
    return f"CREATE TEMP TABLE {table} AS SELECT * FROM item WHERE id < {draw.randrange(90)}; DROP TABLE {table};"
