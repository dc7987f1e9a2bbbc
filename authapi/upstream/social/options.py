"""Reads the options of social and OAuth 2.0 connections, and describes an invalid option in a sentence. Pure.

Missing options are accepted, because a connection may be saved before its provider is known. The error of a login through the connection
names the missing option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from authapi.upstream.social.signed_secret import SigningKeyInvalid, check_key
from foundation.expressions.language import MAX_CHARACTERS, ExpressionRefused, compile_expression

# A domain, or a directory id.
DIRECTORY = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")
VERSION = re.compile(r"v[0-9]{1,3}\.[0-9]{1,2}")
# The profile fields that an expression may set; `user_id` means the identifier of the user.
FIELDS = (
    *("user_id", "email", "email_verified", "name", "nickname", "given_name", "family_name", "picture"),
    *("phone_number", "phone_number_verified"),
)
AUTH_METHODS = ("client_secret_post", "client_secret_basic")
_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?)+")
_MOST_DOMAINS = 100
_LONGEST_ADDRESS = 2048
_ADDRESSES = ("authorizationURL", "tokenURL", "userInfoURL", "authorization_endpoint", "token_endpoint", "userinfo_endpoint")
_APPLE_ID = re.compile(r"[A-Za-z0-9]{1,20}")
# RFC 9110, 5.1: the name of a header is a token. Two kinds of headers cannot be configured: headers that describe the connection or the
# body, and headers that every request sets.
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_FIXED_HEADERS = frozenset(
    {
        *("host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "te", "trailer", "upgrade"),
        *("cookie", "expect", "accept-encoding"),
    }
)
_MOST_HEADERS = 20
_LONGEST_HEADER = 4096
_NO_SCRIPT = (
    "scripts.fetchUserProfile is not supported. Set userInfoURL to the address of the profile, and list the members of the profile"
    " in fieldsMap, such as user_id: id."
)


def oauth2_problem(_strategy: str, options: Mapping[str, Any], *, allows_http: bool) -> str | None:
    """Return a sentence about an invalid option of an `oauth2` connection, or None."""
    scripts = options.get("scripts")
    if isinstance(scripts, Mapping) and scripts.get("fetchUserProfile"):
        return _NO_SCRIPT
    for name in _ADDRESSES:
        if options.get(name) not in (None, "") and not _is_address(options[name], allows_http=allows_http):
            return f"{name} must be an https address."
    if options.get("token_endpoint_auth_method") not in (None, "", *AUTH_METHODS):
        return f"token_endpoint_auth_method must be one of {', '.join(AUTH_METHODS)}."
    if not isinstance(options.get("pkce_enabled"), bool | None):
        return "pkce_enabled must be true or false."
    return _fields_problem(options.get("fieldsMap")) or _headers_problem(options.get("customHeaders"))


def social_problem(strategy: str, options: Mapping[str, Any]) -> str | None:
    """Return a sentence about an invalid option of a known provider, or None."""
    check = _CHECKS.get(strategy)
    return check(options) if check is not None else None


def hosted_domains_in(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the domains of organizations whose users may log in. If there are none, users of every organization may log in."""
    named = options.get("hosted_domains")
    return tuple(one.lower() for one in named if isinstance(one, str)) if isinstance(named, list) else ()


def written_fields(fields: Any) -> dict[str, str]:
    """Return the expressions of `fieldsMap` by claim; the field `user_id` becomes the claim `sub`."""
    if not isinstance(fields, Mapping):
        return {}
    named = {name: text for name, text in fields.items() if name in FIELDS and isinstance(text, str) and text}
    return {"sub" if name == "user_id" else name: text for name, text in named.items()}


def _google_problem(options: Mapping[str, Any]) -> str | None:
    named = options.get("hosted_domains")
    if named is None:
        return None
    if not isinstance(named, list) or len(named) > _MOST_DOMAINS or not all(_is_domain(one) for one in named):
        return f"hosted_domains must be a list of at most {_MOST_DOMAINS} domains, such as example.com."
    return None


def _apple_problem(options: Mapping[str, Any]) -> str | None:
    for name in ("team_id", "kid"):
        value = options.get(name)
        if value not in (None, "") and not (isinstance(value, str) and _APPLE_ID.fullmatch(value)):
            return f"{name} must be letters and digits, as Apple shows it."
    pem = options.get("app_secret")
    if pem in (None, ""):
        return None
    try:
        check_key(pem if isinstance(pem, str) else "")
    except SigningKeyInvalid:
        return "app_secret must be the private key that Apple made, the whole text of the .p8 file."
    return None


def _facebook_problem(options: Mapping[str, Any]) -> str | None:
    version = options.get("graph_version")
    if version not in (None, "") and not (isinstance(version, str) and VERSION.fullmatch(version)):
        return "graph_version must be a version of the Graph API, such as v23.0."
    return None


def _entra_problem(options: Mapping[str, Any]) -> str | None:
    for name in ("tenantId", "tenant_domain", "domain"):
        value = options.get(name)
        if value not in (None, "") and not (isinstance(value, str) and DIRECTORY.fullmatch(value.lower())):
            return f"{name} must be a domain or the id of a directory."
    return None


_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "google-oauth2": _google_problem,
    "apple": _apple_problem,
    "facebook": _facebook_problem,
    "waad": _entra_problem,
}


def _fields_problem(fields: Any) -> str | None:
    if fields is None:
        return None
    if not isinstance(fields, Mapping):
        return "fieldsMap must be an object: a field of the profile and an expression, such as user_id: id."
    for name, text in fields.items():
        if name not in FIELDS:
            return f"fieldsMap: there is no field {str(name)[:100]}. The fields are {', '.join(FIELDS)}."
        if not isinstance(text, str) or not 0 < len(text) <= MAX_CHARACTERS:
            return f"fieldsMap: {name} must be an expression of 1 to {MAX_CHARACTERS} characters, such as data.email."
        try:
            compile_expression(text)
        except ExpressionRefused as error:
            return f"fieldsMap: {name}: {error}"
    return None


def _headers_problem(headers: Any) -> str | None:
    if headers is None:
        return None
    if not isinstance(headers, Mapping) or len(headers) > _MOST_HEADERS:
        return f"customHeaders must be an object of at most {_MOST_HEADERS} names and values."
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _FIXED_HEADERS:
            return f"customHeaders: {str(name)[:100]} is not the name of a header that can be set."
        # Null deletes the stored header.
        if value is not None and not _is_header_value(value):
            return f"customHeaders: the value of {name} must be a text of visible characters."
    return None


def _is_header_value(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_HEADER and value.isascii() and value.isprintable()


def _is_domain(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 253 and _DOMAIN.fullmatch(value.lower()) is not None


def _is_address(value: Any, *, allows_http: bool) -> bool:
    if not isinstance(value, str) or len(value) > _LONGEST_ADDRESS or not value.isprintable() or " " in value or "\\" in value:
        return False
    try:
        parts = urlsplit(value)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    is_web = parts.scheme == "https" or (parts.scheme == "http" and allows_http)
    return is_web and bool(host) and "@" not in parts.netloc and not parts.fragment
