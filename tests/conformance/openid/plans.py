"""The test plans of the OpenID Foundation's conformance suite for providers, as data: test modules by id, with their variants.

The plans are from the releases of the suite in the years 2021 to 2026. The lists keep modules that a release removed or
renamed.
"""

from __future__ import annotations

from dataclasses import dataclass

CODE, ID_TOKEN, ID_TOKEN_TOKEN = "code", "id_token", "id_token token"
CODE_ID_TOKEN, CODE_TOKEN, CODE_ID_TOKEN_TOKEN = "code id_token", "code token", "code id_token token"


@dataclass(frozen=True)
class Variant:
    """A variant in which a module runs for OpenID Connect."""

    response_type: str = CODE
    is_form_post: bool = False

    def __str__(self) -> str:
        return self.response_type.replace(" ", "+") + (" by form" if self.is_form_post else "")

    @property
    def types(self) -> frozenset[str]:
        return frozenset(self.response_type.split())


@dataclass(frozen=True)
class BankVariant:
    """A variant in which a module runs for FAPI 2.0. A variant states how the client authenticates, how its tokens are bound, and whether
    its requests are signed."""

    authentication: str = "private_key_jwt"
    binding: str = "dpop"
    is_signed: bool = False

    def __str__(self) -> str:
        return f"{self.authentication}+{self.binding}" + (" signed" if self.is_signed else "")


# The modules of each response type.
Modules = dict[str, tuple[str, ...]]


# --- OpenID Connect Core --------------------------------------------------------------------------------------------------------

_EVERY_TYPE = (
    "oidcc-server",
    "oidcc-idtoken-signature",
    "oidcc-scope-profile",
    "oidcc-scope-email",
    "oidcc-scope-address",
    "oidcc-scope-phone",
    "oidcc-scope-all",
    "oidcc-alternate-happy-flow",
    "oidcc-display-page",
    "oidcc-display-popup",
    "oidcc-prompt-login",
    "oidcc-prompt-none-not-logged-in",
    "oidcc-prompt-none-logged-in",
    "oidcc-max-age-1",
    "oidcc-max-age-10000",
    "oidcc-ensure-request-with-unknown-parameter-succeeds",
    "oidcc-id-token-hint",
    "oidcc-login-hint",
    "oidcc-ui-locales",
    "oidcc-claims-locales",
    "oidcc-ensure-request-with-acr-values-succeeds",
    "oidcc-ensure-registered-redirect-uri",
    "oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported",
    "oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported",
    "oidcc-ensure-request-object-with-redirect-uri",
    "oidcc-claims-essential",
)
_WITH_TOKEN = ("oidcc-userinfo-get", "oidcc-userinfo-post-header", "oidcc-userinfo-post-body")
_WITH_CODE = ("oidcc-codereuse", "oidcc-codereuse-30seconds", "oidcc-server-client-secret-post", "oidcc-refresh-token")
_PKCE = "oidcc-ensure-request-with-valid-pkce-succeeds"
_OTHER_ORDER = "oidcc-ensure-other-scope-order-succeeds"
_NO_TYPE = "oidcc-response-type-missing"
_NONCE_NEEDED = "oidcc-ensure-request-without-nonce-fails"
_NONCE_NOT_NEEDED = "oidcc-ensure-request-without-nonce-succeeds-for-code-flow"

