"""Visits of the pages behind links in mails: links that are valid, used, expired or incomplete."""

from __future__ import annotations

from datetime import timedelta

from authapi.accounts.account_mails import RESET_PATH, UNBLOCK_PATH
from authapi.models import AccountTicket
from authapi.services import account_tickets
from identity.mail import verification
from identity.models import EmailTicket, User
from identity.services.users import update_user
from tests.peers.hosted.walk import Walk
from tests.peers.hosted.world import World

_PATHS = {AccountTicket.Purpose.PASSWORD_RESET: RESET_PATH, AccountTicket.Purpose.UNBLOCK: UNBLOCK_PATH}
_INCOMPLETE = "Open the link in the email again, or copy its whole address."


def ticket_link(world: World, user: User, purpose: AccountTicket.Purpose, *, life: timedelta | None = None) -> str:
    """Return a link as a mail contains it, but without a language. So the page has the language of the browser."""
    client = world.clients["plain"]
    _, secret = account_tickets.issue(user=user, purpose=purpose, client=client, email=user.email or "", life=life)
    return f"{_PATHS[purpose]}?ticket={secret}"


def dead_link(walk: Walk, used: str, purpose: AccountTicket.Purpose) -> None:
    """Visit a used link, an expired link, and an incomplete link."""
    walk.open(used)
    walk.look("This link has already been used", status=410)
    user = walk.world.another_person(walk.unique(f"late-{purpose}"))
    walk.open(ticket_link(walk.world, user, purpose, life=timedelta(seconds=-1)))
    walk.look("This link has expired", status=410)
    walk.open(f"{_PATHS[purpose]}?ticket=unknown")
    walk.look("This link is incomplete", _INCOMPLETE, status=404)


def verify_email(walk: Walk) -> None:
    link = _verification_link(walk, "verify")
    walk.open(link)
    walk.look("Confirm your email address", "If this is not your address, close this page.")
    walk.submit()
    walk.look("Email address confirmed")
    walk.open(link)
    walk.look("This link has already been used", "The address is already confirmed. There is nothing left to do.", status=410)
    walk.open(_verification_link(walk, "moved", has_moved=True))
    walk.look("This link has expired", status=410)
    walk.open(f"{verification.PATH}?ticket=unknown")
    walk.look("This link is incomplete", _INCOMPLETE, status=404)


def _verification_link(walk: Walk, name: str, *, has_moved: bool = False) -> str:
    world = walk.world
    user = world.another_person(walk.unique(name), email_verified=False)
    verification.issue_ticket(
        verification.start_verification(tenant_id=world.tenant.pk, user_id=user.user_id, client_id=world.clients["plain"].client_id)
    )
    ticket = EmailTicket.objects.of(world.tenant.pk).get(user=user)
    # The ticket contains the language of the user. Remove it, so that the page has the language of the browser.
    EmailTicket.objects.of(world.tenant.pk).filter(pk=ticket.pk).update(language="")
    if has_moved:
        update_user(tenant_id=world.tenant.pk, user_id=user.user_id, changes={"email": walk.unique("elsewhere")})
    return f"{verification.PATH}?ticket={verification.token_of(ticket)}"
