"""Ends sessions of a user, withdraws consents, and revokes the refresh tokens that depended on these sessions and consents."""

from __future__ import annotations

from typing import Any

from authapi.login.sessions import end_session, end_sessions_of
from authapi.models import Consent, Initiator, RefreshToken, Session
from authapi.tokens.revocation import revoke_refresh_tokens
from foundation.database.transactions import lock_rows, unit_of_work
from foundation.json_values import json_problem
from identity.models import User
from identity.services.failures import Invalid, NotFound


@unit_of_work
def revoke_session(session: Session) -> None:
    """End a session and every refresh token that was issued in it."""
    _revoke_tokens_of(session)
    end_session(session, reason=Initiator.SESSION_REVOKED)


@unit_of_work
def revoke_access(
    *, user: User, session_id: str | None = None, keeps_refresh_tokens: bool = False, reason: str = Initiator.SESSION_REVOKED
) -> None:
    """End all sessions of a user and revoke all refresh tokens of the user.

    With `session_id`, end only this session, and revoke only the refresh tokens that were issued in it. With `keeps_refresh_tokens`, revoke
    no refresh token. Raises `NotFound` if the user has no such session.
    """
    if session_id is None:
        if not keeps_refresh_tokens:
            revoke_refresh_tokens(tenant_id=user.tenant_id, user_id=user.pk)
        end_sessions_of(tenant_id=user.tenant_id, user_id=user.pk, reason=reason)
        return
    session = Session.objects.of(user.tenant_id).filter(pk=session_id, user=user).first()
    if session is None:
        raise NotFound("The session does not exist.")
    if not keeps_refresh_tokens:
        _revoke_tokens_of(session)
    end_session(session, reason=reason)


@unit_of_work
def update_session_metadata(*, tenant_id: str, session_id: str, metadata: dict[str, Any]) -> None:
    """Replace the metadata of a session. Raises `NotFound`, `Invalid`."""
    _check_metadata("session_metadata", metadata)
    if not Session.objects.of(tenant_id).filter(pk=session_id).update(metadata=metadata):
        raise NotFound("The session does not exist.")


@unit_of_work
def update_refresh_token_metadata(*, tenant_id: str, wire_id: str, metadata: dict[str, Any]) -> None:
    """Replace the metadata of a refresh token. Raises `NotFound`, `Invalid`."""
    _check_metadata("refresh_token_metadata", metadata)
    if not RefreshToken.objects.of(tenant_id).filter(wire_id=wire_id, revoked=None).update(metadata=metadata):
        raise NotFound("The refresh token does not exist.")


@unit_of_work
def withdraw_consent(consent: Consent) -> None:
    """Delete the consent of a user to a client at one API, and revoke the refresh tokens that depend on this consent. Idempotent."""
    lock_rows(Consent, [consent.pk])
    user, client = consent.user, consent.client
    revoke_refresh_tokens(tenant_id=consent.tenant_id, user_id=user.pk, client_id=client.client_id, audience=consent.audience)
    Consent.objects.of(consent.tenant_id).filter(pk=consent.pk).delete()


def withdraw_consents_of(user: User) -> int:
    """Withdraw every consent of a user; return the number of consents."""
    consents = list(Consent.objects.of(user.tenant_id).filter(user=user).select_related("user", "client"))
    for consent in consents:
        withdraw_consent(consent)
    return len(consents)


def _revoke_tokens_of(session: Session) -> None:
    tokens = RefreshToken.objects.of(session.tenant_id).filter(sid=session.pk, revoked=None)
    revoke_refresh_tokens(tenant_id=session.tenant_id, ids=list(tokens.values_list("wire_id", flat=True)))


def _check_metadata(name: str, metadata: dict[str, Any]) -> None:
    problem = json_problem(metadata)
    if problem:
        raise Invalid({name: [problem]})
