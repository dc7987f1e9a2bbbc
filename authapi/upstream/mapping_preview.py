"""Shows the profile that the mapping of a connection makes of sample claims. Sends no request and stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.profile import profile_of
from authapi.upstream.provider import OPENID_STRATEGIES, provider_of
from authapi.upstream.saml import options as saml_options
from authapi.upstream.saml.claims import NameId, Statement, claims_of
from authapi.upstream.sample_claims import NAME_ID, speaks_assertions
from authapi.upstream.social.profile_calls import mapped_claims, with_subject
from authapi.upstream.wsfed import options as wsfed_options
from identity.models import Connection


def previewed(connection: Connection, sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the subject and the profile of sample claims. Raises `UpstreamFailed` if a login with these claims would fail."""
    if speaks_assertions(connection):
        claims = _of_assertion(connection, sample)
    elif connection.strategy in OPENID_STRATEGIES:
        claims = with_subject(sample)
    else:
        claims = mapped_claims(provider_of(connection), dict(sample))
    # A template may name a claim of the userinfo endpoint, and a sample does not say where its claims come from.
    userinfo = sample if connection.strategy in OPENID_STRATEGIES else {}
    profile = profile_of(claims, userinfo, connection.options.get("attribute_map"))
    return {"subject": claims["sub"], "profile": profile}


def _of_assertion(connection: Connection, sample: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {
        name: tuple(_text(one) for one in (value if isinstance(value, list) else [value]))
        for name, value in sample.items()
        if name != NAME_ID
    }
    named = sample.get(NAME_ID)
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
