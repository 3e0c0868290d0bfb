import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from lookup_audit.schemas.names import EventType, Header, Topic
from lookup_audit.schemas.publish import (
    EVENTS,
    MODELS,
    asyncapi,
    breaking_changes,
    documents,
    json_schema,
    main,
    render,
)
from lookup_audit.schemas.ruleset import DEFAULT_RULESET
from tests.support.audits import audited
from tests.support.events import Event, make_candidate, make_judgement, make_lookup, make_outcome
from tests.support.json_schema import KEYWORDS, keywords, violations
from tests.support.strategies import examples, lookups

PUBLISHED = Path(__file__).parents[3] / "schemas" / "published"
REGENERATE = "run `python -m lookup_audit.schemas.publish schemas/published` and commit the result"


def problems(name: str, value: Any) -> list[str]:
    schema = json_schema(name)
    return list(violations(value, schema, schema))


@pytest.mark.parametrize("name", sorted(documents()))
def test_what_is_published_is_what_the_models_say(name: str) -> None:
    file = PUBLISHED / name

    assert file.exists(), REGENERATE
    assert file.read_text("utf-8") == render(documents()[name]), REGENERATE


def test_nothing_else_is_published() -> None:
    assert {file.name for file in PUBLISHED.iterdir()} == set(documents())


@pytest.mark.parametrize("name", MODELS)
def test_a_schema_follows_what_is_published_by_additions_only(name: str) -> None:
    published = json.loads((PUBLISHED / f"{name}.json").read_text("utf-8"))

    assert breaking_changes(published, json_schema(name)) == []


@pytest.mark.parametrize("name", MODELS)
def test_a_schema_names_its_dialect_and_itself(name: str) -> None:
    schema = json_schema(name)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://lookup-audit.dev/schemas/{name}/1.0.json"


@pytest.mark.parametrize("name", MODELS)
def test_the_check_of_these_tests_knows_every_keyword(name: str) -> None:
    assert set(keywords(json_schema(name))) <= KEYWORDS | {"properties", "$defs"}


@pytest.mark.parametrize("name", EVENTS.values())
def test_an_event_schema_is_open_at_every_depth(name: str) -> None:
    schema = json_schema(name)

    parts = [schema, *schema.get("$defs", {}).values()]

    assert all(part["additionalProperties"] is True for part in parts)


@pytest.mark.parametrize("name", EVENTS.values())
def test_an_event_schema_speaks_snake_case(name: str) -> None:
    schema = json_schema(name)

    parts = [schema, *schema.get("$defs", {}).values()]

    assert all(key == key.lower() for part in parts for key in part["properties"])


@pytest.mark.parametrize("name", MODELS)
def test_a_schema_describes_every_part(name: str) -> None:
    schema = json_schema(name)

    parts = [schema, *schema.get("$defs", {}).values()]

    assert all(part["description"] and "``" not in part["description"] for part in parts)


def test_integers_and_times_have_their_formats() -> None:
    schema = json_schema("lookup-result")

    assert schema["properties"]["occurred_at"]["format"] == "date-time"
    assert schema["$defs"]["Candidate"]["properties"]["tokens"]["anyOf"][0]["format"] == "int64"


@pytest.mark.parametrize(
    ("name", "event"),
    [
        pytest.param("lookup-result", make_lookup(), id="lookup"),
        pytest.param("lookup-result", make_lookup(candidates=[]), id="empty-lookup"),
        pytest.param("lookup-result", make_lookup(query="how long?"), id="plain-query"),
        pytest.param("lookup-result", make_lookup(event_id=17, news=1), id="integer-id"),
        pytest.param(
            "lookup-result",
            make_lookup(schema_version="1.1", candidates=[{"chunk_id": "a"}]),
            id="newer-lookup",
        ),
        pytest.param("answer-outcome", make_outcome(), id="answered"),
        pytest.param("answer-outcome", make_outcome(action="refused"), id="refused"),
        pytest.param("judgement", make_judgement(), id="judgement"),
    ],
)
def test_an_event_satisfies_its_schema(name: str, event: Event) -> None:
    assert problems(name, event) == []


@given(lookups())
@examples(60)
def test_every_accepted_lookup_satisfies_the_schema(event: Event) -> None:
    assert problems("lookup-result", event) == []


@given(lookups())
@examples(40)
def test_every_verdict_satisfies_its_schema(event: Event) -> None:
    assert problems("verdict", json.loads(audited(event).verdict().model_dump_json())) == []


