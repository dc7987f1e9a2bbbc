"""Builds transport, client and mapping for trials of the SCIM template, exactly as a delivery does."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from foundation.outbound.session import OutboundSession, outbound_session
from identity.services.failures import NotSupported
from provisioning.actions.capabilities import ActionCapabilities
from provisioning.actions.pace import pace_of
from provisioning.actions.secrets import open_sealed
from provisioning.actions.setups import Setup
from provisioning.links.rows import RunLinks, head_position
from provisioning.mapping.table import MappingRefused, MappingRow, parse_table
from provisioning.models.actions import SCIM_USER_PROVISIONING
from provisioning.runs.exchanges import ExchangeRecorder
from provisioning.runs.failures import Misconfigured
from provisioning.runs.masking import Mask
from provisioning.runs.run_log import RunLog
from provisioning.scim.client import ScimClient
from provisioning.scim.links import server_of
from provisioning.scim.options import OptionsRefused, ScimOptions, parse_options
from provisioning.scim.settings import BEARER_TOKEN, NOT_CONFIDENTIAL, ScimSettings, parse_settings
from provisioning.scim.transport import ScimTransport


@dataclass(frozen=True)
class ScimSession:
    """Everything that one trial needs to send requests to one server; `deadline` is a reading of `time.monotonic`."""

    settings: ScimSettings
    options: ScimOptions
    table: tuple[MappingRow, ...]
    sender: OutboundSession
    transport: ScimTransport
    client: ScimClient
    recorder: ExchangeRecorder
    capabilities: ActionCapabilities
    log: RunLog
    deadline: float
    links: RunLinks

    def client_of(self, user_id: str) -> ScimClient:
        """Return the client for one user. The client reads the user's account links; `links.store` saves the changed links."""
        return self.client.for_user(self.links.book(server_of(self.settings.base_url), user_id))


def require_scim(setup: Setup) -> None:
    """Raise `NotSupported` for an installed entry point, because its server is unknown."""
    if setup.template != SCIM_USER_PROVISIONING:
        raise NotSupported("This test needs an action of the SCIM template. Run an entry point for a test event instead.")


def mask_of(setup: Setup) -> Mask:
    """Return the mask for all secrets of the action; raise `Misconfigured` if a secret cannot be decrypted."""
    secrets = open_sealed(setup)
    return Mask([value for name, value in secrets.items() if name not in NOT_CONFIDENTIAL and (len(value) >= 4 or name == BEARER_TOKEN)])


def set_up_of(setup: Setup) -> tuple[ScimOptions, tuple[MappingRow, ...]]:
    """Return the options and the mapping table of the action. Raises `Misconfigured`."""
    try:
        options = parse_options(setup.options)
        return options, parse_table(setup.mapping, enterprise=options.enterprise)
    except (OptionsRefused, MappingRefused) as error:
        raise Misconfigured(str(error)) from error


def open_session(setup: Setup, mask: Mask, *, seconds: float, position: int | None = None) -> ScimSession:
    """Return a session that may last `seconds`, for the event at `position`; the default position is the head of the log.

    Raises `Misconfigured`.
    """
    options, table = set_up_of(setup)
    scim = parse_settings(open_sealed(setup), allow_http=settings.OUTBOUND_ALLOW_HTTP)
    recorder, log, deadline = ExchangeRecorder(mask), RunLog(mask), time.monotonic() + seconds
    capabilities, sender = ActionCapabilities(setup), outbound_session()
    arguments: dict[str, Any] = {"mask": mask, "deadline": deadline, "correlation_id": f"trial-{uuid.uuid4().hex}", "pace": pace_of(setup)}
    transport = ScimTransport(sender, scim, recorder, **arguments)
    client = ScimClient(transport, recorder, capabilities, log)
    links = RunLinks(setup, head_position(setup.tenant_id) if position is None else position)
    links.keep_out([scim.bearer_token, scim.base_url])
    return ScimSession(scim, options, table, sender, transport, client, recorder, capabilities, log, deadline, links)
