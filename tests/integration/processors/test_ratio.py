"""The headline in the engine against the same from raw events, for histories of every shape."""

import contextlib
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lookup_audit.processors.batch import Message
from lookup_audit.processors.links import catch_up
from lookup_audit.processors.ratio import (
    Period,
    check_dimensions,
    headlines,
    parts,
    refusals,
    sharpened,
)
from lookup_audit.processors.store import ClickHouseStore
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from lookup_audit.schemas.names import Topic
from tests.support import recount
from tests.support.events import (
    Event,
    encode,
    make_candidate,
    make_judgement,
    make_lookup,
    make_outcome,
)
from tests.support.twins import FailingStore, make_encoder, make_message, make_sink, utc_now

pytest_plugins = ["tests.support.engine"]

DERIVED = ("answered_lookups", "outcome_links", "counting_judgements")
_DISTANCES = {"PRECISE": 0.3, "REFERENCE": 0.8, "NONE": 1.4}


def lookup(level: str, **over: Any) -> Event:
    candidate = make_candidate(dense_distance=_DISTANCES[level])
    return make_lookup(candidates=[candidate]) | over


def history(seed: int, size: int = 120) -> list[Message]:
    """Runs over three days, with everything that can happen to them.

    Retries that share an answer, late and changed outcomes, several judges, duplicates, and
    judgements of answers that never came.
    """
    chance = random.Random(seed)
    start = utc_now().replace(hour=1, minute=0, second=0, microsecond=0) - timedelta(days=3)
    lookups: list[Event] = []
    others: list[Event] = []
    for number in range(size):
        at = start + timedelta(minutes=chance.randrange(3 * 1440))
        tenant = chance.choice(["acme", "东方"])
        made = [
            lookup(
                chance.choice(["PRECISE", "PRECISE", "REFERENCE", "NONE", "NONE"]),
                event_id=f"e-{seed}-{number}-{retry}",
                tenant=tenant,
                occurred_at=at.isoformat(),
                mode=chance.choice(["dense", "lexical"]),
                model_version=chance.choice(["m@1", "m@2"]),
            )
            for retry in range(chance.choice([1, 1, 1, 2, 3]))
        ]
        lookups += made
        named = [event["event_id"] for event in made]
        for change in range(chance.choice([0, 1, 1, 1, 2])):
            outcome = make_outcome(
                outcome_id=f"o-{seed}-{number}-{change}",
                tenant=tenant,
                occurred_at=(at + timedelta(minutes=chance.choice([0, 0, 5, 900]))).isoformat(),
                lookup_event_ids=[*named, *named[:1], "never-stored"],
                action=chance.choice(["answered", "answered", "refused"]),
            )
            others.append(outcome)
            others += [
                make_judgement(
                    judgement_id=f"j-{seed}-{number}-{change}-{judge}",
                    tenant=tenant,
                    outcome_id=outcome["outcome_id"],
                    occurred_at=(at + timedelta(hours=chance.choice([1, 1, 2]))).isoformat(),
                    source=chance.choice(["human", "llm", "gold", "user_feedback"]),
                    verdict=chance.choice(["correct", "incorrect", "partly", "cannot_tell"]),
                )
                for judge in range(chance.choice([0, 1, 1, 2, 3]))
            ]
    others.append(make_judgement(outcome_id="never-came"))
    return [*messages(lookups, Topic.RESULTS, chance), *messages(others, Topic.OUTCOMES, chance)]


