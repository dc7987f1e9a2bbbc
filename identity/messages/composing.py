"""Composes messages in the language of the user. The text of a message comes from the connection, the tenant or the service."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.dateparse import parse_datetime
from django.utils.translation import get_language

from foundation.hooks import tenant_looks
from identity.audit.entries import record
from identity.languages import LANGUAGES, enabled_languages, named_language, speaking, written_time
from identity.messages.catalogue import EMAIL, Kind
from identity.messages.plain_text import text_of_html
from identity.messages.sandbox import TemplateBroken, rendered
from identity.models import Connection, MessageTemplate

logger = structlog.get_logger(__name__)

_LONGEST_SUBJECT = 255
# The length of six segments of a text message. The provider charges for each segment, and a message with a code needs no more.
LONGEST_TEXT_MESSAGE = 900
_MACRO = re.compile(r"@@\s*([a-zA-Z_][\w.]*)\s*@@")
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
MACROS = "md_with_macros"
# White on blue, with a contrast of 6.6:1.
_OWN_COLORS = ("#1f4fd8", "#ffffff")
# Images of a development environment (`make up`) come from a host without TLS.
_WEB = ("https://", "http://")


@dataclass(frozen=True)
class Composed:
    """A message that is ready to send. A text message has neither subject nor HTML."""

    text: str
    subject: str = ""
    html: str = ""
    from_address: str = ""
    # The name of the tenant. Mails that go through the mail server of the platform show this name as their sender.
    sender_name: str = ""
    # The language of the text; empty if the tenant has one text for all languages.
    language: str = ""


@dataclass(frozen=True)
class Source:
    """A tenant's own text of one message. If a field is empty, the built-in text applies."""

    subject: str = ""
    body: str = ""
    from_address: str = ""
    language: str = ""


def compose(
    kind: Kind, *, tenant_id: str, context: Mapping[str, Any], language: str = "", connection: Connection | None = None
) -> Composed:
    """Return the message of a kind for a context of plain data.

    If the tenant's text cannot be rendered, the message has the built-in text, because the user waits for the message. A log line and
    an audit entry report the broken template.
    """
    wanted = language or enabled_languages(tenant_id)[0]
    with speaking(catalogue_for(wanted, tenant_id)):
        data = template_data(context, tenant_id=tenant_id, language=wanted, connection=connection)
        built_in = built_in_message(kind, data)
        source = source_of(kind, tenant_id=tenant_id, language=wanted, connection=connection)
        if source is None:
            return built_in
        try:
            return written(kind, source, data, built_in=built_in)
        except TemplateBroken as problem:
            _note_fallback(kind, tenant_id, problem)
            return built_in


def catalogue_for(language: str, tenant_id: str) -> str:
    """Return the language of the built-in texts that best matches a language of templates, such as `pt-BR`."""
    return named_language(tuple(LANGUAGES), wished=[language]) or enabled_languages(tenant_id)[0]


def source_of(kind: Kind, *, tenant_id: str, language: str, connection: Connection | None = None) -> Source | None:
    """Return the text of the connection, otherwise the text of the tenant in this language; None if the built-in text applies."""
    own = _of_connection(kind, connection) if connection is not None else None
    if own is not None:
        return own
    rows = {row.language: row for row in MessageTemplate.objects.of(tenant_id).filter(name=kind.name, channel=kind.channel)}
    row = next((rows[name] for name in _languages(language) if name in rows and (rows[name].is_enabled or name)), None)
    return None if row is None else Source(row.subject, row.body, row.from_address, row.language)


def written(kind: Kind, source: Source, data: Mapping[str, Any], *, built_in: Composed) -> Composed:
    """Return the tenant's text, rendered with `data`. Raises `TemplateBroken`."""
    if kind.channel != EMAIL:
        body, spoken = built_in.text, built_in.language
        if source.body:
            body, spoken = one_text(rendered(source.body, data, is_html=False)), source.language
        return Composed(text=body[:LONGEST_TEXT_MESSAGE], from_address=source.from_address, language=spoken)
    found = built_in
    if source.subject:
        found = replace(found, subject=one_line(rendered(source.subject, data, is_html=False)))
    if source.body:
        html = rendered(source.body, data, is_html=True)
        found = replace(found, html=html, text=text_of_html(html), language=source.language)
    return replace(found, from_address=one_line(rendered(source.from_address, data, is_html=False)) if source.from_address else "")


