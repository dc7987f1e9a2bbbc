"""Links that set up a second factor. They are for users who cannot wait, or should not wait, until a login requires a second factor.

A link allows its holder only to enroll a factor for the user of the link. The link begins no session. If the user already has a factor, the
holder must prove this factor first. A setup can be confirmed only in the browser in which it was begun. Decision: docs/adr/0122.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from authapi.accounts.account_mails import MOST_LINKS
from authapi.accounts.handed_tickets import link_base
from authapi.factors.association import associate_address, associate_app, confirm_app, confirm_sent, open_enrollment
from authapi.factors.challenges import ENROLL_KEY, Prover, TooManyGuesses, WrongProof, hold, open_key_challenge
from authapi.factors.demands import usable_kinds
from authapi.factors.kinds import EMAIL, KINDS, TOTP
from authapi.factors.settings import factor_settings
from authapi.models import AccountTicket
from authapi.services.account_tickets import TicketExpired, TicketUnknown, issue, usable, usable_count, use_up
from foundation.database.transactions import unit_of_work
from identity.factors import ceremonies
from identity.factors.ceremonies import ANSWER_MOST_CHARACTERS, CeremonyRefused, RelyingParty
from identity.factors.user_factors import add_key, factors_of, note
from identity.languages import language_for
from identity.messages.catalogue import EMAIL as MAIL_CHANNEL
from identity.messages.facts import user_facts
from identity.messages.links import link_lifetime
from identity.messages.queue import queue_message
from identity.models import EnrolledFactor, User
from identity.services.failures import AlreadyExists, Conflict, Invalid, NotFound
from identity.services.users import locked_user

PATH, PARAMETER = "/u/factor-setup", "ticket"
MAIL = "enrollment_email"
# How long the proof of an existing factor is valid. The same limit applies in a login: a user can enroll a factor within ten minutes after
# the proof of the first factor.
_PROOF_COUNTS = timedelta(minutes=10)
# Keys in the parameters of a ticket: the only kind of factor that is allowed, whether the user may already have factors, and the proof of
# an existing factor.
_KIND, _ADDS, _PROOF = "kind", "adds", "proof"
_PURPOSE = AccountTicket.Purpose.ENROLLMENT
_Refused = WrongProof | TooManyGuesses | AlreadyExists | Conflict


class ProofNeeded(Exception):
    """The user has a factor, and this browser has not proven it recently."""


class SetupOver(Exception):
    """The setup is not in progress in this browser: it has expired, a newer setup replaced it, or this kind of factor is disabled."""


@dataclass(frozen=True)
class SetupLink:
    """A new link. `address` is the URL that opens the link; `id` alone does not open it."""

    id: str
    address: str = field(repr=False)


@dataclass(frozen=True)
class Setup:
    """An opened link: its ticket, its secret, and the cookie value that identifies the browser in which it was opened."""

    ticket: AccountTicket
    secret: str = field(repr=False)
    browser: str = field(repr=False)

    @property
    def user(self) -> User:
        return self.ticket.user

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of factors that the user can set up now, strongest first."""
        return kinds_for(self.user, self.ticket.parameters.get(_KIND, ""))

    @property
    def bound_to(self) -> str:
        """The value of `Prover.bound_to` that binds an enrollment to this link and this browser."""
        return f"link:{self.ticket.pk}:{_mark_of(self.browser)}"


@dataclass(frozen=True)
class SetUp:
    """A confirmed factor. `recovery_code` is set only for the user's first factor."""

    factor: EnrolledFactor
    recovery_code: str = field(default="", repr=False)


