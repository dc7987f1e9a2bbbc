"""Claims for a preview of a profile: those of the last successful test of a connection, or sample claims that fit its attribute map."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from authapi.models import ConnectionTest
from authapi.upstream.provider import GENERIC, OPENID_STRATEGIES
from authapi.upstream.saml import options as saml_options
from authapi.upstream.wsfed import options as wsfed_options
from identity.models import Connection

# The member of a sample that is the NameID of an assertion.
NAME_ID = "NameID"
_OPENID = {"sub": "248289", "email": "ada@example.com", "email_verified": True, "name": "Ada Lovelace"}
_ASSERTION = {NAME_ID: "248289", "email": "ada@example.com", "displayName": "Ada Lovelace"}
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
_CLAIM = re.compile(r"\$\{context\.(?:tokenset|userinfo)\.([A-Za-z0-9_:/.-]{1,200})\}")
# An expression that names one member, such as `data.email`.
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True)
class Sample:
    """Claims, and the time of the test in which the provider sent them; None for invented claims."""

    claims: dict[str, Any]
    tested_at: datetime | None = None


def newest_sample(connection: Connection) -> Sample:
    """Return the claims of the last successful test; without such a test, sample claims."""
    return _tested(connection) or Sample(sample_of(connection))


def sample_of(connection: Connection) -> dict[str, Any]:
    """Return sample claims for the protocol of the connection, with a value for each claim that the attribute map names."""
    options = connection.options
    if connection.strategy == GENERIC:
        return _with_paths(_PROFILE, _map_in(options, "fieldsMap"))
    if speaks_assertions(connection):
        return {**_ASSERTION, **_attributes(_map_in(options, "fieldsMap"))}
    mapped = options.get("attribute_map")
    return {**_claims(_map_in(mapped, "attributes") if isinstance(mapped, Mapping) else {}), **_OPENID}


def speaks_assertions(connection: Connection) -> bool:
    """Tell whether the provider of a connection sends assertions."""
    return connection.strategy in saml_options.STRATEGIES or wsfed_options.is_wsfed(connection.strategy, connection.options)


def keeps_claims(connection: Connection) -> bool:
    """Tell whether a test stores the claims as the provider sent them. A test of a profile stores the mapped claims only."""
    return speaks_assertions(connection) or connection.strategy in OPENID_STRATEGIES


def _tested(connection: Connection) -> Sample | None:
    if not keeps_claims(connection):
        return None
    rows = ConnectionTest.objects.of(connection.tenant_id).filter(connection=connection, result__is_success=True)
    test = rows.order_by("-pk").first()
    if test is None or not test.result or not test.result.get("attributes"):
        return None
    found = {name: values[0] if len(values) == 1 else values for name, values in test.result["attributes"].items()}
    subject = {NAME_ID: test.result["subject"]} if speaks_assertions(connection) else {}
    return Sample({**subject, **found}, test.created_at)


def _map_in(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = options.get(name)
    return {field: claim for field, claim in value.items() if field in _VALUES} if isinstance(value, Mapping) else {}


def _attributes(mapped: Mapping[str, Any]) -> dict[str, str]:
    """Return a value for the first attribute of each field."""
    named = {field: names[0] if isinstance(names, list) and names else names for field, names in mapped.items()}
    return {name: _VALUES[field] for field, name in named.items() if isinstance(name, str) and name}


def _claims(mapped: Mapping[str, Any]) -> dict[str, str]:
    """Return a value for each claim in the templates: the value of the field for a single claim, otherwise the name of the claim."""
    found: dict[str, str] = {}
    for field, template in mapped.items():
        names = _CLAIM.findall(template) if isinstance(template, str) else []
        found |= {name: _VALUES[field] if len(names) == 1 else _VALUES.get(name, name) for name in names}
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
