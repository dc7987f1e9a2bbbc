"""The SCIM server of a synchronization. Its secrets are decrypted once; the requests for each user have a separate deadline."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from foundation.outbound.session import outbound_session
from provisioning.actions.capabilities import ActionCapabilities
from provisioning.actions.pace import pace_of
from provisioning.actions.secrets import open_sealed
from provisioning.actions.setups import Setup
from provisioning.links.rows import RunLinks, accounts_of_other_tenants
from provisioning.mapping.table import MappedUser, MappingFailed, Operation, Person, is_keyed_by_user_id, map_user, person_of
from provisioning.runs.exchanges import ExchangeRecorder
from provisioning.runs.failures import DataFailure
from provisioning.runs.run_log import RunLog
from provisioning.scim.client import ScimClient
from provisioning.scim.links import server_of
from provisioning.scim.listing import Page, page_of_users
from provisioning.scim.settings import parse_settings
from provisioning.scim.transport import ScimTransport
from provisioning.trials.scim_sessions import mask_of, set_up_of


class Remote:
    """The server, its mapping and its options. Raises `Misconfigured` as a run of the action would."""

    def __init__(self, setup: Setup, correlation_id: str) -> None:
        self.settings = parse_settings(open_sealed(setup), allow_http=settings.OUTBOUND_ALLOW_HTTP)
        self.options, self.table = set_up_of(setup)
        self.mask = mask_of(setup)
        self._capabilities = ActionCapabilities(setup)
        self._setup = setup
        self._correlation_id = correlation_id

    @property
    def is_keyed_by_user_id(self) -> bool:
        """Whether the correlation key is the user id. With this key, accounts without a user can be determined."""
        return is_keyed_by_user_id(self.table)

    @contextmanager
    def client(self, user_id: str, position: int) -> Iterator[ScimClient]:
        """Yield a client for one user with a separate deadline; store the changed links at the end."""
        recorder, links = ExchangeRecorder(self.mask), RunLinks(self._setup, position)
        links.keep_out([self.settings.bearer_token, self.settings.base_url])
        book = links.book(server_of(self.settings.base_url), user_id)
        try:
            yield ScimClient(self._transport(recorder), recorder, self._capabilities, RunLog(self.mask), book)
        finally:
            links.store()

    def held_by_others(self, remote_ids: Collection[str]) -> set[str]:
        """Return those of the given account ids that are linked to users of other tenants."""
        return accounts_of_other_tenants(server_of(self.settings.base_url), remote_ids, tenant_id=self._setup.tenant_id)

    def note_missed(self, user: dict[str, Any]) -> bool:
        """Search with a filter for the key of a listed account.

        If the filter does not find the account, return True, and store with the capabilities of the server that its filter misses accounts.
        """
        recorder = ExchangeRecorder(self.mask)
        client = ScimClient(self._transport(recorder), recorder, self._capabilities, RunLog(self.mask))
        return client.misses(str(user["id"]), str(user["externalId"]))

    def page(self, start: int) -> Page:
        """Return a page of accounts from the 1-based index `start`."""
        return page_of_users(self._transport(ExchangeRecorder(self.mask)), start)

    def person(self, document: dict[str, Any]) -> Person:
        try:
            return person_of(document, self.table)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error

    def mapped(self, document: dict[str, Any], operation: Operation) -> MappedUser:
        try:
            return map_user(document, self.table, operation)
        except MappingFailed as error:
            raise DataFailure(f"the user cannot be mapped: {error}") from error

    def _transport(self, recorder: ExchangeRecorder) -> ScimTransport:
        deadline = time.monotonic() + settings.DELIVERY_BUDGET_SECONDS
        arguments: dict[str, Any] = {"mask": self.mask, "deadline": deadline, "correlation_id": self._correlation_id}
        return ScimTransport(outbound_session(), self.settings, recorder, **arguments, pace=pace_of(self._setup))
