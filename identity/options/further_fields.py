"""Fields that few connections need. Forms fold them. Pure."""

from __future__ import annotations

from dataclasses import replace

from identity.options.guide_fields import OptionField

UPSTREAM = OptionField(
    "upstream_params",
    "Parameters for the provider",
    "Added to each login request to the provider. A value is fixed, or comes from the login request of the application.",
    kind="parameters",
    is_further=True,
)
PKCE = OptionField(
    "connection_settings.pkce",
    "Code challenge (PKCE)",
    "Turn PKCE off only if the provider refuses it.",
    kind="choice",
    choices=(("", "On"), ("disabled", "Off")),
    is_further=True,
)
_AUTH_PARAMS = OptionField(
    "authParams",
    "Fixed parameters",
    "Added to each login request to the provider.",
    kind="texts",
    columns=("Parameter", "Value"),
    is_further=True,
)
_LINK_PARAMS = replace(
    _AUTH_PARAMS,
    label="Default parameters of logins by link",
    help_text="Used if the application requests a link without these parameters.",
)
_PASSED_ON = OptionField(
    "authParamsMap",
    "Parameters from the application",
    "Each row copies a parameter of the application's login request into the login request to the provider.",
    kind="texts",
    columns=("Parameter of the provider", "Parameter of the application"),
    is_further=True,
)
_STORED = "Stored for other programs. This service does not use this setting."
_STORED_MFA = f"{_STORED} Set second factors on the page “Two-step verification and passkeys”."
_SYNTAX = (("", "Liquid: {{ code }}"), ("md_with_macros", "Macros: @@code@@"))


def _key_pair(name: str, label: str, use: str, *, is_read_from_text: bool = False) -> tuple[OptionField, OptionField]:
    return (
        OptionField(
            f"{name}.key",
            f"Private {label}",
            f"{use} Empty: the key of the tenant.",
            kind="key",
            is_read_from_text=is_read_from_text,
            is_further=True,
        ),
        OptionField(f"{name}.cert", f"Certificate of the private {label}", "In PEM format.", kind="area", is_further=True),
    )


OPENID_FURTHER = (PKCE, UPSTREAM)
OAUTH_FURTHER = (_AUTH_PARAMS, _PASSED_ON, UPSTREAM)
SAML_FURTHER = (
    OptionField(
        "entityId",
        "Entity id of this service",
        "If empty, the service uses the entity id that the page “Test connection” shows.",
        is_further=True,
    ),
    OptionField(
        "signatureAlgorithm",
        "Signature algorithm of requests",
        kind="choice",
        choices=(
            ("", "RSA with SHA-256"),
            ("rsa-sha384", "RSA with SHA-384"),
            ("rsa-sha512", "RSA with SHA-512"),
            ("rsa-sha1", "RSA with SHA-1 (weak)"),
        ),
        is_further=True,
    ),
    OptionField(
        "digestAlgorithm",
        "Digest algorithm of requests",
        kind="choice",
        choices=(("", "SHA-256"), ("sha384", "SHA-384"), ("sha512", "SHA-512"), ("sha1", "SHA-1 (weak)")),
        is_further=True,
    ),
    OptionField(
        "idpinitiated.enabled",
        "The provider may start logins",
        "If this is on, any web page can log a user in to an attacker's account, and the user may not notice. Turn it on only if "
        "applications cannot start logins themselves.",
        kind="switch",
        is_further=True,
    ),
    OptionField(
        "idpinitiated.client_id",
        "Application for logins that the provider starts",
        "The client id of the application. Required if the provider may start logins.",
        is_further=True,
    ),
    OptionField(
        "idpinitiated.client_protocol",
        "Protocol of the application",
        kind="choice",
        choices=(("", "OpenID Connect"), ("samlp", "SAML"), ("wsfed", "WS-Federation")),
        is_further=True,
    ),
    OptionField(
        "idpinitiated.client_authorizequery",
        "Parameters of the login request",
        "If the provider starts a login, the service acts as if the application had sent this query string, such as "
        "response_type=code&scope=openid&redirect_uri=https://app.example.com/callback. For SAML, only “RelayState” is used; "
        "for WS-Federation, only “wreply” and “wctx”.",
        is_further=True,
    ),
    *_key_pair("signing_key", "key for signatures", "Signs requests to the provider."),
    *_key_pair("decryptionKey", "key for decryption", "Decrypts assertions.", is_read_from_text=True),
)
DATABASE_FURTHER = (
    OptionField(
        "authentication_methods.password.enabled",
        "Passwords",
        "Users can log in and sign up with a password.",
        kind="switch",
        default=True,
        is_further=True,
    ),
    OptionField(
        "passkey_options.challenge_ui",
        "How the login page offers passkeys",
        kind="choice",
        choices=(
            ("", "Not set: a button and suggestions"),
            ("both", "A button, and suggestions of the browser in the login field"),
            ("button", "A button"),
            ("autofill", "Suggestions of the browser in the login field"),
        ),
        is_further=True,
    ),
    OptionField(
        "passkey_options.progressive_enrollment_enabled",
        "Offer a passkey after a login with a password",
        kind="switch",
        default=True,
        is_further=True,
    ),
    OptionField("passkey_options.local_enrollment_enabled", "Local passkeys", _STORED, kind="switch", default=True, is_further=True),
    OptionField("mfa.active", "Second factors of the connection", _STORED_MFA, kind="switch", default=True, is_further=True),
    OptionField("mfa.return_enroll_settings", "Return settings of second factors", _STORED, kind="switch", default=True, is_further=True),
    OptionField("validation.username.min", "Shortest username", "Characters. Default: 1.", kind="number", bounds=(1, 128), is_further=True),
    OptionField("validation.username.max", "Longest username", "Characters. Default: 15.", kind="number", bounds=(1, 128), is_further=True),
)
EMAIL_FURTHER = (
    OptionField(
        "email.body",
        "Text of the email",
        "HTML. Empty: the text of the service, in the language of the user.",
        kind="area",
        is_further=True,
    ),
    OptionField("email.syntax", "Syntax of subject and text", kind="choice", choices=_SYNTAX, is_further=True),
    _LINK_PARAMS,
)
SMS_FURTHER = (
    OptionField("syntax", "Syntax of the text", kind="choice", choices=_SYNTAX, is_further=True),
    OptionField(
        "gateway_authentication.method",
        "Authentication at the gateway",
        kind="choice",
        choices=(("", "A signature"), ("bearer", "A signature and a signed token")),
        is_further=True,
    ),
    OptionField("gateway_authentication.subject", "Subject of the token", "The claim sub of the signed token.", is_further=True),
    OptionField("gateway_authentication.audience", "Audience of the token", "The claim aud of the signed token.", is_further=True),
    OptionField(
        "gateway_authentication.secret",
        "Secret of the gateway",
        "The service signs each message and the token with this secret.",
        kind="secret",
        is_further=True,
    ),
    OptionField("gateway_authentication.secret_base64_encoded", "The secret is encoded in base64", kind="switch", is_further=True),
)