_BASIC: Modules = {
    CODE: (
        *_EVERY_TYPE, *_WITH_TOKEN, *_WITH_CODE, _PKCE, _OTHER_ORDER, _NO_TYPE, _NONCE_NOT_NEEDED, "oidcc-idtoken-unsigned",
        "oidcc-ensure-post-request-succeeds",
    ),
}  # fmt: skip
_IMPLICIT: Modules = {
    ID_TOKEN: (*_EVERY_TYPE, _NONCE_NEEDED, _OTHER_ORDER),
    ID_TOKEN_TOKEN: (*_EVERY_TYPE, *_WITH_TOKEN, _NONCE_NEEDED, _OTHER_ORDER, _NO_TYPE),
}
_HYBRID: Modules = {
    CODE_ID_TOKEN: (*_EVERY_TYPE, *_WITH_TOKEN, *_WITH_CODE, _NONCE_NEEDED, _PKCE, _OTHER_ORDER, _NO_TYPE),
    CODE_TOKEN: (*_EVERY_TYPE, *_WITH_TOKEN, *_WITH_CODE, _NONCE_NOT_NEEDED),
    CODE_ID_TOKEN_TOKEN: (*_EVERY_TYPE, *_WITH_TOKEN, *_WITH_CODE, _NONCE_NEEDED),
}
_DYNAMIC = (
    "oidcc-discovery-endpoint-verification",
    "oidcc-server",
    "oidcc-ensure-client-assertion-with-iss-aud-succeeds",
    "oidcc-ensure-redirect-uri-in-authorization-request",
    "oidcc-ensure-request-object-with-redirect-uri",
    "oidcc-idtoken-rs256",
    "oidcc-idtoken-unsigned",
    "oidcc-redirect-uri-query-OK",
    "oidcc-redirect-uri-query-added",
    "oidcc-redirect-uri-query-mismatch",
    "oidcc-redirect-uri-regfrag",
    "oidcc-refresh-token",
    "oidcc-refresh-token-rp-key-rotation",
    "oidcc-registration-dynamic",
    "oidcc-registration-jwks-uri",
    "oidcc-registration-logo-uri",
    "oidcc-registration-policy-uri",
    "oidcc-registration-sector-bad",
    "oidcc-registration-sector-uri",
    "oidcc-registration-tos-uri",
    "oidcc-request-uri-signed-rs256",
    "oidcc-request-uri-unsigned",
    "oidcc-server-rotate-keys",
    "oidcc-userinfo-rs256",
)
_LOGOUT = (
    "oidcc-rp-initiated-logout-discovery-endpoint-verification",
    "oidcc-rp-initiated-logout",
    "oidcc-rp-initiated-logout-bad-post-logout-redirect-uri",
    "oidcc-rp-initiated-logout-modified-id-token-hint",
    "oidcc-rp-initiated-logout-no-id-token-hint",
    "oidcc-rp-initiated-logout-no-params",
    "oidcc-rp-initiated-logout-no-post-logout-redirect-uri",
    "oidcc-rp-initiated-logout-no-state",
    "oidcc-rp-initiated-logout-only-state",
    "oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri",
    "oidcc-rp-initiated-logout-bad-id-token-hint",
)

# --- FAPI 2.0 ---------------------------------------------------------------------------------------------------------------------

