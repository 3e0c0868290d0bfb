"""The contract for producers in other languages: JSON Schema and AsyncAPI, made from the models.

``python -m lookup_audit.schemas.publish schemas/published`` writes them. A change that would break
an old producer or an old consumer is refused: within version 1 there are optional additions only.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from lookup_audit.schemas.alarm import DriftAlarm
from lookup_audit.schemas.lookup import SCHEMA_VERSION, LookupResult
from lookup_audit.schemas.names import ALARM_TYPE, EventType, Header, Topic
from lookup_audit.schemas.outcome import AnswerOutcome, Judgement
from lookup_audit.schemas.ruleset import Ruleset
from lookup_audit.schemas.verdict import Verdict

Document = dict[str, Any]

BASE_URI: Final = "https://lookup-audit.dev/schemas"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

MODELS: Final[dict[str, type[BaseModel]]] = {
    "lookup-result": LookupResult,
    "answer-outcome": AnswerOutcome,
    "judgement": Judgement,
    "verdict": Verdict,
    "ruleset": Ruleset,
    "drift-alarm": DriftAlarm,
}
EVENTS: Final[dict[EventType, str]] = {
    EventType.LOOKUP: "lookup-result",
    EventType.OUTCOME: "answer-outcome",
    EventType.JUDGEMENT: "judgement",
}
# Words for readers: no validator acts on them.
_ANNOTATIONS = frozenset(["$id", "$schema", "title", "description", "default", "examples"])

# The one rule that is more than a type: see `requires_rank`.
_RANK_RULE: Document = {
    "if": {"properties": {"schema_version": {"enum": [None, SCHEMA_VERSION]}}},
    "then": {
        "properties": {
            "candidates": {
                "items": {
                    "required": ["original_rank"],
                    "properties": {"original_rank": {"type": "integer"}},
                }
            }
        }
    },
}


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # a title that repeats the name says nothing


def schema_uri(name: str) -> str:
    """The ``$id`` of a document, also the value of the header ``ce_dataschema``.

    >>> schema_uri("judgement")
    'https://lookup-audit.dev/schemas/judgement/1.0.json'
    """
    return f"{BASE_URI}/{name}/{SCHEMA_VERSION}.json"


def json_schema(name: str) -> Document:
    """The JSON Schema of what producers may send (or, of verdict and ruleset, will read)."""
    model = MODELS[name]
    document = model.model_json_schema(schema_generator=_Generator)
    described = {m.__name__: m for m in _models(model)}
    for title, definition in [(model.__name__, document), *document.get("$defs", {}).items()]:
        if title in described:
            _describe(definition, described[title])
    if model is LookupResult:
        document |= _RANK_RULE
    return {"$schema": DIALECT, "$id": schema_uri(name), **document}


def asyncapi() -> Document:
    """The AsyncAPI 3.0 description of the topics."""
    messages = {_message_name(kind): _event_message(kind) for kind in EventType}
    messages["drift_alarm"] = {
        "name": "drift_alarm",
        "title": "DriftAlarm",
        "summary": "A stratum's figures have moved.",
        "contentType": "application/json",
        "headers": _alarm_headers(),
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-2020-12",
            "schema": {"$ref": "./drift-alarm.json"},
        },
        "bindings": _key("the stratum"),
    }
    messages["dead_letter"] = {
        "name": "dead_letter",
        "title": "DeadLetter",
        "summary": "A record that could not be taken: original bytes, key and headers.",
        "contentType": "application/octet-stream",
        "headers": _dead_letter_headers(),
        "payload": {"description": "the original value, byte for byte"},
        "bindings": _key("the original key"),
    }
    channels = {
        topic.name.lower(): _channel(topic, names) for topic, names in _TOPIC_MESSAGES.items()
    }
    return {
        "asyncapi": "3.0.0",
        "id": f"{BASE_URI}/asyncapi.json",
        "info": {
            "title": "Lookup Audit topics",
            "version": SCHEMA_VERSION,
            "description": (
                "Plain JSON values with CloudEvents 1.0 headers in Kafka binary mode. A value "
                "without any headers is accepted too. Consumers ignore unknown fields."
            ),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": dict(_operations()),
        "components": {"messages": messages},
    }


def documents() -> dict[str, Document]:
    """Every published document by file name."""
    published = {f"{name}.json": json_schema(name) for name in MODELS}
    return published | {"asyncapi.json": asyncapi()}


def render(document: Document) -> str:
    """A document as its file holds it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def breaking_changes(old: Document, new: Document) -> list[str]:
    """What would break a producer or consumer of another version, in either direction.

    Args:
        old: A JSON Schema that was published.
        new: The one that is to follow it.

    Returns:
        One sentence for each change other than an added optional property or words for readers.
    """
    return list(_changes(old, new, old, new, ""))


