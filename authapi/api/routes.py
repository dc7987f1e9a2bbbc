"""The routes of this app below `/api/v2/`."""

from __future__ import annotations

from authapi.api.attacks.protection import AddressBlockEndpoint, LeakRulesEndpoint, SuspicionEndpoint
from authapi.api.branding.settings import BrandingEndpoint
from authapi.api.branding.themes import DefaultThemeEndpoint, ThemeEndpoint
from authapi.api.client_credentials import ClientCredentialEndpoint, SingleClientCredentialEndpoint
from authapi.api.client_grants import ClientGrantEndpoint, GrantOrganizationEndpoint, OrganizationGrantEndpoint
from authapi.api.clients import ClientEndpoint, ClientSecretEndpoint
from authapi.api.connection_clients import ClientConnectionEndpoint, ConnectionClientEndpoint
from authapi.api.device_credentials import DeviceCredentialEndpoint
from authapi.api.factors.guardian import (
    GuardianEnrollmentEndpoint,
    GuardianFactorEndpoint,
    GuardianFactorsEndpoint,
    GuardianPoliciesEndpoint,
    OrganizationSecondFactorsEndpoint,
    SecondFactorsEndpoint,
)
from authapi.api.factors.methods import AuthenticationMethodsEndpoint, SingleAuthenticationMethodEndpoint
from authapi.api.factors.removals import (
    AuthenticatorsEndpoint,
    MultifactorProviderEndpoint,
    RecoveryCodeEndpoint,
    RememberedBrowsersEndpoint,
)
from authapi.api.factors.tickets import SetupTicketEndpoint
from authapi.api.links.invitations import InvitationEndpoint, InvitationMailEndpoint
from authapi.api.links.tickets import EmailTicketEndpoint, PasswordTicketEndpoint
from authapi.api.neutral import neutral_routes
from authapi.api.permissions import (
    EffectivePermissionEndpoint,
    EffectivePermissionSourceEndpoint,
    RolePermissionEndpoint,
    UserPermissionEndpoint,
)
from authapi.api.prompts.custom_texts import CustomTextEndpoint
from authapi.api.refresh_tokens import RefreshTokenEndpoint, RefreshTokenRevocationEndpoint, UserRefreshTokenEndpoint
from authapi.api.resource_servers import ResourceServerEndpoint
from authapi.api.sessions import SessionEndpoint, SessionRevocationEndpoint, UserAccessEndpoint, UserSessionEndpoint
from authapi.api.sign_in_logs import LogEndpoint, UserLogEndpoint
from authapi.api.signing_keys import KeyRevocationEndpoint, KeyRotationEndpoint, SigningKeyEndpoint
from authapi.api.tenant_settings import BruteForceEndpoint, TenantSettingsEndpoint
from authapi.api.token_exchange.profiles import TokenExchangeProfileEndpoint
from authapi.api.user_blocks import IdentifierBlockEndpoint, UserBlockEndpoint
from authapi.api.user_grants import SingleUserGrantEndpoint, UserGrantEndpoint
from foundation.api.operations import Route

_COLLECTION = {"get": "list", "post": "create"}
_ITEM = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
_LIST = {"get": "list"}
_SETTINGS = {"get": "list", "patch": "partial_update"}
_OWN = {"get": "list", "delete": "destroy"}
_READ = {"get": "retrieve"}
_DO = {"post": "create"}
_RELATION = {"get": "list", "post": "create", "delete": "destroy"}

