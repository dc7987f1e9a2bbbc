"""Accounts on a SCIM server that do not belong to this service, and the check that these accounts are not changed."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import requests

from tests.factories.scim import RealServer


class Strangers:
    """Accounts that do not belong to this service, each with the bytes that the server returned after the account was created."""

    def __init__(self, server: RealServer) -> None:
        self._server = server
        self._seen: dict[str, bytes] = {}

    def add(self, user_name: str, *, external_id: str = "") -> str:
        """Create an account, as another client or an administrator of the server would do. Return its id."""
        account = self._server.add(**_attributes(self._server.name, user_name), **({"externalId": external_id} if external_id else {}))
        self._seen[account["id"]] = self._described(account["id"])
        return str(account["id"])

    def remove(self, identifier: str) -> None:
        """Delete an account of this service, as an administrator of the server would do."""
        headers = {"Authorization": f"Bearer {self._server.token}"}
        requests.delete(f"{self._server.base_url}/Users/{quote(identifier)}", headers=headers, timeout=10).raise_for_status()

    def forget(self, identifier: str) -> None:
        """Treat an account as an account of this service from now on."""
        del self._seen[identifier]

    def others(self) -> list[dict[str, Any]]:
        """Return all other accounts on the server: the accounts of this service."""
        return [account for account in self._server.users() if account["id"] not in self._seen]

    def untouched(self) -> bool:
        """Report whether each account that does not belong to this service still exists with unchanged bytes."""
        return {identifier: self._described(identifier) for identifier in self._seen} == self._seen

    def _described(self, identifier: str) -> bytes:
        headers = {"Authorization": f"Bearer {self._server.token}"}
        answer = requests.get(f"{self._server.base_url}/Users/{quote(identifier)}", headers=headers, timeout=10)
        return answer.content if answer.status_code == 200 else b""


def _attributes(server: str, user_name: str) -> dict[str, Any]:
    name = {"givenName": "Strange", "familyName": "Person", "formatted": "Strange Person"}
    common: dict[str, Any] = {"userName": user_name, "active": True, "name": name, "displayName": "Strange Person"}
    if server == "canaille" or "@" not in user_name:
        # Canaille 0.3.6 refuses the members `type` and `primary` of an email address. django-scim2 refuses an invalid email address.
        return common
    return {**common, "emails": [{"value": user_name, "type": "work", "primary": True}]}
