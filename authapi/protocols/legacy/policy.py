"""The rules that no old endpoint may bypass: about blocked users, and about logins that need a page of the service."""

from __future__ import annotations

from authapi.factors.demands import LoginFacts, factors_due
from authapi.factors.policy import Due
from authapi.failures import RequestRefused
from authapi.failures.legacy import LegacyCase
from authapi.models import Client
from authapi.protocols.legacy.opting_in import refuse_protected
from identity.models import User


def check_without_pages(client: Client, user: User) -> None:
    """Raise `RequestRefused` if this user may not log in to this client without a page.

    Every old endpoint that issues tokens for a user calls this function. The function also enforces the policy about second factors.
    """
    refuse_protected(client)
    if user.blocked:
        raise RequestRefused(LegacyCase.USER_BLOCKED)
    if client.settings.get("organization_usage") == "require":
        raise RequestRefused(LegacyCase.PAGE_NEEDED)
    if factors_due(LoginFacts(client, None, user, frozenset())) is not Due.NOTHING:
        raise RequestRefused(LegacyCase.PAGE_NEEDED)
