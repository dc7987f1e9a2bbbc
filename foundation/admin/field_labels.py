"""Corrects labels that Django derives from names in the source: abbreviations get their usual spelling, and in labels of choices only the
first word is capitalized.

The functions change only what pages show. Labels that are written in a model are part of its migrations and stay unchanged.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.apps import apps
from django.contrib.admin.filters import ChoicesFieldListFilter
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.text import capfirst

_SPELLED = {
    "api": "API",
    "ciba": "CIBA",
    "dn": "DN",
    "ip": "IP address",
    "jwk": "JWK",
    "jwks": "JWKS",
    "kid": "key id",
    "max": "maximum",
    "ms": "(ms)",
    "pem": "PEM",
    "saml": "SAML",
    "scim": "SCIM",
    "sid": "session id",
    "signup": "sign-up",
    "sms": "SMS",
    "uri": "URI",
    "uris": "URIs",
    "url": "URL",
    # A "wire id" is the id that the API shows. It differs from the primary key of the row.
    "wire": "public",
}
# Replacements of whole labels, which would otherwise only repeat the name of a column.
_REPLACED = {
    "CIMD expires at": "metadata document expires at",
    "api resource": "API",
    "app type": "kind of application",
    "auth version": "version of tokens",
    "birth": "created at position",
    "counted": "deletions in this period",
    "created": "created at",
    "doubt": "unanswered create request",
    "ended": "user deleted at position",
    "event retention days": "event retention in days",
    "error scim type": "SCIM error type",
    "error status": "HTTP status",
    "floor": "last deleted position",
    "floor recorded at": "last deleted event recorded at",
    "forbidden keys": "entities refused with 403",
    "holder": "process",
    "lease until": "lease expires at",
    "logins count": "number of logins",
    "mailed to": "mailed accounts",
    "max event connections": "maximum number of open streams",
    "most uses": "maximum number of uses",
    "not before": "next attempt from",
    "nudged until": "message expected until",
    "posted at": "accepted by the webhook at",
    "probe at": "next test delivery at",
    "redelivery actor": "redelivered by",
    "retry at": "next attempt at",
    "scim id": "id on the server",
    "sealed": "encrypted value",
    "settled at": "ended at",
    "since": "unreported since",
    "stage": "kind of attempts",
    "status": "state",
    "staged since": "waiting for approval since",
    "subject type": "tokens for",
    "taken at": "sending began at",
    "token dialect": "format of tokens",
    "token lifetime": "lifetime of tokens",
    "told at": "user notified at",
    "token endpoint auth method": "authentication",
    "triage actor": "decided by",
    "triage reason": "reason of the decision",
    "triaged at": "decided at",
    "unauthorized": "401 responses in a row",
    "updated": "updated at",
    "use count": "number of uses",
    "user names": "usernames",
    "verifies until": "verifies tokens until",
    "window began at": "period began at",
    "window seconds": "period in seconds",
}
# The prefix of boolean fields. Labels omit it, because the value is shown as yes or no.
_YES_OR_NO = "is "


def spell_labels(model: type[models.Model]) -> None:
    """Spell the abbreviations in the labels that Django derived from the names of the model's fields."""
    for field in model._meta.local_fields:
        # `_verbose_name` is the label that the source states, or None if Django derived the label. Migrations contain only stated labels.
        if field._verbose_name is None:  # type: ignore[attr-defined]  # django-stubs omits it
            field.verbose_name = spelled(str(field.verbose_name).removeprefix(_YES_OR_NO))


def spelled(label: str) -> str:
    """Return a label that Django derived from a name in the source, with its abbreviations in their usual spelling."""
    return _REPLACED.get(label) or " ".join(_SPELLED.get(word, word) for word in label.split())


def column_label(model: str, path: str) -> str:
    """Return the label of a stored column, such as "format of tokens" for `token_dialect` of `authapi.apiresource`.

    A path such as `settings.addons` continues in a JSON column. If the model or the column does not exist, the label comes from the name.
    """
    column, dot, rest = path.partition(".")
    label = column.replace("_", " ")
    with suppress(LookupError, ValueError, FieldDoesNotExist):
        label = str(getattr(apps.get_model(model)._meta.get_field(column), "verbose_name", label))
    return spelled(label.removeprefix(_YES_OR_NO)) + dot + rest


def sentence_of(value: Any, label: Any) -> str:
    """Return the label of a choice. Django capitalizes each word of a label that it derives from the value.

    This function capitalizes only the first word.
    """
    derived = str(value).replace("_", " ").title()
    return str(capfirst(derived.lower())) if str(label) == derived else str(label)


class SentenceChoicesFilter(ChoicesFieldListFilter):
    """A filter by a field with choices. Shows the labels that `sentence_of` returns."""

    def choices(self, changelist: Any) -> Any:
        shown = {str(label): sentence_of(value, label) for value, label in self.field.flatchoices}
        for choice in super().choices(changelist):
            yield {**choice, "display": shown.get(str(choice["display"]), choice["display"])}