@unit_of_work
def create_setup_link(
    *,
    user: User,
    kind: str = "",
    adds: bool = False,
    is_mailed: bool = False,
    recipient: str = "",
    language: str = "",
    address: str = "",
) -> SetupLink:
    """Return a new link that sets up a factor. With `kind`, the link allows only this kind of factor. With `is_mailed`, mail the link, too.

    `adds` allows a link for a user who already has a factor; the user must prove this factor first. The mail is sent to `recipient`,
    otherwise to the email address of the user. Raises `Conflict` if the user cannot set up a factor with this link, or if the link
    must be mailed and the user already has `MOST_LINKS` valid links. Raises `Invalid` if the mail has no recipient, `NotSupported` if the
    tenant has no domain, and `MailNotConfigured` if the link must be mailed but no mail server is configured.
    """
    user = locked_user(tenant_id=user.tenant_id, user_id=user.user_id)
    _require_use(user, kind, adds=adds)
    recipient = recipient or user.email or ""
    if is_mailed and not recipient:
        raise Invalid({"email": ["The user has no email address: set email to an address, or leave out send_mail"]})
    if is_mailed and usable_count(user, _PURPOSE) >= MOST_LINKS:
        raise Conflict(f"The user has {MOST_LINKS} links that still work.")
    spoken = language_for(user, user.tenant_id, asked=language) if is_mailed else ""
    life = link_lifetime(user.tenant_id, MAIL)
    parameters = {_KIND: kind, _ADDS: adds}
    ticket, secret = issue(user=user, purpose=_PURPOSE, client=None, email=user.email or "", life=life, language=spoken, **parameters)
    link = SetupLink(ticket.pk, f"{link_base(user.tenant_id, address)}{PATH}?{PARAMETER}={secret}")
    if is_mailed:
        _mail(ticket, link, recipient)
    is_elsewhere = is_mailed and recipient.casefold() != (user.email or "").casefold()
    facts = {"link": ticket.pk, "mailed_to": ("another address" if is_elsewhere else "the user") if is_mailed else ""}
    note(user, "Created a link that sets up a second factor", **facts)
    return link


def open_setup(*, tenant_id: str, secret: str, browser: str) -> Setup:
    """Return the opened link; raise `TicketUnknown`, `TicketUsed` or `TicketExpired`. Changes nothing."""
    ticket = usable(tenant_id=tenant_id, purpose=_PURPOSE, secret=secret)
    user, kind = ticket.user, ticket.parameters.get(_KIND, "")
    is_on = any(kind in ("", each) for each in factor_settings(tenant_id).kinds)
    if user.blocked or not is_on or (factors_of(user) and not ticket.parameters.get(_ADDS)):
        raise TicketExpired(ticket)
    return Setup(ticket, secret, browser)


def kinds_for(user: User, kind: str = "") -> tuple[str, ...]:
    """Return the kinds of factors that a user can set up with a link, strongest first. With `kind`, no other kind is returned.

    As at a login, codes by mail are sent only to the email address of the profile. A kind that repeats the user's login method is left out.
    """
    kinds = (each for each in usable_kinds(user.tenant_id) if KINDS[each].repeats != user.connection.strategy and kind in ("", each))
    return tuple(each for each in kinds if each != EMAIL or _may_add_email(user))


def needs_proof(setup: Setup) -> bool:
    """Tell whether the user must prove an existing factor in this browser before the link sets up another factor."""
    if not factors_of(setup.user):
        return False
    proof = setup.ticket.parameters.get(_PROOF)
    if not proof or proof["browser"] != _mark_of(setup.browser):
        return True
    return timezone.now() - datetime.fromisoformat(proof["at"]) > _PROOF_COUNTS


def note_proof(setup: Setup) -> None:
    """Record that the user has proven an existing factor in this browser."""
    proof = {"browser": _mark_of(setup.browser), "at": timezone.now().isoformat()}
    rows = AccountTicket.objects.of(setup.ticket.tenant_id).filter(pk=setup.ticket.pk)
    rows.update(parameters={**setup.ticket.parameters, _PROOF: proof})


@unit_of_work
def begin_app(setup: Setup, *, prover: Prover) -> None:
    """Start to set up an authenticator app.

    Raises `ProofNeeded`, `SetupOver`, `Conflict` for too many factors, and the errors of `open_setup`.
    """
    _held(setup, TOTP)
    associate_app(prover, promises=False)


@unit_of_work
def begin_address(setup: Setup, *, prover: Prover, kind: str, address: str = "") -> None:
    """Start to set up a phone, or the email address of the profile. Send a code to the new factor.

    Raises the errors of `begin_app` and `associate_address`.
    """
    user = _held(setup, kind)
    associate_address(prover, kind, (user.email or "") if kind == EMAIL else address, promises=False)


def confirm(setup: Setup, *, prover: Prover, kind: str, code: str) -> SetUp:
    """Confirm an authenticator app, a phone or an email address with its code, and use up the link.

    Raises `WrongProof`, `TooManyGuesses`, `ProofNeeded`, `SetupOver`, and the errors of `open_setup`.
    """
    return _taken(_confirmed(setup, prover=prover, kind=kind, code=code))


