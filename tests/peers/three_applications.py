"""Applications with three protocols and their own web servers. Each application shows the logged-in user at `/`."""

from __future__ import annotations

import json
import secrets
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet

from tests.peers.saml_partners import Partner

_TIMEOUT = 20
_CLEAN_UP = "wsignoutcleanup1.0"


@dataclass(frozen=True)
class Asked:
    """A request to an application: its parameters from the query or form, the exact query string, and the login cookie."""

    fields: Mapping[str, str]
    query: str
    cookie: str


@dataclass(frozen=True)
class Said:
    """A response of an application: a page or a redirect. `logs_in` is the id of the login that the browser gets as its cookie."""

    page: str = ""
    location: str = ""
    logs_in: str = ""


@dataclass
class Listener:
    """The web server of an application.

    `people` maps the id of each login to the user. A back-channel logout ends a login by removing its id.
    """

    title: str
    port: int = 0
    routes: dict[str, Callable[[Asked], Said]] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def say(self, method: str, target: str, body: str, cookie: str) -> Said:
        parts = urlsplit(target)
        fields = dict(parse_qsl(body if method == "POST" else parts.query, keep_blank_values=True))
        route = self.routes.get(parts.path)
        if route is None:
            return Said(page=self.people.get(cookie, "Please log in."))
        self.heard.append(f"{method} {parts.path} {' '.join(sorted(fields))}")
        try:
            return route(Asked(fields, parts.query, cookie))
        except Exception as error:
            # The page does not show the error, so store it. The test can then report it.
            self.failures.append(f"{target}: {error!r}")
            return Said(page="This went wrong.")


@contextmanager
def listening(title: str) -> Iterator[Listener]:
    """Run the web server of an application, and yield the application. Its routes are added later."""
    listener = Listener(title)
    # Each application needs its own cookie name, because a browser sends the cookies of a host to all ports of the host.
    name = f"{title.lower()}_login"

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, body: str) -> None:
            cookies = dict(pair.strip().split("=", 1) for pair in self.headers.get("Cookie", "").split(";") if "=" in pair)
            said = listener.say(self.command, self.path, body, cookies.get(name, ""))
            page = f"<!doctype html><title>{title}</title><p>{said.page}</p>".encode()
            self.send_response(303 if said.location else 200)
            if said.location:
                self.send_header("Location", said.location)
            if said.logs_in:
                self.send_header("Set-Cookie", f"{name}={said.logs_in}; Path=/; HttpOnly; SameSite=Lax")
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    listener.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield listener
    server.shutdown()
    server.server_close()


def speak_oidc(listener: Listener, *, service: str, client_id: str, secret: str, **more: str) -> None:
    """Add routes for OpenID Connect: the code flow, RP-initiated logout and back-channel logout. `more` is added to login requests."""
    tokens: dict[str, str] = {}

    def log_in(asked: Asked) -> Said:
        wanted = {"response_type": "code", "scope": "openid email", "client_id": client_id, "redirect_uri": f"{listener.origin}/callback"}
        return Said(location=f"{service}/authorize?{urlencode(wanted | {'state': 'as sent', 'nonce': 'a nonce'} | more)}")

    def callback(asked: Asked) -> Said:
        assert asked.fields["state"] == "as sent"
        sent = {
            "grant_type": "authorization_code",
            "code": asked.fields["code"],
            "redirect_uri": f"{listener.origin}/callback",
            "client_id": client_id,
            "client_secret": secret,
        }
        answer = json.loads(_fetched(f"{service}/oauth/token", urlencode(sent).encode()))
        claims = _claims(answer["id_token"], service)
        assert (claims["aud"], claims["nonce"]) == (client_id, "a nonce")
        listener.people[claims["sid"]] = claims["email"]
        tokens[claims["sid"]] = answer["id_token"]
        return Said(location="/", logs_in=claims["sid"])

    def log_out(asked: Asked) -> Said:
        listener.people.pop(asked.cookie)
        sent = {"id_token_hint": tokens[asked.cookie], "post_logout_redirect_uri": f"{listener.origin}/"}
        return Said(location=f"{service}/oidc/logout?{urlencode(sent)}")

    def back_channel(asked: Asked) -> Said:
        claims = _claims(asked.fields["logout_token"], service)
        assert claims["aud"] == client_id
        assert "http://schemas.openid.net/event/backchannel-logout" in claims["events"]
        listener.people.pop(claims["sid"], None)
        return Said()

    listener.routes |= {"/login": log_in, "/callback": callback, "/logout": log_out, "/backchannel": back_channel}


def speak_saml(listener: Listener, node: Partner, *, options: Mapping[str, Any]) -> None:
    """Add routes for SAML with node-saml: requests by redirect, and single logout that either party starts."""
    node("make", name="sp", options=options)
    profiles: dict[str, Any] = {}

    def log_in(asked: Asked) -> Said:
        return Said(location=node("askByRedirect", name="sp", relayState="/"))

    def consume(asked: Asked) -> Said:
        profile = node("readResponse", name="sp", fields=dict(asked.fields))["profile"]
        listener.people[profile["sessionIndex"]] = profile["nameID"]
        profiles[profile["sessionIndex"]] = profile
        return Said(location=asked.fields["RelayState"], logs_in=profile["sessionIndex"])

    def log_out(asked: Asked) -> Said:
        listener.people.pop(asked.cookie)
        return Said(location=node("logOut", name="sp", profile=profiles[asked.cookie], relayState="/"))

    def single_logout(asked: Asked) -> Said:
        if "SAMLResponse" in asked.fields:
            assert node("readResponse", name="sp", fields=dict(asked.fields))["loggedOut"]
            return Said(location=asked.fields["RelayState"])
        told = node("readRequest", name="sp", fields=dict(asked.fields))["profile"]
        listener.people.pop(told["sessionIndex"])
        return Said(location=node("answerLogout", name="sp", profile=told, relayState=asked.fields["RelayState"]))

    listener.routes |= {"/login": log_in, "/acs": consume, "/logout": log_out, "/slo": single_logout}


def speak_wsfed(listener: Listener, federation: Partner, *, service: str, options: Mapping[str, Any]) -> None:
    """Add routes for WS-Federation with passport-wsfed-saml2, and for sign-out and cleanup, which the library does not implement."""
    federation("make", name="rp", options=options)

    def log_in(asked: Asked) -> Said:
        return Said(location=federation("ask", name="rp"))

    def consume(asked: Asked) -> Said:
        if asked.fields.get("wa") == _CLEAN_UP:
            # The cleanup request names no user. It ends the login of the browser that sends the request.
            listener.people.pop(asked.cookie)
            return Said()
        read = federation("read", name="rp", fields=dict(asked.fields), address=f"{listener.origin}/wsfed")
        name = secrets.token_urlsafe(8)
        listener.people[name] = read["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"]
        return Said(location="/", logs_in=name)

    def log_out(asked: Asked) -> Said:
        sent = {"wa": "wsignout1.0", "wtrealm": str(options["realm"]), "wreply": f"{listener.origin}/"}
        return Said(location=f"{service}/wsfed?{urlencode(sent)}")

    listener.routes |= {"/login": log_in, "/wsfed": consume, "/logout": log_out}


def _fetched(address: str, body: bytes | None = None) -> bytes:
    with urllib.request.urlopen(address, body, timeout=_TIMEOUT) as answer:
        found: bytes = answer.read()
    return found


def _claims(token: str, service: str) -> dict[str, Any]:
    keys = KeySet.import_key_set(json.loads(_fetched(f"{service}/.well-known/jwks.json")))
    return dict(jwt.decode(token, keys, algorithms=["RS256"]).claims)
