"""Whatever a reader sends, nothing is changed, no file is read or written, nothing is reached."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookup_audit.deploy.embedded.read_only import QueryError, ReadOnlyEngine, escape
from lookup_audit.processors.store import ClickHouseStore

pytest_plugins = ["tests.support.engine"]


@pytest.fixture
def reader(engine: ClickHouseStore, engine_path: str) -> Iterator[ReadOnlyEngine]:
    made = ReadOnlyEngine(engine_path)
    yield made
    made.close()


READS = [
    "SELECT 1",
    "  select count() from lookups ;",
    "WITH 1 AS x SELECT x",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "SHOW TABLES FROM audit",
    "DESCRIBE TABLE audit.lookups",
    "EXISTS audit.lookups",
    "EXPLAIN SELECT 1",
    "SELECT 'INTO OUTFILE', 'file(x)' AS `file(`",
    "SELECT 1 -- file('/etc/passwd')",
    "SELECT * FROM numbers(3)",
    "SELECT event_id FROM lookups FORMAT JSONEachRow",
]


@pytest.mark.parametrize("sql", READS)
def test_reading_is_answered(sql: str, reader: ReadOnlyEngine) -> None:
    reader.query(sql)


CHANGES = [
    "DROP VIEW audit.lookups",
    "INSERT INTO audit_store.rulesets (ruleset_id) VALUES ('x')",
    "ALTER TABLE audit_store.lookups DELETE WHERE 1",
    "DELETE FROM audit_store.lookups WHERE 1",
    "TRUNCATE TABLE audit_store.lookups",
    "CREATE TABLE audit.x (a Int32) ENGINE = Memory",
    "CREATE TEMPORARY TABLE x (a Int32)",
    "CREATE FUNCTION f AS (x) -> x",
    "ATTACH TABLE audit.x",
    "OPTIMIZE TABLE audit_store.lookups",
    "SYSTEM FLUSH LOGS",
    "KILL QUERY WHERE 1",
    "SET readonly = 0",
    "USE system",
    "SELECT 1 SETTINGS readonly = 0",
    "SELECT 1 SETTINGS max_execution_time = 0",
    "SELECT 1; DROP VIEW audit.lookups",
    "EXPLAIN AST DROP VIEW audit.lookups; DROP VIEW audit.lookups",
    "BACKUP TABLE audit_store.lookups TO File('x')",
]
OUTSIDE = [
    "SELECT file('{secret}')",
    "SELECT FILE('{secret}')",
    "SELECT `file`('{secret}')",
    "SELECT \"file\"('{secret}')",
    "SELECT /* */ file /* */ ('{secret}')",
    "WITH file('{secret}') AS x SELECT x",
    "SELECT arrayMap(x -> file(x), ['{secret}'])",
    "SELECT arrayMap(file, ['{secret}'])",
    "SELECT arrayMap(`file`, ['{secret}'])",
    "SELECT arrayMap(`\\x66ile`, ['{secret}'])",
    "SELECT * APPLY file FROM (SELECT '{secret}' AS a)",
    "SELECT COLUMNS('a') APPLY(\"file\") FROM (SELECT '{secret}' AS a)",
    "SELECT * APPLY(x -> file(x)) FROM (SELECT '{secret}' AS a)",
    "WITH x -> file(x) AS f SELECT f('{secret}')",
    "EXPLAIN QUERY TREE SELECT arrayMap(file, ['{secret}'])",
    "SELECT * FROM eval('SELECT fi' || 'le(''{secret}'')')",
    "SELECT * FROM view(SELECT file('{secret}'))",
    "SELECT * FROM values('a String', file('{secret}'))",
    "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT file('{secret}')))",
    "SELECT * FROM cluster('default', file('{secret}', 'LineAsString'))",
    "SELECT * FROM remote('127.0.0.1', view(SELECT file('{secret}')))",
    "SELECT * FROM `{secret}`",
    "SELECT $$ ' $$, file('{secret}'), $$ ' $$",
    "SELECT 'x' AS `a\\`b`, file('{secret}') AS `c`",
    "SELECT a FROM (SELECT '{secret}' AS a) SETTINGS additional_result_filter = 'file(a) = 1'",
    "SELECT 1 FORMAT Template SETTINGS format_template_row = '{secret}'",
    "SELECT arrayMap(aiGenerate, ['x'])",
    "SELECT * FROM sqlite('{secret}', 'x')",
    "SELECT * FROM filesystem('{secret}')",
    "DESCRIBE audit.lookups INTO OUTFILE '{target}'",
    "EXISTS audit.lookups INTO OUTFILE '{target}'",
    "EXPLAIN SELECT 1 INTO OUTFILE '{target}'",
    "SELECT 1 INTO OUTFILE '{target}' APPEND",
    "SELECT 1 INTO OUTFILE '{target}' AND STDOUT",
    "SELECT * FROM file('{secret}', 'LineAsString')",
    "DESCRIBE TABLE file('{secret}', 'LineAsString')",
    "DESCRIBE file('{secret}', 'LineAsString')",
    "EXPLAIN SELECT file('{secret}')",
    "SELECT * FROM url('http://127.0.0.1:9/', 'LineAsString')",
    "SELECT * FROM remote('127.0.0.1:9', system.one)",
    "SELECT hasColumnInTable('127.0.0.1:9', '', '', 'system', 'one', 'dummy')",
    "SELECT * FROM s3('http://127.0.0.1:9/x', 'CSV')",
    "SELECT * FROM executable('id', 'TSV', 'a String')",
    "SELECT * FROM mysql('127.0.0.1:9', 'a', 'b', 'c', 'd')",
    "SELECT 1 INTO OUTFILE '{target}'",
    "SELECT 1 INTO /* */ OUTFILE '{target}' TRUNCATE",
    "SELECT 1 into\noutfile '{target}' FORMAT CSV",
    "(SELECT 1) INTO OUTFILE '{target}'",
    "SHOW TABLES INTO OUTFILE '{target}'",
    "SELECT * FROM system.one WHERE file('{secret}') = 'x'",
    "SELECT aiGenerate('x')",
    "SELECT catboostEvaluate('{secret}', 1)",
    "SELECT * FROM audit.lookups FORMAT file('{secret}')",
    "DESCRIBE url('http://127.0.0.1:9/s.csv', 'CSVWithNames')",
    "DESCRIBE TABLE s3('http://127.0.0.1:9/b/x.csv', 'CSVWithNames')",
    "DESCRIBE sqlite('{secret}', 'x')",
    "DESCRIBE mysql('127.0.0.1:9', 'a', 'b', 'c', 'd')",
    "DESCRIBE /* */ url ('http://127.0.0.1:9/s.csv', 'CSVWithNames')",
    "SELECT * FROM (DESCRIBE url('http://127.0.0.1:9/s.csv', 'CSVWithNames'))",
    "SELECT * FROM sqlite('{target}', 'a')",
]


@pytest.mark.parametrize("sql", CHANGES)
def test_a_change_is_refused(sql: str, reader: ReadOnlyEngine, engine: ClickHouseStore) -> None:
    tables = engine.query("SELECT count() FROM system.tables")
    with pytest.raises(QueryError):
        reader.query(sql)
    assert engine.query("SELECT count() FROM system.tables") == tables
    assert reader.query("SELECT 1")[0] == b"1\n"


@pytest.mark.parametrize("sql", OUTSIDE)
def test_nothing_outside_is_read_written_or_reached(
    sql: str, reader: ReadOnlyEngine, tmp_path: Path
) -> None:
    secret, target = tmp_path / "secret", tmp_path / "target"
    secret.write_text("the-secret")
    with pytest.raises(QueryError) as refused:
        reader.query(sql.format(secret=secret, target=target))
    assert "the-secret" not in str(refused.value)
    assert refused.value.code != 1002, "refused by accident, not by rule"
    assert not target.exists()


def test_a_parameter_is_a_value_and_never_a_statement(reader: ReadOnlyEngine) -> None:
    hostile = "x' OR 1=1; DROP VIEW audit.lookups --\n\t\\"
    answer, _ = reader.query(
        "SELECT {value:String} AS v",
        default_format="JSONEachRow",
        parameters={"value": escape(hostile)},
    )
    assert json.loads(answer) == {"v": hostile}


def test_an_identifier_parameter_cannot_name_a_function(
    reader: ReadOnlyEngine, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the-secret")
    for sql in ("SELECT {f:Identifier}('x')", "SELECT * FROM {f:Identifier}"):
        with pytest.raises(QueryError):
            reader.query(sql, parameters={"f": f"file('{secret}')"})


def test_an_identifier_parameter_cannot_name_a_function_that_reads(
    reader: ReadOnlyEngine, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the-secret")
    for name in ("file", "`file`", "FILE"):
        with pytest.raises(QueryError):
            reader.query(f"SELECT arrayMap({{f:Identifier}}, ['{secret}'])", parameters={"f": name})
    answer = reader.query("SELECT count() FROM {t:Identifier}", parameters={"t": "lookups"})
    assert answer[1] == "TabSeparated"


def test_a_format_is_a_name_and_nothing_else(reader: ReadOnlyEngine) -> None:
    for hostile in ("CSV INTO OUTFILE 'x'", "CSV; DROP VIEW audit.lookups", ""):
        with pytest.raises(QueryError):
            reader.query("SELECT 1", default_format=hostile)


def test_after_a_failed_query_the_next_answer_is_its_own(reader: ReadOnlyEngine) -> None:
    for _ in range(5):
        with pytest.raises(QueryError):
            reader.query("SELECT throwIf(number = 100000) FROM numbers(200000)")
        assert reader.query("SELECT 42") == (b"42\n", "TabSeparated")


def test_writing_goes_on_while_a_reader_is_busy(
    reader: ReadOnlyEngine, store: ClickHouseStore
) -> None:
    reader.query("SELECT sum(number) FROM numbers(1000000)")
    store.command("INSERT INTO audit_store.rulesets (ruleset_id) VALUES ('written')")
    assert reader.query("SELECT count() FROM rulesets")[0] == b"1\n"
