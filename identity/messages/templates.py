"""Writes the templates of a tenant. Renders each template with sample data before it is stored, so that no broken template is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.db import models

from foundation.database.transactions import unit_of_work
from identity.languages import enabled_languages, speaking
from identity.messages.catalogue import EMAIL, KINDS, Kind
from identity.messages.composing import Composed, Source, built_in_message, catalogue_for, template_data, written
from identity.messages.mailing import checked_sender
from identity.messages.sandbox import TemplateBroken
from identity.models import MessageTemplate
from identity.services.failures import AlreadyExists, Invalid, NotFound
from identity.services.saving import validated_save

# A row of a single language sets only the columns in `TEXTS`. The row without a language also sets the columns in `_RULES`.
TEXTS = ("subject", "body", "from_address")
_RULES = ("result_url", "url_lifetime_seconds", "includes_email_in_redirect", "is_enabled")
# Ninety days. A link that works longer could be found in an old mailbox and used.
LONGEST_LIFE_SECONDS = 90 * 86400


def templates_of(tenant_id: str, kind: Kind) -> models.QuerySet[MessageTemplate]:
    """Return the rows of a message, one for each language."""
    return MessageTemplate.objects.of(tenant_id).filter(name=kind.name, channel=kind.channel)


def template_at(tenant_id: str, kind: Kind, language: str = "") -> MessageTemplate | None:
    """Return the row of one language, or None if the built-in text applies."""
    return templates_of(tenant_id, kind).filter(language=language).first()


@unit_of_work
def create_template(*, tenant_id: str, name: str, values: Mapping[str, Any], language: str = "") -> MessageTemplate:
    """Store a new template. Raises `AlreadyExists`, or the errors of `save_template`."""
    kind = sent_kind(name)
    if template_at(tenant_id, kind, language) is not None:
        raise AlreadyExists("The template already exists.")
    return save_template(tenant_id=tenant_id, name=name, values=values, language=language)


@unit_of_work
def save_template(*, tenant_id: str, name: str, values: Mapping[str, Any], language: str = "") -> MessageTemplate:
    """Change or create the template of a message in one language. `values` maps columns to values; other columns are kept.

    Raises `NotFound` for a message that the service does not send, and `Invalid` for a text that cannot be rendered or used.
    """
    kind = sent_kind(name)
    row = templates_of(tenant_id, kind).select_for_update(no_key=True).filter(language=language).first()
    row = row or MessageTemplate(tenant_id=tenant_id, name=kind.name, channel=kind.channel, language=language)
    for column in (*TEXTS, *(() if language else _RULES)):
        if column in values:
            setattr(row, column, values[column])
    _check(row, kind)
    validated_save(row)
    return row


@unit_of_work
def reset_template(*, tenant_id: str, name: str, language: str | None = None) -> int:
    """Delete the row of a language or, if `language` is None, every row of the message.

    The built-in text applies again. Returns the number of deleted rows.
    """
    rows = templates_of(tenant_id, sent_kind(name))
    found = list(rows if language is None else rows.filter(language=language))
    for row in found:
        row.delete()
    return len(found)


def sent_kind(name: str) -> Kind:
    """Return a kind that the service sends. Raises `NotFound`."""
    kind = KINDS.get(name)
    if kind is None:
        raise NotFound("There is no such message.")
    if not kind.is_sent:
        raise NotFound(f"The service does not send {name}: {kind.about}")
    return kind


def tried(kind: Kind, source: Source, *, tenant_id: str, language: str = "") -> Composed:
    """Return the message with sample data. Raises `TemplateBroken`. Stores and sends nothing."""
    wanted = language or enabled_languages(tenant_id)[0]
    with speaking(catalogue_for(wanted, tenant_id)):
        data = template_data(kind.sample(), tenant_id=tenant_id, language=wanted)
        return written(kind, source, data, built_in=built_in_message(kind, data))


def _check(row: MessageTemplate, kind: Kind) -> None:
    problems: dict[str, list[str]] = {}
    for column in TEXTS:
        try:
            found = tried(kind, Source(**{column: getattr(row, column)}), tenant_id=row.tenant_id, language=row.language)
        except TemplateBroken as error:
            problems[column] = [str(error)]
            continue
        if column == "from_address" and row.from_address and kind.channel == EMAIL and not checked_sender(found.from_address):
            problems[column] = ["Enter an address, such as Example <mail@example.com>."]
        if column == "body" and row.body and not found.text.strip():
            problems[column] = ["The message would be empty."]
        if column == "subject" and row.subject and not found.subject:
            problems[column] = ["The subject would be empty."]
    problems |= _rule_problems(row)
    if problems:
        raise Invalid(problems)


def _rule_problems(row: MessageTemplate) -> dict[str, list[str]]:
    problems = {}
    if row.url_lifetime_seconds is not None and not 1 <= row.url_lifetime_seconds <= LONGEST_LIFE_SECONDS:
        problems["url_lifetime_seconds"] = [f"Enter 1 to {LONGEST_LIFE_SECONDS} seconds, or nothing for the default."]
    if row.result_url:
        try:
            parts = urlsplit(row.result_url)
            is_address = parts.scheme in ("https", "http") and bool(parts.hostname) and "@" not in parts.netloc
        except ValueError:
            is_address = False
        if not is_address or any(not character.isprintable() or character in " \\" for character in row.result_url):
            problems["result_url"] = ["Enter a web address, such as https://example.com/done."]
    return problems
