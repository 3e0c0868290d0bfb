import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.conftest import Up, run_command
from tests.support.events import Event, encode, make_candidate, make_lookup

NOW = datetime.now(UTC)
MIDDLE = (NOW - timedelta(hours=5)).isoformat().replace("+00:00", "Z")


def lookup(tenant: str, quality: float, hours_ago: float, **over: object) -> Event:
    return make_lookup(
        tenant=tenant,
        occurred_at=(NOW - timedelta(hours=hours_ago)).isoformat(),
        candidates=[make_candidate(dense_distance=2 - 2 * quality)],
        **over,
    )


def post(up: Up, tenant: str, events: list[Event]) -> None:
    up.post("/v1/lookups", encode(events))
    up.wait_for(f"SELECT count() FROM lookups WHERE tenant = '{tenant}'", str(len(events)))


def test_a_new_index_is_named_in_one_sentence_with_the_parts_below(up: Up) -> None:
    qualities = [0.9, 0.8, 0.78, 0.6, 0.3]
    before = [lookup("swap", q, 7) for q in qualities for _ in range(8)]
    after = [
        lookup("swap", q - 0.1, 2, versions={"index": "kb-2026-11", "chunker": "md-400@3"})
        for q in qualities
        for _ in range(8)
    ]
    post(up, "swap", before + after)
    where = ("--from", MIDDLE, "--tenant", "swap", "--data-dir", up.data_dir)
    answer = run_command("drift", "explain", *where)
    assert answer.returncode == 0, answer.stderr
    first = answer.stdout.splitlines()[0]
    assert first == "of -40.0 points: -40.0 from index kb-2026-11; rest 0.0"
    assert "kb-2026-11 0% -> 100%" in answer.stdout
    found = json.loads(run_command("drift", "explain", "--json", *where).stdout)
    assert (found["main_cause"], found["mode"]) == ("versions", "dense")
    assert found["sentence"] == first
    total = sum(cause["points"] for cause in found["causes"])
    assert total == pytest.approx(found["change"]["points"])
    assert found["before"]["lookups"] == found["after"]["lookups"] == 40


def test_two_model_versions_of_one_time_can_be_compared(up: Up) -> None:
    old = [lookup("beside", q, 2, model_version="m@1") for q in (0.9, 0.8, 0.6, 0.3)]
    new = [lookup("beside", q, 2, model_version="m@2") for q in (0.9, 0.6, 0.6, 0.3)]
    post(up, "beside", old + new)
    where = ("--from", MIDDLE, "--tenant", "beside", "--data-dir", up.data_dir)
    versions = ("--model-version", "m@2", "--against-model-version", "m@1")
    answer = run_command("drift", "explain", *versions, *where)
    assert answer.stdout.splitlines()[0] == "of -25.0 points: -25.0 from model m@2; rest 0.0"
    alone = run_command("drift", "explain", *versions[2:], *where)
    assert (alone.returncode, alone.stdout) == (2, "")


def test_modes_are_not_pooled_for_a_lack_of_choice(up: Up) -> None:
    modes = ["dense", "hybrid"]
    post(up, "both", [lookup("both", 0.9, h, mode=m) for m in modes for h in (2, 7)])
    where = ("--from", MIDDLE, "--tenant", "both", "--data-dir", up.data_dir)
    answer = run_command("drift", "explain", *where)
    assert answer.returncode == 2
    assert "never pooled: choose one with --mode" in answer.stderr
    assert run_command("drift", "explain", "--mode", "hybrid", *where).returncode == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "name an alarm, or a period with --from"),
        (("--from", "yesterday"), "--from 'yesterday': must be an RFC 3339 string"),
        (("--from", MIDDLE, "--to", "2020-01-01T00:00:00Z"), "before it begins"),
        (("--from", MIDDLE, "--against-to", "2100-01-01T00:00:00Z",
          "--against-from", "2020-01-01T00:00:00Z"), "the two periods overlap"),
        (("--from", MIDDLE, "--against-from", "2100-01-01T00:00:00Z"), "--against-from must be"),
        (("--from", MIDDLE, "--tenant", "nobody"), "there are no lookups in these periods"),
        (("--from", MIDDLE, "--tenant", "nobody", "--mode", "dense"), "has no lookups"),
        (("an-alarm", "--mode", "dense"), "an alarm says itself"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_refused_with_the_reason(
    options: tuple[str, ...], reason: str, up: Up
) -> None:
    answer = run_command("drift", "explain", *options, "--data-dir", up.data_dir)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert reason in answer.stderr
    assert "Traceback" not in answer.stderr
