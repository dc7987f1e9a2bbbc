"""Reads claims with an access token, for providers without id tokens, and maps claims with the expressions of the provider."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from authapi.failures.logins import LoginCase
from authapi.upstream.exchange import ProviderSession
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.metadata import Metadata
from authapi.upstream.provider import ClaimRules, Provider
from authapi.upstream.social.known_providers import Peculiarity, ProfileCall
from foundation.expressions.language import ExpressionFailed, ExpressionRefused, compile_expression
from foundation.json_values import text_problem

_LONGEST_TOKEN = 8192
# RFC 6749, A.12: visible characters. A space would end the token in the Authorization header.
_TOKEN = re.compile(r"[\x21-\x7e]+")
_LONGEST_SUBJECT = 255
# Members of a profile that have the name of an OpenID Connect claim need no expression.
_STANDARD = (
    *("sub", "name", "nickname", "preferred_username", "given_name", "family_name", "picture"),
    *("email", "email_verified", "phone_number", "phone_number_verified"),
)
# Each claim, with the claim that says whether it is verified. If an expression replaces an email address or number, the verification
# of the old value is dropped.
_PROOFS = {"email": "email_verified", "phone_number": "phone_number_verified"}


def profile_claims(provider: Provider, metadata: Metadata, access_token: Any) -> dict[str, Any]:
    """Return the claims of the user of an access token. Raises `UpstreamFailed`, also if the profile has no subject."""
    token = checked_token(access_token)
    document: dict[str, Any] = {}
    whole: Any = document
    session = ProviderSession()
    for call in provider.row.calls:
        answer = _answer(session, provider, metadata, call, token)
        if call.name:
            document[call.name] = answer
        else:
            whole = answer
    return mapped_claims(provider, whole)


def mapped_claims(rules: ClaimRules, whole: Any) -> dict[str, Any]:
    """Return the claims to which the expressions of the provider map a profile. Raises `UpstreamFailed` for claims without a subject."""
    # If every call has a name, each member of `whole` is the answer to a call, not a claim.
    has_standard = isinstance(whole, dict) and not all(call.name for call in rules.row.calls)
    claims = {name: whole[name] for name in _STANDARD if name in whole} if has_standard else {}
    return with_subject({**claims, **_mapped(rules.fields, whole)})


def judged_claims(rules: ClaimRules, claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of an id token, changed by the expressions of the provider. Raises `UpstreamFailed`.

    The accounts at such a provider can belong to any organization. So a user is refused if `hosted_domains` does not list the
    organization of the account.
    """
    domains = rules.hosted_domains
    named = claims.get("hd")
    if domains and (not isinstance(named, str) or named.lower() not in domains):
        raise UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, "The organization of the account is not in hosted_domains.")
    return {**claims, **_mapped(rules.fields, claims)}


def checked_token(token: Any) -> str:
    """Return the access token. Raises `UpstreamFailed` if the token cannot be sent in a header."""
    if not isinstance(token, str) or len(token) > _LONGEST_TOKEN or not _TOKEN.fullmatch(token):
        raise UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, "The access token is missing, or cannot be sent in a header.")
    return token


def with_subject(claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims with their subject as text; some providers use numbers. Raises `UpstreamFailed` without a valid subject."""
    subject = claims.get("sub")
    if isinstance(subject, int) and not isinstance(subject, bool):
        subject = str(subject)
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT or text_problem(subject):
        raise UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, "The profile has no subject. Map user_id to the member with the subject.")
    return {**claims, "sub": subject}


def value_of(expression: str, document: Any) -> Any:
    """Return the value of an expression; None if the expression finds nothing or cannot be evaluated."""
    try:
        return compile_expression(expression)(document)
    except (ExpressionRefused, ExpressionFailed):
        # A value that does not fit into a profile is dropped. It does not stop the login.
        return None


def secret_proof(provider: Provider, token: str) -> dict[str, str]:
    """Return the proof that the sender of an access token knows the client secret; empty if the provider does not use such proofs."""
    if not provider.row.has(Peculiarity.SECRET_PROOF) or not provider.secret:
        return {}
    return {"appsecret_proof": hmac.new(provider.secret.encode(), token.encode(), hashlib.sha256).hexdigest()}


def _answer(session: ProviderSession, provider: Provider, metadata: Metadata, call: ProfileCall, token: str) -> Any:
    address = metadata.address(call.address)
    query = {**call.parameters, **secret_proof(provider, token)}
    if query:
        address = f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(query)}"
    headers = {**provider.headers, "Accept": call.accept, "Authorization": f"Bearer {token}"}
    return session.get_value(address, headers=headers, absent=(403, 404) if call.is_optional else ())


def _mapped(fields: Mapping[str, str], document: Any) -> dict[str, Any]:
    """Return a claim for each expression. If an expression replaces a claim, the verification of the old value is dropped."""
    found = {name: value_of(expression, document) for name, expression in fields.items()}
    lost = {proof: None for name, proof in _PROOFS.items() if name in found and proof not in found}
    return {**lost, **found}
