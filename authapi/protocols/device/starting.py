"""Starts the login of a device. All checks run before the device gets a code, so that a client that is refused knows this immediately."""

from __future__ import annotations

from django.conf import settings

from authapi.edge.addresses import customer_keys
from authapi.edge.buckets import Bucket
from authapi.edge.countries import country_in
from authapi.edge.rate_figures import DEVICE_CODES_OF_CLIENT, DEVICE_CODES_OF_PLACE, DEVICE_CODES_OF_TENANT
from authapi.edge.throttling import Rate
from authapi.failures import RequestRefused
from authapi.failures.device import DeviceCase
from authapi.failures.oauth import OAuthCase
from authapi.failures.requests import RequestCase
from authapi.grants.details import requested_details
from authapi.grants.device_code import GRANT
from authapi.grants.password import person_behind
from authapi.login.protocol import ProtocolRequest
from authapi.models import Client
from authapi.protocols.device.entry import parameters_of
from authapi.protocols.oauth.engine import server
from authapi.protocols.oauth.terms import terms_of
from authapi.tenant_settings import sign_in_settings
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import KEY
from authapi.tokens.device_codes import DeviceCodes, DeviceRequest, issue_device_codes

_LONGEST_SCOPE = 10_240
_LONGEST_AUDIENCE = 600


def started(request: TokenRequest, client: Client) -> DeviceCodes:
    """Return codes for an authenticated client. Raises `RequestRefused`, or `OAuth2Error` of the engine (`oauthlib`)."""
    if not client.allows_grant_type(GRANT):
        raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=GRANT)
    scope, audience = request.text("scope") or "", request.text("audience") or ""
    _check_texts(scope, audience)
    server().check_device_request(request, client)
    # The user is not known yet, so this check only refuses an API that the client may not use for any user.
    details = requested_details(request)
    terms_of(ProtocolRequest(request.host, client, {}), parameters_of(scope, audience), None, None, details=details)
    sender = person_behind(request, client)
    _take(client, sender.ip)
    # The proxy in front of the service reports the country of the sender of this request. Use the country only if the sender is the device,
    # not a server of the client.
    country = (country_in(request.headers) or "") if sender.ip == request.address else ""
    confirmation = {KEY: request.key} if request.key else None
    asked = DeviceRequest(client, scope, audience, sender, country, confirmation=confirmation, details=details)
    return issue_device_codes(asked, sign_in_settings(client.tenant_id).user_codes)


def _check_texts(scope: str, audience: str) -> None:
    """Raise `RequestRefused` for texts that a row cannot store."""
    if len(scope) > _LONGEST_SCOPE:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason=f"The scope is longer than {_LONGEST_SCOPE} characters.")
    if len(audience) > _LONGEST_AUDIENCE:
        raise RequestRefused(OAuthCase.UNKNOWN_AUDIENCE, audience=audience[:200])
    if "\x00" in scope + audience:
        raise RequestRefused(RequestCase.MALFORMED_REQUEST, reason="A value contains a NUL character.")


def _take(client: Client, ip: str) -> None:
    """Count a new code. Raises `RequestRefused`. The limit of the IP address applies only to a client that does not authenticate."""
    for key in customer_keys(ip, settings.TRUSTED_PROXIES) if client.is_public else ():
        _count(DEVICE_CODES_OF_PLACE.times(key.factor), client.tenant_id, key.name)
    _count(DEVICE_CODES_OF_CLIENT, client.tenant_id, client.client_id)
    _count(DEVICE_CODES_OF_TENANT, client.tenant_id)


def _count(bucket: Bucket, *owner: str) -> None:
    if not bucket.takes(*owner):
        raise RequestRefused(DeviceCase.TOO_MANY, rate=Rate.of_empty(bucket))
