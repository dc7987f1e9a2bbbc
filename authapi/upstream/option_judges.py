"""Checks the options of a connection before the connection is saved. One table has the check for each strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from authapi.accounts.passwordless.options import passwordless_problem
from authapi.upstream.provider import GENERIC
from authapi.upstream.provider_metadata import pasted_metadata
from authapi.upstream.saml import options as saml_options
from authapi.upstream.saml.metadata import MetadataUnreadable, read_metadata
from authapi.upstream.saml.options import OptionsInvalid
from authapi.upstream.social.known_providers import KNOWN
from authapi.upstream.social.options import oauth2_problem, social_problem
from authapi.upstream.wsfed import options as wsfed_options
from authapi.upstream.wsfed.metadata import read_federation_metadata
from identity.models.connections import PASSWORDLESS_STRATEGIES

WSFED_STRATEGIES = ("adfs", "waad")


def saml_problem(_strategy: str, options: Mapping[str, Any]) -> str | None:
    """Return a sentence about an invalid option of a SAML connection, or None. Missing options are accepted."""
    try:
        read = saml_options.read_options(options, allows_http=settings.OUTBOUND_ALLOW_HTTP)
        if read.metadata_xml:
            pasted_metadata(read.metadata_xml, read_metadata)
    except OptionsInvalid as error:
        return str(error)
    except MetadataUnreadable as error:
        return f"metadataXml: {error}"
    return None


def wsfed_problem(strategy: str, options: Mapping[str, Any]) -> str | None:
    """Return a sentence about an invalid option of an `adfs` or `waad` connection, or None.

    A `waad` connection can use WS-Federation or OpenID Connect.
    """
    if not wsfed_options.is_wsfed(strategy, options):
        return social_problem(strategy, options)
    try:
        read = wsfed_options.read_options(strategy, options, allows_http=settings.OUTBOUND_ALLOW_HTTP)
        if read.metadata_xml:
            pasted_metadata(read.metadata_xml, read_federation_metadata)
    except OptionsInvalid as error:
        return str(error)
    except MetadataUnreadable as error:
        return f"fedMetadataXml: {error}"
    return None


def generic_problem(strategy: str, options: Mapping[str, Any]) -> str | None:
    """Return a sentence about an invalid option of an `oauth2` connection, or None."""
    return oauth2_problem(strategy, options, allows_http=settings.OUTBOUND_ALLOW_HTTP)


# The checks of options, each with its strategies.
JUDGES = (
    (saml_options.STRATEGIES, saml_problem),
    (WSFED_STRATEGIES, wsfed_problem),
    (PASSWORDLESS_STRATEGIES, passwordless_problem),
    ((GENERIC,), generic_problem),
    (tuple(strategy for strategy in KNOWN if strategy not in WSFED_STRATEGIES), social_problem),
)