def _changes(old: Any, new: Any, old_root: Any, new_root: Any, path: str) -> Iterator[str]:
    old, new = _resolve(old, old_root), _resolve(new, new_root)
    where = path or "the document"
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _changes(one, other, old_root, new_root, f"{path}/{index}")
        return
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if old != new:
            yield f"{where}: {json.dumps(old)} became {json.dumps(new)}"
        return
    mine, theirs = old.get("properties", {}), new.get("properties", {})
    for name in mine:
        if name not in theirs:
            yield f"{path}/{name}: the property was removed"
        else:
            yield from _changes(mine[name], theirs[name], old_root, new_root, f"{path}/{name}")
    for name in sorted(set(old.get("required", [])) ^ set(new.get("required", []))):
        now = "is now" if name in new.get("required", []) else "is no longer"
        yield f"{path}/{name}: the property {now} required"
    keywords = (set(old) | set(new)) - _ANNOTATIONS - {"properties", "required", "$defs"}
    for keyword in sorted(keywords):
        if keyword not in old or keyword not in new:
            verb = "was added" if keyword in new else "was removed"
            yield f"{where}: the rule {keyword} {verb}"
        else:
            inner = f"{path}/{keyword}"
            yield from _changes(old[keyword], new[keyword], old_root, new_root, inner)


def _resolve(node: Any, root: Document) -> Any:
    while isinstance(node, dict) and "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            yield from _models(inner)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


def _describe(definition: Document, model: type[BaseModel]) -> None:
    """Carry the docstring over: its text to the definition, its ``Args`` to the properties."""
    text, _, rest = inspect.cleandoc(model.__doc__ or "").partition("\n\nArgs:\n")
    definition["description"] = _plain(text.partition("\n\nRaises:")[0])
    for match in re.finditer(r"^    (\w+): (.+(?:\n     .+)*)", rest, re.MULTILINE):
        if match[1] in definition["properties"]:
            definition["properties"][match[1]].setdefault("description", _plain(match[2]))


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r":\w+:`([^`]+)`", r"\1", text)).replace("``", "`").strip()


_TOPIC_MESSAGES: dict[Topic, list[str]] = {
    Topic.RESULTS: ["lookup_result"],
    Topic.OUTCOMES: ["answer_outcome", "judgement"],
    Topic.ALARMS: ["drift_alarm"],
    Topic.DEAD_LETTERS: ["dead_letter"],
}
# What a producer or consumer outside does; the product does the reverse.
_ACTIONS: dict[Topic, tuple[str, str]] = {
    Topic.RESULTS: ("receive", "Audit every lookup."),
    Topic.OUTCOMES: ("receive", "Join outcomes and judgements to their lookups."),
    Topic.ALARMS: ("send", "Tell that a stratum has drifted."),
    Topic.DEAD_LETTERS: ("send", "Keep what could not be taken, explained and replayable."),
}


def _channel(topic: Topic, names: list[str]) -> Document:
    return {
        "address": topic.value,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {"kafka": {"topic": topic.value, "bindingVersion": "0.5.0"}},
    }


def _operations() -> Iterator[tuple[str, Document]]:
    for topic, (action, summary) in _ACTIONS.items():
        channel = topic.name.lower()
        reference = {"$ref": f"#/channels/{channel}"}
        yield (
            f"{action}_{channel}",
            {"action": action, "channel": reference, "summary": summary},
        )


def _message_name(kind: EventType) -> str:
    return EVENTS[kind].replace("-", "_")


