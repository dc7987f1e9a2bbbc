"""Admin pages of this app. They never show secrets or keys, and their search never covers codes or tokens."""

from __future__ import annotations

from django.contrib import admin

from authapi.admin.applications.client_grants import ClientGrantAdmin
from authapi.admin.applications.client_tabs import ClientTabs
from authapi.admin.applications.enabled import EnabledClients
from authapi.admin.applications.resource_tabs import ResourceTabs
from authapi.admin.applications.token_request import TokenRequestPage
from authapi.admin.blocks import AddressBlockAdmin, AttackNoticeAdmin, KnownBrowserAdmin, LoginFailuresAdmin
from authapi.admin.branding import BrandingPage
from authapi.admin.client_credentials import ClientCredentialAdmin, EdgeKeyAdmin
from authapi.admin.clients import ClientAdmin
from authapi.admin.credentials import CredentialAdmin, DeviceGrantAdmin, DeviceKeyAdmin
from authapi.admin.factors.organization_policy import POLICY, policy_panel
from authapi.admin.factors.page import SecondFactorsPage
from authapi.admin.initial_tokens import InitialAccessTokenAdmin
from authapi.admin.invitations import InvitationAdmin
from authapi.admin.keys import RevokedTokenAdmin, SigningKeyAdmin
from authapi.admin.permissions import (
    OrganizationClientGrantAdmin,
    PermissionAdmin,
    RolePermissionAdmin,
    UserPermissionAdmin,
    add_permission_tables,
)
from authapi.admin.provider_pages import ProviderPages
from authapi.admin.resources import ApiResourceAdmin
from authapi.admin.saml_keys import SamlKeyAdmin
from authapi.admin.saml_page import SamlPage
from authapi.admin.sessions import ConsentAdmin, LogoutNoticeAdmin, RefreshTokenAdmin, SessionAdmin, SessionClientAdmin
from authapi.admin.short_lived import (
    AccountTicketAdmin,
    CibaRequestAdmin,
    FactorChallengeAdmin,
    FactorTransactionAdmin,
    LoginTicketAdmin,
    LoginTransactionAdmin,
    LogoutTransactionAdmin,
    PasskeyCeremonyAdmin,
    PasswordlessCodeAdmin,
    PushedRequestAdmin,
    RememberedBrowserAdmin,
    UsedAssertionAdmin,
)
from authapi.admin.sign_ins import SignInAdmin
from authapi.admin.tenant_settings import TenantSettingsAdmin
from authapi.admin.texts_page import TextsPage
from authapi.admin.token_exchange import TokenExchangeProfileAdmin
from authapi.admin.user_panels import UserPanels
from authapi.models import (
    AccessToken,
    AccountTicket,
    AddressBlock,
    ApiResource,
    AttackNotice,
    AuthorizationCode,
    CibaRequest,
    Client,
    ClientCredential,
    ClientGrant,
    Consent,
    DeviceGrant,
    DeviceKey,
    EdgeKey,
    FactorChallenge,
    FactorTransaction,
    IDToken,
    InitialAccessToken,
    Invitation,
    KnownBrowser,
    LoginFailures,
    LoginTicket,
    LoginTransaction,
    LogoutNotice,
    LogoutTransaction,
    OrganizationClientGrant,
    PasskeyCeremony,
    PasswordlessCode,
    Permission,
    PushedRequest,
    RefreshToken,
    RememberedBrowser,
    RevokedToken,
    RolePermission,
    SamlKey,
    Session,
    SessionClient,
    SignIn,
    SigningKey,
    TenantSettings,
    TokenExchangeProfile,
    UsedAssertion,
    UserPermission,
)
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.organizations import INVITATIONS
from identity.admin.row_pages import RowPagesAdmin
from identity.admin.tenant_page import PagesSite
from identity.models import Connection, Organization, User


