"""Shows the profile that the mapping of a connection makes of sample claims. Sends no request and stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.profile import profile_of
from authapi.upstream.provider import GENERIC, OPENID_STRATEGIES, provider_of
from authapi.upstream.saml import options as saml_options
from authapi.upstream.saml.claims import NameId, Statement, claims_of
from authapi.upstream.social.profile_calls import mapped_claims, with_subject
from authapi.upstream.wsfed import options as wsfed_options
from identity.models import Connection

_NAME_ID = "NameID"
_OPENID_SAMPLE = {"sub": "248289", "email": "ada@example.com", "email_verified": True, "name": "Ada Lovelace"}
_SAML_SAMPLE = {_NAME_ID: "248289", "email": "ada@example.com", "displayName": "Ada Lovelace"}
_OAUTH_SAMPLE = {"id": 248289, "email": "ada@example.com", "name": "Ada Lovelace"}


def sample_of(connection: Connection) -> dict[str, Any]:
    """Return sample claims for the protocol of the connection, to fill in the form."""
    if connection.strategy == GENERIC:
        return _OAUTH_SAMPLE
    return _SAML_SAMPLE if _speaks_assertions(connection) else _OPENID_SAMPLE


def previewed(connection: Connection, sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the subject and the profile of sample claims. Raises `UpstreamFailed` if a login with these claims would fail."""
    if _speaks_assertions(connection):
        claims = _of_assertion(connection, sample)
    elif connection.strategy in OPENID_STRATEGIES:
        claims = with_subject(sample)
    else:
        claims = mapped_claims(provider_of(connection), dict(sample))
    profile = profile_of(claims, {}, connection.options.get("attribute_map"))
    return {"subject": claims["sub"], "profile": profile}


def _speaks_assertions(connection: Connection) -> bool:
    return connection.strategy in saml_options.STRATEGIES or wsfed_options.is_wsfed(connection.strategy, connection.options)


def _of_assertion(connection: Connection, sample: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {
        name: tuple(_text(one) for one in (value if isinstance(value, list) else [value]))
        for name, value in sample.items()
        if name != _NAME_ID
    }
    named = sample.get(_NAME_ID)
    statement = Statement("", NameId(named) if isinstance(named, str) and named else None, attributes)
    allows_http = settings.OUTBOUND_ALLOW_HTTP
    try:
        read: Any = (
            saml_options.read_options(connection.options, allows_http=allows_http)
            if connection.strategy in saml_options.STRATEGIES
            else wsfed_options.read_options(connection.strategy, connection.options, allows_http=allows_http)
        )
    except saml_options.OptionsInvalid as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, str(error)) from error
    return claims_of(statement, fields=read.fields, user_id_attributes=read.user_id_attributes, trusts_emails=read.trusts_emails)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
