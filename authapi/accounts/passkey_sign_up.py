"""Making an account of one's own with a passkey and no password, for applications with pages of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from authapi.accounts.event_context import context_of
from authapi.accounts.passkey_login import PasskeyAttempt, note_passkey_login
from authapi.accounts.sign_up import SignUp, sign_up
from authapi.factors.passkey_ceremonies import SignUpWish
from foundation.change_context import change_context
from identity.factors import ceremonies
from identity.factors.user_factors import add_key
from identity.hosts import HostMatch
from identity.models import Connection, EnrolledFactor, User


@dataclass(frozen=True)
class PasskeySignUp:
    """Who wants an account; `attempt` has the answer of the authenticator that has made the passkey."""

    host: HostMatch
    attempt: PasskeyAttempt
    connection: Connection
    wish: SignUpWish


def sign_up_with_passkey(request: PasskeySignUp) -> User:
    """Return the new user with the passkey, made in one transaction. Raises `CeremonyRefused` and `SignUpRefused`.

    A name that is taken is found out here and no earlier: to learn of one costs an account of a free name, as with a password.
    """
    attempt, connection = request.attempt, request.connection
    made = ceremonies.verified_registration(attempt.answer, attempt.party, challenge=attempt.challenge or b"")
    added: list[EnrolledFactor] = []

    def add_passkey(user: User) -> None:
        confirmed = add_key(
            tenant_id=user.tenant_id,
            user_id=user.user_id,
            kind=EnrolledFactor.Kind.PASSKEY,
            made=made,
            relying_party=attempt.party.id,
        )
        added.append(confirmed.factor)

    wanted = SignUp(
        connection=connection,
        password="",
        profile=request.wish.profile,
        client=attempt.client,
        ip=attempt.ip,
        user_agent=attempt.user_agent,
        address=request.host.issuer.rstrip("/"),
        identifier=request.wish.identifier,
        add_passkey=add_passkey,
    )
    with change_context(context_of(request.host, attempt.client, ip=attempt.ip, user_agent=attempt.user_agent)):
        user = sign_up(wanted)
    note_passkey_login(replace(attempt, connections=(connection,)), added[-1], user)
    return user
