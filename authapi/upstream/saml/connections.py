"""A `samlp` connection with all parts that a message needs: its provider, the keys of this service, and published metadata."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.conf import settings

from authapi.failures.logins import LoginCase
from authapi.tokens.saml_keys import decryption_keys, signing_identity
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.provider_metadata import looked_again, pasted_metadata, published_metadata
from authapi.upstream.saml.certificates import Certificate, CertificateUnreadable, read_certificates
from authapi.upstream.saml.metadata import MetadataUnreadable, ProviderMetadata, read_metadata
from authapi.upstream.saml.options import STRATEGIES, OptionsInvalid, SamlOptions, read_options
from authapi.upstream.saml.provider import SamlProvider, provider_of
from authapi.xml.algorithms import DIGEST_NAMES, SIGNATURE_NAMES
from authapi.xml.bindings import Signer
from identity.models import Connection


def options_of(connection: Connection) -> SamlOptions:
    """Return the options.

    Raises `UpstreamFailed` for a connection of another protocol, and for options that an older version of this service accepted and this
    version refuses.
    """
    if connection.strategy not in STRATEGIES:
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, f"The answer is in SAML, but {connection.name} uses another protocol.")
    try:
        return read_options(connection.options, allows_http=settings.OUTBOUND_ALLOW_HTTP)
    except OptionsInvalid as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name}: {error}") from error


def saml_provider(connection: Connection) -> SamlProvider:
    """Return the provider of a connection. Raises `UpstreamFailed`, also if its metadata is unavailable."""
    options = options_of(connection)
    return _provider(connection, options, _metadata(connection, options))


def renewed_provider(connection: Connection) -> SamlProvider | None:
    """Return the provider with freshly fetched metadata, for a signature with an unknown key. Raises `UpstreamFailed`.

    The provider may have changed its key since the last scheduled fetch. Return None in three cases: the options have no metadata address,
    the options contain certificates, or the metadata was fetched recently.
    """
    options = options_of(connection)
    if not options.metadata_url or options.certificates:
        return None
    found = looked_again(connection, options.metadata_url, read_metadata)
    return None if found is None else _provider(connection, options, found)


def known_certificates(connection: Connection) -> tuple[Certificate, ...]:
    """Return the certificates in the options and in the pasted metadata of a connection. Raises `UpstreamFailed`. Sends no request."""
    if connection.strategy not in STRATEGIES:
        return ()
    options = options_of(connection)
    if options.certificates or not options.metadata_xml:
        return options.certificates
    metadata = _metadata(connection, options)
    return metadata.certificates if metadata is not None else ()


def signer_of(connection: Connection, options: SamlOptions) -> Signer:
    """Return the signing key of this service: the key of the connection, otherwise the key of the tenant. Raises `UpstreamFailed`."""
    signature, digest = SIGNATURE_NAMES[options.signature_algorithm], DIGEST_NAMES[options.digest_algorithm]
    own = connection.secret_option("signing_key/key")
    if own:
        certificate = _own_certificate(connection, "signing_key")
        if certificate is None:
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name}: signing_key has no certificate in cert.")
        return Signer(_private_key(own, connection.name), certificate.parsed, signature, digest)
    identity = signing_identity(connection.tenant_id)
    return Signer(identity.private_key, identity.certificate, signature, digest)


def keys_of(connection: Connection) -> Sequence[RSAPrivateKey]:
    """Return the keys that decrypt messages of the provider: first the keys of the connection, then the keys of the tenant."""
    own = connection.secret_option("decryptionKey/key") or connection.secret_option("decryptionKey")
    mine = [_private_key(own, connection.name)] if own else []
    return [*mine, *decryption_keys(connection.tenant_id)]


def own_certificates(connection: Connection, option: str) -> list[Certificate]:
    """Return the certificates of a connection's own key, for the metadata of this service."""
    found = _own_certificate(connection, option)
    return [found] if found is not None else []


def _metadata(connection: Connection, options: SamlOptions) -> ProviderMetadata | None:
    """Return the provider's metadata: the pasted document, otherwise the document from the metadata address.

    The metadata address is not used if the options already contain both the address for logins and the certificates. Returns None if
    there is no pasted document, and the metadata address is missing or not used.
    """
    if options.metadata_xml:
        try:
            return pasted_metadata(options.metadata_xml, read_metadata)
        except MetadataUnreadable as error:
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name}: {error}") from error
    if options.metadata_url and not (options.sign_in_endpoint and options.certificates):
        return published_metadata(connection, options.metadata_url, read_metadata)
    return None


def _provider(connection: Connection, options: SamlOptions, metadata: ProviderMetadata | None) -> SamlProvider:
    base = connection.options.get("pingFederateBaseUrl") if connection.strategy == "pingfederate" else ""
    return provider_of(options, metadata, tenant_id=connection.tenant_id, connection=connection.name, base_address=str(base or ""))


def _own_certificate(connection: Connection, option: str) -> Certificate | None:
    named = connection.options.get(option)
    text = named.get("cert") if isinstance(named, dict) else None
    try:
        return read_certificates(text)[0] if text else None
    except CertificateUnreadable as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name}: {option}.cert: {error}") from error


@lru_cache(maxsize=64)
def _private_key(pem: str, name: str) -> RSAPrivateKey:
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise UpstreamFailed(
            LoginCase.UPSTREAM_MISCONFIGURED, f"{name}: a private key cannot be read. PEM without a password is expected."
        ) from error
    if not isinstance(key, RSAPrivateKey):
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{name}: a private key is not an RSA key.")
    return key