def _event_message(kind: EventType) -> Document:
    name = EVENTS[kind]
    return {
        "name": _message_name(kind),
        "title": MODELS[name].__name__,
        "summary": json_schema(name)["description"],
        "contentType": "application/json",
        "headers": _event_headers(kind),
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-2020-12",
            "schema": {"$ref": f"./{name}.json"},
        },
        "correlationId": {
            "description": "the trace of the request",
            "location": f"$message.header#/{Header.SUBJECT}",
        },
        "bindings": _key("trace_id, else the event's id"),
    }


def _key(meaning: str) -> Document:
    return {"kafka": {"key": {"type": "string", "description": meaning}, "bindingVersion": "0.5.0"}}


def _text(description: str, **rules: str) -> Document:
    return {"type": "string", **rules, "description": description}


def _event_headers(kind: EventType) -> Document:
    name = EVENTS[kind]
    id_field = {EventType.LOOKUP: "event_id", EventType.OUTCOME: "outcome_id"}
    return {
        "type": "object",
        "properties": {
            Header.CONTENT_TYPE.value: _text("media type of the value", const="application/json"),
            Header.SPEC_VERSION.value: _text("CloudEvents version", const="1.0"),
            Header.ID.value: _text(f"the event's {id_field.get(kind, 'judgement_id')}"),
            Header.SOURCE.value: _text(
                "urn:lookup-audit:<tenant>:<service name>", format="uri-reference"
            ),
            Header.TYPE.value: _text("changes with a breaking change only", const=kind.value),
            Header.TIME.value: _text("occurred_at", format="date-time"),
            Header.RECORDED_TIME.value: _text("when the collector received it", format="date-time"),
            Header.SUBJECT.value: _text("trace_id, where known"),
            Header.DATA_SCHEMA.value: _text(f"such as {schema_uri(name)}", format="uri"),
            Header.TRACE_PARENT.value: _text("W3C trace context, exactly one"),
            Header.TRACE_STATE.value: _text("W3C trace state"),
        },
    }


def _alarm_headers() -> Document:
    return {
        "type": "object",
        "properties": {
            Header.CONTENT_TYPE.value: _text("media type of the value", const="application/json"),
            Header.SPEC_VERSION.value: _text("CloudEvents version", const="1.0"),
            Header.ID.value: _text("alarm_id and revision"),
            Header.SOURCE.value: _text("urn:lookup-audit:TENANT:SERVICE"),
            Header.TYPE.value: _text("event type", const=ALARM_TYPE),
        },
        "required": [Header.TYPE.value],
    }


def _dead_letter_headers() -> Document:
    return {
        "type": "object",
        "description": "the original headers, and these",
        "properties": {
            Header.DLQ_REASON.value: _text("bounded reason code"),
            Header.DLQ_FIELD.value: _text("JSON path of the offending field, or empty"),
            Header.DLQ_MESSAGE.value: _text("one sentence that names the fix"),
            Header.DLQ_TOPIC.value: _text("original topic"),
            Header.DLQ_PARTITION.value: _text("original partition, decimal"),
            Header.DLQ_OFFSET.value: _text("original offset, decimal"),
            Header.DLQ_TIMESTAMP.value: _text("original record time"),
            Header.DLQ_ATTEMPT.value: _text("how often it was tried, decimal"),
        },
        "required": [Header.DLQ_REASON.value],
    }


def main(arguments: list[str]) -> int:
    """Write every document into a directory; refuse to break what is published there.

    Args:
        arguments: The directory.

    Returns:
        Exit code: 0 written, 1 refused, 2 wrong usage.
    """
    if len(arguments) != 1:
        print("usage: python -m lookup_audit.schemas.publish DIR", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    directory.mkdir(parents=True, exist_ok=True)
    broken = False
    for name, document in documents().items():
        file = directory / name
        changes = []
        if file.exists() and name != "asyncapi.json":
            changes = breaking_changes(json.loads(file.read_text("utf-8")), document)
        for change in changes:
            broken = True
            print(f"{name}: {change}", file=sys.stderr)
        if not changes:
            file.write_text(render(document), "utf-8")
    if broken:
        print(
            "Nothing was written for these: add optional fields instead, or make a new version.",
            file=sys.stderr,
        )
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
