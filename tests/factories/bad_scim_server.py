"""A SCIM server in memory that deviates from the standard as real servers do, in one way or in several ways at once.

It stores the owner of each account and checks every write. `violations` lists the writes to accounts that do not belong to the user of the
event, except the writes that `is_excused` permits.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from foundation.outbound.outcomes import Answer, ConnectionLost
from tests.factories.scim import ERROR, LIST, USER

Account = dict[str, Any]


class WorkerDied(BaseException):
    """Raised when the worker process dies during a run."""


@dataclass(frozen=True)
class Manners:
    """How the server deviates from the standard."""

    # How a search by `externalId` matches: `exact`; `ignored` (it matches every account); `pattern` (as a regular expression);
    # `user_name` (it matches the `userName` instead); `nothing` (it matches no account); `refused` (it gets an error).
    key_filter: str = "exact"
    # How a search by `userName` matches: `exact`; `folded` (without regard to case); `ignored` (it matches every account); `pattern` (as
    # a regular expression).
    name_filter: str = "exact"
    # What happens to `externalId`: `kept`; `hidden` (searches match it, but responses never show it); `dropped`; `echoed` (dropped, but
    # shown in responses to writes).
    keys: str = "kept"
    # The shown creation time: `real`; `constant`; `absent`; `unsteady` (a different time in each response); `rounded` (in responses to
    # reads).
    created: str = "real"
    # The ids of new accounts: `counted`; `given_again` (the lowest free number); `names` (the `userName`).
    ids: str = "counted"
    has_unique_names: bool = True
    refuses_quotes: bool = False
    lowers_names: bool = False
    answers_writes_with_204: bool = False
    only_deactivates: bool = False


@dataclass
class Fate:
    """The failure at request number `at` of a run: the response is lost (`lost`), the worker dies (`death`), or status 500 (`error`).

    `has_acted` tells whether the server handles the request before the failure. If it does, the client never gets the response to the
    handled request: with `error`, it gets status 500 instead.
    """

    at: int = -1
    kind: str = "lost"
    has_acted: bool = True


@dataclass
class BadServer:
    """The SCIM server. It replaces the HTTP sender of a run: each call of `send` is a request to this server."""

    manners: Manners
    accounts: dict[str, Account] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    acting: str = ""
    fate: Fate = field(default_factory=Fate)
    is_excused: Any = lambda account: False
    _clock: Any = field(default_factory=lambda: itertools.count(1))
    _ids: int = 0
    _requests: int = 0
    _backup: tuple[dict[str, Account], int] | None = None

    def begin(self, acting: str, fate: Fate) -> None:
        """Set the user for whom the next run sends its requests, and the failure during the run."""
        self.acting, self.fate, self._requests = acting, fate, 0

    def add_stranger(self, user_name: str, key: str | None) -> None:
        """Create an account that does not belong to any of our users."""
        if not (self.manners.has_unique_names and self._holder(user_name)):
            self._make({"userName": user_name, **({"externalId": key} if key else {})}, owner=f"stranger {next(self._clock)}")

    def back_up(self) -> None:
        self._backup = copy.deepcopy(self.accounts), self._ids

    def restore(self) -> None:
        """Restore the last backup. Ids that were assigned after the backup are then assigned again."""
        if self._backup is not None:
            self.accounts, self._ids = copy.deepcopy(self._backup[0]), self._backup[1]

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None, deadline: float) -> Answer:
        number, self._requests = self._requests, self._requests + 1
        if number != self.fate.at:
            return self._answered(method, url, body)
        answer = self._answered(method, url, body) if self.fate.has_acted else None
        if self.fate.kind == "death":
            raise WorkerDied
        if self.fate.kind == "error" and answer is None:
            return self._error(500)
        raise ConnectionLost

    def _answered(self, method: str, url: str, body: bytes | None) -> Answer:
        parts = urlsplit(url)
        identifier = unquote(parts.path.removeprefix("/scim/Users").removeprefix("/"))
        if method == "GET" and not identifier:
            return self._search(parse_qs(parts.query)["filter"][0])
        if method == "POST":
            return self._create(json.loads(body or b"{}"))
        if identifier not in self.accounts:
            return self._error(404)
        if method == "GET":
            return self._json(200, self._read(self.accounts[identifier]))
        return self._written(method, identifier, json.loads(body or b"{}"))

    def _search(self, text: str) -> Answer:
        attribute, _, literal = text.partition(" eq ")
        if self.manners.refuses_quotes and '\\"' in literal:
            return self._error(400)
        manner = self.manners.key_filter if attribute == "externalId" else self.manners.name_filter
        if manner == "refused":
            return self._error(400)
        value = json.loads(literal)
        found = [self._read(item) for item in self.accounts.values() if self._matches(manner, attribute, value, item)]
        return self._json(200, {"schemas": [LIST], "totalResults": len(found), "Resources": found})

    def _matches(self, manner: str, attribute: str, value: str, item: Account) -> bool:
        held = str(item.get("hidden" if attribute == "externalId" and "hidden" in item else attribute, ""))
        if manner == "pattern":
            return re.search(value, held) is not None
        return {
            "exact": held == value,
            "folded": held.lower() == value.lower(),
            "ignored": True,
            "user_name": str(item.get("userName", "")) == value,
            "nothing": False,
        }[manner]

    def _create(self, resource: dict[str, Any]) -> Answer:
        if self.manners.has_unique_names and self._holder(resource["userName"]):
            return self._error(409)
        return self._json(201, self._echo(self._make(resource, owner=self.acting), resource))

    def _written(self, method: str, identifier: str, document: dict[str, Any]) -> Answer:
        account = self.accounts[identifier]
        if account["owner"] != self.acting:
            if not self.is_excused(account):
                self.violations.append(f"{method} of {account} for {self.acting}")
            # After this write, no run can distinguish the account from an account of this user. So later writes for this user are no
            # violations.
            account["owner"] = self.acting
        if method == "DELETE":
            if self.manners.only_deactivates:
                account["active"] = False
            else:
                del self.accounts[identifier]
            return Answer(204, {}, b"")
        resource = document if method == "PUT" else document["Operations"][0]["value"]
        holder = self._holder(resource["userName"])
        if self.manners.has_unique_names and holder not in (None, identifier):
            return self._error(409)
        kept = {"id": identifier, "owner": account["owner"], "meta": account["meta"]}
        self.accounts[identifier] = {**self._stored(resource), **kept}
        shown = self._echo(self.accounts[identifier], resource)
        return Answer(204, {}, b"") if self.manners.answers_writes_with_204 else self._json(200, shown)

    def _make(self, resource: dict[str, Any], *, owner: str) -> Account:
        created = {"constant": "1970-01-01T00:00:00Z", "absent": None}.get(self.manners.created, self._now())
        identifier = self._new_id(resource["userName"])
        meta = {"resourceType": "User", **({"created": created} if created else {})}
        self.accounts[identifier] = {**self._stored(resource), "id": identifier, "owner": owner, "meta": meta}
        return self.accounts[identifier]

    def _new_id(self, user_name: str) -> str:
        if self.manners.ids == "names" and user_name not in self.accounts:
            return user_name
        if self.manners.ids == "given_again":
            return next(str(number) for number in itertools.count(1) if str(number) not in self.accounts)
        while str(self._ids) in self.accounts or not self._ids:
            self._ids += 1
        return str(self._ids)

    def _stored(self, resource: dict[str, Any]) -> Account:
        kept = {name: value for name, value in resource.items() if name in ("userName", "externalId", "active", "displayName")}
        if self.manners.lowers_names:
            kept["userName"] = kept["userName"].lower()
        if self.manners.keys != "kept" and (key := kept.pop("externalId", None)) is not None and self.manners.keys == "hidden":
            kept["hidden"] = key
        return kept

    def _shown(self, account: Account) -> dict[str, Any]:
        shown = {"schemas": [USER], **{name: value for name, value in account.items() if name not in ("owner", "hidden")}}
        return shown if self.manners.created != "unsteady" else {**shown, "meta": {**shown["meta"], "created": self._now()}}

    def _read(self, account: Account) -> dict[str, Any]:
        """Return the resource as a GET returns it. A server that rounds times shows the rounded creation time."""
        shown = self._shown(account)
        if self.manners.created == "rounded":
            shown["meta"] = {**shown["meta"], "created": shown["meta"]["created"].replace(".123456+00:00", ".123Z")}
        return shown

    def _echo(self, account: Account, sent: Account) -> dict[str, Any]:
        """Return the response to a write: the stored values. A server that echoes keys also shows the sent `externalId`, which it drops."""
        shown = self._shown(account)
        return {**shown, "externalId": sent["externalId"]} if self.manners.keys == "echoed" and "externalId" in sent else shown

    def _now(self) -> str:
        """Return the time of the server as text. The time advances by an hour with each call."""
        now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=next(self._clock))
        return (now.replace(microsecond=123456) if self.manners.created == "rounded" else now).isoformat()

    def _holder(self, user_name: str) -> str | None:
        same = (identifier for identifier, item in self.accounts.items() if item["userName"].lower() == user_name.lower())
        return next(same, None)

    def _error(self, status: int) -> Answer:
        return self._json(status, {"schemas": [ERROR], "status": str(status), "detail": "refused"})

    def _json(self, status: int, document: Any) -> Answer:
        return Answer(status, {"Content-Type": "application/scim+json"}, json.dumps(document).encode())