def template_data(context: Mapping[str, Any], *, tenant_id: str, language: str, connection: Connection | None = None) -> dict[str, Any]:
    """Return the variables of a template: the variables of every message, overridden by the context."""
    looks = tenant_looks.of(tenant_id)
    data: dict[str, Any] = {
        "friendly_name": looks.get("friendly_name") or tenant_id,
        "support_email": looks.get("support_email", ""),
        "support_url": looks.get("support_url", ""),
        "request_language": language,
        "connection": {"name": connection.name if connection else ""},
        "application": {"name": "", "clientID": ""},
        **_in_single_lines(context),
        "tenant": tenant_id,
    }
    if isinstance(data.get("code"), str):
        # Texts of older connections use this name.
        data.setdefault("password", data["code"])
    if "until" in data:
        data["until"] = _as_time(data["until"])
    if isinstance(data.get("login"), dict):
        data["login"]["time"] = _as_time(data["login"].get("time"))
    return data


def _as_time(value: Any) -> Any:
    """Format a time, which is an ISO 8601 text, in the active language. Returns other values unchanged."""
    moment = parse_datetime(value) if isinstance(value, str) else None
    return value if moment is None else written_time(moment)


def _in_single_lines(value: Any) -> Any:
    """Return plain data without line breaks: a name that a user has chosen must not look like a paragraph of the mail."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        return {name: _in_single_lines(inner) for name, inner in value.items()}
    return [_in_single_lines(inner) for inner in value] if isinstance(value, list | tuple) else value


def one_line(text: str) -> str:
    """Return a text without line breaks or control characters, as mail headers require."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())[:_LONGEST_SUBJECT]


def one_text(text: str) -> str:
    """Return a text without control characters. Line breaks stay."""
    return "".join(character for character in text.strip() if character.isprintable() or character == "\n")


def _languages(language: str) -> Iterator[str]:
    """Yield the language tag, its primary language, and `""` for all languages. Example: `pt-BR`, `pt`, `""`."""
    yield language
    yield language.partition("-")[0]
    yield ""


def _of_connection(kind: Kind, connection: Connection) -> Source | None:
    """Return the text in the options of a passwordless connection."""
    options = connection.options
    if kind.name == "passwordless_email" and connection.strategy == "email":
        mail = options.get("email")
        own: Mapping[str, Any] = {**options, **(mail if isinstance(mail, dict) else {})}
        source = Source(*(_in_liquid(own.get(name), own.get("syntax")) for name in ("subject", "body", "from")))
    elif kind.name == "passwordless_sms" and connection.strategy == "sms":
        source = Source(body=_in_liquid(options.get("template"), options.get("syntax")))
    else:
        return None
    return source if source != Source() else None


def _in_liquid(text: Any, syntax: Any) -> str:
    """Convert a text of a connection to Liquid: `@@code@@` in the older syntax becomes `{{ code }}`."""
    if not isinstance(text, str):
        return ""
    return _MACRO.sub(r"{{ \1 }}", text) if syntax == MACROS else text


def built_in_message(kind: Kind, data: Mapping[str, Any]) -> Composed:
    """Return the built-in text in the active language."""
    spoken = get_language() or settings.LANGUAGE_CODE
    if kind.channel != EMAIL:
        return Composed(text=one_text(render_to_string(f"sms/{kind.built_in}.txt", dict(data))), language=spoken)
    subject, _, text = render_to_string(f"mail/{kind.built_in}.txt", dict(data)).partition("\n")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    looks = tenant_looks.of(data["tenant"], _organization_of(data))
    logo, (color, label) = looks.get("logo_url", ""), _colors(looks)
    shown = {
        "paragraphs": paragraphs,
        "subject": one_line(subject),
        "friendly_name": data["friendly_name"],
        "links": [value for value in (data.get("url"), data.get("link")) if value],
        "codes": [value for value in (data.get("code"),) if value],
        "logo_url": logo if logo.startswith(_WEB) else "",
        "color": color,
        "label_color": label,
    }
    html = render_to_string("mail/layout.html", shown)
    name = one_line(data["friendly_name"])
    return Composed(text=text.strip() + "\n", subject=one_line(subject), html=html, sender_name=name, language=spoken)


def _organization_of(data: Mapping[str, Any]) -> str:
    """Return the id of the organization that a message is about; empty if it is about no organization."""
    organization = data.get("organization")
    return str(organization.get("id") or "") if isinstance(organization, Mapping) else ""


def _colors(looks: Mapping[str, str]) -> tuple[str, str]:
    """Return the colors of the button and its label; the service's own colors unless the tenant has set both."""
    found = looks.get("primary_color", ""), looks.get("on_primary_color", "")
    return found if all(_COLOR.fullmatch(color) for color in found) else _OWN_COLORS


def _note_fallback(kind: Kind, tenant_id: str, problem: TemplateBroken) -> None:
    logger.warning("message template is broken, the built-in text is sent", template=kind.name, tenant=tenant_id, reason=str(problem))
    record("Sent the built-in text in place of a broken template", tenant_id=tenant_id, template=kind.name, problem=str(problem))