FAPI = "fapi2-security-profile-final-"
_SIGNED_ONLY = (
    "ensure-request-object-with-multiple-aud-succeeds",
    "ensure-request-object-with-nbf-8-seconds-in-the-future-is-accepted",
    "ensure-request-object-without-exp-fails",
    "ensure-request-object-without-nbf-fails",
    "ensure-expired-request-object-fails",
    "ensure-request-object-with-bad-aud-fails",
    "ensure-request-object-with-exp-over-60-fails",
    "australia-connectid-ensure-request-object-with-exp-over-10-fails",
    "ensure-request-object-with-nbf-over-60-fails",
    "australia-connectid-ensure-request-object-with-nbf-over-15-fails",
    "ksa-ensure-request-object-with-exp-over-10-fails",
    "ksa-ensure-request-object-with-nbf-over-10-fails",
    "ensure-signed-request-object-with-RS256-fails",
    "ensure-request-object-signature-algorithm-is-not-none",
    "ensure-request-object-with-invalid-signature-fails",
    "ensure-matching-key-in-authorization-request",
    "ensure-unsigned-request-at-par-endpoint-fails",
    "par-authorization-request-containing-request_uri",
)
_WITH_KEY = (
    "check-dpop-proof-nbf-exp",
    "ensure-dpopproof-with-iat-10seconds-before-succeeds",
    "ensure-dpopproof-with-iat-10seconds-after-succeeds",
    "ensure-mismatched-dpop-jkt-fails",
    "ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt",
    "ensure-token-endpoint-fails-with-mismatched-dpop-jkt",
    "ensure-dpopproof-at-par-endpoint-binding-success",
    "ensure-dpop-auth-code-binding-success",
    "dpop-negative-tests",
)
_WITH_ASSERTION = (
    "ensure-signed-client-assertion-with-RS256-fails",
    "ensure-client-assertion-in-token-endpoint",
    "ensure-client-assertion-with-exp-is-5-minutes-in-past-fails",
    "ensure-client-assertion-with-wrong-aud-fails",
    "ensure-client-assertion-with-no-sub-fails",
    "ensure-invalid-client-assertions-fail",
    "par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted",
    "par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails",
    "par-test-array-as-audience-fails",
    "par-test-par-endpoint-url-as-audience-fails",
    "par-test-token-endpoint-url-as-audience-fails",
)
_ALWAYS = (
    "discovery-end-point-verification",
    "happy-flow",
    "user-rejects-authentication",
    "ensure-authorization-request-without-state-success",
    "ensure-authorization-request-without-nonce-success",
    "ensure-authorization-request-with-64-char-nonce-success",
    "ensure-other-scope-order-succeeds",
    "test-claims-parameter-identity-claims",
    "access-token-type-header-case-sensitivity",
    "ensure-different-nonce-inside-and-outside-request-object",
    "ensure-different-state-inside-and-outside-request-object",
    "ensure-authorization-request-with-long-nonce",
    "ensure-authorization-request-with-long-state",
    "state-only-outside-request-object-not-used",
    "ensure-request-object-without-redirect-uri-fails",
    "ensure-registered-redirect-uri",
    "plain-fapi-tolerate-unregistered-redirect-uri",
    "ensure-unsigned-authorization-request-without-using-par-fails",
    "ensure-redirect-uri-in-authorization-request",
    "ensure-response-type-code-idtoken-fails",
    "australia-connectid-ensure-invalid-purpose-fails",
    "ensure-response-type-token-fails",
    "ensure-client-id-in-token-endpoint",
    "ensure-holder-of-key-required",
    "ensure-authorization-code-is-bound-to-client",
    "attempt-reuse-authorization-code-after-one-second",
    "ensure-token-endpoint-fails-with-expired-auth-code",
    "refresh-token",
    "cdr-sharing-duration-zero",
    "cdr-negative-sharing-duration",
    "cdr-refresh-token-introspection-expiry",
    "cdr-arrangement-amendment",
    "cdr-unrecognised-arrangement-id",
    "brazil-ensure-bad-payment-signature-fails",
    "australia-connectid-test-claims-parameter-idtoken-identity-claims",
    "par-ensure-reused-request-uri-prior-to-auth-completion-succeeds",
    "par-attempt-reuse-request_uri",
    "par-attempt-to-use-expired-request_uri",
    "par-attempt-to-use-request_uri-for-different-client",
    "par-authorization-request-containing-request_uri-form-param",
    "par-attempt-invalid-http-method",
    "par-ensure-pkce-required",
    "ensure-pkce-code-verifier-required",
    "incorrect-pkce-code-verifier-rejected",
    "par-plain-pkce-rejected",
    "par-without-duplicate-parameters",
    "grant-management-happy-flow",
    "grant-management-query-and-revoke",
    "grant-management-merge",
    "grant-management-replace",
    "grant-management-ensure-invalid-grant-id-fails",
    "grant-management-ensure-query-nonexistent-grant-fails",
    "grant-management-ensure-query-after-revoke-fails",
    "grant-management-ensure-wrong-client-cannot-query-grant",
    "grant-management-ensure-wrong-client-cannot-revoke-grant",
)
# A client that authenticates with a certificate also binds its tokens to this certificate, because no compliance level lets such a client
# bind tokens to a key.
_BANK_VARIANTS = (BankVariant(), BankVariant(binding="mtls"), BankVariant("tls_client_auth", "mtls"))


