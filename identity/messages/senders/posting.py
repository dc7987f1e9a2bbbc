"""Sends one POST request to a provider, and maps errors to the outcomes of a message."""

from __future__ import annotations

import time
from collections.abc import Mapping

from foundation.outbound.outcomes import AddressRefused, Answer, OutboundError, TlsFailed, UrlRefused
from foundation.outbound.session import outbound_session
from identity.messages.outcomes import InDoubt, MessageRefused, ProviderAway

_SECONDS = 15.0


def post(url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
    """Return the response of a provider, of any status.

    Raises `MessageRefused` if the service refuses the IP address or the URL, or if TLS fails; `ProviderAway` if the request did not arrive;
    `InDoubt` if the request may have arrived.
    """
    try:
        return outbound_session().send("POST", url, headers=headers, body=body, deadline=time.monotonic() + _SECONDS)
    except (AddressRefused, UrlRefused, TlsFailed) as error:
        raise MessageRefused(f"The provider cannot be reached: {error}") from error
    except OutboundError as error:
        raise (InDoubt if error.may_have_arrived else ProviderAway)(str(error)) from error
