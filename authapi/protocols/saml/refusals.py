"""Maps an error to the status codes of a response (SAML core, 3.2.2.2). Pure."""

from __future__ import annotations

from authapi.failures import Case
from authapi.failures.logins import LoginCase
from authapi.failures.saml import SamlCase
from authapi.protocols.saml.names import (
    AUTHN_FAILED,
    INVALID_NAME_ID_POLICY,
    NO_AUTHN_CONTEXT,
    NO_PASSIVE,
    REQUEST_DENIED,
    REQUEST_UNSUPPORTED,
    REQUESTER,
    RESPONDER,
    UNKNOWN_PRINCIPAL,
    UNSUPPORTED_BINDING,
)

_NEEDS_A_PAGE = frozenset(
    {LoginCase.LOGIN_REQUIRED, LoginCase.SECOND_FACTOR_REQUIRED, LoginCase.CONSENT_REQUIRED, LoginCase.INTERACTION_REQUIRED}
)
_CODES: dict[Case, tuple[str, str]] = {
    SamlCase.BINDING_UNSUPPORTED: (RESPONDER, UNSUPPORTED_BINDING),
    SamlCase.REQUEST_UNSUPPORTED: (REQUESTER, REQUEST_UNSUPPORTED),
    SamlCase.NAME_ID_UNAVAILABLE: (REQUESTER, INVALID_NAME_ID_POLICY),
    SamlCase.CONTEXT_UNAVAILABLE: (RESPONDER, NO_AUTHN_CONTEXT),
    SamlCase.OTHER_USER: (RESPONDER, UNKNOWN_PRINCIPAL),
    LoginCase.LOGIN_REQUIRED: (RESPONDER, AUTHN_FAILED),
    LoginCase.FACTORS_NOT_MET: (RESPONDER, NO_AUTHN_CONTEXT),
}
_FORBIDDEN = 403


def codes_of(case: Case, status: int, *, is_passive: bool) -> tuple[str, ...]:
    """Return the outer status code and, if the error has one, the inner status code."""
    if is_passive and case in _NEEDS_A_PAGE:
        return RESPONDER, NO_PASSIVE
    if case in _CODES:
        return _CODES[case]
    return (RESPONDER, REQUEST_DENIED) if status == _FORBIDDEN else (RESPONDER,)