def register(site: PagesSite) -> None:
    """Register every model and page of this app with `site`, and add panels and buttons to the pages of imported apps."""
    site.register_page(BrandingPage)
    site.register_page(TextsPage)
    site.register_page(SecondFactorsPage)
    _register_applications(site)
    _register_sign_in(site)
    site.register(SigningKey, SigningKeyAdmin)
    site.register(SamlKey, SamlKeyAdmin)
    site.register(RevokedToken, RevokedTokenAdmin)
    site.register((AuthorizationCode, AccessToken, IDToken), CredentialAdmin)
    site.register(DeviceGrant, DeviceGrantAdmin)
    site.register(DeviceKey, DeviceKeyAdmin)
    _add_tabs(site)
    page = site.get_model_admin(User) if site.is_registered(User) else None
    if isinstance(page, ObjectActionsAdmin):
        UserPanels(site).add_to(page)
    add_permission_tables(site)
    _register_invitations(site)


def _add_tabs(site: PagesSite) -> None:
    """Add tabs and pages to clients, APIs and connections."""
    clients, resources = site.get_model_admin(Client), site.get_model_admin(ApiResource)
    connections = site.get_model_admin(Connection) if site.is_registered(Connection) else None
    if isinstance(resources, ObjectActionsAdmin):
        ResourceTabs(site).add_to(resources)
    if isinstance(resources, RowPagesAdmin):
        TokenRequestPage(site, resources).add()
    if isinstance(clients, RowPagesAdmin):
        ClientTabs(site).add_to(clients)
        SamlPage(site, clients).add()
    if isinstance(connections, RowPagesAdmin):
        ProviderPages(site, connections).add()
    if isinstance(clients, RowPagesAdmin) and isinstance(connections, RowPagesAdmin):
        EnabledClients(site, connections, clients).add()


def _register_invitations(site: admin.AdminSite) -> None:
    site.register(Invitation, InvitationAdmin)
    invitations = site.get_model_admin(Invitation)
    organizations = site.get_model_admin(Organization) if site.is_registered(Organization) else None
    if isinstance(organizations, ObjectActionsAdmin) and isinstance(invitations, InvitationAdmin):
        organizations.tabs[INVITATIONS].append(invitations.panel_of)
        organizations.panels.append(policy_panel)
        organizations.object_actions = (*organizations.object_actions, POLICY, invitations.invitation)


def _register_applications(site: admin.AdminSite) -> None:
    site.register(Client, ClientAdmin)
    site.register(ClientCredential, ClientCredentialAdmin)
    site.register(ApiResource, ApiResourceAdmin)
    site.register(ClientGrant, ClientGrantAdmin)
    site.register(Permission, PermissionAdmin)
    site.register(RolePermission, RolePermissionAdmin)
    site.register(UserPermission, UserPermissionAdmin)
    site.register(OrganizationClientGrant, OrganizationClientGrantAdmin)
    site.register(TokenExchangeProfile, TokenExchangeProfileAdmin)
    site.register(EdgeKey, EdgeKeyAdmin)
    site.register(InitialAccessToken, InitialAccessTokenAdmin)
    site.register(UsedAssertion, UsedAssertionAdmin)


def _register_sign_in(site: admin.AdminSite) -> None:
    site.register(SignIn, SignInAdmin)
    site.register(Session, SessionAdmin)
    site.register(SessionClient, SessionClientAdmin)
    site.register(RefreshToken, RefreshTokenAdmin)
    site.register(Consent, ConsentAdmin)
    site.register(LoginFailures, LoginFailuresAdmin)
    site.register(AddressBlock, AddressBlockAdmin)
    site.register(KnownBrowser, KnownBrowserAdmin)
    site.register(AttackNotice, AttackNoticeAdmin)
    site.register(LogoutNotice, LogoutNoticeAdmin)
    site.register(LoginTransaction, LoginTransactionAdmin)
    site.register(LogoutTransaction, LogoutTransactionAdmin)
    site.register(PushedRequest, PushedRequestAdmin)
    site.register(PasswordlessCode, PasswordlessCodeAdmin)
    site.register(FactorChallenge, FactorChallengeAdmin)
    site.register(FactorTransaction, FactorTransactionAdmin)
    site.register(PasskeyCeremony, PasskeyCeremonyAdmin)
    site.register(RememberedBrowser, RememberedBrowserAdmin)
    site.register(LoginTicket, LoginTicketAdmin)
    site.register(CibaRequest, CibaRequestAdmin)
    site.register(AccountTicket, AccountTicketAdmin)
    site.register(TenantSettings, TenantSettingsAdmin)
