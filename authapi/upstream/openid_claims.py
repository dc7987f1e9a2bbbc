"""Turns the checked claims of an ID token and the answer of the userinfo endpoint into a verified login."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.profile import needs_userinfo
from authapi.upstream.proven import Proven
from authapi.upstream.provider import ClaimRules
from authapi.upstream.sent_claims import FORM, ID_TOKEN, USERINFO
from authapi.upstream.social.profile_calls import judged_claims

ANOTHER_SUBJECT = "The userinfo endpoint describes another subject."


def openid_proven(
    rules: ClaimRules,
    id_token: Mapping[str, Any],
    read_userinfo: Callable[[], Mapping[str, Any] | None],
    *,
    form: Mapping[str, Any],
) -> Proven:
    """Return the verified login that the checked claims of an ID token describe. Raises `UpstreamFailed`.

    `read_userinfo` returns the answer of the userinfo endpoint, or None if the endpoint cannot be read. `read_userinfo` is called only if
    the ID token has too few claims. `form` has the claims that the browser posted with the code; claims of the ID token override them.
    """
    sent = {ID_TOKEN: id_token, **({FORM: form} if form else {})}
    claims = judged_claims(rules, {**form, **id_token})
    userinfo = read_userinfo() if needs_userinfo(claims) else None
    if userinfo is None:
        return Proven(claims, sent=sent)
    # OpenID Connect Core 1.0, 5.3.2: without this check the answer may describe another user.
    if userinfo.get("sub") != claims["sub"]:
        raise UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, ANOTHER_SUBJECT)
    # `rules.fields` has an expression for some claims, such as `email_verified`. Leave these claims out of the userinfo answer: only the
    # result of the expression counts.
    used = {name: value for name, value in userinfo.items() if name not in rules.fields}
    return Proven(claims, used, sent={**sent, USERINFO: userinfo})
