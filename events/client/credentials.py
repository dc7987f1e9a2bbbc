"""Sources of access tokens: a fixed token, a file that another program renews, or the token endpoint. Output never shows a token."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

from events.client.exchange import Deadlines, Exchange, exchange
from events.client.failures import NoToken, Refused, Remedy, Untrusted
from events.client.proving import Prover
from events.client.server import Server

TOKEN_PATH = "/oauth/token"  # noqa: S105  (a path)
_SHORTEST_SECRET = 8
# Renew a token this early, so that it does not expire right after a connection opens.
_EARLY_SECONDS = 10.0


class Credentials(Protocol):
    """A source of access tokens."""

    def token(self) -> str:
        """Return a token; fetch or read one if necessary. Raises `StreamError`."""
        ...

    def renew(self) -> bool:
        """Forget a token that the server refused. Return False if the source cannot get another token."""
        ...

    def secrets(self) -> list[str]:
        """Return the strings that output must mask."""
        ...

    def headers(self, method: str, url: str) -> dict[str, str]:
        """Return the headers that authenticate a request. Raises `StreamError`."""
        ...

    def must_repeat(self, answer: Exchange) -> bool:
        """Tell whether a request was refused only because of its DPoP proof. If so, the caller must repeat the request with a new proof."""
        ...


class Source:
    """Base class of the sources. Sends a token as a bearer token or, if the source has a key, with a DPoP proof of this key."""

    prover: Prover | None = None

    def token(self) -> str:
        raise NotImplementedError

    def headers(self, method: str, url: str) -> dict[str, str]:
        token = self.token()
        if self.prover is None:
            return {"Authorization": f"Bearer {token}"}
        return {"Authorization": f"DPoP {token}", "DPoP": self.prover.proof(method, url, token=token)}

    def must_repeat(self, answer: Exchange) -> bool:
        return self.prover is not None and self.prover.has_learned(answer.status, answer.header("DPoP-Nonce"))


class FixedToken(Source):
    """One fixed token."""

    def __init__(self, token: str) -> None:
        self._token = token.strip()

    def token(self) -> str:
        return self._token

    def renew(self) -> bool:
        return False

    def secrets(self) -> list[str]:
        return [self._token]


class TokenFile(Source):
    """A file with one token, which another program renews."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""

    def token(self) -> str:
        if not self._token:
            self._token = self._read()
        return self._token

    def renew(self) -> bool:
        refused, self._token = self._token, self._read()
        return self._token != refused

    def secrets(self) -> list[str]:
        return [self._token]

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            raise NoToken(f"The token file cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}.") from error
        if not token:
            raise NoToken("The token file is empty.")
        return token


class ClientCredentials(Source):
    """A client with its secret, which fetches tokens from the token endpoint (RFC 6749, 4.4)."""

    def __init__(self, server: Server, client_id: str, client_secret: str, *, audience: str | None = None, deadlines: Deadlines) -> None:
        self._server = server
        self._client_id = client_id
        self._client_secret = client_secret
        self._audience = audience or server.audience
        self._deadlines = deadlines
        self._token = ""
        self._ends_at = 0.0

    def token(self) -> str:
        if not self._token or time.monotonic() > self._ends_at - _EARLY_SECONDS:
            self._fetch()
        return self._token

    def renew(self) -> bool:
        self._token = ""
        return True

    def secrets(self) -> list[str]:
        return [self._client_secret, self._token]

    def _fetch(self) -> None:
        fields = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_secret": self._client_secret,
            "audience": self._audience,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        body = urlencode(fields).encode()
        with self._asked(headers, body) as answer:
            if answer.status != 200:
                raise _refused(answer.refusal())
            content = answer.content()
        try:
            document = json.loads(content)
            self._token, seconds = str(document["access_token"]), float(document.get("expires_in", 3600))
        except (ValueError, KeyError, TypeError) as error:
            raise NoToken("The token endpoint answered 200 without a token.") from error
        self._ends_at = time.monotonic() + seconds

    def _asked(self, headers: dict[str, str], body: bytes) -> Exchange:
        answer = self._sent(headers, body)
        if not self.must_repeat(answer):
            return answer
        answer.close()
        return self._sent(headers, body)

    def _sent(self, headers: dict[str, str], body: bytes) -> Exchange:
        if self.prover is not None:
            headers = {**headers, "DPoP": self.prover.proof("POST", f"{self._server.origin}{TOKEN_PATH}")}
        return exchange(self._server, TOKEN_PATH, headers, method="POST", body=body, deadlines=self._deadlines)


def _refused(refusal: Refused) -> Refused | NoToken:
    """Return the error for a refusal. A retry helps if the token endpoint is overloaded or restarts, but not for wrong credentials."""
    return refusal if refusal.remedy is Remedy.WAIT else NoToken(f"The token endpoint refused these credentials: {refusal}")


def masked(text: str, credentials: Credentials) -> str:
    """Return the text with secrets masked.

    Secrets of fewer than eight characters are not masked: such a short text can also be part of a word.
    """
    for secret in credentials.secrets():
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def require_private(server: Server, *, allow_http: bool) -> None:
    """Refuse to send a secret over a network without TLS. Raises `Untrusted`."""
    if server.is_plain and not allow_http:
        raise Untrusted(f"{server.origin} is plain http over a network and exposes the token. Use https, or --allow-http.")
