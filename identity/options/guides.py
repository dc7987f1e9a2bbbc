"""Setup guides for providers: the name on the button, the fields of the form, and the steps at the provider. Pure.

Fields cover some of the options; all other options are rows of a name and a value. Values are checked where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping

from identity.options.enterprise_guides import ENTERPRISE_GUIDES, MAPPED, MODE
from identity.options.further_fields import OAUTH_FURTHER, PKCE, UPSTREAM
from identity.options.guide_fields import Guide, OptionField
from identity.options.own_guides import OWN_GUIDES

# Path below the tenant's address to which every provider redirects the browser.
CALLBACK_PATH = "login/callback"
# Providers with a well-known logo: each has an icon in `templates/hosted/icons/`.
BRANDS = ("google-oauth2", "github", "windowslive", "apple", "facebook", "linkedin")


def _client(what: str = "Client id", secret: str = "Client secret") -> tuple[OptionField, OptionField]:  # noqa: S107  (labels)
    return (OptionField("client_id", what, is_required=True), OptionField("client_secret", secret, kind="secret", is_required=True))


def _scope(default: str) -> OptionField:
    return OptionField(
        "scope", "Scopes", f"Separate scopes with spaces. Default: {default}. Tokens of the provider are not stored.", kind="words"
    )


# The fields that `authapi.upstream.social` fills.
EXPRESSION_FIELDS = (
    *("user_id", "email", "email_verified", "name", "nickname", "given_name", "family_name", "picture"),
    *("phone_number", "phone_number_verified"),
)
_DIRECTORY_STEPS = (
    "Open App registrations and choose New registration.",
    "Enter the callback address as a redirect URI of the platform Web.",
    "Copy the Application (client) ID. Create a secret under Certificates & secrets and copy its value, not its id.",
    "For verified addresses, add the optional claim xms_edov to the id token. Other addresses count as unverified, because a directory "
    "can write any address into its tokens.",
)
_SOCIAL: Mapping[str, Guide] = {
    "google-oauth2": Guide(
        "Google",
        (
            *_client(),
            _scope("openid profile email"),
            OptionField(
                "hosted_domains",
                "Only these organizations",
                "One Google Workspace domain per line. Default: every Google account may log in.",
                kind="lines",
            ),
            OptionField(
                "allowed_audiences",
                "Client ids of our other apps",
                "One per line. Tokens that Google issued to these apps are accepted at /oauth/access_token.",
                kind="lines",
            ),
            MODE,
            MAPPED,
            PKCE,
            UPSTREAM,
        ),
        (
            "Create an OAuth client ID of the type Web application.",
            "Enter the callback address under Authorized redirect URIs.",
            "Publish the consent screen, or only test users can log in.",
        ),
        "https://console.cloud.google.com/apis/credentials",
    ),
    "github": Guide(
        "GitHub",
        (*_client(), _scope("read:user user:email"), UPSTREAM),
        (
            "Choose New OAuth App under OAuth Apps. A GitHub App works as well, with read access to Email addresses.",
            "Enter the callback address as Authorization callback URL.",
            "Choose Generate a new client secret.",
        ),
        "https://github.com/settings/developers",
    ),
    "windowslive": Guide(
        "Microsoft",
        (*_client("Application (client) ID"), _scope("openid profile email"), UPSTREAM),
        ("Choose accounts in any organizational directory and personal Microsoft accounts.", *_DIRECTORY_STEPS),
        "https://entra.microsoft.com/#view/Microsoft_AAD_RegisteredApps/ApplicationsListBlade",
    ),
    "waad": Guide(
        "Microsoft Entra",
        (
            OptionField("tenant_domain", "Directory", "Domain or id of the directory, such as contoso.com. Only its users may log in."),
            OptionField("client_id", "Application (client) ID", is_required=True),
            OptionField("client_secret", "Client secret", "Required unless the connection uses WS-Federation.", kind="secret"),
            OptionField(
                "useCommonEndpoint",
                "Users of every directory may log in",
                "For applications of several organizations. Each directory decides what its tokens say, so no address counts as verified "
                "without xms_edov.",
                kind="switch",
            ),
            OptionField(
                "domain_aliases",
                "Domains of email addresses",
                "One domain per line. Users with an address of these domains log in at this provider.",
                kind="lines",
            ),
            _scope("openid profile email"),
            UPSTREAM,
        ),
        ("Choose accounts in this organizational directory only.", *_DIRECTORY_STEPS),
        "https://entra.microsoft.com/#view/Microsoft_AAD_RegisteredApps/ApplicationsListBlade",
    ),
    "apple": Guide(
        "Apple",
        (
            OptionField("client_id", "Services ID", "The identifier, such as com.example.login.", is_required=True),
            OptionField("team_id", "Team ID", "Ten characters, at the top of the developer account.", is_required=True),
            OptionField("kid", "Key ID", "The id of the key below.", is_required=True),
            OptionField("app_secret", "Private key", "The complete text of the .p8 file.", kind="key", is_required=True),
            _scope("name email"),
            UPSTREAM,
        ),
        (
            "Register an App ID with Sign in with Apple, and a Services ID for it.",
            "Configure Sign in with Apple at the Services ID: enter the host of the callback address as domain, and the callback address "
            "as return URL. Apple accepts https only.",
            "Register a key with Sign in with Apple and download it. Apple offers the download only once.",
            "Register the addresses that send mail to your users with the private email relay. Otherwise Apple drops this mail.",
        ),
        "https://developer.apple.com/account/resources/identifiers/list/serviceId",
    ),
    "facebook": Guide(
        "Facebook",
        (
            *_client("App ID", "App secret"),
            _scope("email public_profile"),
            OptionField("graph_version", "Version of the Graph API", "Default: v23.0."),
            UPSTREAM,
        ),
        (
            "Create an app with the use case Facebook Login.",
            "Enter the callback address under Valid OAuth Redirect URIs.",
            "Request the permission email. Facebook does not say whether an address is verified, so no address counts as verified.",
            "You may enable Require App Secret under Advanced: the service adds the proof to every call.",
        ),
        "https://developers.facebook.com/apps",
    ),
    "linkedin": Guide(
        "LinkedIn",
        (*_client(), _scope("openid profile email"), UPSTREAM),
        (
            "Create an app and add the product Sign In with LinkedIn using OpenID Connect.",
            "Enter the callback address under Auth, Authorized redirect URLs for your app.",
        ),
        "https://www.linkedin.com/developers/apps",
    ),
    "oauth2": Guide(
        "OAuth 2.0",
        (
            OptionField(
                "authorizationURL", "Authorization address", "Address of the provider's login page.", kind="address", is_required=True
            ),
            OptionField("tokenURL", "Token address", "Address that exchanges codes for tokens.", kind="address", is_required=True),
            OptionField(
                "userInfoURL", "Address of the profile", "Responds with JSON about the user of a token.", kind="address", is_required=True
            ),
            OptionField(
                "fieldsMap",
                "Attribute map",
                "One row per field: a JMESPath expression over the profile, such as data.id for user_id. Members with the names of OpenID "
                "Connect need no row.",
                kind="claims",
                columns=("Expression", "Field of the profile"),
                profile_fields=EXPRESSION_FIELDS,
            ),
            OptionField("client_id", "Client id", is_required=True),
            OptionField("client_secret", "Client secret", kind="secret"),
            OptionField("scope", "Scopes", "Separate scopes with spaces.", kind="words"),
            OptionField(
                "token_endpoint_auth_method",
                "Where the secret is sent",
                kind="choice",
                choices=(("", "In the form"), ("client_secret_basic", "In the Authorization header")),
            ),
            OptionField(
                "pkce_enabled",
                "Send a code challenge (PKCE)",
                "Switch this off only if the provider refuses PKCE.",
                kind="switch",
                default=True,
            ),
            OptionField(
                "issuer", "Issuer", "The name of the provider in its responses (iss, RFC 9207). If empty, only the host is compared."
            ),
            *OAUTH_FURTHER,
        ),
        (
            "Register an application at the provider and enter the callback address as its redirect URI.",
            "Map user_id to the member of the profile that identifies the user and never changes.",
            "Profile scripts of other services are not run here. Enter the address of the profile instead.",
        ),
    ),
}
# By strategy. The database strategy, whose name is a setting, is `DATABASE`.
GUIDES: Mapping[str, Guide] = {**OWN_GUIDES, **ENTERPRISE_GUIDES, **_SOCIAL}