def _by_form(modules: dict[str, tuple[str, ...]]) -> dict[Variant, tuple[str, ...]]:
    return {Variant(response_type, is_form_post=True): ids for response_type, ids in modules.items()}


def _plain(modules: dict[str, tuple[str, ...]]) -> dict[Variant, tuple[str, ...]]:
    return {Variant(response_type): ids for response_type, ids in modules.items()}


def _for_code(*ids: str) -> dict[Variant, tuple[str, ...]]:
    return {Variant(): ids}


def _of_banks(*, is_signed: bool) -> dict[BankVariant, tuple[str, ...]]:
    found = {}
    for one in _BANK_VARIANTS:
        names = (*_ALWAYS, *(_SIGNED_ONLY if is_signed else ()))
        names += _WITH_KEY if one.binding == "dpop" else ()
        names += _WITH_ASSERTION if one.authentication == "private_key_jwt" else ()
        found[BankVariant(one.authentication, one.binding, is_signed)] = tuple(FAPI + name for name in names)
    return found


# Each plan: its variants, and the modules of each variant.
PLANS: dict[str, dict[Variant, tuple[str, ...]]] = {
    "oidcc-basic-certification-test-plan": _plain(_BASIC),
    "oidcc-implicit-certification-test-plan": _plain(_IMPLICIT),
    "oidcc-hybrid-certification-test-plan": _plain(_HYBRID),
    "oidcc-formpost-basic-certification-test-plan": _by_form(_BASIC),
    "oidcc-formpost-implicit-certification-test-plan": _by_form(_IMPLICIT),
    "oidcc-formpost-hybrid-certification-test-plan": _by_form(_HYBRID),
    "oidcc-config-certification-test-plan": _for_code("oidcc-discovery-endpoint-verification"),
    "oidcc-dynamic-certification-test-plan": _for_code(*_DYNAMIC),
    "oidcc-3rdparty-init-login-certification-test-plan": _for_code("oidcc-3rd_party-init-login", "oidcc-3rd_party-init-login-nohttps"),
    "oidcc-rp-initiated-logout-certification-test-plan": _for_code(*_LOGOUT),
    "oidcc-backchannel-rp-initiated-logout-certification-test-plan": _for_code(
        "oidcc-backchannel-logout-discovery-endpoint-verification", "oidcc-backchannel-rp-initiated-logout"
    ),
    "oidcc-frontchannel-rp-initiated-logout-certification-test-plan": _for_code(
        "oidcc-frontchannel-logout-discovery-endpoint-verification", "oidcc-frontchannel-rp-initiated-logout"
    ),
    "oidcc-session-management-certification-test-plan": _for_code(
        "oidcc-session-management-discovery-endpoint-verification", "oidcc-session-management-rp-initiated-logout"
    ),
}
BANK_PLANS: dict[str, dict[BankVariant, tuple[str, ...]]] = {
    "fapi2-security-profile-final-test-plan": _of_banks(is_signed=False),
    "fapi2-message-signing-final-test-plan": _of_banks(is_signed=True),
}


def ids() -> frozenset[str]:
    """Return the id of every module of every plan."""
    of_plans = (names for plan in PLANS.values() for names in plan.values())
    of_banks = (names for plan in BANK_PLANS.values() for names in plan.values())
    return frozenset(name for names in (*of_plans, *of_banks) for name in names)


def name_of_test(module: str) -> str:
    """Return the name of the test of a module."""
    return "test_" + module.lower().replace("-", "_")


def variants_of(module: str) -> list[Variant | BankVariant]:
    """Return every variant in which a plan runs a module, in the order of the plans."""
    plain = [variant for plan in PLANS.values() for variant, names in plan.items() if module in names]
    banks = [variant for plan in BANK_PLANS.values() for variant, names in plan.items() if module in names]
    return list(dict.fromkeys([*plain, *banks]))
