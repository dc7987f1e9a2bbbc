"""What logins need to know about a provider: options of the connection, completed by the metadata of the provider. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from authapi.failures.logins import LoginCase
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.metadata import ProviderMetadata
from authapi.upstream.saml.options import POST, REDIRECT, SamlOptions

# The path of PingFederate's service below its base address.
PING_FEDERATE_PATH = "/idp/SSO.saml2"


@dataclass(frozen=True)
class Endpoint:
    """An address of the provider, and the binding for messages to it."""

    address: str
    binding: str

    @property
    def is_posted(self) -> bool:
        return self.binding == POST


@dataclass(frozen=True)
class SamlProvider:
    """One provider, and the name of this service at the provider.

    With an empty `entity_id`, only the certificates identify the provider.
    """

    connection: str
    own_entity_id: str
    entity_id: str
    sign_in: Endpoint
    sign_out: Endpoint | None
    sign_out_answer: Endpoint | None
    certificates: tuple[Certificate, ...]
    signs_requests: bool
    options: SamlOptions


def own_entity_id(tenant_id: str, connection: str, options: SamlOptions) -> str:
    """Return the name by which the provider knows this service (contract, 2.6)."""
    return options.entity_id or f"urn:auth0:{tenant_id}:{connection}"


def provider_of(
    options: SamlOptions, metadata: ProviderMetadata | None, *, tenant_id: str, connection: str, base_address: str = ""
) -> SamlProvider:
    """Return the provider. Raises `UpstreamFailed` if the provider has no address for logins, or no certificate."""
    sign_in = _sign_in(options, metadata, base_address)
    certificates = options.certificates or (metadata.certificates if metadata else ())
    if sign_in is None:
        raise _incomplete(f"{connection} has no sign-in address: set signInEndpoint, metadataUrl or metadataXml.")
    if not certificates:
        raise _incomplete(f"{connection} has no certificate of its provider: set signingCert, metadataUrl or metadataXml.")
    return SamlProvider(
        connection=connection,
        own_entity_id=own_entity_id(tenant_id, connection, options),
        entity_id=metadata.entity_id if metadata else "",
        sign_in=sign_in,
        sign_out=_sign_out(options, metadata),
        sign_out_answer=_sign_out_answer(options, metadata),
        certificates=certificates,
        signs_requests=options.signs_requests if options.signs_requests is not None else bool(metadata and metadata.wants_signed_requests),
        options=options,
    )


def _sign_in(options: SamlOptions, metadata: ProviderMetadata | None, base_address: str) -> Endpoint | None:
    if options.sign_in_endpoint:
        return Endpoint(options.sign_in_endpoint, options.binding or REDIRECT)
    if metadata is not None:
        return _chosen(metadata.sign_in, options.binding)
    return Endpoint(base_address.rstrip("/") + PING_FEDERATE_PATH, options.binding or REDIRECT) if base_address else None


def _sign_out(options: SamlOptions, metadata: ProviderMetadata | None) -> Endpoint | None:
    if options.is_sign_out_disabled:
        return None
    if options.sign_out_endpoint:
        return Endpoint(options.sign_out_endpoint, options.binding or REDIRECT)
    return _chosen(metadata.sign_out, options.binding) if metadata is not None else None


def _sign_out_answer(options: SamlOptions, metadata: ProviderMetadata | None) -> Endpoint | None:
    answers = {} if metadata is None or options.sign_out_endpoint else metadata.sign_out_answers
    return _chosen(answers, options.binding) or _sign_out(options, metadata)


def _chosen(addresses: Mapping[str, str], binding: str) -> Endpoint | None:
    """Return the address for `binding`, otherwise the address for the redirect binding, otherwise the address for POST."""
    return next((Endpoint(addresses[one], one) for one in (binding, REDIRECT, POST) if one in addresses), None)


def _incomplete(detail: str) -> UpstreamFailed:
    return UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, detail)
