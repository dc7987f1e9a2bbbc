"""Runs pysaml2 as an identity provider. Reads commands and writes responses, each as one line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT  # type: ignore[import-not-found]  # in its own environment
from saml2.authn_context import PASSWORD  # type: ignore[import-not-found]  # in its own environment
from saml2.config import IdPConfig  # type: ignore[import-not-found]  # in its own environment
from saml2.metadata import entity_descriptor  # type: ignore[import-not-found]  # in its own environment
from saml2.saml import NAMEID_FORMAT_PERSISTENT, NameID  # type: ignore[import-not-found]  # in its own environment
from saml2.server import Server  # type: ignore[import-not-found]  # in its own environment

BINDINGS = {"post": BINDING_HTTP_POST, "redirect": BINDING_HTTP_REDIRECT}
servers: dict[str, Server] = {}


def metadata(config: dict[str, Any]) -> str:
    loaded = IdPConfig()
    loaded.load(config)
    return str(entity_descriptor(loaded))


def make(name: str, config: dict[str, Any]) -> bool:
    loaded = IdPConfig()
    loaded.load(config)
    servers[name] = Server(config=loaded)
    return True


def answer(
    name: str,
    request: str,
    binding: str,
    relay_state: str,
    signature: dict[str, str],
    user: str,
    identity: dict[str, list[str]],
    **signed: Any,
) -> dict[str, Any]:
    server = servers[name]
    beside = {"relay_state": relay_state, **signature} if signature else {}
    asked = server.parse_authn_request(request, BINDINGS[binding], **beside)
    where = server.response_args(asked.message)
    named = NameID(format=NAMEID_FORMAT_PERSISTENT, text=user)
    response = server.create_authn_response(
        identity, userid=user, name_id=named, authn={"class_ref": PASSWORD, "authn_auth": "https://idp.example.test"}, **where, **signed
    )
    info = server.apply_binding(BINDING_HTTP_POST, str(response), where["destination"], relay_state, response=True)
    return {"issuer": asked.message.issuer.text, "destination": where["destination"], "form": info["data"]}


def unasked(name: str, service: str, destination: str, user: str, identity: dict[str, list[str]], **signed: Any) -> dict[str, Any]:
    server = servers[name]
    named = NameID(format=NAMEID_FORMAT_PERSISTENT, text=user)
    response = server.create_authn_response(
        identity, in_response_to=None, destination=destination, sp_entity_id=service, userid=user, name_id=named,
        authn={"class_ref": PASSWORD, "authn_auth": "https://idp.example.test"}, **signed,
    )  # fmt: skip
    return {"form": server.apply_binding(BINDING_HTTP_POST, str(response), destination, "", response=True)["data"]}


def read_logout(name: str, request: str, binding: str, relay_state: str, signature: dict[str, str]) -> dict[str, Any]:
    server = servers[name]
    asked = server.parse_logout_request(request, BINDINGS[binding], relay_state=relay_state, **signature)
    response = server.create_logout_response(asked.message, [BINDING_HTTP_REDIRECT], sign=False)
    where = response.destination
    info = server.apply_binding(
        BINDING_HTTP_REDIRECT, str(response), where, relay_state, response=True, sign=True,
        sigalg="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    )  # fmt: skip
    return {"name": asked.message.name_id.text, "headers": info["headers"]}


ACTS: dict[str, Callable[..., Any]] = {
    "metadata": metadata, "make": make, "answer": answer, "unasked": unasked, "readLogout": read_logout,
}  # fmt: skip

for line in sys.stdin:
    command = json.loads(line)
    act = ACTS[command.pop("act")]
    try:
        done: dict[str, Any] = {"done": act(**command)}
    except Exception as error:
        done = {"refused": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(done) + "\n")
    sys.stdout.flush()
