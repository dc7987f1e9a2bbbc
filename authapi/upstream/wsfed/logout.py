"""Ends a login at a WS-Federation provider (WS-Federation 1.2, 13.2.4)."""

from __future__ import annotations

from authapi.login.protocol import BrowserCall
from authapi.upstream.wsfed.login import sign_out_call, wsfed_provider
from identity.models import Connection


def sign_out_of(connection: Connection, *, return_to: str) -> BrowserCall:
    """Return the request with which the browser logs out at the provider, which then sends the browser back to `return_to`. Raises
    `UpstreamFailed`."""
    return sign_out_call(wsfed_provider(connection), return_to=return_to)
