"""Factories of clients, keys, tokens and sessions. They call a function of `authapi.services` if it can create the row. Otherwise they save
the row directly."""

from __future__ import annotations

import secrets
from typing import Any

from factory.base import Factory
from factory.declarations import LazyAttributeSequence, LazyFunction, SelfAttribute, SubFactory

from authapi.login.sessions import begin_session
from authapi.looks.theme import default_theme
from authapi.models import (
    AccessToken,
    AccountTicket,
    AddressBlock,
    AdministrativeLine,
    ApiResource,
    AttackNotice,
    AuthorizationCode,
    BrandingPicture,
    BrandingTheme,
    CibaRequest,
    Client,
    ClientCredential,
    ClientGrant,
    ConnectionTest,
    Consent,
    CustomText,
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
    OrganizationSecondFactors,
    PasskeyCeremony,
    PasswordlessCode,
    Permission,
    ProviderMetadata,
    PushedRequest,
    RefreshToken,
    RefusedMessage,
    RememberedBrowser,
    RevokedToken,
    RolePermission,
    SamlKey,
    SecondFactorPolicy,
    Session,
    SessionClient,
    SignIn,
    SigningKey,
    TenantSettings,
    TokenExchangeProfile,
    UsedAssertion,
    UserPermission,
)
from authapi.services.api_resources import create_api_resource
from authapi.services.client_grants import create_client_grant
from authapi.services.clients import create_client
from foundation.secrets.random_secrets import digest_of, new_secret
from tests.factories.models.identity import ConnectionFactory, CustomDomainFactory, OrganizationFactory, RoleFactory, UserFactory
from tests.factories.models.row_factory import RowFactory, from_now, own_text, same, tenant_of

ADDRESS = "192.0.2.7"


def unknown_digest() -> LazyFunction:
    """Declare the digest of a secret that no test knows."""
    return LazyFunction(lambda: digest_of(new_secret()))


class ClientFactory(Factory[Client]):
    """A machine client, whose secret is discarded. `tests.factories.authapi` has clients that can authenticate."""

    class Meta:
        model = Client

    name = own_text()

    @classmethod
    def _create(cls, model_class: type[Client], *args: Any, **fields: Any) -> Client:
        client, _ = create_client(**fields)
        return client


class ClientCredentialFactory(RowFactory[ClientCredential]):
    class Meta:
        model = ClientCredential

    tenant_id = tenant_of("client")
    client = SubFactory(ClientFactory, tenant_id=same())
    type = ClientCredential.Type.PUBLIC_KEY


class TokenExchangeProfileFactory(RowFactory[TokenExchangeProfile]):
    """A profile of an issuer whose tokens no test can sign, because no server has its keys."""

    class Meta:
        model = TokenExchangeProfile

    tenant_id = tenant_of("connection")
    connection = SubFactory(ConnectionFactory, tenant_id=same())
    name = own_text(50)
    subject_token_type = LazyAttributeSequence(lambda row, number: f"urn:{row.tenant_id}:{number}")
    issuer = "https://issuer.example.test/"
    audience = "urn:service"
    jwks_uri = "https://issuer.example.test/keys"


class UsedAssertionFactory(RowFactory[UsedAssertion]):
    class Meta:
        model = UsedAssertion

    digest = unknown_digest()
    expires_at = from_now(minutes=1)


class EdgeKeyFactory(RowFactory[EdgeKey]):
    class Meta:
        model = EdgeKey

    tenant_id = tenant_of("domain")
    domain = SubFactory(CustomDomainFactory, tenant_id=same())
    digest = unknown_digest()


class SigningKeyFactory(RowFactory[SigningKey]):
    """A revoked key without key material, because every other state needs a key pair."""

    class Meta:
        model = SigningKey

    kid = LazyFunction(lambda: new_secret()[:21])
    public_jwk = LazyFunction(dict)
    sealed_private_key = "sealed"
    state = SigningKey.State.REVOKED


class SamlKeyFactory(RowFactory[SamlKey]):
    """A previous certificate without a key, because every other state needs a key pair."""

    class Meta:
        model = SamlKey

    kid = LazyFunction(lambda: new_secret()[:16])
    certificate = "certificate"
    sealed_private_key = "sealed"
    state = SamlKey.State.PREVIOUS
    expires_at = from_now(days=365)


class ProviderMetadataFactory(RowFactory[ProviderMetadata]):
    """The URL of a provider's metadata document. The service has never fetched the document."""

    class Meta:
        model = ProviderMetadata

    tenant_id = tenant_of("connection")
    connection = SubFactory(ConnectionFactory, tenant_id=same())
    address = "https://idp.example.test/metadata"
    tried_at = from_now()
    due_at = from_now(hours=1)


