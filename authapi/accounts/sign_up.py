"""Sign-up with a password or a passkey at a database connection that allows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NoReturn

from django.core.exceptions import ValidationError

from authapi.accounts.leaked_passwords import SIGN_UP as AT_SIGN_UP
from authapi.accounts.leaked_passwords import note_new_password
from authapi.accounts.sign_up_rules import IDENTIFIERS, Demand, demands, metadata_problem, username_lengths
from authapi.accounts.suspicion import SIGN_UP, count_attempt, rate_of_suspicious
from authapi.edge.throttling import Rate
from authapi.factors.passkey_options import takes_passkey_sign_ups
from authapi.login.connections import takes_passwords, takes_sign_ups
from authapi.models import Client
from authapi.services import sign_in_log
from foundation.database.transactions import unit_of_work
from foundation.json_values import text_problem
from foundation.secrets.hashing import hashed
from identity.languages import asked_language, language_for
from identity.mail.verification import create_user_with_mail
from identity.mail.welcome import start_welcome
from identity.models import Connection, User
from identity.passwords import Weakness
from identity.services.failures import AlreadyExists, BeingDeleted, Invalid
from identity.services.profile_rules import PasswordTooWeak, check_new_profile

_SUCCESS, _FAILURE = "ss", "fs"


@dataclass(frozen=True)
class SignUp:
    """A request for an account, with the profile that was sent: identifiers, names and `user_metadata`.

    An account with a passkey has no password. `add_passkey` adds the passkey in the transaction that creates the user. The user id is
    chosen before the passkey is created, because the passkey contains the user id.
    """

    connection: Connection
    password: str = field(repr=False)
    profile: Mapping[str, Any] = field(default_factory=dict)
    client: Client | None = None
    ip: str = ""
    user_agent: str = ""
    # Origin of the page; see `Attempt`.
    address: str = ""
    # Whether the user signs up with an invitation. The email address in `profile` is then the address of the invitation. An invited user
    # may sign up even if the connection accepts no other sign-ups.
    is_invited: bool = False
    # Whether to mail a link that verifies the email address. False if the user proves the email address before the account is created.
    is_mail_due: bool = True
    identifier: str = ""
    add_passkey: Callable[[User], object] | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether the connection allows this sign-up. An invited user may sign up with a password even if other users may not."""
        if self.add_passkey is not None:
            return takes_passkey_sign_ups(self.connection)
        return takes_sign_ups(self.connection) or (self.is_invited and takes_passwords(self.connection))


class Reason(Enum):
    DISABLED = auto()
    SUSPICIOUS_ADDRESS = auto()
    # A value is missing or invalid; `fields` has the error texts.
    INVALID = auto()
    PASSWORD_TOO_WEAK = auto()
    # An identifier is taken. The response does not reveal this reason.
    REFUSED = auto()


class SignUpRefused(Exception):
    """The sign-up was refused. `fields` has error texts by field, `weak` explains a weak password, `rate` is an exceeded limit."""

    def __init__(
        self,
        reason: Reason,
        *,
        fields: Mapping[str, str] | None = None,
        weak: PasswordTooWeak | None = None,
        rate: Rate | None = None,
    ) -> None:
        super().__init__(reason.name)
        self.reason = reason
        self.fields = dict(fields or {})
        self.weak = weak
        self.rate = rate


def sign_up(request: SignUp) -> User:
    """Create the user with its event and, if configured, a mail that verifies the email address. Return the user.

    The caller binds the context of the event. Raises `SignUpRefused`. A password is hashed even if the identifier is taken: otherwise a
    fast response would reveal that the identifier is taken.
    """
    if not request.is_open:
        _refuse(request, SignUpRefused(Reason.DISABLED))
    if not count_attempt(request.connection.tenant_id, request.ip, SIGN_UP):
        rate = rate_of_suspicious(request.connection.tenant_id, SIGN_UP)
        _refuse(request, SignUpRefused(Reason.SUSPICIOUS_ADDRESS, rate=rate))
    profile = {name: value for name, value in request.profile.items() if value not in (None, "")}
    problems = profile_problems(request.connection, profile)
    if problems:
        _refuse(request, SignUpRefused(Reason.INVALID, fields=problems))
    try:
        check_new_profile(request.connection, {**profile, "password": request.password}, has_passkey=request.add_passkey is not None)
        user = _create(request, profile)
    except PasswordTooWeak as weak:
        _refuse(request, SignUpRefused(Reason.PASSWORD_TOO_WEAK, weak=weak), weak)
    except Invalid as invalid:
        fields = {name: " ".join(texts) for name, texts in invalid.errors.items()}
        _refuse(request, SignUpRefused(Reason.INVALID, fields=fields), invalid)
    except (AlreadyExists, BeingDeleted) as taken:
        if request.password:
            hashed(request.password)
        _refuse(request, SignUpRefused(Reason.REFUSED), taken)
    _note(request, user, "")
    _note_leak(request, user)
    return user


