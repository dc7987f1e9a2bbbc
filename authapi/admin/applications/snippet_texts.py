"""The texts of code snippets. Each text is a complete program.

A program runs without changes, and needs only the packages that its first line names.
"""

from __future__ import annotations

from string import Template

WEB_PYTHON = Template("""\
# Save as app.py. Run: pip install authlib requests && python3 app.py
# $where
import os$python_time
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session$python_import

ISSUER = "$issuer"
CALLBACK = "$callback"


def new_session(**options):
    return OAuth2Session(
        "$client_id",
        $python_secret,
        token_endpoint_auth_method=$python_method,
        redirect_uri=CALLBACK,
        scope="openid profile email",
        code_challenge_method="S256",
        **options,
    )


class Application(BaseHTTPRequestHandler):
    def do_GET(self):
        pages = {"$start_path": self.log_in, urlsplit(CALLBACK).path: self.show_user}
        pages.get(urlsplit(self.path).path, lambda: self.send_error(404))()

    def log_in(self):
        verifier = generate_token(48)
        address, state = new_session().create_authorization_url(f"{ISSUER}authorize", code_verifier=verifier$python_audience)
        self.send_response(302)
        self.send_header("Location", address)
        self.send_header("Set-Cookie", f"login={state}.{verifier}; HttpOnly; Path=/; SameSite=Lax")
        self.end_headers()

    def show_user(self):
        try:
            state, _, verifier = SimpleCookie(self.headers["Cookie"])["login"].value.partition(".")
            session = new_session(state=state)
            session.fetch_token(f"{ISSUER}oauth/token", authorization_response=self.path, code_verifier=verifier)
        except (KeyError, OAuthError) as error:
            return self.send_error(400, explain=str(error))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(session.get(f"{ISSUER}userinfo").content)


HTTPServer(("127.0.0.1", $port), Application).serve_forever()
""")
WEB_NODE = Template("""\
// Save as app.mjs. Run: npm install openid-client && node app.mjs
// $where
import { createServer } from "node:http";$node_import
import * as client from "openid-client";
$node_begin
const config = await client.discovery(new URL("$issuer"), "$client_id", undefined, $node_proof$insecure);
const callback = new URL("$callback");

async function logIn(response) {
  const verifier = client.randomPKCECodeVerifier();
  const state = client.randomState();
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: callback.href,
    scope: "openid profile email",$node_audience
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
  });
  const cookie = `login=$${state}.$${verifier}; HttpOnly; Path=/; SameSite=Lax`;
  response.writeHead(302, { location: address.href, "set-cookie": cookie }).end();
}

async function showUser(request, response) {
  const [, state, verifier] = /login=([^.;]+)\\.([^;]+)/.exec(request.headers.cookie ?? "") ?? [];
  const address = new URL(request.url, callback);
  const tokens = await client.authorizationCodeGrant(config, address, { expectedState: state, pkceCodeVerifier: verifier });
  const user = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub);
  response.setHeader("content-type", "application/json").end(JSON.stringify(user));
}

createServer(async (request, response) => {
  try {
    const { pathname } = new URL(request.url, callback);
    if (pathname === callback.pathname) await showUser(request, response);
    else if (pathname === "$start_path") await logIn(response);
    else response.writeHead(404).end();
  } catch (error) {
    response.writeHead(400).end(String(error));
  }
}).listen($port, "127.0.0.1");
""")
SINGLE_PAGE = Template("""\
<!doctype html>
<!-- Save as $file. Run in the same directory: python3 -m http.server $port --bind 127.0.0.1 -->
<!-- $page -->
<meta charset="utf-8">
<title>Login</title>
<button>Log in</button>
<pre></pre>
<script type="module">
const issuer = "$issuer";
const clientId = "$client_id";
const callback = "$callback";

function encode(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function logIn() {
  const [verifier, state] = [1, 2].map(() => encode(crypto.getRandomValues(new Uint8Array(32))));
  sessionStorage.setItem("login", JSON.stringify({ verifier, state }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const query = new URLSearchParams({
    response_type: "code", client_id: clientId, redirect_uri: callback, scope: "openid profile email",$node_audience
    state, code_challenge: encode(digest), code_challenge_method: "S256",
  });
  location.assign(`$${issuer}authorize?$${query}`);
}

async function user(code, verifier) {
  const body = new URLSearchParams({
    grant_type: "authorization_code", client_id: clientId, redirect_uri: callback, code, code_verifier: verifier,
  });
  const tokens = await (await fetch(`$${issuer}oauth/token`, { method: "POST", body })).json();
  if (!tokens.access_token) return tokens;
  return (await fetch(`$${issuer}userinfo`, { headers: { authorization: `Bearer $${tokens.access_token}` } })).json();
}

document.querySelector("button").onclick = logIn;
const answer = new URLSearchParams(location.search);
const started = JSON.parse(sessionStorage.getItem("login") ?? "null");
if (answer.has("state") && answer.get("state") === started?.state) {
  sessionStorage.removeItem("login");
  history.replaceState(null, "", location.pathname);
  const shown = answer.has("code") ? await user(answer.get("code"), started.verifier) : Object.fromEntries(answer);
  document.querySelector("pre").textContent = JSON.stringify(shown, null, 2);
}
</script>
""")
NATIVE_PYTHON = Template("""\
# Save as app.py. Run: python3 app.py$native_note
import base64
import hashlib
import secrets
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from json import load
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import Request, urlopen

ISSUER = "$issuer"
CLIENT_ID = "$client_id"
answer = {}


class Callback(BaseHTTPRequestHandler):
    def do_GET(self):
        answer.update(parse_qsl(urlsplit(self.path).query))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"You can close this page.")


# Port 0: the system chooses a free port. The service accepts every port of a loopback address (RFC 8252, 7.3).
server = HTTPServer(("127.0.0.1", $native_port), Callback)
callback = f"http://$native_host:{server.server_port}$native_path"
verifier, state = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
query = {
    "response_type": "code",
    "client_id": CLIENT_ID,
    "redirect_uri": callback,
    "scope": "openid profile email",$native_audience
    "state": state,
    "code_challenge": challenge,
    "code_challenge_method": "S256",
}
address = f"{ISSUER}authorize?{urlencode(query)}"
print(f"Log in at {address}", flush=True)
webbrowser.open(address)
while answer.get("state") != state:
    server.handle_request()
if "code" not in answer:
    raise SystemExit(f"The login failed: {answer}")

body = {"grant_type": "authorization_code", "client_id": CLIENT_ID, "redirect_uri": callback}
body |= {"code": answer["code"], "code_verifier": verifier}
tokens = load(urlopen(f"{ISSUER}oauth/token", urlencode(body).encode()))
print(load(urlopen(Request(f"{ISSUER}userinfo", headers={"Authorization": f"Bearer {tokens['access_token']}"}))))
""")
MACHINE_PYTHON = Template("""\
# Save as app.py. Run: pip install authlib requests && python3 app.py
import os$python_time

from authlib.integrations.requests_client import OAuth2Session$python_import

session = OAuth2Session("$client_id", $python_secret, token_endpoint_auth_method=$python_method)
token = session.fetch_token("${issuer}oauth/token", grant_type="client_credentials", audience="$audience")
print(token["access_token"])
# Requests of this session contain the token: session.get("...")
""")
MACHINE_NODE = Template("""\
// Save as app.mjs. Run: npm install openid-client && node app.mjs$node_import
import * as client from "openid-client";
$node_begin
const config = await client.discovery(new URL("$issuer"), "$client_id", undefined, $node_proof$insecure);
const tokens = await client.clientCredentialsGrant(config, { audience: "$audience" });
console.log(tokens.access_token);
""")
MACHINE_SHELL = Template("""\
${shell_begin}curl --silent --show-error --request POST "${shell_base}oauth/token" \\
  $credentials \\
  --data grant_type=client_credentials \\
  --data-urlencode "audience=$audience"
""")
USER_SHELL = Template("""\
# The metadata of the provider, and the public keys of its tokens:
curl "${issuer}.well-known/openid-configuration"
curl "${issuer}.well-known/jwks.json"
""")
SAML_SHELL = Template("""\
# The metadata of this service for the application:
curl --silent --show-error "${issuer}samlp/metadata/$client_id"
""")
WSFED_SHELL = Template("""\
# The federation metadata of this service for the application:
curl --silent --show-error "${issuer}wsfed/$client_id/FederationMetadata/2007-06/FederationMetadata.xml"
""")
DEVICE_SHELL = Template("""\
${shell_begin}begun=$$(curl --silent --show-error --request POST "${shell_base}oauth/device/code" \\
  $credentials \\
  --data-urlencode "scope=openid profile"$shell_audience)
value_of() { printf '%s' "$$1" | sed -n "s/.*\\"$$2\\": *\\"\\([^\\"]*\\)\\".*/\\1/p"; }
echo "Log in at $$(value_of "$$begun" verification_uri_complete)"
# The interval grows by 5 seconds after each slow_down.
interval=5
while
  sleep "$$interval"
  tokens=$$(curl --silent --show-error --request POST "${shell_base}oauth/token" \\
    $credentials \\
    --data grant_type=urn:ietf:params:oauth:grant-type:device_code \\
    --data-urlencode "device_code=$$(value_of "$$begun" device_code)")
  case $$(value_of "$$tokens" error) in
    authorization_pending) true ;;
    slow_down) interval=$$((interval + 5)) ;;
    *) false ;;
  esac
do :; done
echo "$$tokens"
""")
