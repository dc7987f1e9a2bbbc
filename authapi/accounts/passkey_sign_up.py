"""Sign-up with a passkey and without a password, for applications with their own pages."""

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
    """A request for an account. `attempt` contains the answer of the authenticator that created the passkey."""

    host: HostMatch
    attempt: PasskeyAttempt
    connection: Connection
    wish: SignUpWish


def sign_up_with_passkey(request: PasskeySignUp) -> User:
    """Create a user with the passkey in one transaction; return the user. Raises `CeremonyRefused` and `SignUpRefused`.

    No earlier step reveals whether another account has the identifier: only this function refuses an identifier that is taken. So if an
    attacker tests an identifier and the identifier is free, the test creates an account.
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
