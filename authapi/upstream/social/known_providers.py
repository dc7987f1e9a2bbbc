"""Providers that the service knows, by the strategy of their connections: URLs, scopes, profile calls and peculiarities. Pure.

A provider is a row of data and has no code of its own. Other modules ask whether it has a peculiarity, and then behave accordingly. The
options of a connection contain the credentials for the provider, and never a URL. Operators may replace URLs
(`PROVIDER_ADDRESSES`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto, unique
from typing import Any, Literal

# The placeholder for the directory id in the issuer that Microsoft publishes.
TENANT_ID = "{tenantid}"


@unique
class Peculiarity(Enum):
    """A difference between a provider and the standards OAuth 2.0 and OpenID Connect."""

    # The answer is a posted form: `response_mode=form_post`.
    FORM_POST = auto()
    # The user's name is only in the field `user` of the posted form, only at the first login, and in no token.
    NAME_IN_FORM = auto()
    # The client secret is a JSON Web Token that the client signs itself.
    SIGNED_SECRET = auto()
    # The client secret is sent in the body of the token request, not in the Authorization header.
    POSTED_SECRET = auto()
    # The provider refuses code challenges, or does not document them.
    NO_PKCE = auto()
    # Id tokens have no nonce, although the request has one.
    NO_NONCE = auto()
    # The issuer names the directory of the user. The table has a template for the issuer, and the token names the directory.
    DIRECTORY_ISSUER = auto()
    # The claim `hd` names the organization of the user, and a connection may accept only the users of some organizations.
    HOSTED_DOMAIN = auto()
    # Each request contains an HMAC of the access token, with the client secret as key. So a stolen token is worthless without the secret.
    SECRET_PROOF = auto()


@dataclass(frozen=True)
class ProfileCall:
    """One request with the access token. The answers of all calls become one JSON object, from which claims are read.

    The answer of a call becomes the member `name` of this object. With an empty `name`, the answer is the whole object. The provider may
    answer an optional call with 403 or 404, if the user or an administrator did not grant its scope.
    """

    name: str
    address: str
    accept: str = "application/json"
    parameters: Mapping[str, str] = field(default_factory=dict)
    is_optional: bool = False


@dataclass(frozen=True)
class TokenCheck:
    """How to check for which client the provider issued an access token.

    `sent` names the part of the request that contains the token. `proof` is how the connection's client authenticates. `clients`,
    `subject` and `alive` are expressions over the answer:

    - `alive` must be true. A provider that answers an invalid token with an error needs no such expression.
    - Each value of `clients` must be a client of the connection.
    - `subject` names the user. This expression is empty if the answer contains no subject.
    """

    address: str
    verb: Literal["GET", "POST"]
    sent: Literal["query", "form", "json"]
    parameter: str
    proof: Literal["none", "basic", "form", "app_token"]
    clients: str
    subject: str = ""
    alive: str = "`true`"


@dataclass(frozen=True)
class KnownProvider:
    """The known facts of a provider. A provider without an issuer issues no id tokens; then `calls` read the profile.

    `fields` are claims of OpenID Connect as expressions over the JSON of the calls, or over the id token.
    """

    scope: str
    addresses: Mapping[str, str] = field(default_factory=dict)
    issuer: str = ""
    # Other spellings of the issuer in some tokens of the provider.
    other_issuers: tuple[str, ...] = ()
    peculiarities: frozenset[Peculiarity] = frozenset()
    calls: tuple[ProfileCall, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    # Invented answers of the calls as one JSON object, for a preview of the profile.
    sample: Mapping[str, Any] = field(default_factory=dict)
    token_check: TokenCheck | None = None
    # Maps the name of a parameter at the provider to the name that clients of this service use.
    hints: Mapping[str, str] = field(default_factory=lambda: {"login_hint": "login_hint", "ui_locales": "ui_locales"})
    # The parameters that are sent if the client requires a new login: the provider then asks for the password, or at least for the account.
    again: Mapping[str, str] = field(default_factory=lambda: {"prompt": "login"})

    def has(self, peculiarity: Peculiarity) -> bool:
        """Tell whether the provider has a peculiarity."""
        return peculiarity in self.peculiarities


_MICROSOFT = "https://login.microsoftonline.com"
_MICROSOFT_ADDRESSES = {
    "discovery_url": f"{_MICROSOFT}/{{directory}}/v2.0/.well-known/openid-configuration",
    "authorization_endpoint": f"{_MICROSOFT}/{{directory}}/oauth2/v2.0/authorize",
    "token_endpoint": f"{_MICROSOFT}/{{directory}}/oauth2/v2.0/token",
    "jwks_uri": f"{_MICROSOFT}/{{directory}}/discovery/v2.0/keys",
    "userinfo_endpoint": "https://graph.microsoft.com/oidc/userinfo",
    "end_session_endpoint": f"{_MICROSOFT}/{{directory}}/oauth2/v2.0/logout",
}
# The administrators of a directory can put the email addresses of other people into tokens. `xms_edov` means that Microsoft has verified
# that the domain of the address belongs to the directory.
_MICROSOFT_FIELDS = {"email_verified": "to_bool(xms_edov)"}
_VERIFIED = "emails[?primary == `true` && verified == `true`]"

KNOWN: Mapping[str, KnownProvider] = {
    "google-oauth2": KnownProvider(
        scope="openid profile email",
        issuer="https://accounts.google.com",
        other_issuers=("accounts.google.com",),
        addresses={
            "authorization_endpoint": "https://accounts.google.com/o/oauth2/v2/auth",
            "token_endpoint": "https://oauth2.googleapis.com/token",
            "jwks_uri": "https://www.googleapis.com/oauth2/v3/certs",
            "userinfo_endpoint": "https://openidconnect.googleapis.com/v1/userinfo",
            "tokeninfo_endpoint": "https://oauth2.googleapis.com/tokeninfo",
        },
        peculiarities=frozenset({Peculiarity.HOSTED_DOMAIN}),
        token_check=TokenCheck(
            "tokeninfo_endpoint", "GET", "query", "access_token", proof="none", clients="[aud, azp || aud]", subject="sub"
        ),
    ),
    "github": KnownProvider(
        scope="read:user user:email",
        addresses={
            "authorization_endpoint": "https://github.com/login/oauth/authorize",
            "token_endpoint": "https://github.com/login/oauth/access_token",
            "user_endpoint": "https://api.github.com/user",
            "emails_endpoint": "https://api.github.com/user/emails",
            "token_check_endpoint": "https://api.github.com/applications/{client_id}/token",
        },
        peculiarities=frozenset({Peculiarity.POSTED_SECRET}),
        calls=(
            ProfileCall("user", "user_endpoint", accept="application/vnd.github+json"),
            # The profile has the email address that the user chose to publish. Only this call returns which addresses are verified.
            ProfileCall("emails", "emails_endpoint", accept="application/vnd.github+json", is_optional=True),
        ),
        fields={
            "sub": "user.id",
            "name": "user.name",
            "nickname": "user.login",
            "picture": "user.avatar_url",
            "email": f"{_VERIFIED} | [0].email",
            "email_verified": f"length({_VERIFIED} || `[]`) > `0`",
        },
        sample={
            "user": {"id": 248289, "login": "ada", "name": "Ada Lovelace", "avatar_url": "https://example.com/ada.png"},
            "emails": [{"email": "ada@example.com", "primary": True, "verified": True}],
        },
        token_check=TokenCheck(
            "token_check_endpoint",
            "POST",
            "json",
            "access_token",
            proof="basic",
            clients="app.client_id",
            subject="user.id",
        ),
        hints={"login": "login_hint"},
        again={"prompt": "select_account"},
    ),
    "windowslive": KnownProvider(
        scope="openid profile email",
        issuer=f"{_MICROSOFT}/{TENANT_ID}/v2.0",
        addresses=_MICROSOFT_ADDRESSES,
        peculiarities=frozenset({Peculiarity.DIRECTORY_ISSUER, Peculiarity.POSTED_SECRET}),
        fields=_MICROSOFT_FIELDS,
    ),
    "waad": KnownProvider(
        scope="openid profile email",
        issuer=f"{_MICROSOFT}/{TENANT_ID}/v2.0",
        addresses=_MICROSOFT_ADDRESSES,
        peculiarities=frozenset({Peculiarity.DIRECTORY_ISSUER, Peculiarity.POSTED_SECRET}),
        fields=_MICROSOFT_FIELDS,
    ),
    "apple": KnownProvider(
        scope="name email",
        issuer="https://appleid.apple.com",
        addresses={
            "authorization_endpoint": "https://appleid.apple.com/auth/authorize",
            "token_endpoint": "https://appleid.apple.com/auth/token",
            "jwks_uri": "https://appleid.apple.com/auth/keys",
        },
        peculiarities=frozenset(
            {
                *(Peculiarity.FORM_POST, Peculiarity.NAME_IN_FORM, Peculiarity.SIGNED_SECRET),
                *(Peculiarity.POSTED_SECRET, Peculiarity.NO_PKCE),
            }
        ),
        hints={},
        again={},
    ),
    "facebook": KnownProvider(
        scope="email public_profile",
        addresses={
            "authorization_endpoint": "https://www.facebook.com/{version}/dialog/oauth",
            "token_endpoint": "https://graph.facebook.com/{version}/oauth/access_token",
            "me_endpoint": "https://graph.facebook.com/{version}/me",
            "debug_token_endpoint": "https://graph.facebook.com/{version}/debug_token",
        },
        peculiarities=frozenset({Peculiarity.POSTED_SECRET, Peculiarity.NO_PKCE, Peculiarity.SECRET_PROOF}),
        calls=(ProfileCall("me", "me_endpoint", parameters={"fields": "id,name,first_name,last_name,email,picture.width(256)"}),),
        # Graph does not return whether an email address is verified.
        fields={
            "sub": "me.id",
            "name": "me.name",
            "given_name": "me.first_name",
            "family_name": "me.last_name",
            "picture": "me.picture.data.url",
            "email": "me.email",
        },
        sample={
            "me": {
                "id": "248289",
                "name": "Ada Lovelace",
                "first_name": "Ada",
                "last_name": "Lovelace",
                "email": "ada@example.com",
                "picture": {"data": {"url": "https://example.com/ada.png"}},
            }
        },
        token_check=TokenCheck(
            "debug_token_endpoint",
            "GET",
            "query",
            "input_token",
            proof="app_token",
            clients="to_string(data.app_id)",
            subject="data.user_id",
            alive="data.is_valid",
        ),
        hints={},
        again={"auth_type": "reauthenticate"},
    ),
    "linkedin": KnownProvider(
        scope="openid profile email",
        # The discovery document contains `issuer`. Id tokens contain either `issuer` or the issuer in `other_issuers`.
        issuer="https://www.linkedin.com/oauth",
        other_issuers=("https://www.linkedin.com",),
        addresses={
            "authorization_endpoint": "https://www.linkedin.com/oauth/v2/authorization",
            "token_endpoint": "https://www.linkedin.com/oauth/v2/accessToken",
            "jwks_uri": "https://www.linkedin.com/oauth/openid/jwks",
            "userinfo_endpoint": "https://api.linkedin.com/v2/userinfo",
            "introspection_endpoint": "https://www.linkedin.com/oauth/v2/introspectToken",
        },
        peculiarities=frozenset({Peculiarity.POSTED_SECRET, Peculiarity.NO_PKCE, Peculiarity.NO_NONCE}),
        token_check=TokenCheck(
            "introspection_endpoint", "POST", "form", "token", proof="form", clients="client_id", alive="active == `true`"
        ),
        hints={},
        again={},
    ),
}
# The strategies for providers that a tenant describes itself, with OpenID Connect or OAuth 2.0.
OPENID = KnownProvider(scope="openid profile email")
OAUTH2 = KnownProvider(scope="", calls=(ProfileCall("", "userinfo_endpoint"),), peculiarities=frozenset({Peculiarity.POSTED_SECRET}))
# The version of Facebook's Graph API for connections that name no version. A version is supported for two years or longer.
GRAPH_VERSION = "v23.0"
# The directory id that stands for all accounts: the accounts of every organization, and personal accounts.
COMMON_DIRECTORY = "common"


class AddressUnknown(ValueError):
    """A setting replaces a URL that no provider has."""


def check_addresses(replaced: Mapping[str, Mapping[str, str]]) -> None:
    """Raise `AddressUnknown` for a replacement that matches no URL. Otherwise a misspelled name would leave the old URL in use."""
    for strategy, addresses in replaced.items():
        row = KNOWN.get(strategy)
        if row is None:
            raise AddressUnknown(f"PROVIDER_ADDRESSES: unknown strategy {strategy}; known strategies are {', '.join(KNOWN)}.")
        known = [*row.addresses, *(["issuer"] if row.issuer else [])]
        for name in addresses:
            if name not in known:
                raise AddressUnknown(f"PROVIDER_ADDRESSES: unknown address `{name}` of {strategy}; known addresses are {', '.join(known)}.")
