"""Turns the contents of an assertion into claims of a profile, named as in OpenID Connect. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.options import FIELDS
from foundation.json_values import text_problem

_FORMATS = "urn:oasis:names:tc:SAML:{}:nameid-format:{}"
TRANSIENT = _FORMATS.format("2.0", "transient")
PERSISTENT = _FORMATS.format("2.0", "persistent")
EMAIL_FORMAT = _FORMATS.format("1.1", "emailAddress")
_XMLSOAP = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
_MICROSOFT = "http://schemas.microsoft.com/identity/claims/"
NAME_IDENTIFIER = f"{_XMLSOAP}nameidentifier"
# The default attribute names of each field, as common providers send them. The first name for which the assertion has
# a value is used.
_DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "user_id": (NAME_IDENTIFIER, f"{_XMLSOAP}upn", f"{_XMLSOAP}name"),
    "email": (
        f"{_XMLSOAP}emailaddress",
        "http://schemas.xmlsoap.org/claims/EmailAddress",
        "urn:oid:0.9.2342.19200300.100.1.3",
        "email",
        "mail",
        "Email",
        "EmailAddress",
        "emailAddress",
    ),
    "email_verified": ("email_verified", "http://schemas.auth0.com/email_verified"),
    "name": (
        f"{_MICROSOFT}displayname",
        "urn:oid:2.16.840.1.113730.3.1.241",
        f"{_XMLSOAP}name",
        "name",
        "displayName",
        "http://schemas.xmlsoap.org/claims/CommonName",
        "urn:oid:2.5.4.3",
        "cn",
    ),
    "given_name": (f"{_XMLSOAP}givenname", "urn:oid:2.5.4.42", "given_name", "givenName", "firstName", "FirstName", "first_name"),
    "family_name": (f"{_XMLSOAP}surname", "urn:oid:2.5.4.4", "family_name", "sn", "surname", "lastName", "LastName", "last_name"),
    "nickname": ("http://schemas.auth0.com/nickname", "nickname"),
    "picture": ("http://schemas.auth0.com/picture", "picture"),
    "phone_number": ("phone_number", f"{_XMLSOAP}mobilephone", "urn:oid:0.9.2342.19200300.100.1.41"),
    "phone_verified": ("phone_verified",),
}
_WIRE_NAMES = {"phone_verified": "phone_number_verified"}
_LONGEST_SUBJECT = 255


@dataclass(frozen=True)
class NameId:
    """The name of the subject as the provider writes it. A logout request repeats every part of this name."""

    value: str
    format: str = ""
    name_qualifier: str = ""
    sp_name_qualifier: str = ""

    @property
    def is_transient(self) -> bool:
        return self.format == TRANSIENT


@dataclass(frozen=True)
class Statement:
    """A user as a verified assertion describes the user."""

    issuer: str
    name_id: NameId | None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    session_index: str = ""


class MappingOptions(Protocol):
    """The options of a SAML or WS-Federation connection that decide which attributes become claims."""

    @property
    def fields(self) -> tuple[tuple[str, tuple[str, ...]], ...]: ...
    @property
    def user_id_attributes(self) -> tuple[str, ...]: ...
    @property
    def trusts_emails(self) -> bool | None: ...


def statement_claims(statement: Statement, options: MappingOptions) -> dict[str, Any]:
    """Return the claims of a statement as a connection maps them. Raises `UpstreamFailed` if nothing identifies the user."""
    return claims_of(statement, fields=options.fields, user_id_attributes=options.user_id_attributes, trusts_emails=options.trusts_emails)


def attributes_read(options: MappingOptions) -> frozenset[str]:
    """Return the names of the attributes that `statement_claims` reads."""
    mapped = dict(options.fields)
    subject = options.user_id_attributes or mapped.get("user_id") or _DEFAULTS["user_id"]
    return frozenset({*subject, *(name for field in FIELDS[1:] for name in mapped.get(field) or _DEFAULTS[field])})


def claims_of(
    statement: Statement,
    *,
    fields: Iterable[tuple[str, tuple[str, ...]]] = (),
    user_id_attributes: tuple[str, ...] = (),
    trusts_emails: bool | None = None,
) -> dict[str, Any]:
    """Return `sub` and the standard claims of a statement. Raises `UpstreamFailed` if nothing identifies the user."""
    mapped = dict(fields)
    claims: dict[str, Any] = {"sub": _subject(statement, user_id_attributes or mapped.get("user_id", ()))}
    for name in FIELDS[1:]:
        value = _first(statement.attributes, mapped.get(name) or _DEFAULTS[name])
        if value:
            claims[_WIRE_NAMES.get(name, name)] = value.lower() if name.endswith("_verified") else value
    named = statement.name_id
    if "email" not in claims and "email" not in mapped and named is not None and named.format == EMAIL_FORMAT:
        claims["email"] = named.value
    if trusts_emails is not None and "email" in claims:
        claims["email_verified"] = trusts_emails
    return claims


def _subject(statement: Statement, configured: tuple[str, ...]) -> str:
    """Return the identifier of the user. If attributes are configured and none has a value, refuse the login.

    The NameID counts as a value of the attribute `NAME_IDENTIFIER`. If attributes are configured, the default attributes are not tried,
    because a default attribute may identify another user.
    """
    if configured:
        subject = _first(statement.attributes, configured)
        if not subject and NAME_IDENTIFIER in configured and statement.name_id is not None and not statement.name_id.is_transient:
            subject = statement.name_id.value
        if not subject:
            raise _refused(f"The assertion lacks the attribute that identifies users: {', '.join(configured)[:300]}. {_listed(statement)}")
    elif statement.name_id is not None and not statement.name_id.is_transient:
        subject = statement.name_id.value
    else:
        subject = _first(statement.attributes, _DEFAULTS["user_id"])
        if not subject:
            raise _refused(_nameless(statement))
    if not 0 < len(subject) <= _LONGEST_SUBJECT or text_problem(subject):
        raise _refused("The identifier of the user is longer than 255 characters, or has characters that cannot be stored.")
    return subject


def _nameless(statement: Statement) -> str:
    if statement.name_id is None:
        return (
            f"The assertion has no NameID. Send one, or name the attribute that identifies users (user_id_attribute). {_listed(statement)}"
        )
    return (
        "The NameID is transient: the provider makes another NameID at each login. Send a persistent one, or name the attribute that"
        f" identifies users (user_id_attribute). {_listed(statement)}"
    )


def _listed(statement: Statement) -> str:
    names = ", ".join(list(statement.attributes)[:20])
    return f"The assertion has these attributes: {names[:300]}." if names else "The assertion has no attributes."


def _first(attributes: Mapping[str, tuple[str, ...]], names: Iterable[str]) -> str:
    for name in names:
        value = next((text.strip() for text in attributes.get(name, ()) if text.strip()), "")
        if value:
            return value
    return ""


def _refused(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_PROFILE_REFUSED, detail)
