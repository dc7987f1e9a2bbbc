"""Code snippets that connect an application to a client. A snippet contains the domain of the tenant and the client id, never a secret.
Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import Any
from urllib.parse import SplitResult, urlsplit

from authapi.admin.applications import snippet_texts as texts
from authapi.admin.applications.snippet_proofs import Kind, kind_of, proof_of

# The port on which the program of a snippet listens if the callback URL of the client is not on loopback.
_OWN_PORT = 3000
_LOOPBACK = frozenset({"localhost", "127.0.0.1"})
_SOME_LOOPBACK = urlsplit("http://127.0.0.1/callback")


@dataclass(frozen=True)
class Setup:
    """The values of a client that the snippets use."""

    issuer: str
    client_id: str
    callback: str
    # The API for which the client can request tokens without a user; empty if there is no such API.
    audience: str
    has_users: bool
    auth_method: str
    # The kind of application, such as `spa` or `native`; empty if it is unknown.
    app_type: str = ""
    has_devices: bool = False
    has_machine: bool = False
    # The protocol of an application without OAuth: `samlp` or `wsfed`.
    protocol: str = ""
    # The API for which the client can request tokens of users; empty if there is no such API.
    user_audience: str = ""
    # The signature algorithm of the client's key; empty for a client that authenticates without a key.
    algorithm: str = ""
    # The base URL of a custom domain whose TLS proxy requests certificates; empty if the tenant has no such domain.
    certificate_base: str = ""
    # Whether the service accepts only pushed or signed authorization requests of the client.
    has_strict_logins: bool = False
    # Whether each token of the client must be bound to a key or a certificate.
    has_bound_tokens: bool = False

    @property
    def proof_kind(self) -> Kind:
        """What authenticates the client."""
        return kind_of(self.auth_method)

    @property
    def can_authenticate(self) -> bool:
        """Whether a program can authenticate the client.

        With a certificate, this is possible only at a custom domain whose TLS proxy requests certificates.
        """
        return self.proof_kind != "certificate" or bool(self.certificate_base)


@dataclass(frozen=True)
class Snippet:
    """One snippet with its title."""

    title: str
    text: str


def proof_context(setup: Setup) -> dict[str, Any]:
    """Return the template context of the note that tells how the snippets authenticate the client, or why a program is missing."""
    # If there is no program, there is nothing to explain. For SAML and WS-Federation, clients do not authenticate.
    has_proof = not setup.protocol and not setup.has_bound_tokens
    return {
        "has_strict_logins": setup.has_users and setup.has_strict_logins,
        "has_bound_tokens": setup.has_bound_tokens,
        "needs_edge": has_proof and not setup.can_authenticate,
        "proof_kind": setup.proof_kind if has_proof and setup.can_authenticate else "",
    }


def snippets_of(setup: Setup) -> list[Snippet]:
    """Return the snippets of a client: for its protocol, for devices, for logins of users, and for a machine that calls an API."""
    values = _values(setup)
    found = []
    if setup.protocol:
        metadata = texts.SAML_SHELL if setup.protocol == "samlp" else texts.WSFED_SHELL
        found.append(Snippet("Metadata, with curl", metadata.substitute(values)))
    if setup.has_devices and setup.can_authenticate and not setup.has_bound_tokens:
        found.append(Snippet("Device without a browser, with curl", texts.DEVICE_SHELL.substitute(values)))
    if setup.has_users:
        found += _of_users(setup, values)
    if setup.has_machine and setup.audience:
        machine = machine_snippets(setup)
        if setup.has_users:
            found += [Snippet("A token without a user, with curl", shell.text) for shell in machine[:1]]
        else:
            found = [*machine, *found]
    return found


def machine_snippets(setup: Setup) -> list[Snippet]:
    """Return the programs that request a token for the API without a user, the program with curl first.

    The list is empty if these programs would fail: if tokens must be bound, or if the client needs a certificate and the tenant has no
    TLS proxy that requests certificates.
    """
    if setup.has_bound_tokens or not setup.can_authenticate:
        return []
    *programs, shell = _three(_values(setup), texts.MACHINE_PYTHON, texts.MACHINE_NODE, texts.MACHINE_SHELL)
    return [shell] if setup.proof_kind == "certificate" else [shell, *programs]


def _of_users(setup: Setup, values: dict[str, str]) -> list[Snippet]:
    shell = Snippet("Shell, with curl", texts.USER_SHELL.substitute(values))
    if setup.has_strict_logins or setup.has_bound_tokens or setup.proof_kind == "certificate":
        return [shell]
    if setup.app_type == "spa":
        return [Snippet("JavaScript in a page, without a library", texts.SINGLE_PAGE.substitute(values)), shell]
    if setup.app_type == "native":
        return [Snippet("Python, without a library", texts.NATIVE_PYTHON.substitute(values)), shell]
    return _three(values, texts.WEB_PYTHON, texts.WEB_NODE, texts.USER_SHELL)


def _three(values: dict[str, str], python: Template, node: Template, shell: Template) -> list[Snippet]:
    return [
        Snippet("Python, with Authlib", python.substitute(values)),
        Snippet("JavaScript, with openid-client", node.substitute(values)),
        Snippet("Shell, with curl", shell.substitute(values)),
    ]


def _values(setup: Setup) -> dict[str, str]:
    proof = proof_of(setup.auth_method, client_id=setup.client_id, issuer=setup.issuer, algorithm=setup.algorithm)
    return {
        "issuer": setup.issuer,
        "client_id": setup.client_id,
        "callback": setup.callback,
        "audience": setup.audience,
        "python_import": proof.python_import,
        "python_time": proof.python_time,
        "python_secret": proof.python_secret,
        "python_method": proof.python_method,
        "node_import": proof.node_import,
        "node_begin": proof.node_begin,
        "node_proof": proof.node_proof,
        # The library refuses http without this option.
        "insecure": "" if setup.issuer.startswith("https:") else ", { execute: [client.allowInsecureRequests] }",
        "shell_begin": proof.shell_begin,
        "shell_base": setup.certificate_base if setup.proof_kind == "certificate" else setup.issuer,
        "credentials": proof.shell_options,
        **_audiences(setup.user_audience),
        **_places(urlsplit(setup.callback)),
        **_native(urlsplit(setup.callback)),
    }


def _audiences(audience: str) -> dict[str, str]:
    """Return the parameter that requests tokens for an API, in the syntax of each program; empty without an API."""
    if not audience:
        return dict.fromkeys(("python_audience", "node_audience", "native_audience", "shell_audience"), "")
    return {
        "python_audience": f', audience="{audience}"',
        "node_audience": f'\n    audience: "{audience}",',
        "native_audience": f'\n    "audience": "{audience}",',
        "shell_audience": f' \\\n  --data-urlencode "audience={audience}"',
    }


def _places(callback: SplitResult) -> dict[str, str]:
    """Return the values for a program that serves the callback: port, first page, file, and a sentence for the user of the program."""
    is_local = is_loopback(callback)
    port = (callback.port or 80) if is_local else _OWN_PORT
    path = callback.path or "/"
    start_path = "/login" if path == "/" else "/"
    origin = f"{callback.scheme}://{callback.netloc}"
    behind = f"The proxy at {origin} must forward requests to port {port} of this machine."
    opened = path if path.endswith((".html", "/")) else f"{path}/"
    return {
        "port": str(port),
        "start_path": start_path,
        "file": f"{opened}index.html".lstrip("/") if opened.endswith("/") else opened.lstrip("/"),
        "where": f"Open {origin}{start_path}" if is_local else behind,
        "page": f"Open {callback.geturl()}" if is_local else behind,
    }


def _native(callback: SplitResult) -> dict[str, str]:
    """Return the values of a loopback callback for a native program. If the callback is on another host, use an example, with a note to
    register the example."""
    is_local = is_loopback(callback)
    used = callback if is_local else _SOME_LOOPBACK
    note = "" if is_local else f"\n# Add {_SOME_LOOPBACK.geturl()} to the callbacks of the client first."
    return {
        "native_host": used.hostname or "",
        "native_port": str(used.port or 0),
        "native_path": used.path or "/",
        "native_note": note,
    }


def is_loopback(callback: SplitResult) -> bool:
    """Tell whether a URL is HTTP to this machine."""
    return callback.scheme == "http" and callback.hostname in _LOOPBACK
