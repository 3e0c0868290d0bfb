from collections.abc import Iterator
from datetime import timedelta

import pytest

from lookup_audit.processors.drift.webhook import Webhook, alert
from lookup_audit.schemas.errors import ConfigError, UnavailableError
from tests.support.alarms import NOW, Stub, make_alarm


@pytest.fixture
def stub() -> Iterator[Stub]:
    made = Stub([])
    yield made
    made.stop()


def test_an_alarm_arrives_although_the_other_side_fails_twice(stub: Stub) -> None:
    stub.answers = [503, 500]
    waits: list[float] = []

    Webhook(stub.url, sleep=waits.append).send([make_alarm()], NOW)

    assert len(stub.bodies) == 1
    assert waits == [1.0, 2.0]
    sent = stub.bodies[0][0]
    assert sent["labels"]["alertname"] == "LookupAuditDrift"
    assert sent["labels"]["tenant"] == "acme"
    assert sent["annotations"]["summary"] == "The PRECISE rate fell."
    assert sent["startsAt"] == "2026-11-30T12:00:00.000000Z"
    assert sent["endsAt"] > sent["startsAt"]
    assert sent["generatorURL"] == "http://board/?var-tenant=acme"


def test_a_side_that_stays_away_is_said_to_be_so(stub: Stub) -> None:
    stub.answers = [503] * 9

    with pytest.raises(UnavailableError, match="answered 503"):
        Webhook(stub.url, sleep=lambda s: None).send([make_alarm()], NOW)
    assert stub.bodies == []


def test_a_refusal_is_not_tried_again(stub: Stub) -> None:
    stub.answers = [400]

    with pytest.raises(ConfigError, match="answered 400"):
        Webhook(stub.url, sleep=lambda s: None).send([make_alarm()], NOW)
    assert stub.answers == []


def test_all_words_on_one_alarm_have_the_same_labels(stub: Stub) -> None:
    hook = Webhook(stub.url)
    hook.send([make_alarm()], NOW)
    hook.send([make_alarm(revision=2, change_points=-15.0)], NOW)
    closed = make_alarm(revision=3, state="recovered", closed_at=NOW + timedelta(hours=1))
    hook.send([closed], NOW + timedelta(hours=1))

    labels = [body[0]["labels"] for body in stub.bodies]
    assert labels[0] == labels[1] == labels[2]
    assert stub.bodies[2][0]["endsAt"] == "2026-11-30T13:00:00.000000Z"


def test_an_open_alarm_is_repeated_and_a_closed_one_is_not(stub: Stub) -> None:
    hook, alarm = Webhook(stub.url, repeat_seconds=60), make_alarm()
    hook.send([alarm], NOW)
    hook.repeat([alarm], NOW + timedelta(seconds=30))
    assert len(stub.bodies) == 1

    hook.repeat([alarm], NOW + timedelta(seconds=70))
    assert len(stub.bodies) == 2

    hook.send([make_alarm(revision=2, state="accepted", closed_at=NOW)], NOW)
    for minutes in (5, 10):
        hook.repeat([], NOW + timedelta(minutes=minutes))
    assert len(stub.bodies) == 3


def test_an_alarm_that_opened_and_closed_unheard_pages_nobody(stub: Stub) -> None:
    closed = make_alarm(revision=2, state="recovered", closed_at=NOW)

    Webhook(stub.url).send([make_alarm(), closed], NOW)

    assert stub.bodies == []


def test_a_token_is_sent_and_never_told(stub: Stub) -> None:
    Webhook(stub.url, token="secret").send([make_alarm()], NOW)
    assert stub.headers[0]["Authorization"] == "Bearer secret"

    with_password = stub.url.replace("127.0.0.1", "user:secret@127.0.0.1") + "?key=secret"
    stub.answers = [503] * 9
    with pytest.raises((UnavailableError, ConfigError)) as refused:
        Webhook(with_password, sleep=lambda s: None).send([make_alarm()], NOW)
    assert "secret" not in str(refused.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="must look like"):
        Webhook("alertmanager:9093")


def test_an_empty_label_is_left_out() -> None:
    assert "tenant" not in alert(make_alarm(tenant=""), NOW)["labels"]
