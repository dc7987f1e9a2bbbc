"""Checks of a domain over the network: whether its DNS has the TXT record, and whether requests to it reach this service.

Both checks wait for external servers, so only a few checks run at a time, and no check runs inside a transaction.
"""

from __future__ import annotations

import hmac
import json
import time

from django.conf import settings

from foundation.outbound.outcomes import OutboundError
from foundation.outbound.session import outbound_session
from foundation.outbound.text_records import RecordsUnread, text_records
from foundation.outbound.turns import NoTurn, turn
from identity.hosts import scheme
from identity.models import CustomDomain
from identity.services.domains import note_unproven, verify_domain
from identity.services.failures import Conflict, NotFound, ServiceError

_RECORD_NAME = "_domain-verification"
_RECORD_START = "domain-verification="
_ABSENT = "The TXT record was not found. A new record may take some time to reach all name servers."


class ChecksBusy(ServiceError):
    """Another domain is being checked. Try again."""


def record_name(domain: CustomDomain) -> str:
    """Return the name of the TXT record that verifies a domain."""
    return f"{_RECORD_NAME}.{domain.host}"


def record_value(domain: CustomDomain) -> str:
    """Return the content of the TXT record. It is public, and unique to this domain of this tenant."""
    return f"{_RECORD_START}{domain.verification_token}"


def check_domain(*, tenant_id: str, domain_id: str) -> CustomDomain:
    """Verify a domain if its TXT record exists, otherwise store the problem. Does not change a verified domain.

    Raises `NotFound` and `ChecksBusy`. Raises `AlreadyExists` if another tenant has verified the domain.
    """
    domain = _custom_domain(tenant_id, domain_id)
    if domain.verified_at is not None:
        return domain
    problem = _proof_problem(domain)
    if problem:
        return note_unproven(tenant_id=tenant_id, domain_id=domain_id, problem=problem)
    return verify_domain(tenant_id=tenant_id, domain_id=domain_id)


def reach_problem(*, tenant_id: str, domain_id: str) -> str:
    """Return why requests to a verified domain do not reach the tenant; empty if requests reach the tenant.

    Raises `NotFound` and `ChecksBusy`. Raises `Conflict` for an unverified domain.
    """
    domain = _custom_domain(tenant_id, domain_id)
    if domain.verified_at is None:
        raise Conflict("The domain is not verified yet.")
    issuer = f"{scheme()}://{domain.host}/"
    address, deadline = f"{issuer}.well-known/openid-configuration", time.monotonic() + settings.DNS_LOOKUP_SECONDS
    try:
        with turn(tenant_id):
            answer = outbound_session().send("GET", address, headers={"Accept": "application/json"}, body=None, deadline=deadline)
    except NoTurn as error:
        raise ChecksBusy from error
    except OutboundError as error:
        return str(error)
    is_ours = answer.status == 200 and issuer_of(answer.body) == issuer
    return "" if is_ours else "The host answers, but not as this tenant. Check that the proxy keeps the Host header."


def issuer_of(body: bytes) -> str | None:
    """Return the issuer in a discovery document, or None for any other body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    issuer = found.get("issuer") if isinstance(found, dict) else None
    return issuer if isinstance(issuer, str) else None


def _proof_problem(domain: CustomDomain) -> str:
    try:
        with turn(domain.tenant_id):
            found = text_records(record_name(domain))
    except NoTurn as error:
        raise ChecksBusy from error
    except RecordsUnread as error:
        return str(error)
    # Without a token, the expected record would be the same for every tenant, so an empty token proves nothing.
    wanted = record_value(domain).encode()
    is_proven = bool(domain.verification_token) and any(hmac.compare_digest(text.encode(), wanted) for text in found)
    return "" if is_proven else _ABSENT


def _custom_domain(tenant_id: str, domain_id: str) -> CustomDomain:
    domain = CustomDomain.objects.of(tenant_id).filter(pk=domain_id, is_canonical=False).first()
    if domain is None:
        raise NotFound("The custom domain does not exist.")
    return domain
