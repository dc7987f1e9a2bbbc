"""Visits of the pages of a login. A visit reaches each state of a page by the same steps as a user."""

from __future__ import annotations

from collections.abc import Callable

from django.utils import timezone

from authapi.models import AccountTicket, LoginFailures
from tests.factories.sign_in import PASSWORD
from tests.peers.hosted.tickets import dead_link, ticket_link
from tests.peers.hosted.walk import Walk
from tests.peers.hosted.world import AUDIENCE, EMAIL, ORGANIZATIONS, World

Visit = Callable[[Walk], None]


def log_in(walk: Walk) -> None:
    walk.ask("plain")
    walk.look("Log in", "Forgot password?")
    walk.submit_login(password="wrong")
    walk.look("Log in", "Wrong email address or password.", status=400)
    walk.submit_login("", "")
    walk.look("Log in", "Enter your password.", status=400)
    blocked = walk.unique("blocked")
    _block(walk.world, blocked)
    walk.submit_login(blocked, "wrong")
    text = "This account is blocked after too many failed logins. If it is yours, check your email: we sent you a link to unblock it."
    walk.look("Log in", text, status=429)


def _block(world: World, email: str) -> None:
    now = timezone.now()
    row = LoginFailures(tenant_id=world.tenant.pk, connection=world.people, identifier=email, ip="127.0.0.1", count=99)
    row.blocked_at = row.last_failed_at = now
    row.save()


def log_in_in_every_way(walk: Walk) -> None:
    walk.ask("every method")
    walk.look("Log in", "Log in with a code by email")


def log_in_again(walk: Walk) -> None:
    walk.ask("plain")
    walk.submit_login()
    walk.ask("plain", prompt="login")
    walk.look("Log in", "Remove from this browser")
    walk.submit(password="wrong")
    walk.look("Log in", "Wrong email address or password.", status=400)


def sign_up(walk: Walk) -> None:
    walk.ask("plain")
    walk.follow("a[href*='/u/signup']")
    walk.look("Create your account", "Already have an account?")
    walk.submit(email="nowhere", password="short")
    walk.look("Create your account", "There is a problem", status=400)
    walk.submit(email=EMAIL, password=PASSWORD)
    walk.look("Create your account", "There is a problem", status=400)


def ask_for_reset(walk: Walk) -> None:
    walk.ask("plain")
    walk.follow("a[href*='/u/reset-password/request']")
    walk.look("Forgot your password?", "We will email you a link to set a new password.")
    walk.submit(username="ada@")
    walk.look("Forgot your password?", "There is a problem", status=400)
    walk.submit(username=walk.unique("stranger"))
    walk.look("Check your email", "No email after a few minutes? Check your spam folder, or go back and check the address.")


def reset_password(walk: Walk) -> None:
    user = walk.world.another_person(walk.unique("reset"))
    link = ticket_link(walk.world, user, AccountTicket.Purpose.PASSWORD_RESET)
    walk.open(link)
    walk.look("Set a new password", "This logs you out on all devices.")
    walk.submit(password="x", repeated="y")
    walk.look("Set a new password", "There is a problem", status=400)
    walk.submit(password=f"{PASSWORD}-2", repeated=f"{PASSWORD}-2")
    walk.look("Password changed", "You can now log in with your new password. You were logged out on all devices.")
    dead_link(walk, link, AccountTicket.Purpose.PASSWORD_RESET)


def unblock(walk: Walk) -> None:
    user = walk.world.another_person(walk.unique("unblock"))
    link = ticket_link(walk.world, user, AccountTicket.Purpose.UNBLOCK)
    walk.open(link)
    walk.look("Unblock your account", "If it was not you, close this page. The block protects your account.")
    walk.submit()
    walk.look("Your account is unblocked", "You can log in again.")
    dead_link(walk, link, AccountTicket.Purpose.UNBLOCK)


def consent(walk: Walk) -> None:
    walk.log_in_silently()
    walk.ask("foreign", audience=AUDIENCE, scope="openid profile email offline_access read:orders")
    walk.look("Allow access?", "Don't allow")


def organization(walk: Walk) -> None:
    walk.ask("one organization")
    walk.look("Choose an organization")
    walk.submit()
    walk.look("Choose an organization", "There is a problem", status=400)
    walk.log_in_silently()
    walk.ask("some organization")
    walk.look("Choose an organization", "Continue without an organization")
    assert ORGANIZATIONS[0] in walk.page.text()


def select_account(walk: Walk) -> None:
    walk.log_in_silently()
    walk.ask("plain", prompt="select_account")
    walk.look("Choose an account", "Use another account")


def log_out(walk: Walk) -> None:
    walk.log_in_silently()
    walk.open("/oidc/logout")
    walk.look("Log out?", "Stay logged in")
    walk.submit("button[value=no]")
    walk.look("You are still logged in")
    walk.open("/oidc/logout")
    walk.submit("button[value=yes]")
    walk.look("You are logged out")


def refused(walk: Walk) -> None:
    walk.open("/authorize?client_id=unknown")
    walk.look("Unknown application", status=400)
    walk.ask("plain", redirect_uri="https://elsewhere.example.test/")
    walk.look("This request cannot be completed", status=400)
    walk.open("/u/login?state=gone")
    walk.look("This login has expired", status=400)
