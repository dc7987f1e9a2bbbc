"""Claims for a preview of a profile: the claims of a connection's last successful test, or sample claims that fit its attribute map."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from authapi.models import ConnectionTest
from authapi.upstream.provider import rules_of
from authapi.upstream.saml import options as saml_options
from authapi.upstream.sent_claims import ATTRIBUTES, DOCUMENT, ID_TOKEN, NAME_ID, NAME_ID_FORMAT, USERINFO
from authapi.upstream.wsfed import options as wsfed_options
from identity.models import Connection

_SUBJECT = "248289"
_STANDARD = {"email": "ada@example.com", "email_verified": True, "name": "Ada Lovelace"}
_ASSERTION = {"email": ["ada@example.com"], "displayName": ["Ada Lovelace"]}
_PROFILE = {"id": 248289, "email": "ada@example.com", "name": "Ada Lovelace"}
_VALUES: Mapping[str, str] = {
    "user_id": "248289",
    "email": "ada@example.com",
    "email_verified": "true",
    "name": "Ada Lovelace",
    "nickname": "ada",
    "given_name": "Ada",
    "family_name": "Lovelace",
    "picture": "https://example.com/ada.png",
    "phone_number": "+15555550100",
    "phone_verified": "true",
    "phone_number_verified": "true",
}
_ID = re.compile(r"[0-9]{1,18}")
_CLAIM = re.compile(r"\$\{context\.(tokenset|userinfo)\.([A-Za-z0-9_:/.-]{1,200})\}")
# An expression that names one member, such as `data.email`.
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True)
class Sample:
    """Claims in the parts that `sent_claims` defines. `tested_at` is when a test received the claims; None for sample claims."""

    parts: Mapping[str, Any]
    tested_at: datetime | None = None
    # The names of the claims that the test did not store.
    left_out: Sequence[str] = ()
    # True if the last successful test stored no claims that fit the connection. There are two possible reasons: an earlier version of this
    # service ran the test, or the protocol of the connection was changed after the test.
    is_outdated: bool = False
    test_id: int | None = None


def newest_sample(connection: Connection) -> Sample:
    """Return the claims of the last successful test, or sample claims if there is no test with usable claims."""
    if not keeps_claims(connection):
        return Sample(sample_of(connection))
    test = _successful(connection).order_by("-pk").first()
    return Sample(sample_of(connection)) if test is None else _sample_in(connection, test)


def sample_of_test(connection: Connection, test_id: str) -> Sample | None:
    """Return the claims of one successful test, or sample claims for an empty id. Return None if the connection has no such test."""
    if not test_id:
        return Sample(sample_of(connection))
    if not _ID.fullmatch(test_id) or not keeps_claims(connection):
        return None
    test = _successful(connection).filter(pk=test_id).first()
    return None if test is None else _sample_in(connection, test)


def _successful(connection: Connection) -> QuerySet[ConnectionTest]:
    return ConnectionTest.objects.of(connection.tenant_id).filter(connection=connection, result__is_success=True)


def _sample_in(connection: Connection, test: ConnectionTest) -> Sample:
    """Return the claims of a test; sample claims if the claims of the test do not fit the connection."""
    parts = (test.result or {}).get("sent")
    if not isinstance(parts, Mapping) or (ATTRIBUTES if speaks_assertions(connection) else ID_TOKEN) not in parts:
        return Sample(sample_of(connection), is_outdated=True)
    return Sample(parts, test.created_at, left_out_of(test), test_id=test.pk)


def left_out_of(test: ConnectionTest) -> list[str]:
    """Return the names of the claims that a test did not store."""
    return list((test.result or {}).get("left_out") or ())


def sample_of(connection: Connection) -> dict[str, Any]:
    """Return sample claims for the protocol of the connection, with a value for each claim in the attribute map."""
    options = connection.options
    if speaks_assertions(connection):
        return {NAME_ID: _SUBJECT, NAME_ID_FORMAT: "", ATTRIBUTES: {**_ASSERTION, **_attributes(_map_in(options, "fieldsMap"))}}
    rules = rules_of(connection)
    if rules.row.calls:
        return {DOCUMENT: rules.row.sample or _with_paths(_PROFILE, _map_in(options, "fieldsMap"))}
    mapped = options.get("attribute_map")
    organization = {"hd": rules.hosted_domains[0]} if rules.hosted_domains else {}
    return _openid(_map_in(mapped, "attributes") if isinstance(mapped, Mapping) else {}, {"sub": _SUBJECT, **organization})


def speaks_assertions(connection: Connection) -> bool:
    """Tell whether the provider of a connection sends assertions."""
    return connection.strategy in saml_options.STRATEGIES or wsfed_options.is_wsfed(connection.strategy, connection.options)


def keeps_claims(connection: Connection) -> bool:
    """Tell whether a test stores the claims as the provider sent them. If it reads the profile with `calls`, it stores mapped claims."""
    return speaks_assertions(connection) or not rules_of(connection).row.calls


def _openid(mapped: Mapping[str, Any], subject: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of an ID token, and the claims of a userinfo answer if a template names a userinfo claim.

    A login reads the userinfo endpoint only if standard claims are missing in the ID token. So, if a template names a userinfo claim, the
    sample has the standard claims only in the userinfo answer: with standard claims in the ID token, a login would never read this answer.
    """
    claims = _claims(mapped)
    if not claims[USERINFO]:
        return {ID_TOKEN: {**claims["tokenset"], **subject, **_STANDARD}}
    return {ID_TOKEN: {**claims["tokenset"], **subject}, USERINFO: {**claims[USERINFO], "sub": _SUBJECT, **_STANDARD}}


def _map_in(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = options.get(name)
    return {field: claim for field, claim in value.items() if field in _VALUES} if isinstance(value, Mapping) else {}


def _attributes(mapped: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return a sample value for one attribute of each field: the first attribute that the map lists for the field."""
    named = {field: names[0] if isinstance(names, list) and names else names for field, names in mapped.items()}
    return {name: [_VALUES[field]] for field, name in named.items() if isinstance(name, str) and name}


def _claims(mapped: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return a sample value for each claim in the templates: the claims of the ID token (`tokenset`), and the claims of the userinfo
    answer.

    If the template of a field contains only one claim, this claim gets the sample value of the field. Any other claim gets the sample value
    for its own name. If there is no such value, the value is the name of the claim.
    """
    found: dict[str, dict[str, str]] = {"tokenset": {}, USERINFO: {}}
    for field, template in mapped.items():
        named = _CLAIM.findall(template) if isinstance(template, str) else []
        for source, name in named:
            found[source][name] = _VALUES[field] if len(named) == 1 else _VALUES.get(name, name)
    return found


def _with_paths(sample: Mapping[str, Any], mapped: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sample with a value at the path of each simple expression."""
    whole: dict[str, Any] = dict(sample)
    for field, expression in mapped.items():
        if not isinstance(expression, str) or not _PATH.fullmatch(expression):
            continue
        *outer, last = expression.split(".")
        place = whole
        for name in outer:
            inner = place.get(name)
            place[name] = inner if isinstance(inner, dict) else {}
            place = place[name]
        place.setdefault(last, _VALUES[field])
    return whole
