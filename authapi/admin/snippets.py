"""Code snippets that connect an application to a client. They contain the domain and the client id, never a secret. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

SECRET = "CLIENT_SECRET"  # noqa: S105  (the name of an environment variable)


@dataclass(frozen=True)
class Setup:
    """The values of a client that the snippets use."""

    issuer: str
    client_id: str
    callback: str
    audience: str
    is_public: bool
    has_users: bool
    auth_method: str
    has_devices: bool = False
    has_machine: bool = False
    # The protocol of an application without OAuth: `samlp` or `wsfed`.
    protocol: str = ""


@dataclass(frozen=True)
class Snippet:
    """One snippet with its title."""

    title: str
    text: str


_AUTHLIB_USER = Template("""\
import os

from authlib.integrations.flask_client import OAuth

oauth = OAuth(app)
oauth.register(
    "login",
    client_id="$client_id",
$secret    server_metadata_url="${issuer}.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256", "token_endpoint_auth_method": "$method"},
)

# In the view that begins the login:
#     return oauth.login.authorize_redirect("$callback")
# In the view behind $callback:
#     token = oauth.login.authorize_access_token()
#     token["userinfo"]["sub"]
""")
_AUTHLIB_MACHINE = Template("""\
import os

from authlib.integrations.requests_client import OAuth2Session

session = OAuth2Session("$client_id", os.environ["CLIENT_SECRET"], token_endpoint_auth_method="$method")
token = session.fetch_token("${issuer}oauth/token", grant_type="client_credentials", audience="$audience")
""")
_NODE_USER = Template("""\
import * as client from "openid-client";

const config = await client.discovery(new URL("$issuer"), "$client_id", undefined, $authentication);

const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const address = client.buildAuthorizationUrl(config, {
  redirect_uri: "$callback",
  scope: "openid profile email",
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  state,
});
// Keep verifier and state in the session, and send the browser to address. Back at the callback:
// const tokens = await client.authorizationCodeGrant(config, currentUrl, { pkceCodeVerifier: verifier, expectedState: state });
""")
_NODE_MACHINE = Template("""\
import * as client from "openid-client";

const config = await client.discovery(new URL("$issuer"), "$client_id", undefined, $authentication);
const tokens = await client.clientCredentialsGrant(config, { audience: "$audience" });
""")
_CURL_MACHINE = Template("""\
curl --silent --show-error --request POST "${issuer}oauth/token" \\
  $credentials \\
  --data grant_type=client_credentials \\
  --data-urlencode "audience=$audience"
""")
_CURL_USER = Template("""\
# The metadata of the provider, and the public keys of its tokens:
curl "${issuer}.well-known/openid-configuration"
curl "${issuer}.well-known/jwks.json"
""")


_CURL_SAML = Template("""\
# The metadata of this service for the application:
curl --silent --show-error "${issuer}samlp/metadata/$client_id"
""")
_CURL_WSFED = Template("""\
# The federation metadata of this service for the application:
curl --silent --show-error "${issuer}wsfed/$client_id/FederationMetadata/2007-06/FederationMetadata.xml"
""")
_CURL_DEVICE = Template("""\
# Show user_code and verification_uri to the user. verification_uri_complete also contains the code, for a QR code.
curl --request POST "${issuer}oauth/device/code" \\
  $credentials \\
  --data-urlencode "scope=openid profile"
# Repeat every 5 seconds while the error is authorization_pending; after each slow_down wait 5 seconds longer:
curl --request POST "${issuer}oauth/token" \\
  $credentials \\
  --data grant_type=urn:ietf:params:oauth:grant-type:device_code \\
  --data-urlencode "device_code=$$DEVICE_CODE"
""")


def snippets_of(setup: Setup) -> list[Snippet]:
    """Return the snippets of a client: for its protocol, for devices, for logins of users, and for a machine with an API."""
    values = _values(setup)
    found = []
    if setup.protocol:
        metadata = _CURL_SAML if setup.protocol == "samlp" else _CURL_WSFED
        found.append(Snippet("Metadata, with curl", metadata.substitute(values)))
    if setup.has_devices:
        found.append(Snippet("Device without a browser, with curl", _CURL_DEVICE.substitute(values)))
    if setup.has_users:
        found += _three(values, _AUTHLIB_USER, _NODE_USER, _CURL_USER)
    if setup.has_machine and setup.audience:
        first, *others = reversed(_three(values, _AUTHLIB_MACHINE, _NODE_MACHINE, _CURL_MACHINE))
        found = (
            [first, *reversed(others), *found]
            if not setup.has_users
            else [*found, Snippet("A token without a user, with curl", first.text)]
        )
    return found


def _three(values: dict[str, str], python: Template, node: Template, shell: Template) -> list[Snippet]:
    return [
        Snippet("Python, with Authlib", python.substitute(values)),
        Snippet("JavaScript, with openid-client", node.substitute(values)),
        Snippet("Shell, with curl", shell.substitute(values)),
    ]


def _values(setup: Setup) -> dict[str, str]:
    is_basic = setup.auth_method == "client_secret_basic"
    proof = "ClientSecretBasic" if is_basic else "ClientSecretPost"
    # If the variable is unset, the shell reports that and sends nothing.
    secret = f"${{{SECRET}:?Set {SECRET} to the secret of this client}}"
    basic = f'--user "{setup.client_id}:{secret}"'
    form = f'--data client_id={setup.client_id} \\\n  --data-urlencode "client_secret={secret}"'
    return {
        "issuer": setup.issuer,
        "client_id": setup.client_id,
        "callback": setup.callback,
        "audience": setup.audience,
        "method": setup.auth_method,
        "secret": "" if setup.is_public else f'    client_secret=os.environ["{SECRET}"],\n',
        "authentication": "client.None()" if setup.is_public else f"client.{proof}(process.env.{SECRET})",
        "credentials": f"--data client_id={setup.client_id}" if setup.is_public else basic if is_basic else form,
    }