def messages(events: list[Event], topic: Topic, chance: random.Random) -> list[Message]:
    values = [encode(event) for event in events]
    values += chance.sample(values, len(values) // 10)
    chance.shuffle(values)
    return [make_message(value, offset, topic=topic) for offset, value in enumerate(values)]


def store_in_pieces(store: ClickHouseStore, stream: Sequence[Message], seed: int) -> None:
    """Two processors write a topic each, in batches that take turns at random."""
    chance = random.Random(seed)
    encoder = make_encoder()
    for topic_messages in interleaved(stream, chance):
        make_sink(store).write(encoder.encode(topic_messages))


def interleaved(stream: Sequence[Message], chance: random.Random) -> list[list[Message]]:
    queues = [[m for m in stream if m.topic == t] for t in (Topic.RESULTS, Topic.OUTCOMES)]
    pieces = []
    while any(queues):
        queue = chance.choice([q for q in queues if q])
        size = chance.randrange(1, 60)
        pieces.append(queue[:size])
        del queue[:size]
    return pieces


def assert_equal_to_a_recount(store: ClickHouseStore) -> int:
    def raws(view: str) -> list[str]:
        return [row[0] for row in store.query(f"SELECT raw FROM audit.{view}")]

    samples = {
        (tenant, event_id): probability
        for tenant, event_id, probability in store.query(
            "SELECT tenant, event_id, inclusion_probability FROM audit.samples"
        )
    }
    planned = store.query("SELECT DISTINCT tenant, day FROM audit_store.sample_plans")
    expected = recount.headline(
        raws("lookups"), raws("outcomes"), raws("judgements"), samples, planned
    )
    found = {
        (row["day"], row["tenant"], row["model_version"], row["mode"]): row
        for row in store.query("SELECT * FROM audit.ratio_daily").dicts()
    }
    assert found.keys() == expected.keys()
    for stratum, row in expected.items():
        for name in (
            "sampled",
            "with_outcome",
            "high_score_errors",
            "judged_high",
            "low_score_refusals",
            "low_with_outcome",
        ):
            assert found[stratum][name] == getattr(row, name), (stratum, name)
        for name, figure in row.figures.items():
            told = tuple(found[stratum][name + end] for end in ("", "_low", "_high"))
            assert told == ((None,) * 3 if figure is None else pytest.approx(figure)), name
    return len(expected)


@pytest.mark.parametrize("seed", range(4))
def test_every_figure_equals_a_recount_from_raw_events(store: ClickHouseStore, seed: int) -> None:
    stream = history(seed)
    store_in_pieces(store, stream, seed)
    assert assert_equal_to_a_recount(store) > 10
    before = store.query("SELECT * FROM audit.ratio_daily ORDER BY ALL")
    store_in_pieces(store, stream, seed + 100)
    assert store.query("SELECT * FROM audit.ratio_daily ORDER BY ALL") == before


def test_a_sampled_day_counts_what_was_drawn_by_its_weight(store: ClickHouseStore) -> None:
    store_in_pieces(store, history(9, 200), 9)
    chance = random.Random(9)
    rows = list(store.query("SELECT * FROM audit.lookups").dicts())
    planned = [row for row in rows if row["tenant"] == "acme"]
    drawn = [(row, p) for row in planned if chance.random() < (p := chance.choice([0.3, 1.0]))]
    draw(store, [(row["occurred_at"].date(), row) for row in planned], drawn)
    assert assert_equal_to_a_recount(store) > 10
    weighed = store.query("SELECT count() FROM audit.sampled_cells WHERE weight > 1").scalar()
    assert weighed > 10


def test_a_planned_day_with_nothing_drawn_yet_has_no_figures(store: ClickHouseStore) -> None:
    store_in_pieces(store, history(2, 20), 2)
    rows = list(store.query("SELECT * FROM audit.lookups").dicts())
    draw(store, [(row["occurred_at"].date(), row) for row in rows], [])
    assert store.query("SELECT count() FROM audit.ratio_daily").scalar() == 0


def draw(
    store: ClickHouseStore,
    planned: Sequence[tuple[date, dict[str, Any]]],
    drawn: Sequence[tuple[dict[str, Any], float]],
) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    time = pa.timestamp("us", tz="UTC")
    plans = sorted({(day, row["tenant"]) for day, row in planned})
    store.insert(
        "audit_store.sample_plans",
        pa.table(
            {
                "day": pa.array([day for day, _ in plans], pa.date32()),
                "tenant": [tenant for _, tenant in plans],
                "drawn_at": pa.array([at] * len(plans), time),
            }
        ),
        token="plans",
    )
    if drawn:
        names = ("tenant", "event_id", "mode", "model_version")
        columns = {name: [row[name] for row, _ in drawn] for name in names}
        times = [row["occurred_at"] for row, _ in drawn]
        table = pa.table(
            columns
            | {
                "day": pa.array([t.date() for t in times], pa.date32()),
                "occurred_at": pa.array(times, time),
                "level": [row["reported_level"] for row, _ in drawn],
                "inclusion_probability": [p for _, p in drawn],
                "drawn_at": pa.array([at] * len(drawn), time),
            }
        )
        store.insert("audit_store.samples", table, token="samples")


def test_a_periods_figures_are_those_of_its_days(store: ClickHouseStore) -> None:
    store_in_pieces(store, history(4), 4)
    days = store.query("SELECT * FROM audit.ratio_daily ORDER BY day, tenant, model_version, mode")
    told = headlines(store, ("mode", "day", "tenant", "model_version"), Period())
    assert len(told) == len(days) > 10
    for row, day in zip(told, days.dicts(), strict=True):
        for name, rate in row.rates.items():
            ends = (None,) * 3 if rate is None else (rate.value, rate.low, rate.high)
            assert tuple(day[name + end] for end in ("", "_low", "_high")) == pytest.approx(ends)
        ratio = tuple(day["ratio" + end] for end in ("", "_low", "_high"))
        assert ratio == pytest.approx(row.ratio or (None,) * 3)
    one_day = Period(first=days[0][0], last=days[0][0], tenant="东方")
    alone = headlines(store, ("mode",), one_day)
    assert sum(row.counts["sampled"] for row in alone) == sum(
        day["sampled"]
        for day in days.dicts()
        if (day["day"], day["tenant"]) == (days[0][0], "东方")
    )


def test_levels_and_layers_count_the_same_lookups(store: ClickHouseStore) -> None:
    store_in_pieces(store, history(5), 5)
    whole = store.query("SELECT mode, count() FROM audit.cells GROUP BY mode ORDER BY mode")
    for part in ("level", "layer"):
        found = parts(store, ("mode",), part, Period())
        for mode, count in whole:
            rows = [row for row in found if row.stratum["mode"] == mode]
            assert sum(row.counts["with_outcome"] for row in rows) == count
            for row in rows:
                judged = sum(row.counts[name] for name in ("wrong", "partly", "right"))
                assert row.counts["judged"] == judged
    refused = store.query("SELECT count() FROM audit.cells WHERE action = 'refused'").scalar()
    assert sum(row.refused for row in refusals(store, ("mode",), Period())) == refused


def test_a_machine_sharpens_the_rate_where_people_judged_enough(store: ClickHouseStore) -> None:
    """40 answers judged by both alike, 60 by the machine alone: 10 and 30 wrong."""
    lookups, others = [], []
    for number in range(100):
        lookups.append(lookup("PRECISE", event_id=f"e-{number}"))
        others.append(make_outcome(outcome_id=f"o-{number}", lookup_event_ids=[f"e-{number}"]))
        wrong = number % 4 == 0 if number < 40 else number % 2 == 0
        for source in ("human", "llm") if number < 40 else ("llm",):
            verdict = "incorrect" if wrong else "correct"
            others.append(make_judgement(outcome_id=f"o-{number}", source=source, verdict=verdict))
    store_in_pieces(
        store,
        [
            *messages(lookups, Topic.RESULTS, random.Random(0)),
            *messages(others, Topic.OUTCOMES, random.Random(1)),
        ],
        1,
    )
    (found,) = sharpened(store, ("mode",), Period())
    assert (found.human_judged, found.machine_judged) == (40, 100)
    assert found.by_humans is not None
    assert found.with_machine is not None
    assert found.by_humans.value == 0.25
    tuning = (0.25 * 0.75 / 40) / (0.25 * 0.75 / 40 + 0.5 * 0.5 / 60)
    assert found.with_machine.value == pytest.approx(0.25 + tuning * (0.5 - 0.25))


def test_people_alone_and_the_headline_count_the_same_judgement(store: ClickHouseStore) -> None:
    """Two people who judged in the same instant and disagree: one of them counts, in both."""
    lookups, others = [], []
    for number in range(20):
        lookups.append(lookup("PRECISE", event_id=f"e-{number}"))
        others.append(make_outcome(outcome_id=f"o-{number}", lookup_event_ids=[f"e-{number}"]))
        at = others[-1]["occurred_at"]
        for source, verdict in (("human", "correct"), ("human", "incorrect"), ("llm", "correct")):
            judged = {"source": source, "verdict": verdict, "occurred_at": at}
            others.append(make_judgement(outcome_id=f"o-{number}", **judged))
    chance = random.Random(3)
    stream = messages(lookups, Topic.RESULTS, chance) + messages(others, Topic.OUTCOMES, chance)
    store_in_pieces(store, stream, 3)
    (found,) = sharpened(store, ("mode",), Period(tenant="acme"))
    (headline,) = headlines(store, ("mode",), Period(tenant="acme"))
    assert found.by_humans == headline.rates["high_score_error_rate"]
    assert found.by_humans is not None
    assert 0 < found.by_humans.value < 1


@pytest.mark.parametrize("by", [("model_version",), ("day", "tenant"), ()])
def test_a_figure_over_several_modes_is_refused_with_the_reason(by: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="different rulers"):
        check_dimensions(by)


def test_an_unknown_dimension_is_named(store: ClickHouseStore) -> None:
    with pytest.raises(ConfigError, match="--by colour: choose from day, tenant"):
        headlines(store, ("mode", "colour"), Period())


def test_a_kill_at_any_insert_leaves_no_cell_out(store: ClickHouseStore) -> None:
    """After each insert of a batch the processor dies; the next one reads the batch again."""
    stream = history(5, 25)
    encoder = make_encoder()
    for piece in interleaved(stream, random.Random(5)):
        for fail_at in range(1, 4):
            failing = FailingStore(store, fail_at=frozenset({fail_at}))
            with contextlib.suppress(UnavailableError):
                make_sink(failing).write(encoder.encode(piece))
        make_sink(store).write(encoder.encode(piece))
    assert_equal_to_a_recount(store)


def test_what_the_engine_derives_is_derived_again_after_a_kill(store: ClickHouseStore) -> None:
    stream = history(6, 25)
    store_in_pieces(store, stream, 6)
    expected = store.query("SELECT * FROM audit.cells ORDER BY ALL")
    for table in DERIVED:
        store.command(f"TRUNCATE TABLE audit_store.{table}")
    assert store.query("SELECT count() FROM audit.cells").scalar() == 0
    store_in_pieces(store, stream, 7)
    assert store.query("SELECT * FROM audit.cells ORDER BY ALL") == expected


def test_a_start_joins_what_a_kill_left_apart(store: ClickHouseStore) -> None:
    """Nothing is read again: the broker that held it is gone."""
    store_in_pieces(store, history(7, 25), 7)
    expected = store.query("SELECT * FROM audit.cells ORDER BY ALL")
    for lost in (("answered_lookups",), DERIVED):
        for table in lost:
            store.command(f"TRUNCATE TABLE audit_store.{table}")
        catch_up(store)
        assert store.query("SELECT * FROM audit.cells ORDER BY ALL") == expected


def test_the_migration_derives_cells_of_what_was_stored_before(store: ClickHouseStore) -> None:
    from lookup_audit.processors.migrate import shipped_migrations

    store_in_pieces(store, history(8, 25), 8)
    expected = store.query("SELECT * FROM audit.cells ORDER BY ALL")
    assert expected
    for table in DERIVED:
        store.command(f"TRUNCATE TABLE audit_store.{table}")
    (migration,) = [m for m in shipped_migrations() if m.number == 8]
    for statement in migration.statements():
        if statement.startswith("INSERT"):
            store.command(statement)
    assert store.query("SELECT * FROM audit.cells ORDER BY ALL") == expected
