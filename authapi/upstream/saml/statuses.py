"""The meaning of the status codes of SAML responses, in words that help an administrator (SAML Core 2.0, 3.2.2.2). Pure."""

from __future__ import annotations

from collections.abc import Sequence

SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success"
PREFIX = "urn:oasis:names:tc:SAML:2.0:status:"
_WORDS = {
    "Requester": "The provider refuses the request as it was sent.",
    "Responder": "The provider failed.",
    "VersionMismatch": "The provider does not support SAML 2.0.",
    "AuthnFailed": "The provider could not log the user in.",
    "InvalidAttrNameOrValue": "The provider does not accept an attribute of the request.",
    "InvalidNameIDPolicy": "The provider cannot send a NameID in the requested format.",
    "NoAuthnContext": "The provider cannot log the user in as strongly as requested.",
    "NoAvailableIDP": "The provider is a proxy and reaches no provider behind it.",
    "NoPassive": "The provider would have to show a page, but the request forbids pages.",
    "NoSupportedIDP": "The provider is a proxy and supports no provider behind it.",
    "PartialLogout": "The provider could not end all sessions.",
    "ProxyCountExceeded": "The provider may not forward the request to a further provider.",
    "RequestDenied": "The provider does not answer this service. At the provider, check that the service is registered and that the user "
    "may use it.",
    "RequestUnsupported": "The provider does not support the request.",
    "RequestVersionDeprecated": "The provider no longer accepts this version of SAML.",
    "RequestVersionTooHigh": "The provider does not accept this version of SAML.",
    "RequestVersionTooLow": "The provider does not accept this version of SAML.",
    "ResourceNotRecognized": "The provider does not know the requested resource.",
    "TooManyResponses": "The response would have more elements than the provider can return.",
    "UnknownAttrProfile": "The provider does not know the attribute profile.",
    "UnknownPrincipal": "The provider does not know the user.",
    "UnsupportedBinding": "The provider does not answer by HTTP POST. At the provider, allow HTTP-POST for the assertion consumer service.",
}
_LONGEST_TOLD = 300


def status_words(codes: Sequence[str], message: str = "") -> str:
    """Return the text for a status other than success: the meaning of the innermost known code, and the message of the provider."""
    names = [code.removeprefix(PREFIX) for code in codes]
    known = next((_WORDS[name] for name in reversed(names) if name in _WORDS), "The provider refuses the request without a known reason.")
    shown = " / ".join(_printable(name, 80) for name in names[:4])
    told = _printable(message, _LONGEST_TOLD)
    return f"{known} Status: {shown or 'missing'}.{f' The provider says: {told}' if told else ''}"


def _printable(text: str, longest: int) -> str:
    return "".join(character if character.isprintable() else " " for character in text).strip()[:longest]
