"""Sends a browser to a SAML provider, and turns the provider's answer into verified claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from authapi.failures.logins import LoginCase
from authapi.login.login import Login
from authapi.login.protocol import BrowserCall
from authapi.login.wish import Prompt
from authapi.upstream.assertion_use import use_assertion
from authapi.upstream.authentication_requests import AuthenticationRequest, begin_request
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.proven import Proven
from authapi.upstream.saml.calls import call_of
from authapi.upstream.saml.claims import statement_claims
from authapi.upstream.saml.connections import keys_of, renewed_provider, saml_provider, signer_of
from authapi.upstream.saml.judging import Expected, acs_address, recipients_of, with_organization
from authapi.upstream.saml.provider import SamlProvider
from authapi.upstream.saml.requests import login_request
from authapi.upstream.saml.responses import Accepted, UnknownSigner, accepted, read_message
from authapi.xml.bindings import REQUEST
from identity.models import Connection

CALLBACK_PATH = "login/callback"
# The classes of authentication of SAML have this prefix. Requested contexts without the prefix are not sent, because a SAML provider does
# not know them.
_CONTEXT_PREFIX = "urn:oasis:names:tc:SAML:"


@dataclass(frozen=True)
class SamlAnswer:
    """The message that a browser posted, and the address that it was posted to."""

    encoded: str = field(repr=False)
    address: str

    @property
    def raw(self) -> bytes:
        """The bytes of the message. Raises `UpstreamFailed`."""
        return read_message(self.encoded)


def begin(login: Login, connection: Connection) -> BrowserCall:
    """Return the browser's request to the provider. Its new id and state invalidate an earlier request. Raises `UpstreamFailed`."""
    provider = saml_provider(connection)
    callback = login.host.issuer + CALLBACK_PATH
    request, state = begin_request(login.row, connection_id=connection.pk, issuer=provider.entity_id, callback=callback)
    wish = login.wish
    return request_call(
        connection,
        provider,
        request_id=request_id_of(request),
        callback=callback,
        state=state,
        is_forced=Prompt.LOGIN in wish.prompts or wish.max_age == 0,
        contexts=tuple(factor for factor in wish.factors if factor.startswith(_CONTEXT_PREFIX)),
    )


def request_call(
    connection: Connection,
    provider: SamlProvider,
    *,
    request_id: str,
    callback: str,
    state: str,
    is_forced: bool = False,
    contexts: tuple[str, ...] = (),
) -> BrowserCall:
    """Return the browser's request, signed if the provider or the connection requires that. Raises `UpstreamFailed`."""
    message = login_request(
        provider,
        request_id=request_id,
        acs=acs_address(callback, connection.name),
        now=timezone.now(),
        is_forced=is_forced,
        contexts=contexts,
    )
    signer = signer_of(connection, provider.options) if provider.signs_requests else None
    return call_of(provider.sign_in, REQUEST, message, state, signer)


def request_id_of(request: AuthenticationRequest) -> str:
    """Return the id of the message: an underscore and the nonce, because an XML id must not begin with a digit or a hyphen."""
    return f"_{request.nonce}"


def proven(connection: Connection, request: AuthenticationRequest, answer: SamlAnswer) -> Proven:
    """Return the verified login of an answer to a request of this service. Raises `UpstreamFailed`. Each assertion is accepted once."""
    provider = saml_provider(connection)
    if provider.entity_id != request.issuer:
        raise UpstreamFailed(LoginCase.UPSTREAM_ISSUER_MISMATCH, "The provider of the connection was changed after the login began.")
    found = judged(connection, provider, answer, callback=request.callback, request_id=request_id_of(request))
    return once(connection, provider, found)


def proven_unasked(connection: Connection, answer: SamlAnswer, *, callback: str) -> Proven:
    """Return the verified login of an unsolicited answer. Raises `UpstreamFailed`. Each assertion is accepted once."""
    provider = saml_provider(connection)
    return once(connection, provider, judged(connection, provider, answer, callback=callback, request_id=None))


def judged(connection: Connection, provider: SamlProvider, answer: SamlAnswer, *, callback: str, request_id: str | None) -> Accepted:
    """Return the checked assertion. If no known certificate verifies its signature, check it again with fresh metadata."""
    now = timezone.now()
    raw, keys = answer.raw, keys_of(connection)
    expected = _expected(provider, answer, callback=callback, request_id=request_id, now=now)
    try:
        return accepted(raw, provider.certificates, expected, keys=keys)
    except UnknownSigner as error:
        renewed = _renewed(connection)
        if renewed is None or set(renewed.certificates) <= set(provider.certificates):
            raise
        try:
            return accepted(raw, renewed.certificates, expected, keys=keys)
        except UnknownSigner:
            raise error from None


def once(connection: Connection, provider: SamlProvider, found: Accepted) -> Proven:
    """Mark an assertion as used and return its user's login. Raises `UpstreamFailed` if the assertion was used before."""
    assertion = found.assertion
    claims = statement_claims(assertion.statement, provider.options)
    use_assertion(connection, found)
    name_id = assertion.statement.name_id
    named = (name_id.value, name_id.format, name_id.name_qualifier, name_id.sp_name_qualifier) if name_id is not None else None
    return Proven(claims, kept={"name_id": named, "session_index": assertion.statement.session_index})


def _expected(provider: SamlProvider, answer: SamlAnswer, *, callback: str, request_id: str | None, now: datetime) -> Expected:
    recipients = recipients_of(callback, provider.connection, provider.options.recipients)
    return Expected(
        issuer=provider.entity_id,
        audience=provider.own_entity_id,
        recipients=with_organization(recipients, answer.address, provider.connection),
        request_id=request_id,
        now=now,
    )


def _renewed(connection: Connection) -> SamlProvider | None:
    try:
        return renewed_provider(connection)
    except UpstreamFailed:
        # The caller raises the error about the signature. This error helps more than an error about unavailable metadata.
        return None
