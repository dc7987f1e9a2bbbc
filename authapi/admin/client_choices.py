"""Choices of the client form, with their labels."""

from __future__ import annotations

from authapi.grants.ciba import CibaGrant
from authapi.grants.device_code import DeviceCodeGrant
from authapi.grants.passkeys import PasskeyGrant
from authapi.grants.password import REALM_GRANT
from authapi.grants.passwordless import PasswordlessGrant
from authapi.grants.second_factor import OobGrant, OtpGrant, RecoveryCodeGrant
from authapi.protocols.legacy.opting_in import (
    DELEGATION_BY_ID_TOKEN,
    DELEGATION_BY_REFRESH_TOKEN,
    DEVICE_KEY,
    PASSWORD,
    SOCIAL_TOKEN,
)
from authapi.protocols.oauth.token_exchange import TokenExchangeGrant

APP_TYPES = (
    ("", "Not set"),
    ("regular_web", "Web application with a server"),
    ("spa", "Single-page application in the browser"),
    ("native", "Mobile or desktop application"),
    ("non_interactive", "Machine to machine, without users"),
    ("resource_server", "API that calls other APIs for its users"),
)
GRANTS = (
    ("authorization_code", "Authorization code", "Users log in on the login pages, in the browser. Right for nearly all applications."),
    ("refresh_token", "Refresh token", "The application gets new access tokens without the user."),
    ("client_credentials", "Client credentials", "The application calls APIs without a user. Needs a client grant for each API."),
    ("implicit", "Implicit and hybrid", "The browser receives tokens in an address, where they can leak. For legacy applications only."),
    ("password", "Password", "Users enter their password in the application, so the application sees the password. For migrations only."),
    (REALM_GRANT, "Password of a named connection", "Like the grant type Password, but the application chooses the connection."),
    (
        TokenExchangeGrant.name,
        "Token exchange",
        "The application exchanges a token of a user for a token of another API, or logs a user in with a token of another issuer. "
        "Choose the allowed exchanges under Token exchange.",
    ),
    (
        PasswordlessGrant.name,
        "Code by email or text message",
        "Users receive a code, and enter it in the application instead of a password.",
    ),
    (
        OtpGrant.name,
        "Second factor: authenticator app",
        "After the password, users enter the code of their authenticator app in the application.",
    ),
    (
        OobGrant.name,
        "Second factor: text message or email",
        "After the password, users enter the code from a text message or email in the application.",
    ),
    (
        RecoveryCodeGrant.name,
        "Second factor: recovery code",
        "After the password, users who lost their second factor enter the recovery code in the application.",
    ),
    (PasskeyGrant.name, "Passkey", "Users log in and sign up with passkeys in the application. Only for first-party applications."),
    (
        CibaGrant.name,
        "Approval on another device (CIBA)",
        "The application requests the approval of a user, who gives it on another device. The sign-in settings define whether an "
        "email or your webhook notifies the user. Not for public clients.",
    ),
    (
        DeviceCodeGrant.name,
        "Device code",
        "For devices without a browser, such as a TV: the user enters a code on another device, at /activate.",
    ),
)
# Each text explains why the grant is off by default. Legacy applications may need it; see docs/how-to/old-clients.md for replacements.
LEGACY = (
    (
        PASSWORD,
        "Password at /oauth/ro",
        "The application sees every password and does not authenticate. Second factors are not possible.",
    ),
    (
        DEVICE_KEY,
        "Device key at /oauth/ro",
        "The application logs the user in with a key that is stored on the device, without a password. A thief can log in with a stolen "
        "device until its key is deleted. Second factors are not possible.",
    ),
    (
        SOCIAL_TOKEN,
        "Token of a provider at /oauth/access_token",
        "The application itself receives tokens of the provider, and can leak them.",
    ),
    (
        DELEGATION_BY_ID_TOKEN,
        "ID token at /delegation",
        "An attacker who finds an ID token, for example in a log, can get tokens for other clients.",
    ),
    (
        DELEGATION_BY_REFRESH_TOKEN,
        "Refresh token at /delegation",
        "Works only if refresh tokens do not rotate. Without rotation, the service cannot detect that a token was stolen.",
    ),
)
# How a client was registered. Each key is a label of Django OAuth Toolkit, and its value is the label that our pages show instead.
REGISTRATION_SOURCES = {
    "Manual": "By an administrator or the management interface",
    "Dynamic Client Registration": "By the application itself",
    "Client ID Metadata Document": "By a metadata document",
}
METHODS = (
    ("none", "None: for public clients, which cannot keep a secret"),
    ("client_secret_post", "Secret in the body of the request"),
    ("client_secret_basic", "Secret in the Authorization header"),
)
ALGORITHMS = (
    ("RS256", "RS256, checked with the published keys"),
    ("PS256", "PS256, checked with the published keys; compliance levels require it"),
    ("RS512", "RS512, checked with the published keys"),
    ("HS256", "HS256, checked with the client's own secret"),
)
USES = (
    ("", "Not set: the same as denied"),
    ("deny", "Denied: users log in without an organization"),
    ("allow", "Allowed: users log in with or without an organization"),
    ("require", "Required: users must log in to an organization"),
)
BEHAVIOURS = (
    ("", "Not set: users do not choose"),
    ("no_prompt", "Users do not choose: the request of the application names the organization"),
    ("pre_login_prompt", "Users choose before the login, if an organization is required"),
    ("post_login_prompt", "Users choose after the login, among their organizations"),
)