class RefusedMessageFactory(RowFactory[RefusedMessage]):
    class Meta:
        model = RefusedMessage

    line_id = own_text(32)
    text = "<samlp:Response/>"


class ConnectionTestFactory(RowFactory[ConnectionTest]):
    """A test login that no browser can continue."""

    class Meta:
        model = ConnectionTest

    tenant_id = tenant_of("connection")
    connection = SubFactory(ConnectionFactory, tenant_id=same())
    digest = unknown_digest()
    request_id = own_text(40)
    callback = "https://id.example.test/login/callback"
    expires_at = from_now(minutes=30)


class RevokedTokenFactory(RowFactory[RevokedToken]):
    class Meta:
        model = RevokedToken

    jti = LazyFunction(lambda: secrets.token_urlsafe(16))
    expires_at = from_now(days=1)


class ApiResourceFactory(Factory[ApiResource]):
    """An API without scopes."""

    class Meta:
        model = ApiResource

    identifier = own_text()

    @classmethod
    def _create(cls, model_class: type[ApiResource], *args: Any, **fields: Any) -> ApiResource:
        return create_api_resource(**fields)


class ClientGrantFactory(Factory[ClientGrant]):
    class Meta:
        model = ClientGrant

    tenant_id = tenant_of("client")
    client = SubFactory(ClientFactory, tenant_id=same())
    api_resource = SubFactory(ApiResourceFactory, tenant_id=same())

    @classmethod
    def _create(cls, model_class: type[ClientGrant], *args: Any, **fields: Any) -> ClientGrant:
        return create_client_grant(client_id=fields.pop("client").client_id, **fields)


class OrganizationClientGrantFactory(RowFactory[OrganizationClientGrant]):
    class Meta:
        model = OrganizationClientGrant

    tenant_id = tenant_of("organization")
    organization = SubFactory(OrganizationFactory, tenant_id=same())
    client_grant = SubFactory(ClientGrantFactory, tenant_id=same())


class PermissionFactory(RowFactory[Permission]):
    class Meta:
        model = Permission

    tenant_id = tenant_of("api_resource")
    api_resource = SubFactory(ApiResourceFactory, tenant_id=same())
    value = own_text()


class RolePermissionFactory(RowFactory[RolePermission]):
    class Meta:
        model = RolePermission

    tenant_id = tenant_of("role")
    role = SubFactory(RoleFactory, tenant_id=same())
    permission = SubFactory(PermissionFactory, tenant_id=same())


class UserPermissionFactory(RowFactory[UserPermission]):
    class Meta:
        model = UserPermission

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    permission = SubFactory(PermissionFactory, tenant_id=same())


class SessionFactory(Factory[Session]):
    """A session that has just begun with a password, in a browser that keeps its cookie."""

    class Meta:
        model = Session

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    connection = SelfAttribute("user.connection")
    methods = ("pwd",)
    ip = ADDRESS
    user_agent = "Browser/1.0"
    is_persistent = True

    @classmethod
    def _create(cls, model_class: type[Session], *args: Any, **fields: Any) -> Session:
        session, _ = begin_session(**fields)
        return session


class SessionClientFactory(RowFactory[SessionClient]):
    class Meta:
        model = SessionClient

    tenant_id = tenant_of("session")
    session = SubFactory(SessionFactory, tenant_id=same())
    client = SubFactory(ClientFactory, tenant_id=same())


class LogoutNoticeFactory(RowFactory[LogoutNotice]):
    class Meta:
        model = LogoutNotice

    tenant_id = tenant_of("client")
    client = SubFactory(ClientFactory, tenant_id=same())
    url = "https://app.example.test/logout"
    initiator = "session-revoked"
    sid = own_text(32)
    subject = own_text()
    issuer = "https://id.example.test/"
    due_at = from_now()


class LoginTicketFactory(RowFactory[LoginTicket]):
    """A login ticket that no browser has."""

    class Meta:
        model = LoginTicket

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    client = SubFactory(ClientFactory, tenant_id=same())
    connection = SelfAttribute("user.connection")
    digest = unknown_digest()
    browser_digest = unknown_digest()
    expires_at = from_now(minutes=2)


class DeviceKeyFactory(RowFactory[DeviceKey]):
    """A key whose private half no test has."""

    class Meta:
        model = DeviceKey

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    client = SubFactory(ClientFactory, tenant_id=same())
    device_name = own_text()
    device_id = own_text()
    public_key = "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----"