@unit_of_work
def _create(request: SignUp, profile: dict[str, Any]) -> User:
    user = create_user_with_mail(
        asked=None if request.is_mail_due else False,
        address=request.address,
        tenant_id=request.connection.tenant_id,
        connection=request.connection,
        identifier=request.identifier,
        password=request.password or None,
        **profile,
    )
    if request.add_passkey is not None:
        request.add_passkey(user)
    client = request.client
    start_welcome(
        user,
        application={"name": client.name, "clientID": client.client_id} if client else None,
        language=language_for(user, user.tenant_id, asked=asked_language()),
    )
    return user


def profile_problems(connection: Connection, profile: Mapping[str, Any]) -> dict[str, str]:
    """Return the errors of a profile, by field."""
    wanted = demands(connection.options)
    missing = {name: "Missing required parameter." for name in IDENTIFIERS if wanted[name] is Demand.REQUIRED and name not in profile}
    surplus = {name: "Not accepted by the connection." for name in IDENTIFIERS if wanted[name] is Demand.INACTIVE and name in profile}
    problems = {**missing, **surplus}
    problems.update({name: problem for name, value in profile.items() if (problem := _column_problem(name, value))})
    shortest, longest = username_lengths(connection.options)
    if isinstance(name := profile.get("username"), str) and not shortest <= len(name) <= longest:
        problems["username"] = f"A username has {shortest} to {longest} characters."
    if "user_metadata" in profile and (odd := metadata_problem(profile["user_metadata"])):
        problems["user_metadata"] = odd
    return problems


def _column_problem(name: str, value: Any) -> str:
    """Return the error of a value; empty if it is valid. The errors of all values are reported together, before the password is checked."""
    if name == "user_metadata":
        return ""
    if not isinstance(value, str):
        return "Must be a string."
    try:
        User._meta.get_field(name).clean(value, None)  # type: ignore[union-attr]  # a column, never a relation
    except ValidationError as error:
        return " ".join(error.messages)
    return text_problem(value) or ""


def _refuse(request: SignUp, refusal: SignUpRefused, cause: Exception | None = None) -> NoReturn:
    _note(request, None, _DESCRIPTIONS[refusal.reason])
    if refusal.weak is not None and refusal.weak.problem.weakness is Weakness.BREACHED:
        _note_leak(request, None)
    raise refusal from cause


_DESCRIPTIONS = {
    Reason.DISABLED: "The connection does not allow sign-ups.",
    Reason.SUSPICIOUS_ADDRESS: "Too many sign-ups from the IP address.",
    Reason.INVALID: "A value is missing or invalid.",
    Reason.PASSWORD_TOO_WEAK: "The password is too weak.",
    Reason.REFUSED: "The user already exists.",
}


def _note(request: SignUp, user: User | None, description: str) -> None:
    sign_in_log.note(
        tenant_id=request.connection.tenant_id,
        type=_SUCCESS if user else _FAILURE,
        is_success=user is not None,
        description=description,
        **_line(request, user),
    )


def _note_leak(request: SignUp, user: User | None) -> None:
    """Write a line to the sign-in log if the password was found in a breach, even if the settings of the tenant allow such passwords."""
    if request.password:
        note_new_password(request.connection.tenant_id, request.password, AT_SIGN_UP, **_line(request, user))


def _line(request: SignUp, user: User | None) -> dict[str, Any]:
    named = next((str(request.profile[name]) for name in IDENTIFIERS if request.profile.get(name)), "")
    sender = {"client": request.client, "ip": request.ip, "user_agent": request.user_agent}
    return {"user": user, "user_name": named, "connection": request.connection.name, **sender}
