"""Goes through the hosted pages like a user with a password manager."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests


class Form(HTMLParser):
    """The first POST form of a page, filled in with the name and password of the user."""

    def __init__(self, page: str, user: dict[str, str]) -> None:
        super().__init__()
        self._user = user
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self._is_inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form" and self.action is None and found.get("method", "").lower() == "post":
            self.action, self._is_inside = found.get("action", ""), True
        if not self._is_inside or not found.get("name"):
            return
        if tag == "input" and found.get("type") not in ("checkbox", "radio", "submit"):
            self.fields[found["name"]] = self._value(found)
        if tag == "button":
            self.fields.setdefault(found["name"], found.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_inside = False

    def _value(self, found: dict[str, str]) -> str:
        if found.get("type") == "password":
            return self._user["password"]
        return self._user["email"] if "username" in found.get("autocomplete", "") else found.get("value", "")


def log_in(address: str, given: dict[str, Any]) -> str:
    """Follow a URL of `/authorize` through the hosted pages. Return the URL to which the client is redirected."""
    browser = requests.Session()
    answer = browser.get(address, allow_redirects=False, timeout=20)
    for _ in range(15):
        if "location" in answer.headers:
            address = urljoin(address, answer.headers["location"])
            if address.startswith(given["callback"]):
                return address
            answer = browser.get(address, allow_redirects=False, timeout=20)
            continue
        form = Form(answer.text, given["user"])
        if form.action is None:
            raise AssertionError(f"{answer.status_code} {answer.text[:2000]}")
        sent_from, address = address, urljoin(address, form.action or address)
        headers = {"Referer": sent_from, "Origin": "{0.scheme}://{0.netloc}".format(urlsplit(sent_from))}
        answer = browser.post(address, data=form.fields, headers=headers, allow_redirects=False, timeout=20)
    raise AssertionError("too many steps")