class InitialAccessTokenFactory(RowFactory[InitialAccessToken]):
    """A token that no test knows."""

    class Meta:
        model = InitialAccessToken

    name = own_text()
    digest = unknown_digest()
    expires_at = from_now(days=7)


class LoginTransactionFactory(RowFactory[LoginTransaction]):
    """A login that no browser can continue."""

    class Meta:
        model = LoginTransaction

    tenant_id = tenant_of("client")
    client = SubFactory(ClientFactory, tenant_id=same())
    digest = unknown_digest()
    browser_digest = unknown_digest()
    expires_at = from_now(hours=1)


class LogoutTransactionFactory(RowFactory[LogoutTransaction]):
    """A logout that no browser can continue."""

    class Meta:
        model = LogoutTransaction

    digest = unknown_digest()
    sealed_route = "sealed"
    expires_at = from_now(hours=1)


class PushedRequestFactory(RowFactory[PushedRequest]):
    """A pushed request that no login can use."""

    class Meta:
        model = PushedRequest

    tenant_id = tenant_of("client")
    client = SubFactory(ClientFactory, tenant_id=same())
    digest = unknown_digest()
    sealed_parameters = "sealed"
    expires_at = from_now(minutes=1)


class ConsentFactory(RowFactory[Consent]):
    class Meta:
        model = Consent

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    client = SubFactory(ClientFactory, tenant_id=same())


class AuthorizationCodeFactory(RowFactory[AuthorizationCode]):
    """A code that no test knows."""

    class Meta:
        model = AuthorizationCode

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    application = SubFactory(ClientFactory, tenant_id=same())
    code = unknown_digest()
    redirect_uri = "https://app.example.test/callback"
    expires = from_now(minutes=1)


class AccessTokenFactory(RowFactory[AccessToken]):
    """An opaque token that no test knows."""

    class Meta:
        model = AccessToken

    token = unknown_digest()
    expires = from_now(days=1)


class RefreshTokenFactory(RowFactory[RefreshToken]):
    """A refresh token that no test knows, valid for thirty days."""

    class Meta:
        model = RefreshToken

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    application = SubFactory(ClientFactory, tenant_id=same())
    token = unknown_digest()
    expires_at = from_now(days=30)
    initial_ip = ADDRESS


class IDTokenFactory(RowFactory[IDToken]):
    """A record of an id token. No key has signed the token."""

    class Meta:
        model = IDToken

    expires = from_now(days=1)


class DeviceGrantFactory(RowFactory[DeviceGrant]):
    class Meta:
        model = DeviceGrant

    tenant_id = tenant_of("application")
    application = SubFactory(ClientFactory, tenant_id=same())
    client_id = SelfAttribute("application.client_id")
    device_code = unknown_digest()
    user_code = own_text()
    expires = from_now(minutes=15)


class CibaRequestFactory(RowFactory[CibaRequest]):
    class Meta:
        model = CibaRequest

    tenant_id = tenant_of("application")
    application = SubFactory(ClientFactory, tenant_id=same())
    user = SubFactory(UserFactory, tenant_id=same())
    auth_req_id = unknown_digest()
    link_digest = unknown_digest()
    binding_message = "21-49-38"
    expires = from_now(minutes=5)


class SignInFactory(RowFactory[SignIn]):
    """A successful login."""

    class Meta:
        model = SignIn

    type = "s"
    is_success = True
    user_name = own_text()
    ip = ADDRESS


class AdministrativeLineFactory(RowFactory[AdministrativeLine]):
    """A successful write through the management interface."""

    class Meta:
        model = AdministrativeLine

    type = "sapi"
    is_success = True
    user_name = own_text()
    ip = ADDRESS


class LoginFailuresFactory(RowFactory[LoginFailures]):
    """A first failed login with one identifier, from one IP address."""

    class Meta:
        model = LoginFailures

    tenant_id = tenant_of("connection")
    connection = SubFactory(ConnectionFactory, tenant_id=same())
    identifier = own_text()
    ip = ADDRESS
    count = 1
    last_failed_at = from_now()


class AddressBlockFactory(RowFactory[AddressBlock]):
    """A block of an IP address, after failed logins at many accounts."""

    class Meta:
        model = AddressBlock

    address = own_text()
    stage = "pre-login"
    blocked_at = from_now()
    last_refused_at = from_now()
    ends_at = from_now(hours=1)
    is_refused = True


class KnownBrowserFactory(RowFactory[KnownBrowser]):
    """A browser with which a user has logged in."""

    class Meta:
        model = KnownBrowser

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    digest = unknown_digest()
    created_at = from_now()
    last_seen_at = from_now()


