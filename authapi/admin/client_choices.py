"""What the fields of the form of a client offer, in words for people."""

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
    ("regular_web", "Web application with a server of its own"),
    ("spa", "Single-page application in the browser"),
    ("native", "Mobile or desktop application"),
    ("non_interactive", "Machine to machine, without users"),
    ("resource_server", "API that calls other APIs for its users"),
)
GRANTS = (
    ("authorization_code", "Authorization code", "People log in in the browser, with PKCE. What nearly every application needs."),
    ("refresh_token", "Refresh token", "Access is renewed without asking the user again."),
    ("client_credentials", "Client credentials", "The application acts on its own, without a user. Needs a client grant for each API."),
    ("implicit", "Implicit and hybrid", "Tokens come in the address of the browser. For old applications only: tokens leak there."),
    ("password", "Password", "The application itself asks for passwords. For migrations only: it sees every password."),
    (REALM_GRANT, "Password of a named connection", "As the grant above, at a connection that the application names."),
    (TokenExchangeGrant.name, "Token exchange", "For tokens of users for other APIs, or logins with tokens of other issuers."),
    (PasswordlessGrant.name, "Code by email or text message", "The application itself asks for the code that a person was sent."),
    (
        OtpGrant.name,
        "Second factor: authenticator app",
        "The application itself asks for the code, after a grant that asks for the password.",
    ),
    (OobGrant.name, "Second factor: text message or email", "As the grant above, for a code that the person was sent."),
    (RecoveryCodeGrant.name, "Second factor: recovery code", "As the grants above, for people who have lost their factor."),
    (PasskeyGrant.name, "Passkey", "The application itself asks for passkeys, and signs people up with them. First party only."),
    (
        CibaGrant.name,
        "Approval elsewhere (CIBA)",
        "A server asks a user for an approval by mail or webhook. The client must authenticate.",
    ),
    (DeviceCodeGrant.name, "Device code", "For devices without a browser: the user enters a code at /activate, on another device."),
)
# Each says why it is off. Applications that exist may need one; see docs/how-to/old-clients.md for the way out.
LEGACY = (
    (
        PASSWORD,
        "Password at /oauth/ro",
        "The client proves nothing but its id, and sees every password. No second factor can be asked for.",
    ),
    (DEVICE_KEY, "Device key at /oauth/ro", "A stolen device logs in until its key is deleted. No second factor can be asked for."),
    (SOCIAL_TOKEN, "Token of a provider at /oauth/access_token", "The application handles tokens of the provider, which can leak."),
    (
        DELEGATION_BY_ID_TOKEN,
        "Id token at /delegation",
        "A person who finds an id token, in a log for example, gets tokens for other clients.",
    ),
    (DELEGATION_BY_REFRESH_TOKEN, "Refresh token at /delegation", "Its refresh tokens may not rotate, so a stolen one is not noticed."),
)
METHODS = (
    ("none", "None: a public client, which cannot keep a secret"),
    ("client_secret_post", "Secret in the body of the request"),
    ("client_secret_basic", "Secret in the Authorization header"),
)
ALGORITHMS = (
    ("RS256", "RS256, checked with the published keys"),
    ("PS256", "PS256, checked with the published keys; compliance levels require it"),
    ("RS512", "RS512, checked with the published keys"),
    ("HS256", "HS256, checked with the client's own secret"),
)
USES = (("", "Not set: outside organizations only"), ("deny", "Denied"), ("allow", "Allowed"), ("require", "Required"))
BEHAVIOURS = (
    ("", "Not set"),
    ("no_prompt", "No question: the application names it"),
    ("pre_login_prompt", "Asked before the login"),
    ("post_login_prompt", "Asked after the login"),
)
