"""The names of the claims that a connection reads. A test of the connection stores claims only up to a maximum total size, and stores
these claims first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.profile import STANDARD_CLAIMS, named_claims
from authapi.upstream.provider import rules_of
from authapi.upstream.saml import connections as saml_connections
from authapi.upstream.saml.claims import MappingOptions, attributes_read
from authapi.upstream.saml.options import STRATEGIES
from authapi.upstream.sample_claims import speaks_assertions
from authapi.upstream.sent_claims import ALWAYS_KEPT, NAME_ID, printable
from authapi.upstream.wsfed import login as wsfed_login
from identity.models import Connection

# The names in an expression. The names of functions match, too, so a claim that has the name of a function counts as read.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\"[^\"]+\"")


def read_claims(connection: Connection) -> frozenset[str]:
    """Return the names of the claims, or of the attributes, that decide the subject and the profile of a login."""
    try:
        return ALWAYS_KEPT | (_attributes(connection) if speaks_assertions(connection) else _claims(connection))
    except UpstreamFailed:
        # The options are incomplete, so no login reads claims.
        return ALWAYS_KEPT


def unstored_claims(connection: Connection, left_out: Iterable[str]) -> list[str]:
    """Return the claims that the connection reads and that its test did not store."""
    read = {printable(name) for name in read_claims(connection)}
    return [name for name in left_out if name in read]


def assertion_options(connection: Connection) -> MappingOptions:
    """Return how a connection maps the attributes of assertions. Raises `UpstreamFailed`."""
    if connection.strategy in STRATEGIES:
        return saml_connections.options_of(connection)
    return wsfed_login.options_of(connection)


def _attributes(connection: Connection) -> frozenset[str]:
    return attributes_read(assertion_options(connection)) | {NAME_ID}


def _claims(connection: Connection) -> frozenset[str]:
    mapped: Any = connection.options.get("attribute_map")
    fields: Mapping[str, str] = rules_of(connection).fields
    names = {name.strip('"') for expression in fields.values() for name in _NAME.findall(expression)}
    return STANDARD_CLAIMS | named_claims(mapped) | names
