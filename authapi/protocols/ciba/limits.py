"""Limits new and waiting approval requests (CIBA).

Without limits, a client could flood a mailbox. And users who get many requests could approve a request without reading it.
"""

from __future__ import annotations

from authapi.edge.buckets import Bucket
from authapi.edge.rate_figures import (
    APPROVALS_OF_CLIENT,
    APPROVALS_OF_CLIENT_AND_USER,
    APPROVALS_OF_TENANT,
    APPROVALS_OF_USER,
    UNKNOWN_USERS_OF_CLIENT,
)
from authapi.edge.throttling import Rate
from authapi.failures import RequestRefused
from authapi.failures.ciba import CibaCase
from authapi.models import Client
from authapi.tokens.ciba_requests import waiting_count
from foundation.database.transactions import lock_name
from identity.models import User

# Maximum number of waiting requests: of one application for one user, of all applications for one user, of one application for all users.
MOST_OF_CLIENT_AND_USER, MOST_OF_USER, MOST_OF_CLIENT = 3, 10, 1000


def take(client: Client, user: User) -> None:
    """Count a new request. Raises `RequestRefused`.

    Locks the approval requests of the user until the transaction ends, so that concurrent requests are counted one after the other.
    """
    tenant_id = client.tenant_id
    lock_name(f"ciba:{user.pk}")
    for most, owner in (
        (MOST_OF_CLIENT_AND_USER, {"user": user, "application": client}),
        (MOST_OF_USER, {"user": user}),
        (MOST_OF_CLIENT, {"application": client}),
    ):
        if waiting_count(tenant_id, most=most, **owner) >= most:
            raise RequestRefused(CibaCase.TOO_MANY, rate=Rate.of_empty(APPROVALS_OF_CLIENT_AND_USER))
    _count(APPROVALS_OF_CLIENT_AND_USER, tenant_id, client.client_id, user.user_id)
    _count(APPROVALS_OF_USER, tenant_id, user.user_id)
    _count(APPROVALS_OF_CLIENT, tenant_id, client.client_id)
    _count(APPROVALS_OF_TENANT, tenant_id)


def require_guess(client: Client) -> None:
    """Raise `RequestRefused` if a client has named too many unknown users. So the client cannot search for users by guessing ids."""
    if not UNKNOWN_USERS_OF_CLIENT.has_one(client.tenant_id, client.client_id):
        raise RequestRefused(CibaCase.TOO_MANY, rate=Rate.of_empty(UNKNOWN_USERS_OF_CLIENT))


def count_unknown(client: Client) -> None:
    """Count a request for an unknown user."""
    UNKNOWN_USERS_OF_CLIENT.takes(client.tenant_id, client.client_id)


def _count(bucket: Bucket, *owner: str) -> None:
    if not bucket.takes(*owner):
        raise RequestRefused(CibaCase.TOO_MANY, rate=Rate.of_empty(bucket))
