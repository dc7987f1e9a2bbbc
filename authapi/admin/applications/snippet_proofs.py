"""The expressions with which code snippets authenticate a client, for each language and each authentication method. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["none", "secret", "key", "certificate"]

_KINDS: dict[str, Kind] = {
    "none": "none",
    "client_secret_post": "secret",
    "client_secret_basic": "secret",
    "private_key_jwt": "key",
    "tls_client_auth": "certificate",
    "self_signed_tls_client_auth": "certificate",
}
# Names of environment variables.
_SECRET, _KEY_FILE, _CERTIFICATE_FILE = "CLIENT_SECRET", "CLIENT_KEY_FILE", "CLIENT_CERTIFICATE_FILE"
_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_OPENSSL_OPTIONS = {
    "RS256": "-sha256",
    "RS384": "-sha384",
    "PS256": "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest",
}
# The parameters of WebCrypto, by the algorithm of the assertion.
_WEB_CRYPTO = {
    "RS256": '{ name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }',
    "RS384": '{ name: "RSASSA-PKCS1-v1_5", hash: "SHA-384" }',
    "PS256": '{ name: "RSA-PSS", hash: "SHA-256" }',
}
_IMPORTED_KEY = """
const pem = readFileSync(process.env.{variable}, "utf8").replace(/-----[^-]+-----|\\s/g, "");
const key = await crypto.subtle.importKey("pkcs8", Buffer.from(pem, "base64"), {algorithm}, false, ["sign"]);"""


@dataclass(frozen=True)
class Proof:
    """The expressions with which the programs authenticate a client. `node_begin` and `shell_begin` are the first lines of a program."""

    python_import: str
    python_time: str
    python_secret: str
    python_method: str
    node_import: str
    node_begin: str
    node_proof: str
    shell_begin: str
    shell_options: str


def kind_of(method: str) -> Kind:
    """Return the kind of credential that this authentication method uses."""
    return _KINDS[method]


def proof_of(method: str, *, client_id: str, issuer: str, algorithm: str) -> Proof:
    """Return the expressions for an authentication method. A client with a key signs its assertions with `algorithm`.

    For certificates, there are no expressions for Python and JavaScript: the snippets with certificates use curl.
    """
    kind = kind_of(method)
    options = f"--data client_id={client_id}"
    if kind == "secret":
        is_basic = method == "client_secret_basic"
        # If the variable is unset, the shell reports this and does not send the request.
        secret = f"${{{_SECRET}:?Set {_SECRET} to the secret of this client}}"
        form = f'{options} \\\n  --data-urlencode "client_secret={secret}"'
        node = f"client.{'ClientSecretBasic' if is_basic else 'ClientSecretPost'}(process.env.{_SECRET})"
        shell = f'--user "{client_id}:{secret}"' if is_basic else form
        return Proof("", "", f'os.environ["{_SECRET}"]', f'"{method}"', "", "", node, "", shell)
    if kind == "key":
        return Proof(
            python_import="\nfrom authlib.oauth2.rfc7523 import PrivateKeyJWT",
            python_time="\nimport time",
            python_secret=f'open(os.environ["{_KEY_FILE}"]).read()',
            python_method=f'PrivateKeyJWT("{issuer}", claims={{"exp": int(time.time()) + 60}}, alg="{algorithm}")',
            node_import='\nimport { readFileSync } from "node:fs";',
            node_begin=_IMPORTED_KEY.format(variable=_KEY_FILE, algorithm=_WEB_CRYPTO[algorithm]),
            node_proof="client.PrivateKeyJwt(key)",
            shell_begin=_signing(client_id=client_id, issuer=issuer, algorithm=algorithm),
            shell_options=f'--data client_assertion_type={_ASSERTION_TYPE} \\\n  --data "client_assertion=$(assertion)"',
        )
    if kind == "certificate":
        certificate = f'--cert "${{{_CERTIFICATE_FILE}:?Set {_CERTIFICATE_FILE} to the file of the certificate}}"'
        key = f'--key "${{{_KEY_FILE}:?Set {_KEY_FILE} to the file of the private key}}"'
        return Proof("", "", "", "", "", "", "", "", f"{certificate} \\\n  {key} \\\n  {options}")
    return Proof("", "", "None", f'"{method}"', "", "", "client.None()", "", options)


def _signing(*, client_id: str, issuer: str, algorithm: str) -> str:
    """Return a shell function that prints a client assertion (RFC 7523, 3). An assertion can be used once, and expires in a minute."""
    return f"""\
: "${{{_KEY_FILE}:?Set {_KEY_FILE} to the file of the private key}}"
encoded() {{ openssl base64 -A | tr '+/' '-_' | tr -d '='; }}
assertion() {{
  now=$(date +%s)
  claims=$(printf '{{"iss":"%s","sub":"%s","aud":"%s","iat":%s,"exp":%s,"jti":"%s"}}' \\
    {client_id} {client_id} "{issuer}" "$now" "$((now + 60))" "$(openssl rand -hex 16)" | encoded)
  signed=$(printf '{{"alg":"{algorithm}","typ":"JWT"}}' | encoded).$claims
  printf '%s.%s' "$signed" "$(printf '%s' "$signed" | openssl dgst {_OPENSSL_OPTIONS[algorithm]} -sign "${_KEY_FILE}" | encoded)"
}}
"""