ROUTES = (
    Route("clients", ClientEndpoint, _COLLECTION),
    Route("clients/<segment:id>", ClientEndpoint, _ITEM),
    Route("clients/<segment:id>/rotate-secret", ClientSecretEndpoint, {"post": "create"}),
    Route("clients/<segment:id>/credentials", ClientCredentialEndpoint, _COLLECTION),
    Route("clients/<segment:id>/credentials/<segment:credential_id>", SingleClientCredentialEndpoint, _ITEM),
    Route("clients/<segment:id>/connections", ClientConnectionEndpoint, _LIST),
    Route("connections/<segment:id>/clients", ConnectionClientEndpoint, {"get": "list", "patch": "partial_update"}),
    Route("resource-servers", ResourceServerEndpoint, _COLLECTION),
    Route("resource-servers/<segment:id>", ResourceServerEndpoint, _ITEM),
    Route("client-grants", ClientGrantEndpoint, _COLLECTION),
    Route("client-grants/<segment:id>", ClientGrantEndpoint, _ITEM),
    Route("client-grants/<segment:id>/organizations", GrantOrganizationEndpoint, _LIST),
    Route("organizations/<segment:id>/client-grants", OrganizationGrantEndpoint, _COLLECTION),
    Route("organizations/<segment:id>/client-grants/<segment:grant_id>", OrganizationGrantEndpoint, {"delete": "destroy"}),
    Route("organizations/<segment:id>/invitations", InvitationEndpoint, _COLLECTION),
    Route("organizations/<segment:id>/invitations/<segment:invitation_id>", InvitationEndpoint, {"get": "retrieve", "delete": "destroy"}),
    Route("organizations/<segment:id>/invitations/<segment:invitation_id>/resend", InvitationMailEndpoint, _DO),
    Route("tickets/email-verification", EmailTicketEndpoint, _DO),
    Route("tickets/password-change", PasswordTicketEndpoint, _DO),
    Route("roles/<segment:id>/permissions", RolePermissionEndpoint, _RELATION),
    Route("users/<segment:id>/permissions", UserPermissionEndpoint, _RELATION),
    Route("users/<segment:id>/effective-permissions", EffectivePermissionEndpoint, _LIST),
    Route("users/<segment:id>/effective-permissions/sources/effective-roles", EffectivePermissionSourceEndpoint, _LIST),
    Route("sessions/<segment:id>", SessionEndpoint, _ITEM),
    Route("sessions/<segment:id>/revoke", SessionRevocationEndpoint, _DO),
    Route("users/<segment:id>/sessions", UserSessionEndpoint, _OWN),
    Route("users/<segment:id>/refresh-tokens", UserRefreshTokenEndpoint, _OWN),
    Route("users/<segment:id>/revoke-access", UserAccessEndpoint, _DO),
    Route(
        "users/<segment:id>/authentication-methods",
        AuthenticationMethodsEndpoint,
        {"get": "list", "post": "create", "put": "update", "delete": "destroy"},
    ),
    Route("users/<segment:id>/authentication-methods/<segment:method_id>", SingleAuthenticationMethodEndpoint, _ITEM),
    Route("users/<segment:id>/authenticators", AuthenticatorsEndpoint, {"delete": "destroy"}),
    Route("users/<segment:id>/multifactor/actions/invalidate-remember-browser", RememberedBrowsersEndpoint, _DO),
    Route("users/<segment:id>/multifactor/<segment:provider>", MultifactorProviderEndpoint, {"delete": "destroy"}),
    Route("users/<segment:id>/recovery-code-regeneration", RecoveryCodeEndpoint, _DO),
    Route("users/<segment:id>/logs", UserLogEndpoint, _LIST),
    Route("refresh-tokens", RefreshTokenEndpoint, _LIST),
    Route("refresh-tokens/revoke", RefreshTokenRevocationEndpoint, _DO),
    Route("refresh-tokens/<segment:id>", RefreshTokenEndpoint, _ITEM),
    Route("token-exchange-profiles", TokenExchangeProfileEndpoint, _COLLECTION),
    Route("token-exchange-profiles/<segment:id>", TokenExchangeProfileEndpoint, _ITEM),
    Route("device-credentials", DeviceCredentialEndpoint, _COLLECTION),
    Route("device-credentials/<segment:id>", DeviceCredentialEndpoint, {"delete": "destroy"}),
    Route("grants", UserGrantEndpoint, _OWN),
    Route("grants/<segment:id>", SingleUserGrantEndpoint, {"delete": "destroy"}),
    Route("logs", LogEndpoint, _LIST),
    Route("logs/<segment:id>", LogEndpoint, _READ),
    Route("user-blocks", IdentifierBlockEndpoint, _OWN),
    Route("user-blocks/<segment:id>", UserBlockEndpoint, {"get": "retrieve", "delete": "destroy"}),
    Route("keys/signing", SigningKeyEndpoint, _LIST),
    Route("keys/signing/rotate", KeyRotationEndpoint, _DO),
    Route("keys/signing/<segment:kid>", SigningKeyEndpoint, _READ),
    Route("keys/signing/<segment:kid>/revoke", KeyRevocationEndpoint, {"put": "update"}),
    Route("tenants/settings", TenantSettingsEndpoint, _SETTINGS),
    Route("attack-protection/brute-force-protection", BruteForceEndpoint, _SETTINGS),
    Route("guardian/factors", GuardianFactorsEndpoint, _LIST),
    Route("guardian/factors/<segment:factor>", GuardianFactorEndpoint, {"put": "update"}),
    Route("guardian/policies", GuardianPoliciesEndpoint, {"get": "list", "put": "update"}),
    Route("guardian/enrollments/ticket", SetupTicketEndpoint, _DO),
    Route("guardian/enrollments/<segment:id>", GuardianEnrollmentEndpoint, {"get": "retrieve", "delete": "destroy"}),
    Route("second-factors", SecondFactorsEndpoint, _SETTINGS),
    Route("organizations/<segment:id>/second-factors", OrganizationSecondFactorsEndpoint, {"get": "list", "put": "update"}),
    Route("attack-protection/suspicious-ip-throttling", SuspicionEndpoint, _SETTINGS),
    Route("attack-protection/breached-password-detection", LeakRulesEndpoint, _SETTINGS),
    Route("anomaly/blocks/ips/<segment:ip>", AddressBlockEndpoint, {"get": "retrieve", "delete": "destroy"}),
    Route("branding", BrandingEndpoint, _SETTINGS),
    Route("branding/themes", ThemeEndpoint, _DO),
    Route("branding/themes/default", DefaultThemeEndpoint, _LIST),
    Route("branding/themes/<segment:id>", ThemeEndpoint, _ITEM),
    Route("prompts/<segment:prompt>/custom-text/<segment:language>", CustomTextEndpoint, {"get": "list", "put": "update"}),
    *neutral_routes(),
)