class AttackNoticeFactory(RowFactory[AttackNotice]):
    """The record of a sent mail about breached passwords."""

    class Meta:
        model = AttackNotice

    kind = AttackNotice.Kind.LEAKED_PASSWORDS
    sent_at = from_now()


class AccountTicketFactory(RowFactory[AccountTicket]):
    """A link that sets a new password, from a mail that no test knows."""

    class Meta:
        model = AccountTicket

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    purpose = AccountTicket.Purpose.PASSWORD_RESET
    digest = unknown_digest()
    expires_at = from_now(days=1)


class CustomTextFactory(RowFactory[CustomText]):
    """The heading of the login page in German."""

    class Meta:
        model = CustomText

    prompt = "login"
    language = "de"
    texts = {"login": {"title": "Willkommen"}}


class PasswordlessCodeFactory(RowFactory[PasswordlessCode]):
    """A code that no test knows, requested by an application."""

    class Meta:
        model = PasswordlessCode

    tenant_id = tenant_of("connection")
    connection = SubFactory(ConnectionFactory, tenant_id=same(), strategy="email")
    client = SubFactory(ClientFactory, tenant_id=same())
    address = LazyFunction(lambda: f"{new_secret()[:20].lower()}@example.test")
    code_digest = unknown_digest()
    code_expires_at = from_now(minutes=3)
    expires_at = from_now(minutes=3)


class FactorChallengeFactory(RowFactory[FactorChallenge]):
    """A code of a second factor that no test knows."""

    class Meta:
        model = FactorChallenge

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    bound_to = "login:0"
    purpose = "use"
    code_digest = unknown_digest()
    expires_at = from_now(minutes=5)


class PasskeyCeremonyFactory(RowFactory[PasskeyCeremony]):
    """A ceremony of an application whose `auth_session` no test knows."""

    class Meta:
        model = PasskeyCeremony

    tenant_id = tenant_of("client")
    client = SubFactory(ClientFactory)
    digest = unknown_digest()
    relying_party = "login.example.test"
    sealed = "sealed"
    expires_at = from_now(minutes=5)


class FactorTransactionFactory(RowFactory[FactorTransaction]):
    """A login at an application whose `mfa_token` no test knows."""

    class Meta:
        model = FactorTransaction

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    client = SubFactory(ClientFactory, tenant_id=same())
    connection = SubFactory(ConnectionFactory, tenant_id=same())
    digest = unknown_digest()
    methods = ["pwd"]
    grant = "password"
    may_enroll = False
    expires_at = from_now(minutes=10)


class RememberedBrowserFactory(RowFactory[RememberedBrowser]):
    """A browser whose cookie no test knows."""

    class Meta:
        model = RememberedBrowser

    tenant_id = tenant_of("user")
    user = SubFactory(UserFactory, tenant_id=same())
    digest = unknown_digest()
    last_used_at = from_now()
    expires_at = from_now(days=30)


class OrganizationSecondFactorsFactory(RowFactory[OrganizationSecondFactors]):
    """An organization that always requires a second factor."""

    class Meta:
        model = OrganizationSecondFactors

    tenant_id = tenant_of("organization")
    organization = SubFactory(OrganizationFactory, tenant_id=same())
    policy = SecondFactorPolicy.ALWAYS


class InvitationFactory(RowFactory[Invitation]):
    """An open invitation, valid for a week, whose ticket no test knows."""

    class Meta:
        model = Invitation

    tenant_id = tenant_of("organization")
    organization = SubFactory(OrganizationFactory, tenant_id=same())
    client = SubFactory(ClientFactory, tenant_id=same())
    inviter_name = own_text()
    email = LazyAttributeSequence(lambda row, number: f"guest-{number}@{row.tenant_id}.example.test")
    life_seconds = 604_800
    digest = unknown_digest()
    expires_at = from_now(days=7)


class TenantSettingsFactory(RowFactory[TenantSettings]):
    """Settings without values: every default applies."""

    class Meta:
        model = TenantSettings


class BrandingThemeFactory(RowFactory[BrandingTheme]):
    """A theme with the default look of the pages."""

    class Meta:
        model = BrandingTheme

    values = LazyFunction(default_theme)


class BrandingPictureFactory(RowFactory[BrandingPicture]):
    """A picture that no setting uses. Its bytes are not a picture, and no page decodes them."""

    class Meta:
        model = BrandingPicture

    kind = "logo"
    digest = LazyFunction(lambda: secrets.token_hex(32))
    ending = "png"
    media_type = "image/png"
    width = 40
    height = 10
    data = b"picture"
