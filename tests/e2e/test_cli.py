import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import clickhouse_connect
import pytest

from lookup_audit.deploy.cli.main import VERBS, main
from tests.e2e.conftest import Up, run_command
from tests.support.events import (
    encode,
    make_candidate,
    make_judgement,
    make_lookup,
    make_outcome,
)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([verb, "--help"])
    text = capsys.readouterr().out
    assert left.value.code == 0
    assert f"lookup-audit {verb}" in text.split("example:")[1]


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {verb} " in text for verb in VERBS)


def test_an_unknown_verb_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate"]) == 2
    assert "no verb 'frobnicate'" in capsys.readouterr().err


def test_reading_where_nothing_is_says_how_to_start(tmp_path: Path) -> None:
    answer = run_command("query", "SELECT 1", "--data-dir", tmp_path / "nothing")
    assert answer.returncode == 2
    assert "lookup-audit demo" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_ingested_events_are_accounted_for_one_by_one(up: Up, tmp_path: Path) -> None:
    lookup = make_lookup(tenant="ingest")
    outcome = make_outcome(tenant="ingest", lookup_event_ids=[lookup["event_id"]])
    judgement = make_judgement(tenant="ingest", outcome_id=outcome["outcome_id"])
    events = tmp_path / "events.ndjson"
    bad = b'{"event_id": "bad-1", "mode": "dense"}'
    events.write_bytes(b"\n".join([encode(lookup), bad, encode(outcome), b"", encode(judgement)]))
    answer = run_command("ingest", events, "--data-dir", up.data_dir, "--json")
    account = json.loads(answer.stdout)
    assert answer.returncode == 1
    assert account["accepted"] == 3
    assert [r["place"] for r in account["rejected"]] == [f"{events}:line 2"]
    assert account["rejected"][0]["field"] == "occurred_at"
    up.wait_for("SELECT count() FROM cells WHERE tenant = 'ingest'", "1")


@pytest.mark.parametrize("form", ["array", "pretty object", "stdin"])
def test_ingest_reads_each_form_of_file(form: str, up: Up, tmp_path: Path) -> None:
    tenant = f"form-{form}"
    event = make_lookup(tenant=tenant)
    path = tmp_path / "events.json"
    text = json.dumps([event] if form == "array" else event, indent=2 if "pretty" in form else None)
    path.write_text(text, encoding="utf-8")
    source, stdin = ("-", text) if form == "stdin" else (path, None)
    answer = run_command("ingest", source, "--data-dir", up.data_dir, stdin=stdin)
    assert (answer.returncode, answer.stdout) == (0, "1 accepted, 0 rejected\n")
    up.wait_for(f"SELECT count() FROM lookups WHERE tenant = '{tenant}'", "1")


def test_one_lookup_is_shown_with_the_arithmetic_filled_in(up: Up) -> None:
    event = make_lookup(tenant="shown", relevance_level="REFERENCE")
    up.post("/v1/lookups", encode(event))
    up.wait_for("SELECT count() FROM lookups WHERE tenant = 'shown'", "1")
    answer = run_command("lookup", event["event_id"], "--data-dir", up.data_dir)
    assert answer.returncode == 0
    assert "reported REFERENCE, recomputed PRECISE: fail" in answer.stdout
    assert "= 1 - " in answer.stdout
    found = json.loads(
        run_command("lookup", event["event_id"], "--data-dir", up.data_dir, "--json").stdout
    )
    assert found[0]["lookup"]["raw"].encode() == encode(event)
    assert len(found[0]["candidates"]) == len(event["candidates"])


def test_a_lookup_that_is_not_stored_is_found_missing(up: Up) -> None:
    answer = run_command("lookup", "no'such; id", "--data-dir", up.data_dir)
    assert (answer.returncode, answer.stdout) == (1, "no lookup has the id no'such; id\n")


def test_stored_text_cannot_steer_the_terminal(up: Up) -> None:
    event = make_lookup(tenant="escape", query={"text": "\x1b]0;owned\x07\x1b[2J"})
    up.post("/v1/lookups", encode(event))
    up.wait_for("SELECT count() FROM lookups WHERE tenant = 'escape'", "1")
    shown = run_command("lookup", event["event_id"], "--data-dir", up.data_dir).stdout
    sql = "SELECT query_text FROM lookups WHERE tenant = 'escape'"
    asked = run_command("query", sql, "--data-dir", up.data_dir).stdout
    assert "\x1b" not in shown + asked
    assert "owned" in shown


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_query_prints_each_format(form: str, up: Up) -> None:
    sql = "SELECT 1 AS one, 'ü' AS text"
    answer = run_command("query", sql, "--format", form, "--data-dir", up.data_dir)
    assert answer.returncode == 0
    if form == "json":
        assert json.loads(answer.stdout) == [{"one": 1, "text": "ü"}]
    elif form == "csv":
        assert answer.stdout == '"one","text"\n1,"ü"\n'
    else:
        assert "one" in answer.stdout
        assert "ü" in answer.stdout


