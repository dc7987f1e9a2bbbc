"""Builds the request with which the browser takes a message to the provider. Pure."""

from __future__ import annotations

from authapi.login.protocol import BrowserCall
from authapi.upstream.saml.provider import Endpoint
from authapi.xml.bindings import Signer, posted_fields, redirect_address
from authapi.xml.parsing import Element


def call_of(endpoint: Endpoint, parameter: str, message: Element, relay_state: str, signer: Signer | None) -> BrowserCall:
    """Return the browser's request in the binding of the endpoint, signed if there is a signer."""
    if endpoint.is_posted:
        return BrowserCall(endpoint.address, posted_fields(parameter, message, relay_state, signer))
    return BrowserCall(redirect_address(endpoint.address, parameter, message, relay_state, signer))
