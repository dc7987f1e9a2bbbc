"""A browser without a screen. It keeps cookies per host, follows redirects only on request, and fills in forms."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from config.asgi import routes
from identity.models import Tenant
from tests.authapi.hosted_html import flaws

FORM = "application/x-www-form-urlencoded"
# Headers that a browser sends when it loads a page into a window (Fetch Metadata).
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@dataclass(frozen=True)
class Page:
    """One response."""

    status: int
    headers: dict[str, str]
    set_cookies: list[str]
    body: bytes

    @property
    def text(self) -> str:
        return html.unescape(self.body.decode())

    @property
    def location(self) -> str:
        return self.headers["location"]

    @property
    def answer(self) -> dict[str, str]:
        """Return the parameters of a redirect, from its query or its fragment."""
        parts = urlsplit(self.location)
        return dict(parse_qsl(parts.fragment or parts.query, keep_blank_values=True))

    def fields(self) -> dict[str, str]:
        """Return the hidden fields of the first form."""
        found: dict[str, str] = {}
        for tag in re.findall(r"<input[^>]*>", self.body.decode().partition("</form>")[0]):
            name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
            if name and 'type="hidden"' in tag:
                found[name.group(1)] = html.unescape(value.group(1)) if value else ""
        return found

    def form_action(self) -> str:
        action = re.search(r'<form[^>]*action="([^"]*)"', self.body.decode())
        assert action is not None, self.text
        return html.unescape(action.group(1))


@dataclass
class Browser:
    """Visits the hosts of one tenant."""

    tenant: Tenant
    address: str = "192.0.2.1"
    cookies: dict[str, str] = field(default_factory=dict)
    host: str = ""

    def __post_init__(self) -> None:
        self.host = self.host or f"{self.tenant.pk}.example.test"

    def get(self, path: str, parameters: Mapping[str, Any] | None = None, **headers: str) -> Page:
        query = urlencode(parameters or {}, doseq=True)
        return self.send("GET", f"{path}?{query}" if query else path, headers=headers)

    def post(self, path: str, fields: Mapping[str, Any], **headers: str) -> Page:
        return self.send("POST", path, body=urlencode(fields, doseq=True).encode(), headers={"Content-Type": FORM, **headers})

    def follow(self, page: Page) -> Page:
        """Load the target of a redirect on this host."""
        parts = urlsplit(page.location)
        assert not parts.netloc or parts.netloc == self.host, page.location
        return self.send("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path)

    def submit(self, page: Page, **fields: str) -> Page:
        """Submit the first form of a page with its hidden fields."""
        return self.post(page.form_action(), {**page.fields(), **fields}, Origin=f"http://{self.host}")

    def send(self, method: str, target: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Page:
        parts = urlsplit(target)
        named = {"host": self.host, **NAVIGATION, **{name.lower().replace("_", "-"): value for name, value in (headers or {}).items()}}
        # An empty value removes a header.
        sent = {name: value for name, value in named.items() if value}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": parts.path, "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(), "root_path": "", "server": ("127.0.0.1", 80), "client": (self.address, 1),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
        }  # fmt: skip
        page = asyncio.run(_answered(scope, body))
        if b"theme/hosted.css" in page.body and page.headers["content-type"].startswith("text/html"):
            assert flaws(page.body.decode(), page.headers) == [], page.text
        for line in page.set_cookies:
            for name, morsel in SimpleCookie(line).items():
                if morsel["max-age"] == "0" or morsel["max-age"] == 0:
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value
        return page


async def _answered(scope: dict[str, Any], body: bytes) -> Page:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []
    ended = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await ended.wait()
        return {"type": "http.disconnect"}

    async def collect(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            ended.set()

    application: Any = routes("all")
    await application(scope, receive, collect)
    start, *bodies = sent
    pairs = [(name.decode().lower(), value.decode("latin-1")) for name, value in start["headers"]]
    cookies = [value for name, value in pairs if name == "set-cookie"]
    return Page(start["status"], dict(pairs), cookies, b"".join(part.get("body", b"") for part in bodies))


def query_of(address: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(address).query)