def add_made_key(setup: Setup, *, prover: Prover, kind: str, answer: str, party: RelyingParty) -> SetUp:
    """Add a key that the browser has created, and use up the link.

    Raises `WrongProof`, `AlreadyExists` if an account has the key, `Conflict` for too many keys, and the errors of `confirm`.
    """
    return _taken(_key_added(setup, prover=prover, kind=kind, answer=answer[:ANSWER_MOST_CHARACTERS], party=party))


# Returns a refusal. The caller raises the refusal after the commit, because an exception in this function would roll back the counts of
# wrong guesses.
@unit_of_work
def _confirmed(setup: Setup, *, prover: Prover, kind: str, code: str) -> SetUp | _Refused:
    _held(setup, kind)
    enrollment = open_enrollment(prover, kind)
    if enrollment is None or enrollment.factor is None:
        raise SetupOver
    try:
        proven = confirm_app(prover, code) if kind == TOTP else confirm_sent(prover, enrollment.factor, code)
    except (WrongProof, TooManyGuesses) as refused:
        return refused
    return _set_up(setup, proven.factor or enrollment.factor, proven.recovery_code)


@unit_of_work
def _key_added(setup: Setup, *, prover: Prover, kind: str, answer: str, party: RelyingParty) -> SetUp | _Refused:
    user = _held(setup, kind)
    challenge = open_key_challenge(prover, purpose=ENROLL_KEY)
    if challenge is None:
        return WrongProof()
    try:
        made = ceremonies.verified_registration(answer, party, challenge=challenge, is_passkey=False)
    except CeremonyRefused:
        return WrongProof()
    try:
        added = add_key(tenant_id=user.tenant_id, user_id=user.user_id, kind=kind, made=made, relying_party=party.id)
    except (AlreadyExists, Conflict) as refused:
        return refused
    return _set_up(setup, added.factor, added.recovery_code)


def _held(setup: Setup, kind: str) -> User:
    """Lock and return the user, and check the link again: the later of two concurrent confirmations finds a used link."""
    tenant_id = setup.ticket.tenant_id
    hold(setup.user)
    try:
        user = locked_user(tenant_id=tenant_id, user_id=setup.user.user_id)
    except NotFound as error:
        raise TicketUnknown from error
    opened = open_setup(tenant_id=tenant_id, secret=setup.secret, browser=setup.browser)
    if needs_proof(opened):
        raise ProofNeeded
    if kind not in opened.kinds:
        raise SetupOver
    return user


def _set_up(setup: Setup, factor: EnrolledFactor, recovery_code: str) -> SetUp:
    """Use up all setup links of the user: the other links were created for a user without this factor, so they must not stay valid."""
    use_up(setup.user, _PURPOSE)
    return SetUp(factor, recovery_code if factor_settings(factor.tenant_id).has_recovery_codes else "")


def _require_use(user: User, kind: str, *, adds: bool) -> None:
    if user.blocked:
        raise Conflict("The user is blocked: unblock the user first.")
    if factors_of(user) and not adds:
        raise Conflict("The user has a second factor already. With allow_multiple_enrollments, the link adds another factor.")
    if kinds_for(user, kind):
        return
    if kind:
        raise Conflict("The user cannot set up this factor: it is off, its codes have no sender, or the user has it already.")
    raise Conflict("No second factor can be set up: turn one on first, and configure the sender of its codes.")


def _mail(ticket: AccountTicket, link: SetupLink, recipient: str) -> None:
    user = ticket.user
    queue_message(
        tenant_id=user.tenant_id,
        kind=MAIL,
        channel=MAIL_CHANNEL,
        recipient=recipient,
        context={
            "url": link.address,
            "until": ticket.expires_at.isoformat(),
            "user": user_facts(user),
            "connection": {"name": user.connection.name},
        },
        language=ticket.language,
        expires_at=ticket.expires_at,
    )


def _may_add_email(user: User) -> bool:
    address = (user.email or "").casefold()
    return bool(address) and all(one.address.casefold() != address for one in factors_of(user, (EMAIL,)))


def _mark_of(browser: str) -> str:
    return hashlib.sha256(f"link:{browser}".encode()).hexdigest()[:32]


def _taken(verdict: SetUp | _Refused) -> SetUp:
    if isinstance(verdict, Exception):
        raise verdict
    return verdict
