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
    ("authorization_code", "Authorization code", "Users log in in the browser, with PKCE. Right for nearly all applications."),
    ("refresh_token", "Refresh token", "The application renews access without the user."),
    ("client_credentials", "Client credentials", "The application calls APIs without a user. Needs a client grant for each API."),
    ("implicit", "Implicit and hybrid", "The address in the browser contains the tokens, which can leak. For legacy applications only."),
    ("password", "Password", "Users enter their password in the application, which sees the password. For migrations only."),
    (REALM_GRANT, "Password of a named connection", "Like the grant Password, with a connection that the application chooses."),
    (
        TokenExchangeGrant.name,
        "Token exchange",
        "The application exchanges a token of a user for a token of another API, or logs a user in with a token of another issuer.",
    ),
    (PasswordlessGrant.name, "Code by email or text message", "Users receive a code, and enter the code in the application."),
    (
        OtpGrant.name,
        "Second factor: authenticator app",
        "After a grant with a password, users enter the code of their app in the application.",
    ),
    (
        OobGrant.name,
        "Second factor: text message or email",
        "After a grant with a password, users enter the code from a message in the application.",
    ),
    (
        RecoveryCodeGrant.name,
        "Second factor: recovery code",
        "After a grant with a password, users without their factor enter the recovery code in the application.",
    ),
    (PasskeyGrant.name, "Passkey", "Users log in and sign up with passkeys in the application. First party only."),
    (
        CibaGrant.name,
        "Approval on another device (CIBA)",
        "The application requests the approval of a user, on another device or in another browser. The user is notified by email or by "
        "your webhook. "
        "The client must authenticate.",
    ),
    (DeviceCodeGrant.name, "Device code", "For devices without a browser: the user enters a code at /activate, on another device."),
)
# Each text explains why the grant is off by default. Legacy applications may need it; see docs/how-to/old-clients.md for replacements.
LEGACY = (
    (
        PASSWORD,
        "Password at /oauth/ro",
        "The client does not authenticate, and sees every password. Second factors are not possible.",
    ),
    (DEVICE_KEY, "Device key at /oauth/ro", "A stolen device can log in until its key is deleted. Second factors are not possible."),
    (SOCIAL_TOKEN, "Token of a provider at /oauth/access_token", "The application handles tokens of the provider, which can leak."),
    (
        DELEGATION_BY_ID_TOKEN,
        "Id token at /delegation",
        "An attacker who finds an id token, for example in a log, gets tokens for other clients.",
    ),
    (
        DELEGATION_BY_REFRESH_TOKEN,
        "Refresh token at /delegation",
        "Works only if refresh tokens are not rotated. The theft of a token is then not detected.",
    ),
)
# How clients were registered, by the names that the toolkit gives to the choices.
REGISTRATION_SOURCES = {
    "Manual": "By an administrator or the management API",
    "Dynamic Client Registration": "By the application itself",
    "Client ID Metadata Document": "By a metadata document",
}
METHODS = (
    ("none", "None: a public client that cannot keep a secret"),
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
    ("allow", "Allowed"),
    ("require", "Required"),
)
BEHAVIOURS = (
    ("", "Not set"),
    ("no_prompt", "Users do not choose: the application names the organization"),
    ("pre_login_prompt", "Users choose before the login"),
    ("post_login_prompt", "Users choose after the login"),
)
