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
        "scope",
        "Scopes",
        f"Requested from the provider, separated by spaces. Default: {default}. The service does not store the tokens of the provider.",
        kind="words",
    )


# The fields of a user that expressions can fill (`authapi.upstream.social`).
EXPRESSION_FIELDS = (
    *("user_id", "email", "email_verified", "name", "nickname", "given_name", "family_name", "picture"),
    *("phone_number", "phone_number_verified"),
)
_REGISTER = "Open “App registrations” and choose “New registration”."
_DIRECTORY_STEPS = (
    "Enter the callback address as a redirect URI of the platform “Web”.",
    "Copy the “Application (client) ID”. Create a secret under “Certificates & secrets” and copy its value, not its id.",
    "To get verified addresses, add the optional claim xms_edov to the id token. "
    "Without this claim, addresses count as unverified, because a directory can write any address into its tokens.",
)
_SOCIAL: Mapping[str, Guide] = {
    "google-oauth2": Guide(
        "Google",
        (
            *_client(),
            _scope("openid profile email"),
            OptionField(
                "hosted_domains",
                "Allowed Google Workspace domains",
                "One domain per line. Only accounts of these domains can log in. Empty: every Google account can log in.",
                kind="lines",
            ),
            OptionField(
                "allowed_audiences",
                "Client ids of your other apps at Google",
                "One per line. Tokens that Google issued to these apps are accepted at /oauth/access_token.",
                kind="lines",
            ),
            MODE,
            MAPPED,
            PKCE,
            UPSTREAM,
        ),
        (
            "Create an OAuth client ID of the type “Web application”.",
            "Enter the callback address under “Authorized redirect URIs”.",
            "Publish the consent screen. Otherwise, only test users can log in.",
        ),
        "https://console.cloud.google.com/apis/credentials",
    ),
    "github": Guide(
        "GitHub",
        (*_client(), _scope("read:user user:email"), UPSTREAM),
        (
            "Choose “New OAuth App” under “OAuth Apps”. A GitHub App works as well if it has read access to “Email addresses”.",
            "Enter the callback address as “Authorization callback URL”.",
            "Choose “Generate a new client secret”.",
        ),
        "https://github.com/settings/developers",
    ),
    "windowslive": Guide(
        "Microsoft",
        (*_client("Application (client) ID"), _scope("openid profile email"), UPSTREAM),
        (
            _REGISTER,
            "As “Supported account types”, choose accounts in any organizational directory and personal Microsoft accounts.",
            *_DIRECTORY_STEPS,
        ),
        "https://entra.microsoft.com/#view/Microsoft_AAD_RegisteredApps/ApplicationsListBlade",
    ),
    "waad": Guide(
        "Microsoft Entra",
        (
            OptionField(
                "tenant_domain", "Directory", "Domain or id of the directory, such as contoso.com. Only users of this directory can log in."
            ),
            OptionField("client_id", "Application (client) ID", is_required=True),
            OptionField("client_secret", "Client secret", "Required unless the connection uses WS-Federation.", kind="secret"),
            OptionField(
                "useCommonEndpoint",
                "Users of every directory can log in",
                "For applications of several organizations. An email address counts as verified only if the token contains the claim "
                "xms_edov, because each directory can write any address into its tokens.",
                kind="switch",
            ),
            OptionField(
                "domain_aliases",
                "Domains of email addresses",
                "One domain per line. Users who enter an email address of one of these domains log in at this provider.",
                kind="lines",
            ),
            _scope("openid profile email"),
            UPSTREAM,
        ),
        (_REGISTER, "As “Supported account types”, choose accounts in this organizational directory only.", *_DIRECTORY_STEPS),
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
            "Register an App ID with the capability “Sign in with Apple”, and a Services ID for this App ID.",
            "Configure “Sign in with Apple” at the Services ID: enter the host of the callback address as domain, and the callback address "
            "as return URL. Apple accepts https only.",
            "Register a key for “Sign in with Apple” and download the key. Apple offers the download only once.",
            "At the private email relay of Apple, register the addresses that send mail to your users. Otherwise Apple drops this mail.",
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
            "Create an app with the use case “Facebook Login”.",
            "Enter the callback address under “Valid OAuth Redirect URIs”.",
            "Request the permission “email”. Facebook does not say whether an address is verified, so no address counts as verified.",
            "You can enable “Require App Secret” under “Advanced”: the service adds the proof of the app secret to every call.",
        ),
        "https://developers.facebook.com/apps",
    ),
    "linkedin": Guide(
        "LinkedIn",
        (*_client(), _scope("openid profile email"), UPSTREAM),
        (
            "Create an app and add the product “Sign In with LinkedIn using OpenID Connect”.",
            "Enter the callback address under “Auth”, “Authorized redirect URLs for your app”.",
        ),
        "https://www.linkedin.com/developers/apps",
    ),
    "oauth2": Guide(
        "OAuth 2.0",
        (
            OptionField(
                "authorizationURL", "Authorization address", "Address of the login page of the provider.", kind="address", is_required=True
            ),
            OptionField(
                "tokenURL", "Token address", "Address at which the service exchanges codes for tokens.", kind="address", is_required=True
            ),
            OptionField(
                "userInfoURL", "Address of the profile", "Returns the profile of the user as JSON.", kind="address", is_required=True
            ),
            OptionField(
                "fieldsMap",
                "Attribute map",
                "Each row fills a field of the user with a value of the provider's profile: a JMESPath expression, such as data.id for "
                "user_id. Values that are named like a standard claim of OpenID Connect, such as “email”, need no row.",
                kind="claims",
                columns=("Expression", "Field of the profile"),
                profile_fields=EXPRESSION_FIELDS,
            ),
            OptionField("client_id", "Client id", is_required=True),
            OptionField("client_secret", "Client secret", kind="secret"),
            OptionField("scope", "Scopes", "Requested from the provider, separated by spaces.", kind="words"),
            OptionField(
                "token_endpoint_auth_method",
                "How the service sends the client secret",
                kind="choice",
                choices=(("", "In the body of the request"), ("client_secret_basic", "In the Authorization header")),
            ),
            OptionField(
                "pkce_enabled",
                "Send a code challenge (PKCE)",
                "Turn this off only if the provider refuses PKCE.",
                kind="switch",
                default=True,
            ),
            OptionField(
                "issuer",
                "Issuer",
                "The value of iss in responses of the provider (RFC 9207). If empty, only the host of iss is checked.",
            ),
            *OAUTH_FURTHER,
        ),
        (
            "Register an application at the provider and enter the callback address as its redirect URI.",
            "In the attribute map, fill user_id with the value of the profile that identifies the user and never changes.",
            "Some other services read the profile with a script. This service runs no scripts: enter the address of the profile instead.",
        ),
    ),
}
# By strategy. The name of the database strategy is a setting (`DATABASE_STRATEGY`), so its key here is the constant `DATABASE`.
GUIDES: Mapping[str, Guide] = {**OWN_GUIDES, **ENTERPRISE_GUIDES, **_SOCIAL}
