"""A remote service, of which only the URL and a client's credentials are known."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import requests

from tests.conformance.reader import Subscriber

URL_VARIABLE = "CONFORMANCE_URL"
_DEADLINE_SECONDS = 30.0


def is_remote() -> bool:
    """Report whether this run tests a remote service."""
    return bool(os.environ.get(URL_VARIABLE))


@dataclass
class RemoteTarget:
    """A tenant that can only be read. Tests that write or need the database are skipped."""

    url: str
    client_id: str
    client_secret: str

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @cached_property
    def _token(self) -> str:
        answer = requests.post(
            f"{self.url.removesuffix('/api/v2')}/oauth/token",
            json={
                "grant_type": "client_credentials",
                "client_id": self.client_id,
                "client_secret": self.client_secret,
                "audience": f"{self.url}/",
            },
            timeout=_DEADLINE_SECONDS,
        )
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def token(self) -> str:
        """Return an access token from the token endpoint."""
        return self._token

    def subscribe(self, query: dict[str, Any] | str | None = None, *, token: str | None = None, **options: Any) -> Subscriber:
        """Request a stream, and return the open stream or the refusal, like `Target.subscribe`."""
        place = urlsplit(self.url)
        tls = ssl.create_default_context() if place.scheme == "https" else None
        headers: dict[str, str | None] = {
            "Host": self.host,
            "Authorization": f"Bearer {token or self.token()}",
            "Accept": "text/event-stream",
        }
        headers |= options.pop("headers", {})
        return Subscriber(
            (place.hostname or "", place.port or (443 if tls else 80)),
            f"{place.path}/events",
            headers={name: value for name, value in headers.items() if value is not None},
            query=query,
            tls=tls,
            deadline=_DEADLINE_SECONDS,
            **options,
        )


def remote_target() -> RemoteTarget:
    """Return the service whose URL and credentials are in the environment variables."""
    names = (URL_VARIABLE, "CONFORMANCE_CLIENT_ID", "CONFORMANCE_CLIENT_SECRET")
    url, client_id, client_secret = (os.environ[name] for name in names)
    return RemoteTarget(url.rstrip("/"), client_id, client_secret)
