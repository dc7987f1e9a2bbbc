"""Names of SAML 2.0 in messages and settings. Pure data."""

from __future__ import annotations

from authapi.tokens.contexts import SECOND_FACTORS

_SAML = "urn:oasis:names:tc:SAML"

UNSPECIFIED_NAME = f"{_SAML}:1.1:nameid-format:unspecified"
EMAIL_NAME = f"{_SAML}:1.1:nameid-format:emailAddress"
PERSISTENT_NAME = f"{_SAML}:2.0:nameid-format:persistent"
TRANSIENT_NAME = f"{_SAML}:2.0:nameid-format:transient"
# Some senders write a format with the version number of other formats (1.1 or 2.0). These spellings are accepted, too.
OTHER_SPELLINGS = {
    f"{_SAML}:2.0:nameid-format:unspecified": UNSPECIFIED_NAME,
    f"{_SAML}:2.0:nameid-format:emailAddress": EMAIL_NAME,
    f"{_SAML}:1.1:nameid-format:persistent": PERSISTENT_NAME,
    f"{_SAML}:1.1:nameid-format:transient": TRANSIENT_NAME,
}
ENTITY_NAME = f"{_SAML}:2.0:nameid-format:entity"

UNSPECIFIED_CLASS = f"{_SAML}:2.0:ac:classes:unspecified"
PASSWORD_CLASS = f"{_SAML}:2.0:ac:classes:Password"
PROTECTED_PASSWORD_CLASS = f"{_SAML}:2.0:ac:classes:PasswordProtectedTransport"
# Classes of authentication that require a second factor. Requests of OpenID Connect use the same names for contexts.
SECOND_FACTOR_CLASSES = SECOND_FACTORS

BEARER = f"{_SAML}:2.0:cm:bearer"
URI_NAMES = f"{_SAML}:2.0:attrname-format:uri"
BASIC_NAMES = f"{_SAML}:2.0:attrname-format:basic"
UNSPECIFIED_NAMES = f"{_SAML}:2.0:attrname-format:unspecified"

STATUS = f"{_SAML}:2.0:status:"
SUCCESS = f"{STATUS}Success"
REQUESTER = f"{STATUS}Requester"
RESPONDER = f"{STATUS}Responder"
AUTHN_FAILED = f"{STATUS}AuthnFailed"
INVALID_NAME_ID_POLICY = f"{STATUS}InvalidNameIDPolicy"
NO_AUTHN_CONTEXT = f"{STATUS}NoAuthnContext"
NO_PASSIVE = f"{STATUS}NoPassive"
PARTIAL_LOGOUT = f"{STATUS}PartialLogout"
REQUEST_DENIED = f"{STATUS}RequestDenied"
REQUEST_UNSUPPORTED = f"{STATUS}RequestUnsupported"
UNKNOWN_PRINCIPAL = f"{STATUS}UnknownPrincipal"
UNSUPPORTED_BINDING = f"{STATUS}UnsupportedBinding"

CLAIMS = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims"
NAME_IDENTIFIER = f"{CLAIMS}/nameidentifier"
EMAIL_ADDRESS = f"{CLAIMS}/emailaddress"
NAME = f"{CLAIMS}/name"
GIVEN_NAME = f"{CLAIMS}/givenname"
SURNAME = f"{CLAIMS}/surname"
UPN = f"{CLAIMS}/upn"
