"""The checks of an authorization request whose redirect URL is trusted. Each refusal is one of the cases in `authapi.failures`.

The engine (`oauthlib`) calls the checks in its own order (`validate_authorization_request` of its grants). A check that fails raises a
refusal with a text of this service. So the engine never raises its own refusal for the same error. The checks use no database.
"""

from __future__ import annotations

import re
from typing import Any

from oauthlib.oauth2 import RequestValidator

from authapi.compliance.enforcing import check
from authapi.compliance.rules import AuthorizationFacts, Stage
from authapi.details.objects import Detail, DetailsRefused, read_details
from authapi.details.types import MEMBER as DETAILS
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.possession.proofs import is_thumbprint
from authapi.protocols.oauth.asked_claims import AskedClaims, ClaimsMalformed, read_claims
from authapi.protocols.oauth.authorization_request import ClientFacts, Target
from authapi.protocols.oauth.engine_request import AuthorizationCall

RESPONSE_TYPES = frozenset({"code", "token", "id_token"})
MODES = ("query", "fragment", "form_post", "web_message")
_REPEATABLE = "resource"
PROMPTS = frozenset({"none", "login", "consent", "select_account", "create"})
# The maximum length of a nonce that fits in the row of a code.
_LONGEST_NONCE = 255
# RFC 7636, 4.1 and 4.2.
_CHALLENGES = {"S256": re.compile(r"[A-Za-z0-9_-]{43}"), "plain": re.compile(r"[A-Za-z0-9._~-]{43,128}")}
_PASSED_OVER = {
    "request": OAuthCase.REQUEST_OBJECT_NOT_SUPPORTED,
    "request_uri": OAuthCase.REQUEST_URI_NOT_SUPPORTED,
    "registration": OAuthCase.REGISTRATION_NOT_SUPPORTED,
}


class AuthorizationChecks(RequestValidator):  # type: ignore[misc]  # the engine has no types
    """The checks that the engine calls for an authorization request."""

    def validate_client_id(self, client_id: str, request: Any, *args: Any, **kwargs: Any) -> bool:
        # The client of this tenant is set before the engine runs, because the toolkit would search the id in all tenants.
        return request.client is not None

    def validate_response_type(
        self, client_id: str, response_type: str, client: ClientFacts, request: AuthorizationCall, *args: Any, **kwargs: Any
    ) -> bool:
        """Refuse a missing or too long nonce, a wrong response mode, and a response type whose grant the client may not use."""
        for grant, is_needed in (("authorization_code", "code" in request.types), ("implicit", request.types != {"code"})):
            if is_needed and grant not in client.grant_types:
                text = request.text("response_type")[:100]
                raise RequestRefused(OAuthCase.RESPONSE_TYPE_NOT_ALLOWED, response_type=text, grant=grant)
        _check_mode(request.text("response_mode"), request.target)
        if len(request.text("nonce")) > _LONGEST_NONCE:
            raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The nonce is longer than {_LONGEST_NONCE} characters.")
        if "id_token" in request.types and not request.text("nonce"):
            # Core 1.0, 3.2.2.1 and 3.3.2.11: without a nonce, a replayed id token is not detected.
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="nonce")
        return True

    def is_pkce_required(self, client_id: str, request: AuthorizationCall) -> bool:
        """Refuse an invalid challenge. A public client must send a challenge.

        Only a client whose settings allow the method `plain` may use it. Called only for requests with a code. The engine itself accepts
        `plain` from every client, and every text as challenge.
        """
        request.code_challenge, request.code_challenge_method = _challenge(request)
        return bool(request.client.is_public)

    def validate_scopes(self, client_id: str, scopes: list[str], client: Any, request: Any, *args: Any, **kwargs: Any) -> bool:
        # Contract, 2.2: unknown and ungranted scopes are dropped (`authapi.grants.entitlements`), never refused.
        return True


def check_names(request: AuthorizationCall) -> dict[str, Any]:
    """Refuse repeated and unsupported parameters, a request that breaks a client requirement, and a missing or unknown response type.

    Runs before all other checks.
    """
    repeated = refusal_of_repeated(request.repeated, request.client, has_audience=bool(request.text("audience")))
    if repeated is not None:
        raise repeated
    _check_level(request)
    _check_channel(request)
    _check_key(request)
    for name, case in _PASSED_OVER.items():
        if request.text(name):
            raise RequestRefused(case)
    text = request.text("response_type")
    if not text:
        raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="response_type")
    if not request.types or not request.types <= RESPONSE_TYPES:
        raise RequestRefused(OAuthCase.UNSUPPORTED_RESPONSE_TYPE, response_type=text[:100])
    return {}


