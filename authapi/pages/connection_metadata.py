"""The metadata of this service for the provider of one connection: `/samlp/metadata?connection=`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from authapi.failures import RequestRefused
from authapi.failures.logins import LoginCase
from authapi.tokens.saml_keys import published_certificates
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.saml.connections import options_of, own_certificates, saml_provider
from authapi.upstream.saml.judging import acs_address
from authapi.upstream.saml.login import CALLBACK_PATH
from authapi.upstream.saml.logout import logout_address
from authapi.upstream.saml.options import STRATEGIES
from authapi.upstream.saml.own_metadata import own_metadata
from authapi.upstream.saml.provider import own_entity_id
from identity.hosts import HostMatch
from identity.models import Connection

CONTENT_TYPE = "application/samlmetadata+xml; charset=utf-8"


def connection_metadata(request: HttpRequest, host: HostMatch, name: str) -> HttpResponse:
    """Return the metadata, which needs no data of the provider: the provider may be configured later. Raises `RequestRefused`."""
    connection = Connection.objects.of(host.tenant_id).filter(name=name[:128], strategy__in=STRATEGIES).first()
    if connection is None:
        raise RequestRefused(LoginCase.UNKNOWN_CONNECTION)
    answer = HttpResponse(document_of(connection, host.issuer), content_type=CONTENT_TYPE)
    answer["Content-Disposition"] = (
        'attachment; filename="metadata.xml"' if "download" in request.GET else 'inline; filename="metadata.xml"'
    )
    answer["Cache-Control"] = "public, max-age=300"
    return answer


def document_of(connection: Connection, base: str) -> bytes:
    """Return the metadata of this service for the provider of a connection. `base` is the issuer of a host of the tenant."""
    options = options_of(connection)
    shared = published_certificates(connection.tenant_id)
    signing = [certificate.parsed for certificate in own_certificates(connection, "signing_key")]
    encryption = [certificate.parsed for certificate in own_certificates(connection, "decryptionKey")]
    return own_metadata(
        entity_id=own_entity_id(connection.tenant_id, connection.name, options),
        acs=acs_address(base + CALLBACK_PATH, connection.name),
        logout=logout_address(base, connection.name),
        signing=signing or shared,
        encryption=encryption or shared,
        signs_requests=_signs_requests(connection),
    )


def _signs_requests(connection: Connection) -> bool:
    try:
        return saml_provider(connection).signs_requests
    except UpstreamFailed:
        # The connection has no data of the provider yet, because administrators often register this metadata at the provider first. Until
        # then, only the option of the connection decides.
        return options_of(connection).signs_requests is True
