"""Runs pysaml2 as a service provider. Reads commands and writes responses, each as one line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT  # type: ignore[import-not-found]  # in its own environment
from saml2.client import Saml2Client  # type: ignore[import-not-found]  # in its own environment
from saml2.config import SPConfig  # type: ignore[import-not-found]  # in its own environment
from saml2.s_utils import rndstr  # type: ignore[import-not-found]  # in its own environment
from saml2.saml import NameID  # type: ignore[import-not-found]  # in its own environment

BINDINGS = {"post": BINDING_HTTP_POST, "redirect": BINDING_HTTP_REDIRECT}
clients: dict[str, Saml2Client] = {}


def make(name: str, config: dict[str, Any]) -> bool:
    loaded = SPConfig()
    loaded.load(config)
    clients[name] = Saml2Client(config=loaded)
    return True


def ask(name: str, binding: str, provider: str, relay_state: str, **options: Any) -> dict[str, Any]:
    request_id, info = clients[name].prepare_for_authenticate(
        entityid=provider, relay_state=relay_state, binding=BINDINGS[binding], response_binding=BINDING_HTTP_POST, **options
    )
    return {"id": request_id, "method": info["method"], "headers": info["headers"], "data": info["data"], "url": info.get("url")}


def read_response(name: str, response: str, outstanding: dict[str, str]) -> dict[str, Any]:
    read = clients[name].parse_authn_request_response(response, BINDING_HTTP_POST, outstanding=outstanding)
    subject = read.get_subject()
    return {
        "name": subject.text,
        "format": subject.format,
        "attributes": read.ava,
        "issuer": read.issuer(),
        "session_index": read.session_info()["session_index"],
    }


def log_out(name: str, binding: str, address: str, provider: str, name_id: str, name_format: str, session_index: str) -> dict[str, Any]:
    client = clients[name]
    request_id, request = client.create_logout_request(
        address, provider, name_id=NameID(text=name_id, format=name_format), session_indexes=[session_index], sign=False
    )
    algorithm = client.config.getattr("signing_algorithm", "sp")
    info = client.apply_binding(BINDINGS[binding], str(request), address, rndstr(), sign=True, sigalg=algorithm)
    return {"id": str(request_id), "url": info.get("url"), "headers": info["headers"], "data": info["data"]}


def read_logout_answer(name: str, response: str, binding: str) -> str:
    return str(clients[name].parse_logout_request_response(response, BINDINGS[binding]).status_ok())


ACTS: dict[str, Callable[..., Any]] = {
    "make": make,
    "ask": ask,
    "readResponse": read_response,
    "logOut": log_out,
    "readLogoutAnswer": read_logout_answer,
}

for line in sys.stdin:
    command = json.loads(line)
    act = ACTS[command.pop("act")]
    try:
        answer: dict[str, Any] = {"done": act(**command)}
    except Exception as error:
        answer = {"refused": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