def _check_level(request: AuthorizationCall) -> None:
    """Refuse a request that breaks a rule of the client's compliance level."""
    facts = AuthorizationFacts(
        is_pushed=request.is_pushed,
        is_signed=request.is_signed,
        response_types=request.types,
        has_redirect_uri=bool(request.text("redirect_uri")),
        has_challenge=bool(request.text("code_challenge")),
        challenge_method=request.text("code_challenge_method"),
    )
    check(request.client.level, Stage.REQUEST, facts)


def refusal_of_repeated(repeated: frozenset[str], client: ClientFacts, *, has_audience: bool) -> RequestRefused | None:
    """Return the refusal of repeated parameters, None if none of them is refused.

    RFC 8707, 2 allows a repeated `resource`, but this service refuses it: a token is for one API. There is one exception: if
    `client.reads_resource` is set and the request has an audience, `resource` has no effect, so it may be repeated.
    """
    if client.reads_resource and _REPEATABLE in repeated:
        if not has_audience:
            return RequestRefused(OAuthCase.INVALID_TARGET, reason="A token is for one API: send one resource.")
        repeated -= {_REPEATABLE}
    return RequestRefused(RequestCase.REPEATED_PARAMETER, parameter=min(repeated)[:100]) if repeated else None


def _check_channel(request: AuthorizationCall) -> None:
    """Refuse a request that was not pushed or not signed, although its client or tenant requires it."""
    if request.client.requires_push and not request.is_pushed:
        raise RequestRefused(OAuthCase.PUSH_REQUIRED)
    if request.client.requires_signature and not request.is_signed:
        raise RequestRefused(OAuthCase.SIGNATURE_REQUIRED)


def _check_key(request: AuthorizationCall) -> None:
    """Refuse a malformed `dpop_jkt`. Also refuse a `dpop_jkt` if `/authorize` issues an access token.

    Such a token is bound to no key, but the client would assume that it is bound to this key.
    """
    key = request.text("dpop_jkt")
    if key and not is_thumbprint(key):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The dpop_jkt is not the thumbprint of a key.")
    if key and "token" in request.types:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="A token from the authorization endpoint is bound to no key.")


def check_login(request: AuthorizationCall) -> dict[str, Any]:
    """Refuse a request if no login can meet its requirements. Runs after all other checks.

    The engine's own OpenID Connect grants would check here, for `prompt=none`, whether the user is logged in and has consented. This
    service checks the session and the consent later (`authapi.login.decision`). The engine also does not support the prompt `create`.
    """
    request.prompts = _prompts(request.text("prompt"))
    request.max_age = _max_age(request.text("max_age"))
    if request.text("claims"):
        request.claims = _claims(request.text("claims"))
    if request.text(DETAILS):
        request.details = _details(request.text(DETAILS))
    return {}


def _check_mode(mode: str, target: Target) -> None:
    if mode and mode not in MODES:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"Unsupported response mode: {mode[:100]}")
    if mode and mode != target.mode:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The response mode query cannot carry tokens.")


def _challenge(request: AuthorizationCall) -> tuple[str | None, str | None]:
    challenge, method = request.text("code_challenge"), request.text("code_challenge_method")
    if not challenge:
        if request.client.is_public or method:
            raise RequestRefused(RequestCase.MISSING_PARAMETER, parameter="code_challenge")
        return None, None
    # RFC 7636, 4.3: the default is `plain`.
    method = method or "plain"
    if method not in _CHALLENGES or (method == "plain" and not request.client.takes_plain):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The code_challenge_method must be S256.")
    if not _CHALLENGES[method].fullmatch(challenge):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The code_challenge is not valid for the method {method}.")
    return challenge, method


def _prompts(text: str) -> frozenset[str]:
    prompts = frozenset(text.split())
    unknown = sorted(prompts - PROMPTS)
    if unknown:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"Unsupported prompt: {unknown[0][:100]}")
    if "none" in prompts and len(prompts) > 1:
        # Core 1.0, 3.1.2.1.
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The prompt none excludes other prompts.")
    return prompts


def _claims(text: str) -> AskedClaims:
    try:
        return read_claims(text)
    except ClaimsMalformed as error:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=str(error)) from error


def _details(text: str) -> tuple[Detail, ...]:
    try:
        return read_details(text)
    except DetailsRefused as error:
        raise RequestRefused(OAuthCase.INVALID_AUTHORIZATION_DETAILS, reason=str(error)) from error


def _max_age(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="The max_age must be a number of seconds.")
    return int(text)