def test_a_ruleset_satisfies_its_schema() -> None:
    assert problems("ruleset", DEFAULT_RULESET.model_dump()) == []


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(make_lookup(mode="sparse"), id="unknown-mode"),
        pytest.param(make_lookup(event_id=""), id="empty-id"),
        pytest.param(make_lookup(occurred_at="2026-11-30T12:00:00"), id="naive-time"),
        pytest.param(make_lookup(candidates=[make_candidate(quality_score=1.1)]), id="range"),
        pytest.param(make_lookup(candidates=[make_candidate(tokens=1.5)]), id="half-a-token"),
        pytest.param(make_lookup(candidates=[{"chunk_id": "a"}]), id="rank-missing"),
        pytest.param(make_lookup() | {"candidates": None}, id="null-candidates"),
        pytest.param(make_lookup(truncated="no"), id="text-for-a-flag"),
        pytest.param({"event_id": "e"}, id="missing-fields"),
    ],
)
def test_what_is_refused_breaks_the_schema(event: Event) -> None:
    assert problems("lookup-result", event) != []


# --- compatibility -------------------------------------------------------------------------


def changed(**over: Any) -> dict[str, Any]:
    schema = copy.deepcopy(json_schema("lookup-result"))
    schema["properties"] |= over
    return schema


def test_an_optional_addition_breaks_nothing() -> None:
    old = json_schema("lookup-result")

    assert breaking_changes(old, changed(region={"type": "string"})) == []


def test_a_better_description_breaks_nothing() -> None:
    new = changed()
    new["description"] = new["$defs"]["Candidate"]["description"] = "In other words."

    assert breaking_changes(json_schema("lookup-result"), new) == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        pytest.param({}, {"properties": {}}, "the property was removed", id="removed"),
        pytest.param(
            {"required": []}, {"required": ["a"]}, "/a: the property is now required", id="required"
        ),
        pytest.param(
            {"required": ["a"]}, {}, "/a: the property is no longer required", id="not-required"
        ),
        pytest.param(
            {"properties": {"a": {"type": "string"}}},
            {"properties": {"a": {"type": "integer"}}},
            '/a/type: "string" became "integer"',
            id="type",
        ),
        pytest.param(
            {"properties": {"a": {"maximum": 1}}},
            {"properties": {"a": {}}},
            "/a: the rule maximum was removed",
            id="rule-removed",
        ),
        pytest.param(
            {"properties": {"a": {}}},
            {"properties": {"a": {"maximum": 1}}},
            "/a: the rule maximum was added",
            id="rule-added",
        ),
        pytest.param(
            {"properties": {"a": {"enum": ["x"]}}},
            {"properties": {"a": {"enum": ["x", "y"]}}},
            '/a/enum: ["x"] became ["x", "y"]',
            id="another-word",
        ),
        pytest.param(
            {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "object"}}},
            {"properties": {"a": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"type": "array"}}},
            '/a/type: "object" became "array"',
            id="behind-a-reference",
        ),
    ],
)
def test_any_other_change_is_named(old: Any, new: Any, sentence: str) -> None:
    found = breaking_changes({"properties": {"a": {}}} | old, {"properties": {"a": {}}} | new)

    assert [change for change in found if sentence in change] == found != []


# --- the command ---------------------------------------------------------------------------


def test_publishing_twice_changes_nothing(tmp_path: Path) -> None:
    codes = [main([str(tmp_path)]), main([str(tmp_path)])]

    assert codes == [0, 0]
    assert {file.name for file in tmp_path.iterdir()} == set(documents())


def test_publishing_refuses_to_break_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = json_schema("judgement")
    old["properties"]["gone"] = {"type": "string"}
    (tmp_path / "judgement.json").write_text(render(old))

    assert main([str(tmp_path)]) == 1
    assert "judgement.json: /gone: the property was removed" in capsys.readouterr().err
    assert json.loads((tmp_path / "judgement.json").read_text()) == old


def test_publishing_needs_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


# --- topics --------------------------------------------------------------------------------


def test_every_topic_is_described() -> None:
    assert {channel["address"] for channel in asyncapi()["channels"].values()} == set(Topic)


def test_every_reference_leads_somewhere() -> None:
    document = asyncapi()

    for reference in _references(document):
        if reference.startswith("./"):
            assert reference.removeprefix("./") in documents()
            continue
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [found for member in value.values() for found in _references(member)]
    return (
        [found for member in value for found in _references(member)]
        if isinstance(value, list)
        else []
    )


@pytest.mark.parametrize("kind", EventType)
def test_an_event_message_says_its_type_in_the_header(kind: EventType) -> None:
    message = asyncapi()["components"]["messages"][EVENTS[kind].replace("-", "_")]

    assert message["headers"]["properties"][Header.TYPE]["const"] == kind


def test_every_message_has_a_key() -> None:
    messages = asyncapi()["components"]["messages"].values()

    assert all(message["bindings"]["kafka"]["key"]["type"] == "string" for message in messages)
