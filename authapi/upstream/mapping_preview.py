"""Shows the profile that a login with given claims would store.

Calls the functions that a real login calls, but neither sends a request nor stores anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authapi.upstream.id_token import check_subject
from authapi.upstream.openid_claims import openid_proven
from authapi.upstream.people import profile_at_login
from authapi.upstream.proven import Proven
from authapi.upstream.provider import rules_of
from authapi.upstream.read_claims import assertion_options
from authapi.upstream.saml.claims import statement_claims
from authapi.upstream.sample_claims import speaks_assertions
from authapi.upstream.sent_claims import DOCUMENT, FORM, ID_TOKEN, USERINFO, statement_in
from authapi.upstream.social.profile_calls import mapped_claims
from identity.models import Connection


@dataclass(frozen=True)
class Preview:
    """The subject and the profile of a login."""

    subject: str
    profile: Mapping[str, Any]
    # True if the given userinfo claims have no effect: a login with the given ID token would not call the userinfo endpoint.
    skips_userinfo: bool = False


def previewed(connection: Connection, sent: Mapping[str, Any]) -> Preview:
    """Return what a login with these claims would store; `sent` has the parts of `sent_claims`.

    Raises `UpstreamFailed` if the login would fail.
    """
    proven = _proven(connection, sent)
    skips = bool(sent.get(USERINFO)) and USERINFO not in proven.sent and ID_TOKEN in proven.sent
    return Preview(proven.subject, profile_at_login(connection, proven), skips)


def _proven(connection: Connection, sent: Mapping[str, Any]) -> Proven:
    if speaks_assertions(connection):
        return Proven(statement_claims(statement_in(sent), assertion_options(connection)))
    rules = rules_of(connection)
    if rules.row.calls:
        return Proven(mapped_claims(rules, sent.get(DOCUMENT, {})))
    id_token = sent.get(ID_TOKEN, {})
    check_subject(id_token)
    return openid_proven(rules, id_token, lambda: sent.get(USERINFO), form=sent.get(FORM, {}))