def test_a_changing_statement_is_refused_with_exit_2(up: Up) -> None:
    answer = run_command("query", "DROP VIEW audit.lookups", "--data-dir", up.data_dir)
    assert answer.returncode == 2
    assert "READONLY" in answer.stderr


def test_a_dead_letter_is_listed_shown_and_replayed(up: Up) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=up.bootstrap_servers)
    value = b'{"event_id": "dead-1", "mode": "dense"'
    producer.send("lookup.results.v1", value=value, key=b"k", headers=[("x-mine", b"\xff1")])
    producer.flush(10)
    producer.close()
    up.wait_for("SELECT count() FROM dead_letters WHERE reason = 'invalid_json'", "1")
    listed = json.loads(
        run_command(
            "dlq", "list", "--reason", "invalid_json", "--json", "--data-dir", up.data_dir
        ).stdout
    )
    place = "{kafka_topic}/{kafka_partition}/{kafka_offset}".format(**listed[0])
    shown = run_command("dlq", "show", place, "--data-dir", up.data_dir)
    assert value.decode() in shown.stdout
    assert "x-mine: \\xff1" in shown.stdout
    replayed = run_command("dlq", "replay", place, "--data-dir", up.data_dir)
    assert replayed.returncode == 0, replayed.stderr
    # Judged anew, and found wanting again: a second dead letter, with its attempt counted.
    up.wait_for("SELECT count() FROM dead_letters WHERE reason = 'invalid_json'", "2")
    sql = "SELECT max(headers['dlq.attempt']) FROM dead_letters WHERE reason = 'invalid_json'"
    assert up.query(sql) == "1"


def test_doctor_is_content_with_a_running_stack(up: Up) -> None:
    answer = run_command(
        "doctor", "--data-dir", up.data_dir, "--bootstrap", up.bootstrap_servers, "--json"
    )
    findings = {f["name"]: f for f in json.loads(answer.stdout)}
    assert findings["kafka"]["ok"], findings["kafka"]
    assert up.url in findings["data directory"]["detail"]


def test_doctor_names_the_fix_of_a_broker_that_is_not_there(up: Up) -> None:
    answer = run_command("doctor", "--data-dir", up.data_dir, "--bootstrap", "127.0.0.1:1")
    assert answer.returncode == 1
    assert "FAIL kafka" in answer.stdout
    assert "fix: start the brokers" in answer.stdout


def test_the_real_clickhouse_client_reads_but_cannot_write(up: Up) -> None:
    host, port = up.url.removeprefix("http://").split(":")
    client = clickhouse_connect.get_client(host=host, port=int(port), proxy_path="/clickhouse")
    try:
        event = make_lookup(tenant="client")
        up.post("/v1/lookups", encode(event))
        up.wait_for("SELECT count() FROM lookups WHERE tenant = 'client'", "1")
        rows = client.query(
            "SELECT event_id, occurred_at FROM lookups WHERE tenant = {tenant:String}",
            parameters={"tenant": "client"},
        ).result_rows
        assert rows[0][0] == event["event_id"]
        with pytest.raises(clickhouse_connect.driver.exceptions.DatabaseError, match="READONLY"):
            client.command("DROP TABLE audit_store.lookups")
        with pytest.raises(clickhouse_connect.driver.exceptions.DatabaseError, match="READONLY"):
            client.command("SELECT file('/etc/hostname')")
    finally:
        client.close()


