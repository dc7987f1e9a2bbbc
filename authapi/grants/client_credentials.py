"""`client_credentials`: a client asks for itself. Scopes come from its client grant, never from a default."""

from __future__ import annotations

from typing import Any

from oauthlib.oauth2.rfc6749.grant_types import ClientCredentialsGrant as EngineGrant

from authapi.failures import Case, RequestRefused
from authapi.grants.entitlements import machine_entitlement
from authapi.grants.machine_organizations import machine_organization
from authapi.grants.user_access import organization_claims
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.claims import machine_subject
from authapi.tokens.minting import Issue, binding


class ClientCredentialsGrant(EngineGrant):  # type: ignore[misc]  # the engine has no types
    """The engine's grant with our checks; the engine then makes the answer, without a refresh token."""

    def validate_token_request(self, request: Any) -> None:
        """Leave an `Issue` on the request, or raise `RequestRefused`."""
        client: Client = request.client
        token_request: TokenRequest = request.token_request
        if client.is_public or not client.allows_grant_type("client_credentials"):
            raise RequestRefused(Case.GRANT_NOT_ALLOWED, grant="client_credentials")
        entitlement = machine_entitlement(client, token_request.host, token_request.text("audience"))
        scopes = entitlement.narrowed(token_request.text("scope"))
        organization = machine_organization(client, entitlement.grant, token_request.text("organization"))
        request.issue = Issue(
            subject=machine_subject(client.client_id),
            audience=entitlement.audience,
            scopes=scopes,
            grant="client-credentials",
            seconds=entitlement.seconds,
            dialect=entitlement.resource.token_dialect,
            organization=organization_claims(organization, token_request.host.tenant_id),
            # Edges do not forward certificates to the management interface, so nothing could be proven there.
            confirmation=None if entitlement.resource.is_system else binding(token_request),
        )
        # The engine leaves `scope` out of the answer when there is none.
        request.scopes = list(scopes) or None
