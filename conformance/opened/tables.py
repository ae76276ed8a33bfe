"""The tables as DuckDB opens them: the files of CSV, and the database by its extension for SQLite. Each table must be
the same in both and in Python's sqlite3.

    tables.py FOLDER DATABASE      prints the count of rows of each table
"""
import glob
import json
import os
import sqlite3
import sys

import duckdb
import duckdb_extension_sqlite_scanner

folder, path = sys.argv[1:]
home = os.path.dirname(duckdb_extension_sqlite_scanner.__file__)
(extension,) = glob.glob(os.path.join(home, 'extensions', '*', 'sqlite_scanner.duckdb_extension'))
duck = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
duck.execute(f"LOAD '{extension}'")
duck.execute(f"ATTACH '{path}' AS run (TYPE sqlite, READ_ONLY)")
plain = sqlite3.connect(path)
counts = {}
for name, in plain.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
    wanted = plain.execute(f'SELECT * FROM {name}').fetchall()
    assert duck.execute(f'SELECT * FROM run.{name}').fetchall() == wanted, f'{name}: DuckDB reads another database'
    types = {column: kind for _, column, kind, *_ in plain.execute(f'PRAGMA table_info({name})')}
    kinds = {'INTEGER': 'BIGINT', 'REAL': 'DOUBLE', 'TEXT': 'VARCHAR'}
    columns = ', '.join(f"'{column}': '{kinds[kind]}'" for column, kind in types.items())
    rows = duck.execute(f"SELECT * FROM read_csv('{folder}/{name}.csv', header=true, columns={{{columns}}})").fetchall()
    def same(row):  # nothing and an empty text are one in CSV; reals have nine digits there
        return tuple(None if cell == '' else round(cell, 7) if isinstance(cell, float) else cell for cell in row)
    assert list(map(same, rows)) == list(map(same, wanted)), f'{name}: the CSV has other rows'
    assert duck.execute(f"SELECT count(*) FROM '{folder}/{name}.csv'").fetchone()[0] == len(wanted)  # and without being told
    counts[name] = len(wanted)
print(json.dumps(counts))
