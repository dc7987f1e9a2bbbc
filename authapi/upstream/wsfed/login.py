"""Sends a browser to a WS-Federation provider, and turns the token of its answer into verified claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.utils import timezone

from authapi.failures.logins import LoginCase
from authapi.login.login import Login
from authapi.login.protocol import BrowserCall
from authapi.login.wish import Prompt
from authapi.tokens.saml_keys import decryption_keys
from authapi.upstream.assertion_use import use_assertion
from authapi.upstream.authentication_requests import AuthenticationRequest, begin_request
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.proven import Proven
from authapi.upstream.provider_metadata import looked_again, pasted_metadata, published_metadata
from authapi.upstream.saml.certificates import Certificate
from authapi.upstream.saml.claims import statement_claims
from authapi.upstream.saml.metadata import MetadataUnreadable, ProviderMetadata
from authapi.upstream.saml.options import OptionsInvalid
from authapi.upstream.saml.responses import Accepted, UnknownSigner
from authapi.upstream.wsfed.metadata import WSFED, read_federation_metadata
from authapi.upstream.wsfed.options import WsFedOptions, is_wsfed, read_options
from authapi.upstream.wsfed.responses import Expected, accepted_token
from identity.models import Connection

CALLBACK_PATH = "login/callback"
_MOST_RESULT_CHARACTERS = 512 * 1024


@dataclass(frozen=True)
class WsFedProvider:
    """One provider, and the realm of this service at the provider. `entity_id` is empty if unknown."""

    realm: str
    entity_id: str
    endpoint: str
    certificates: tuple[Certificate, ...]
    options: WsFedOptions


def options_of(connection: Connection) -> WsFedOptions:
    """Return the options. Raises `UpstreamFailed`, also for a connection of another protocol."""
    if not is_wsfed(connection.strategy, connection.options):
        # The browser decides in which protocol it sends the answer. A SAML answer must contain the id of the request of the login. A
        # WS-Federation token contains no such id, so an attacker could avoid this check if a SAML connection accepted such a token.
        raise UpstreamFailed(LoginCase.UPSTREAM_ODD_ANSWER, f"The answer is in WS-Federation, but {connection.name} uses another protocol.")
    try:
        return read_options(connection.strategy, connection.options, allows_http=settings.OUTBOUND_ALLOW_HTTP)
    except OptionsInvalid as error:
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name}: {error}") from error


def wsfed_provider(connection: Connection) -> WsFedProvider:
    """Return the provider of a connection. Raises `UpstreamFailed`, also if its metadata is unavailable."""
    options = options_of(connection)
    return _provider(connection, options, _metadata(connection, options))


def begin(login: Login, connection: Connection) -> BrowserCall:
    """Return the browser's request to the provider. Raises `UpstreamFailed`."""
    provider = wsfed_provider(connection)
    callback = login.host.issuer + CALLBACK_PATH
    _, state = begin_request(login.row, connection_id=connection.pk, issuer=provider.entity_id, callback=callback)
    wish = login.wish
    is_forced = Prompt.LOGIN in wish.prompts or wish.max_age == 0
    return sign_in_call(provider, callback=callback, state=state, is_forced=is_forced, login_hint=wish.login_hint)


def sign_in_call(provider: WsFedProvider, *, callback: str, state: str, is_forced: bool = False, login_hint: str = "") -> BrowserCall:
    """Return the browser's request for a token (WS-Federation 1.2, 13.2.1)."""
    parameters = {"wa": "wsignin1.0", "wtrealm": provider.realm, "wreply": callback, "wctx": state}
    if is_forced:
        parameters["wfresh"] = "0"
    if login_hint:
        # AD FS and Entra fill in this name on their login page.
        parameters["username"] = login_hint
    return BrowserCall(_with(provider.endpoint, parameters))


def sign_out_call(provider: WsFedProvider, *, return_to: str) -> BrowserCall:
    """Return the request by which the browser ends the login at the provider."""
    return BrowserCall(_with(provider.endpoint, {"wa": "wsignout1.0", "wtrealm": provider.realm, "wreply": return_to}))


def proven(connection: Connection, request: AuthenticationRequest, result: str) -> Proven:
    """Return the verified login of a `wresult`. Raises `UpstreamFailed`. Each token is accepted once."""
    provider = wsfed_provider(connection)
    if provider.entity_id != request.issuer:
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The provider of the connection was changed after the login began.")
    found = judged(connection, provider, result)
    claims = statement_claims(found.assertion.statement, provider.options)
    use_assertion(connection, found)
    return Proven(claims)


def judged(connection: Connection, provider: WsFedProvider, result: str) -> Accepted:
    """Return the checked token. If no known certificate verifies its signature, check it again with fresh metadata."""
    if not result or len(result) > _MOST_RESULT_CHARACTERS:
        raise UpstreamFailed(LoginCase.UPSTREAM_TOKEN_REFUSED, "The wresult is missing or too long.")
    expected = Expected(issuer=provider.entity_id, realm=provider.realm, now=timezone.now())
    keys = decryption_keys(connection.tenant_id)
    try:
        return accepted_token(result.encode(), provider.certificates, expected, keys=keys)
    except UnknownSigner as error:
        renewed = _renewed(connection, provider.options)
        if renewed is None or set(renewed.certificates) <= set(provider.certificates):
            raise
        try:
            return accepted_token(result.encode(), renewed.certificates, expected, keys=keys)
        except UnknownSigner:
            raise error from None


def _metadata(connection: Connection, options: WsFedOptions) -> ProviderMetadata | None:
    if options.metadata_xml:
        try:
            return pasted_metadata(options.metadata_xml, read_federation_metadata)
        except MetadataUnreadable as error:
            raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name}: {error}") from error
    if options.metadata_url and not (options.sign_in_endpoint and options.certificates):
        return published_metadata(connection, options.metadata_url, read_federation_metadata)
    return None


def _provider(connection: Connection, options: WsFedOptions, metadata: ProviderMetadata | None) -> WsFedProvider:
    endpoint = options.sign_in_endpoint or (metadata.sign_in.get(WSFED, "") if metadata else "")
    certificates = options.certificates or (metadata.certificates if metadata else ())
    if not endpoint or not certificates:
        wanted = "adfs_server or fedMetadataXml" if connection.strategy == "adfs" else "tenant_domain"
        raise UpstreamFailed(LoginCase.UPSTREAM_MISCONFIGURED, f"{connection.name} has no provider: set {wanted}.")
    realm = options.realm or f"urn:auth0:{connection.tenant_id}:{connection.name}"
    return WsFedProvider(realm, metadata.entity_id if metadata else "", endpoint, certificates, options)


def _renewed(connection: Connection, options: WsFedOptions) -> WsFedProvider | None:
    if options.metadata_xml or options.certificates or not options.metadata_url:
        return None
    try:
        found = looked_again(connection, options.metadata_url, read_federation_metadata)
        return None if found is None else _provider(connection, options, found)
    except UpstreamFailed:
        # The caller raises the error about the signature, which helps more than the error that the metadata is unavailable.
        return None


def _with(address: str, parameters: Mapping[str, str]) -> str:
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(parameters)}"
