"""Addresses of this service for each host and client, and the address of the application to which an answer is sent. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from authapi.clients.callbacks import is_registered
from authapi.protocols.saml.requests import AuthnRequest
from authapi.protocols.saml.settings import SamlSettings

LOGIN_PATH = "/samlp"
METADATA_PATH = "/samlp/metadata"


class NoConsumerAddress(LookupError):
    """The application has no address for SAML responses. Enter an assertion consumer service (a callback)."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class UnknownIndex(LookupError):
    """The application has no assertion consumer service with the index of the request."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


def login_address(base: str, client_id: str = "") -> str:
    """Return the single sign-on address of this service. `base` is the issuer of the host.

    If the URL contains no client, the Issuer of a request identifies the client.
    """
    return f"{base.rstrip('/')}{LOGIN_PATH}{f'/{client_id}' if client_id else ''}"


def logout_address(base: str, client_id: str = "") -> str:
    return f"{login_address(base, client_id)}/logout"


def metadata_address(base: str, client_id: str = "") -> str:
    return f"{base.rstrip('/')}{METADATA_PATH}{f'/{client_id}' if client_id else ''}"


def entity_id(canonical_host: str, settings: SamlSettings | None = None) -> str:
    """Return the entity id of this service, which is the same on all hosts of the tenant.

    The settings of the application may override the id.
    """
    return (settings.issuer if settings else "") or f"urn:{canonical_host}"


def consumer_address(request: AuthnRequest, callbacks: Sequence[str], settings: SamlSettings) -> str:
    """Return the address for an answer (SAML profiles, 4.1.4.1).

    If the request contains an address, this address is returned if it is registered, otherwise the first callback. If the request contains
    an index, the address with this index is returned. If the request contains neither, the first callback is returned. Raises
    `NoConsumerAddress` and `UnknownIndex`.
    """
    fixed = [*(each for each in callbacks if "*" not in each), *(each.address for each in settings.addresses)]
    if not fixed:
        raise NoConsumerAddress
    if request.address:
        registered = [*callbacks, *(each.address for each in settings.addresses)]
        # As in the upstream system (contract, 2.6): if the address is not registered, the answer goes to the first callback.
        is_known = is_registered(request.address, registered, takes_wildcards=True, is_native=False)
        return request.address if is_known else fixed[0]
    if request.address_index is None:
        return fixed[0]
    found = settings.address_at(request.address_index)
    if found is None:
        # Without a table of indexes, only the first callback has an index: 0.
        if settings.addresses or request.address_index:
            raise UnknownIndex
        return fixed[0]
    return found


def default_address(callbacks: Sequence[str], settings: SamlSettings) -> str:
    """Return the address for a refusal if the request names no usable address. Raises `NoConsumerAddress`."""
    return consumer_address(AuthnRequest(), callbacks, settings)
