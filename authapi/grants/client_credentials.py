"""`client_credentials`: tokens for the client itself. The scopes come from the client grant: no scope is granted by default."""

from __future__ import annotations

from authapi.details.types import MEMBER as DETAILS
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.grants.details import details_for_client
from authapi.grants.entitlements import machine_entitlement
from authapi.grants.machine_organizations import machine_organization
from authapi.grants.targets import audience_of
from authapi.grants.token_grant import TokenAnswer, TokenGrant
from authapi.models import Client
from authapi.token_request import TokenRequest
from authapi.tokens.bindings import binding, bound_to
from authapi.tokens.claims import machine_subject
from authapi.tokens.minting import Issue, organization_claims
from authapi.tokens.signing import signature_of_api


class ClientCredentialsGrant(TokenGrant):
    """Issues an access token to the client itself, without a refresh token."""

    name = "client_credentials"
    takes_details = True

    def answer(self, request: TokenRequest, client: Client) -> TokenAnswer:
        if client.is_public:
            raise RequestRefused(OAuthCase.GRANT_NOT_ALLOWED, grant=self.name)
        entitlement = machine_entitlement(client, request.host, audience_of(request))
        scopes = entitlement.narrowed(request.text("scope"))
        details = details_for_client(request, client, entitlement.resource, entitlement.grant)
        organization = machine_organization(client, entitlement.grant, request.text("organization"))
        access = Issue(
            subject=machine_subject(client.client_id),
            audience=entitlement.audience,
            scopes=scopes,
            grant="client-credentials",
            seconds=entitlement.seconds,
            dialect=entitlement.resource.token_dialect,
            organization=organization_claims(organization, request.host.tenant_id),
            signature=signature_of_api(entitlement.resource, client),
            confirmation=bound_to(binding(request), client=client, resource=entitlement.resource),
            further={DETAILS: list(details)} if details else {},
        )
        return TokenAnswer(access, scopes or None, dict(access.further))
