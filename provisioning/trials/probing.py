"""Checks, only with reads, whether a SCIM server meets the requirements for provisioning."""

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
_EARLIER_FAILED = "Not tested: an earlier step failed."


class ConnectionProbe:
    """Checks one server step by step. If address, connection or authentication fails, all later steps are skipped."""

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
            f"The host has {counted(len(found), 'allowed IP address', 'allowed IP addresses')}.", details={"addresses": found[:20]}
        )

    def _connection(self) -> Finding:
        session = self._session
        greeting = session.sender.greet(session.settings.base_url, deadline=session.deadline)
        if urlsplit(session.settings.base_url).scheme != "https":
            return Finding(
                f"Connected to {greeting.address} without TLS.", "warning", "Use https: the token and all users are sent unencrypted."
            )
        details = {"tls": greeting.tls_version, "certificate_until": greeting.certificate_until}
        return Finding(f"Connected to {greeting.address} with {greeting.tls_version}; the certificate is valid.", details=details)

    def _authentication(self) -> Finding:
        document = self._listed("startIndex=1&count=1")
        self._users, self._total = document["Resources"], document.get("totalResults")
        known = f"it reports {counted(self._total, 'user')}" if isinstance(self._total, int) else "it does not report the number of users"
        return Finding(f"The server accepts the token and lists users; {known}.")

    def _paging(self) -> Finding:
        if len(self._users) > 1:
            advice = "Deliveries do not use pages. During a synchronization, each answer will contain more users than requested."
            return Finding(f"The server returned {len(self._users)} users instead of 1.", "warning", advice)
        if not isinstance(self._total, int):
            return Finding("The list has no totalResults.", "warning", "RFC 7644, 3.4.2 requires totalResults. Deliveries do not need it.")
        if self._total < 2:
            return Finding("The server has too few users to test pages.", "skipped")
        second = self._listed("startIndex=2&count=1")["Resources"]
        if [user["id"] for user in second] == [user["id"] for user in self._users]:
            return Finding("Both pages are equal.", "warning", "startIndex is ignored: a synchronization cannot use pages.")
        return Finding("Pages contain the requested users.")

    def _external_id_filter(self) -> Finding:
        known = next((user["externalId"] for user in self._users if isinstance(user.get("externalId"), str) and user["externalId"]), "")
        try:
            if self._session.client.filtered("externalId", uuid.uuid4().hex):
                advice = "Every match is verified before a write, so other users are safe, but most updates and deletions will fail."
                return Finding("A search for an unused externalId returned users: the filter is ignored.", "failed", advice)
            if known and self._session.client.filtered("externalId", f"x|{known}"):
                advice = "The server treats | as part of a pattern, but many user ids contain |. Every match is verified before a write."
                return Finding("A search for an unused externalId that contains | returned a user.", "failed", advice)
            return self._known_external_id(known)
        except FilterRefused as refused:
            advice = "The service will find users by userName, which may change. Ask the operator of the server for filters on externalId."
            return Finding(f"The server refuses the filter: {refused}.", "warning", advice)

    def _known_external_id(self, known: str) -> Finding:
        if not known:
            return Finding(
                "The search returns no user for an unused value. No listed user has an externalId, so use the write check to test a match."
            )
        found = self._session.client.filtered("externalId", known)
        if not found:
            advice = (
                "Updates and deletions will not find their users: the filter must compare externalId. "
                "The write check tests the filter completely."
            )
            return Finding("A search for the externalId of a listed user does not find that user.", "failed", advice)
        return Finding("The search is exact: it finds the expected user, and no user for unused values.")

    def _user_name_filter(self) -> Finding:
        try:
            found = self._session.client.filtered("userName", f"{uuid.uuid4().hex}@nobody.invalid")
        except FilterRefused as refused:
            return Finding(
                f"The server refuses the filter: {refused}.", "warning", "The service needs this filter only if filters on externalId fail."
            )
        if found:
            return Finding(
                "A search for an unused userName returned users.",
                "warning",
                "The service will not search by userName instead of externalId.",
            )
        return Finding("The search returns no user for an unused userName.")

    def _configuration(self) -> Finding:
        try:
            config = self._document("/ServiceProviderConfig")
        except ActionError as error:
            return Finding(f"Not readable: {error}.", "warning", "This document is optional: the write check tests the actual behavior.")
        offers = {name: _supported(config, name) for name in ("patch", "filter", "etag", "bulk")}
        mode = self._session.options.update_mode
        if mode in _PATCH_MODES and offers["patch"] is False:
            advice = "Set update_mode to put, or run the write check to test whether PATCH works anyway."
            return Finding("The server reports no support for PATCH, but the action uses it.", "warning", advice, offers)
        text = f"According to the server, PATCH is {_word(offers['patch'])}, and filters are {_word(offers['filter'])}."
        return Finding(text, details=offers)

    def _schemas(self) -> Finding:
        try:
            document = self._document("/Schemas")
        except ActionError as error:
            return Finding(
                f"Not readable: {error}.", "warning", "This document is optional: the write check tests which attributes are stored."
            )
        resources = document.get("Resources")
        names = {item.get("id") for item in resources if isinstance(item, Mapping)} if isinstance(resources, list) else set()
        wanted = [USER]
        if any(row.enabled and row.path.startswith(f"{ENTERPRISE_USER}:") for row in self._session.table):
            wanted.append(ENTERPRISE_USER)
        missing = [name for name in wanted if name not in names]
        if missing:
            return Finding(
                f"The server does not list these schemas: {', '.join(missing)}.",
                "warning",
                "The server may drop attributes of these schemas.",
            )
        return Finding("The server lists every schema that the mapping uses.")

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
            raise InvalidResponseShape(f"{path} is not JSON", status=answer.status) from error
        if not isinstance(document, dict):
            raise InvalidResponseShape(f"{path} is not a JSON object", status=answer.status)
        return document


def _supported(config: Mapping[str, Any], name: str) -> bool | None:
    feature = config.get(name)
    said = feature.get("supported") if isinstance(feature, Mapping) else None
    return said if isinstance(said, bool) else None


def _word(said: bool | None) -> str:  # noqa: FBT001  (a value of the server's answer)
    return "not mentioned" if said is None else "supported" if said else "not supported"
