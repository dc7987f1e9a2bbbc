"""The rules of the compliance levels, each with its error sentence. Pure.

`authapi.compliance.levels` assigns rules to levels. A rule with `is_kept` is checked at its stage. A rule without `is_kept` describes
behavior of the service; the code that implements the behavior calls `levels.has`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

# The only algorithm of the service that FAPI 1.0 Advanced, 8.6 and FAPI 2.0 Security Profile, 5.4 allow.
ALGORITHM = "PS256"
# FAPI 1.0 Advanced, 5.2.2.
_OLDEST_SECONDS = _LONGEST_SECONDS = 3600
# FAPI 2.0 Security Profile, 5.3.2.2.
LONGEST_CODE_SECONDS = 60
_LONGEST_PUSH_SECONDS = 599
# Grants in which an application handles passwords or codes of users. The endpoints of old clients have a separate rule.
_TYPED_GRANTS = frozenset(
    {
        "password",
        "http://auth0.com/oauth/grant-type/password-realm",
        "http://auth0.com/oauth/grant-type/passwordless/otp",
    }
)
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_CIBA_GRANT = "urn:openid:params:grant-type:ciba"
_TLS_METHODS = frozenset({"tls_client_auth", "self_signed_tls_client_auth"})
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)([:/?]|\Z)")


class Stage(Enum):
    """The stage at which a rule is checked. The comments name the type of the facts that the rule gets at each stage."""

    # `ClientShape`: when the client is saved, and each time it authenticates.
    CLIENT = "client"
    # `ClientProof`: when the client authenticates.
    PROOF = "proof"
    # `KeyProof`: when a pushed request or a token request contains a DPoP proof.
    KEY_PROOF = "key proof"
    # `AuthorizationFacts`: when a request is pushed, and at `/authorize`.
    REQUEST = "request"
    # `RequestObject`: when a signed request is opened.
    REQUEST_OBJECT = "request object"
    # `TokenFacts`: before an access token is issued.
    TOKEN = "token"  # noqa: S105  (a stage)
    # `ProfileFacts`: at `/userinfo`.
    PROFILE = "profile"
    # No check: the rule describes behavior of the service.
    SERVICE = "service"


@dataclass(frozen=True)
class ClientShape:
    """The settings of a client, as the rules check them."""

    auth_method: str
    proof_algorithms: frozenset[str]
    request_algorithms: frozenset[str]
    callbacks: tuple[str, ...]
    grant_types: frozenset[str]
    id_token_algorithm: str
    is_native: bool
    settings: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ClientProof:
    """The assertion that authenticates a client. `audience` is its `aud` claim, None without an assertion."""

    has_assertion: bool
    audience: Any
    issuer: str


@dataclass(frozen=True)
class KeyProof:
    """A valid DPoP proof."""

    algorithm: str


@dataclass(frozen=True)
class AuthorizationFacts:
    """An authorization request."""

    is_pushed: bool
    is_signed: bool
    response_types: frozenset[str]
    has_redirect_uri: bool
    has_challenge: bool
    challenge_method: str


@dataclass(frozen=True)
class RequestObject:
    """A signed request whose times are numbers."""

    algorithm: str
    not_before: float | None
    expires_at: float | None
    now: float


@dataclass(frozen=True)
class TokenFacts:
    """An access token before it is issued: its `cnf` claim, and the algorithm of its API, which is empty if none is set."""

    confirmation: Mapping[str, Any]
    algorithm: str


@dataclass(frozen=True)
class ProfileFacts:
    """How `/userinfo` received the access token."""

    is_in_header: bool


@dataclass(frozen=True)
class Rule:
    """A rule. `error` is the code of the error.

    `member` is the client setting that must change; empty if no setting of the client breaks the rule.
    """

    stage: Stage
    sentence: str
    is_kept: Callable[[Any], bool] | None = None
    error: str = "invalid_request"
    member: str = ""


# --- The settings of the client -----------------------------------------------------------------------------------------------


def _has_safe_callbacks(client: ClientShape) -> bool:
    return all(not address.startswith("http:") or (client.is_native and _LOOPBACK.match(address)) for address in client.callbacks)


def _has_request_key(client: ClientShape) -> bool:
    return ALGORITHM in client.request_algorithms or bool(client.settings.get("jwks_uri"))


def _rotates(client: ClientShape) -> bool:
    return (client.settings.get("refresh_token") or {}).get("rotation_type") == "rotating"


PRIVATE_KEY_JWT = Rule(
    Stage.CLIENT,
    "The compliance level requires authentication by private_key_jwt: register a public key of the client, then assign it to the method.",
    lambda client: client.auth_method == "private_key_jwt",
    "invalid_client",
    "client_authentication_methods",
)
MUTUAL_TLS = Rule(
    Stage.CLIENT,
    "The compliance level requires authentication by a client certificate: register the certificate or its "
    "subject, then assign it to the method.",
    lambda client: client.auth_method in _TLS_METHODS,
    "invalid_client",
    "client_authentication_methods",
)
PS256_KEYS = Rule(
    Stage.CLIENT,
    "The compliance level requires keys of the algorithm PS256: assign only such keys to private_key_jwt.",
    lambda client: client.proof_algorithms <= {ALGORITHM},
    "invalid_client",
    "client_authentication_methods",
)
PS256_ID_TOKENS = Rule(
    Stage.CLIENT,
    "The compliance level requires id tokens signed with PS256.",
    lambda client: client.id_token_algorithm == ALGORITHM,
    "unauthorized_client",
    "jwt_configuration",
)
CONFORMANT = Rule(
    Stage.CLIENT,
    "The compliance level requires the client to be conformant to OpenID Connect.",
    lambda client: client.settings.get("oidc_conformant") is not False,
    "unauthorized_client",
    "oidc_conformant",
)
EXACT_CALLBACKS = Rule(
    Stage.CLIENT,
    "The compliance level does not allow wildcards in callbacks: register each address.",
    lambda client: not any("*" in address for address in client.callbacks),
    "unauthorized_client",
    "callbacks",
)
HTTPS_CALLBACKS = Rule(
    Stage.CLIENT,
    "The compliance level does not allow http callbacks, except loopback addresses of native applications.",
    _has_safe_callbacks,
    "unauthorized_client",
    "callbacks",
)
NO_TYPED_GRANTS = Rule(
    Stage.CLIENT,
    "The compliance level does not allow grants in which the application handles passwords or codes of users.",
    lambda client: not client.grant_types & _TYPED_GRANTS,
    "unauthorized_client",
    "grant_types",
)
NO_CIBA_GRANT = Rule(
    Stage.CLIENT,
    "The compliance level does not allow backchannel authentication (CIBA), because its requests are not signed.",
    lambda client: _CIBA_GRANT not in client.grant_types,
    "unauthorized_client",
    "grant_types",
)
NO_DEVICE_GRANT = Rule(
    Stage.CLIENT,
    "The compliance level does not allow the device flow, because its requests are not pushed and not bound to the browser of the user.",
    lambda client: _DEVICE_GRANT not in client.grant_types,
    "unauthorized_client",
    "grant_types",
)
NO_IMPLICIT_GRANT = Rule(
    Stage.CLIENT,
    "The compliance level does not allow the implicit grant.",
    lambda client: "implicit" not in client.grant_types,
    "unauthorized_client",
    "grant_types",
)
HYBRID_GRANTS = Rule(
    Stage.CLIENT,
    "The compliance level requires the response type code id_token: add the grant type implicit, in addition to authorization_code.",
    lambda client: "authorization_code" not in client.grant_types or "implicit" in client.grant_types,
    "unauthorized_client",
    "grant_types",
)
REQUEST_KEYS = Rule(
    Stage.CLIENT,
    "The compliance level requires signed requests: assign a public key of the algorithm PS256 to signed requests, "
    "or set the address of a key set.",
    lambda client: "authorization_code" not in client.grant_types or _has_request_key(client),
    "unauthorized_client",
    "signed_request_object",
)
SHORT_PUSHES = Rule(
    Stage.CLIENT,
    "The compliance level requires pushed requests to expire in less than 600 seconds.",
    lambda client: (client.settings.get("par_request_expiry") or 0) <= _LONGEST_PUSH_SECONDS,
    "unauthorized_client",
    "par_request_expiry",
)
NO_ROTATION = Rule(
    Stage.CLIENT,
    "The compliance level does not allow rotation of refresh tokens, because a lost response would end the access of the client.",
    lambda client: not _rotates(client),
    "unauthorized_client",
    "refresh_token",
)

# --- Authentication of the client ---------------------------------------------------------------------------------------------

ASSERTION_FOR_ISSUER = Rule(
    Stage.PROOF,
    "The compliance level requires the aud of the client assertion to be the issuer, as one string.",
    lambda proof: not proof.has_assertion or proof.audience == proof.issuer,
    "invalid_client",
)

KEY_PROOF_ALGORITHMS = Rule(
    Stage.KEY_PROOF,
    "The compliance level requires DPoP proofs signed with ES256, PS256 or Ed25519.",
    lambda proof: proof.algorithm in ("ES256", ALGORITHM, "Ed25519"),
    "invalid_dpop_proof",
)

# --- Authorization requests ---------------------------------------------------------------------------------------------------

# Contract, 2.2, prescribes exactly this text.
PUSHED = Rule(
    Stage.REQUEST,
    "Pushed Authorization Requests are required by the configured compliance level",
    lambda request: request.is_pushed,
)
SIGNED = Rule(
    Stage.REQUEST,
    "The compliance level requires the authorization request to be a signed request object.",
    lambda request: request.is_signed,
)
CODE = Rule(
    Stage.REQUEST,
    "The compliance level requires the response type code.",
    lambda request: request.response_types == {"code"},
    "unsupported_response_type",
)
CODE_ID_TOKEN = Rule(
    Stage.REQUEST,
    "The compliance level requires the response type code id_token.",
    lambda request: request.response_types == {"code", "id_token"},
    "unsupported_response_type",
)
REDIRECT_URI = Rule(
    Stage.REQUEST,
    "The compliance level requires the parameter redirect_uri in the authorization request.",
    lambda request: request.has_redirect_uri,
)
PKCE_S256 = Rule(
    Stage.REQUEST,
    "The compliance level requires PKCE: send a code_challenge with the code_challenge_method S256.",
    lambda request: request.has_challenge and request.challenge_method == "S256",
)
PS256_REQUESTS = Rule(
    Stage.REQUEST_OBJECT,
    "The compliance level requires request objects signed with PS256.",
    lambda signed: signed.algorithm == ALGORITHM,
)
RECENT_REQUESTS = Rule(
    Stage.REQUEST_OBJECT,
    "The compliance level requires request objects whose nbf is at most 60 minutes old.",
    lambda signed: signed.not_before is not None and signed.now - signed.not_before <= _OLDEST_SECONDS,
)
SHORT_REQUESTS = Rule(
    Stage.REQUEST_OBJECT,
    "The compliance level requires request objects with an exp at most 60 minutes after their nbf.",
    lambda signed: (
        signed.expires_at is not None
        and signed.expires_at - (signed.now if signed.not_before is None else signed.not_before) <= _LONGEST_SECONDS
    ),
)

# --- Tokens -------------------------------------------------------------------------------------------------------------------

BOUND_TO_CERTIFICATE = Rule(
    Stage.TOKEN,
    "The compliance level requires tokens bound to a client certificate: send a certificate with the token request, and no DPoP proof.",
    lambda token: "x5t#S256" in token.confirmation,
)
BOUND = Rule(
    Stage.TOKEN,
    "The compliance level requires bound tokens: send a client certificate or a DPoP proof with the token request.",
    lambda token: bool(token.confirmation),
)
PS256_ACCESS_TOKENS = Rule(
    Stage.TOKEN,
    "The compliance level requires access tokens signed with PS256: set the signing_alg of the API to PS256.",
    lambda token: token.algorithm in ("", ALGORITHM),
    "invalid_target",
)
TOKEN_IN_HEADER = Rule(
    Stage.PROFILE,
    "The compliance level requires the access token in the Authorization header.",
    lambda profile: profile.is_in_header,
)

# --- Behavior of the service --------------------------------------------------------------------------------------------------

ISSUER_IN_ANSWER = Rule(Stage.SERVICE, "Each authorization response names the issuer (RFC 9207), regardless of the tenant settings.")
SHORT_CODES = Rule(Stage.SERVICE, f"An authorization code is valid for at most {LONGEST_CODE_SECONDS} seconds.")
STATE_HASH = Rule(Stage.SERVICE, "An id token that is issued with a code contains the hash of the state (s_hash).")
# FAPI 1.0 Advanced, 5.2.2.1: the id token of the authorization response passes through the browser.
NO_PROFILE_IN_BROWSER = Rule(Stage.SERVICE, "An id token of the authorization endpoint contains no profile data.")
NUMERIC_TIMES = Rule(Stage.SERVICE, "The claim updated_at is a number of seconds.")
STANDARD_ERRORS = Rule(Stage.SERVICE, "Errors have the statuses and codes of the standards.")
INTERACTION_IDS = Rule(Stage.SERVICE, "Responses repeat the header x-fapi-interaction-id.")
NO_OLD_ENDPOINTS = Rule(Stage.SERVICE, "The endpoints of old clients do not serve the client.")
