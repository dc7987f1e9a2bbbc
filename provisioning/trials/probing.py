"""The read-only probe of a SCIM server: what must be true before users are sent there. Nothing is written."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from provisioning.mapping.schemas import ENTERPRISE_USER, USER
from provisioning.runs.failures import ActionError, InvalidResponseShape
from provisioning.scim import responses
from provisioning.scim.refusals import FilterRefused
from provisioning.scim.transport import Request
from provisioning.trials.steps import Finding, Step, counted

if TYPE_CHECKING:
    from provisioning.trials.scim_sessions import ScimSession

_PATCH_MODES = ("patch", "patch_per_attribute")
_EARLIER_FAILED = "Not asked: an earlier step failed."


class ConnectionProbe:
    """Asks one server, step by step; without an address, a connection or a token the rest is skipped."""

    def __init__(self, session: ScimSession) -> None:
        self._session = session
        self._users: list[dict[str, Any]] = []
        self._total: Any = None

    @property
    def steps(self) -> list[Step]:
        needed = partial(Step, is_needed=True, not_taken=_EARLIER_FAILED)
        further = partial(Step, not_taken=_EARLIER_FAILED)
        return [
            needed("address", "Address", self._address),
            needed("connection", "Connection and TLS", self._connection),
            needed("authentication", "Authentication", self._authentication),
            further("paging", "Paging", self._paging),
            further("filter", "Search by externalId", self._external_id_filter),
            further("user_name_filter", "Search by userName", self._user_name_filter),
            further("configuration", "ServiceProviderConfig", self._configuration),
            further("schemas", "Schemas", self._schemas),
        ]

    def _address(self) -> Finding:
        session = self._session
        found = session.sender.addresses(session.settings.base_url, deadline=session.deadline)
        return Finding(
            f"The host has {counted(len(found), 'address', 'addresses')}, and may be reached.", details={"addresses": found[:20]}
        )

    def _connection(self) -> Finding:
        session = self._session
        greeting = session.sender.greet(session.settings.base_url, deadline=session.deadline)
        if urlsplit(session.settings.base_url).scheme != "https":
            return Finding(
                f"Connected to {greeting.address} without TLS.", "warning", "Use https: the token and all users travel in the open."
            )
        details = {"tls": greeting.tls_version, "certificate_until": greeting.certificate_until}
        return Finding(f"Connected to {greeting.address} with {greeting.tls_version}; the certificate is valid.", details=details)

    def _authentication(self) -> Finding:
        document = self._listed("startIndex=1&count=1")
        self._users, self._total = document["Resources"], document.get("totalResults")
        known = (
            f"it says that it has {counted(self._total, 'user')}"
            if isinstance(self._total, int)
            else "it does not say how many users it has"
        )
        return Finding(f"The server takes the token and lists users; {known}.")

    def _paging(self) -> Finding:
        if len(self._users) > 1:
            advice = "Deliveries do not page, so nothing breaks; the synchronization of all users reads more at once than it asks for."
            return Finding(f"Asked for 1 user, the server sent {len(self._users)}.", "warning", advice)
        if not isinstance(self._total, int):
            return Finding("The list has no totalResults.", "warning", "RFC 7644, 3.4.2 requires it. Deliveries do without.")
        if self._total < 2:
            return Finding("There are too few users to tell whether pages work.", "skipped")
        second = self._listed("startIndex=2&count=1")["Resources"]
        if [user["id"] for user in second] == [user["id"] for user in self._users]:
            return Finding(
                "The second page is the first one again.", "warning", "startIndex is ignored: the synchronization cannot page here."
            )
        return Finding("Pages hold what was asked for.")

    def _external_id_filter(self) -> Finding:
        known = next((user["externalId"] for user in self._users if isinstance(user.get("externalId"), str) and user["externalId"]), "")
        try:
            if self._session.client.filtered("externalId", uuid.uuid4().hex):
                advice = "Every match is verified before a write, so no stranger is touched; but most updates and deletions will fail."
                return Finding("A search for an externalId that nobody has found users: the filter is ignored.", "failed", advice)
            if known and self._session.client.filtered("externalId", f"x|{known}"):
                advice = "The server reads the value as a pattern. Matches are verified, but users with | in their id are many."
                return Finding("A search for a value that nobody has found a user.", "failed", advice)
            return self._known_external_id(known)
        except FilterRefused as refused:
            advice = "Users are then found by userName, which changes with their e-mail address; ask for filters on externalId."
            return Finding(f"The server refuses the filter: {refused}.", "warning", advice)

    def _known_external_id(self, known: str) -> Finding:
        if not known:
            return Finding(
                "Finds no user for a value that no user has. No user with an externalId was seen to search for; try the write check."
            )
        found = self._session.client.filtered("externalId", known)
        if not found:
            advice = (
                "Updates and deletions will not find their users: the filter must compare externalId. The write check shows it in full."
            )
            return Finding("A user is listed with an externalId and not found by it.", "failed", advice)
        return Finding("Exact: it finds the one it should, and nobody for values that nobody has.")

    def _user_name_filter(self) -> Finding:
        try:
            found = self._session.client.filtered("userName", f"{uuid.uuid4().hex}@nobody.invalid")
        except FilterRefused as refused:
            return Finding(
                f"The server refuses the filter: {refused}.", "warning", "It is needed only where externalId cannot be searched for."
            )
        if found:
            return Finding("A search for a userName that nobody has found users.", "warning", "The fallback by userName will not be used.")
        return Finding("Finds nobody for a name that nobody has.")

    def _configuration(self) -> Finding:
        try:
            config = self._document("/ServiceProviderConfig")
        except ActionError as error:
            return Finding(f"Not readable: {error}.", "warning", "It is advisory: the write check shows what really works.")
        offers = {name: _supported(config, name) for name in ("patch", "filter", "etag", "bulk")}
        mode = self._session.options.update_mode
        if mode in _PATCH_MODES and offers["patch"] is False:
            advice = "Set update_mode to put, or let the write check find out whether PATCH works all the same."
            return Finding("The server says that it does not offer PATCH, and the action is set to it.", "warning", advice, offers)
        return Finding(f"Read. PATCH: {_word(offers['patch'])}; filters: {_word(offers['filter'])}.", details=offers)

    def _schemas(self) -> Finding:
        try:
            document = self._document("/Schemas")
        except ActionError as error:
            return Finding(f"Not readable: {error}.", "warning", "It is advisory: the write check shows which attributes are kept.")
        resources = document.get("Resources")
        names = {item.get("id") for item in resources if isinstance(item, Mapping)} if isinstance(resources, list) else set()
        wanted = [USER]
        if any(row.enabled and row.path.startswith(f"{ENTERPRISE_USER}:") for row in self._session.table):
            wanted.append(ENTERPRISE_USER)
        missing = [name for name in wanted if name not in names]
        if missing:
            return Finding(f"The server does not name {', '.join(missing)}.", "warning", "Attributes of a schema it lacks may be dropped.")
        return Finding("The server names every schema that the mapping uses.")

    def _listed(self, query: str) -> Mapping[str, Any]:
        answer = self._session.transport.send(Request("GET", f"/Users?{query}", "/Users", f"/Users?{query}"))
        responses.found_resources(answer.status, answer.body)
        document: Mapping[str, Any] = orjson.loads(answer.body)
        return document

    def _document(self, path: str) -> Mapping[str, Any]:
        answer = self._session.transport.send(Request("GET", path, path, path))
        try:
            document = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise InvalidResponseShape(f"{path} is no JSON", status=answer.status) from error
        if not isinstance(document, dict):
            raise InvalidResponseShape(f"{path} is no JSON object", status=answer.status)
        return document


def _supported(config: Mapping[str, Any], name: str) -> bool | None:
    feature = config.get(name)
    said = feature.get("supported") if isinstance(feature, Mapping) else None
    return said if isinstance(said, bool) else None


def _word(said: bool | None) -> str:  # noqa: FBT001  (what a server said, or did not)
    return "unknown" if said is None else "yes" if said else "no"
