"""The event catalogue: a page for all types, and a page for each resource with the fields and an example of each type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from config.manual.event_schema import fields_of, merged
from config.manual.event_words import ENVELOPE, NOUNS, RESOURCES, SUBJECTS, VERBS
from config.manual.markdown import code, contents, fence, page, table
from events.record.catalogue import DOCUMENT_KINDS, EVENT_TYPES
from events.record.schemas import SCHEMAS

# The golden files that tests compare recorded events with; placeholders stand for ids and times.
_EXAMPLES = Path(settings.BASE_DIR) / "tests" / "events" / "golden"
_STANDING_IN = {
    "<tenant>.<tenant>.example.test": "acme.id.example.com",
    "<tenant>": "acme",
    "<time>": "2026-01-15T09:30:00.000Z",
    "<evt>": "evt_4kPq9TzLm2XcVb7NwRyH3s",
    "<est>": "est_7hGd2KsWq8RnZx5MvTcB4p",
    "<con>": "con_8LrXq2TnWv5ZpKdJ",
    "<org>": "org_3FyNc6RtHm9BsQvE",
    "<rol>": "rol_5WdZk8PjXg2TnLcM",
    "<grp>": "grp_6MvBs3HqYt9KxRfJdZnPwC",
}
_INTRODUCTION = """# Events

Every change of a user, connection, group or organization is one event. There are {count} types of events. `GET /events` streams them
([how to read the stream](../../how-to/read-the-stream.md)); actions and webhooks get the same envelope. The schemas are closed: a field
that is not listed does not occur. [event-data.schema.json](event-data.schema.json) contains the schemas as JSON Schema.

## Envelope
"""
_MESSAGES = """## Messages on a stream

Each `data:` line of `GET /events` is one message, in one of three forms. The line `event:` repeats the type, and the line `id:` repeats
the offset.

```json
{"type": "user.created", "offset": "<cursor>", "event": {"...": "the envelope"}}
{"type": "offset-only", "offset": "<cursor>"}
{"type": "error", "error": {"code": "connection_timeout", "message": "...", "offset": "<cursor>"}}
```

`offset-only` advances the offset over events that the filter excludes. The error codes are listed in
[error codes](../errors.md#inside-a-stream)."""


def overview_page() -> str:
    """Return the page of all types."""
    return page(
        _INTRODUCTION.format(count=len(EVENT_TYPES)),
        table(("Field", "Meaning"), ((code(_field_name(name)), meaning) for name, meaning in ENVELOPE.items())),
        _MESSAGES,
        "## Context\n\n`data.context` names the tenant of a change and, if known, the request and the client that caused it. In the "
        "tables, *always* means that a field is present whenever the object around it is present. `client.metadata` is the "
        "`client_metadata` of the client; every subscriber can read it. Events that were stored before `client.metadata` existed do not "
        "contain it. A consumer that requires `client.metadata` refuses these events until they are pruned.",
        _fields_table(SCHEMAS["user.created"].json_schema()["properties"]["context"]),
        "## Types",
        table(("Type", "Document", "Occurs when"), _type_rows()),
        contents(),
    )


def resource_pages() -> dict[str, str]:
    """Return the pages of the resources by their names."""
    return {name: _resource_page(name) for name in RESOURCES}


def _field_name(name: str) -> str:
    return f"{settings.EVENT_ATTRIBUTE_PREFIX}{name}" if name in {"tenant", "stream", "purpose"} else name


def _type_rows() -> Iterator[tuple[str, str, str]]:
    for name in EVENT_TYPES:
        subject = name.rpartition(".")[0]
        yield f"[`{name}`]({name.partition('.')[0]}.md#{_anchor(name)})", SUBJECTS[subject], _occurs(name)


def _resource_page(resource: str) -> str:
    blocks = [_with_article(f"# Events of a {resource}"), RESOURCES[resource]]
    for kind in DOCUMENT_KINDS:
        if kind.name.partition(".")[0] == resource:
            blocks.extend(_type_block(name) for name in (kind.created, kind.updated, kind.deleted) if name)
    return page(*blocks)


def _type_block(name: str) -> str:
    properties = SCHEMAS[name].json_schema()["properties"]
    before = ""
    if "previous_object" in properties:
        is_same = properties["previous_object"] == properties["object"]
        before = (
            "`data.previous_object` has the same fields."
            if is_same
            else f"`data.previous_object`:\n\n{_fields_table(properties['previous_object'])}"
        )
    return page(f"## `{name}`", _occurs(name), "`data.object`:", _fields_table(properties["object"]), before, fence("json", _example(name)))


def _occurs(name: str) -> str:
    subject, _, verb = name.rpartition(".")
    return _with_article(VERBS[verb].format(noun=NOUNS.get(subject, subject)))


def _with_article(sentence: str) -> str:
    return sentence.replace("A organization", "An organization").replace(" a organization", " an organization")


def _fields_table(schema: dict[str, object]) -> str:
    return table(("Field", "Type", "Present"), ((code(name), words, presence) for name, words, presence in merged(fields_of(schema))))


def _example(name: str) -> str:
    text = (_EXAMPLES / f"{name}.json").read_text()
    for kind, value in _STANDING_IN.items():
        text = text.replace(kind, value)
    return text


def _anchor(name: str) -> str:
    return name.replace(".", "")