def test_the_ratio_is_told_per_mode_with_counts_and_no_value_where_there_is_none(up: Up) -> None:
    lookup = make_lookup(tenant="ratio")
    outcome = make_outcome(tenant="ratio", lookup_event_ids=[lookup["event_id"]])
    up.post("/v1/lookups", encode(lookup))
    up.post("/v1/outcomes", encode(outcome))
    up.post(
        "/v1/judgements", encode(make_judgement(tenant="ratio", outcome_id=outcome["outcome_id"]))
    )
    up.wait_for("SELECT count() FROM cells WHERE tenant = 'ratio' AND answer = 'wrong'", "1")
    where = ("--tenant", "ratio", "--data-dir", up.data_dir)
    table = run_command("ratio", "--days", "2", "--layers", "--machine", *where)
    assert table.returncode == 0
    assert "1/1" in table.stdout
    assert "no value" in table.stdout
    told = json.loads(run_command("ratio", "--json", *where).stdout)
    (headline,) = told["headline"]
    assert headline["stratum"] == {"model_version": "minilm-l6@2", "mode": "dense"}
    assert headline["rates"]["high_score_error_rate"]["value"] == 1.0
    assert (headline["rates"]["low_score_refusal_rate"], headline["ratio"]) == (None, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(["--by", "model_version"], "different rulers", id="pooled modes"),
        pytest.param(["--by", "mode,colour"], "--by colour", id="unknown dimension"),
        pytest.param(["--days", "0"], "--days must be 1 or more", id="no days"),
    ],
)
def test_a_wrong_question_about_the_ratio_is_refused(
    up: Up, options: list[str], words: str
) -> None:
    answer = run_command("ratio", *options, "--data-dir", up.data_dir)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr


def test_conduct_prints_rates_with_their_n_and_the_runs_to_look_at(up: Up) -> None:
    lookup = make_lookup(tenant="conduct", relevance_level=None, run_id="run-c")
    outcome = make_outcome(
        tenant="conduct", run_id="run-c", lookup_event_ids=[lookup["event_id"]], stance="firm"
    )
    up.post("/v1/lookups", encode(lookup))
    up.post("/v1/outcomes", encode(outcome))
    up.wait_for("SELECT count() FROM conduct_findings WHERE tenant = 'conduct'", "1")
    options = ("conduct", "--tenant", "conduct", "--days", "2", "--data-dir", up.data_dir)
    text = run_command(*options)
    assert text.returncode == 0, text.stderr
    assert "over_confident       1/1" in text.stdout
    assert "run-c" in text.stdout.split("Runs to look at")[1]
    found = json.loads(run_command(*options, "--json").stdout)
    by_name = {rate["finding"]: rate for rate in found["rates"]}
    assert by_name["over_confident"]["rate"] == 1.0
    assert by_name["wasted_lookup"]["interval"][0] == 0.0
    assert [e["outcome_id"] for e in found["examples"]] == [outcome["outcome_id"]]
    refused = run_command("conduct", "--days", "0", "--data-dir", up.data_dir)
    assert (refused.returncode, "--days" in refused.stderr) == (2, True)
    nothing = run_command("conduct", "--tenant", "nobody", "--data-dir", up.data_dir)
    assert (nothing.returncode, "no agent runs" in nothing.stdout) == (0, True)


def test_triage_says_whether_there_is_a_rise_and_what_to_look_at_first(up: Up) -> None:
    tenant = "triage"
    lookups, rest = [], []
    for number in range(40):
        is_wrong = number >= 30
        time = datetime.now(UTC) - timedelta(days=0 if is_wrong else 2)
        updated = time - timedelta(days=500 if is_wrong else 5)
        lookup = make_lookup(
            tenant=tenant,
            occurred_at=time.isoformat(),
            candidates=[make_candidate(document_updated_at=updated.isoformat())],
        )
        outcome = make_outcome(tenant=tenant, lookup_event_ids=[lookup["event_id"]])
        verdict = "incorrect" if is_wrong else "correct"
        judgement = make_judgement(tenant=tenant, outcome_id=outcome["outcome_id"], verdict=verdict)
        lookups.append(lookup)
        rest.append((outcome, judgement))
    up.post("/v1/lookups", encode(lookups))
    up.post("/v1/outcomes", encode([outcome for outcome, _ in rest]))
    up.post("/v1/judgements", encode([judgement for _, judgement in rest]))
    up.wait_for(f"SELECT countIf(answer != 'unjudged') FROM cells WHERE tenant = '{tenant}'", "40")
    options = ("triage", "--tenant", tenant, "--data-dir", up.data_dir)
    text = run_command(*options)
    assert text.returncode == 1, text.stderr
    assert "a rise" in text.stdout
    likely = text.stdout.split("likely causes")[1]
    assert "clear  age of the oldest document used, days" in likely
    assert "before touching thresholds" in likely
    found = json.loads(run_command(*options, "--json").stdout)
    errors = next(rise for rise in found["rises"] if rise["kind"] == "errors")
    assert (errors["state"], errors["bad"], errors["n"]) == ("rise", 10, 10)
    assert errors["causes"][0]["factor"] == "age_days"
    quiet = run_command(*options, "--day", "2024-02-29")
    assert (quiet.returncode, "no lookup with an outcome" in quiet.stdout) == (0, True)
    for wrong in (("--day", "yesterday"), ("--baseline-days", "0")):
        refused = run_command(*options, *wrong)
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
