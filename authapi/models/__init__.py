"""The rows of the authentication interface; each module has one subject."""

from authapi.models.attack_protection import AddressBlock, AttackNotice, KnownBrowser
from authapi.models.branding import BrandingPicture, BrandingTheme
from authapi.models.ciba import CibaRequest
from authapi.models.client_credentials import ClientCredential, EdgeKey, UsedAssertion
from authapi.models.clients import Client
from authapi.models.credentials import AccessToken, AuthorizationCode, DeviceGrant, IDToken, RefreshToken
from authapi.models.factors import FactorChallenge, FactorTransaction, OrganizationSecondFactors, RememberedBrowser, SecondFactorPolicy
from authapi.models.foreign_providers import ConnectionTest, ProviderMetadata, RefusedMessage
from authapi.models.invitations import Invitation
from authapi.models.keys import RevokedToken, SamlKey, SigningKey
from authapi.models.legacy import DeviceKey, LoginTicket
from authapi.models.log_lines import AdministrativeLine, SignIn
from authapi.models.logins import Consent, LoginTransaction, LogoutTransaction, PushedRequest
from authapi.models.passkeys import PasskeyCeremony
from authapi.models.passwordless import PasswordlessCode
from authapi.models.permissions import OrganizationClientGrant, Permission, RolePermission, UserPermission
from authapi.models.registration import InitialAccessToken
from authapi.models.resources import ApiResource, ClientGrant
from authapi.models.sessions import Initiator, LogoutNotice, Session, SessionClient
from authapi.models.sign_ins import AccountTicket, LoginFailures
from authapi.models.tenant_settings import CustomText, TenantSettings
from authapi.models.token_exchange import TokenExchangeProfile

__all__ = [
    "AccessToken",
    "AccountTicket",
    "AddressBlock",
    "AdministrativeLine",
    "ApiResource",
    "AttackNotice",
    "AuthorizationCode",
    "BrandingPicture",
    "BrandingTheme",
    "CibaRequest",
    "Client",
    "ClientCredential",
    "ClientGrant",
    "ConnectionTest",
    "Consent",
    "CustomText",
    "DeviceGrant",
    "DeviceKey",
    "EdgeKey",
    "FactorChallenge",
    "FactorTransaction",
    "IDToken",
    "InitialAccessToken",
    "Initiator",
    "Invitation",
    "KnownBrowser",
    "LoginFailures",
    "LoginTicket",
    "LoginTransaction",
    "LogoutNotice",
    "LogoutTransaction",
    "OrganizationClientGrant",
    "OrganizationSecondFactors",
    "PasskeyCeremony",
    "PasswordlessCode",
    "Permission",
    "ProviderMetadata",
    "PushedRequest",
    "RefreshToken",
    "RefusedMessage",
    "RememberedBrowser",
    "RevokedToken",
    "RolePermission",
    "SamlKey",
    "SecondFactorPolicy",
    "Session",
    "SessionClient",
    "SignIn",
    "SigningKey",
    "TenantSettings",
    "TokenExchangeProfile",
    "UsedAssertion",
    "UserPermission",
]
