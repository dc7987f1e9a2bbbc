"""Visits of pages for logins without a password, of pages for old clients, and of pages that redirect between two sites."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

from django.utils import timezone

from authapi.accounts.passwordless.messages import contents_of
from authapi.accounts.passwordless.starting import LINK_PATH
from authapi.invitations.offers import NewInvitation, create_invitation
from authapi.models import Invitation, PasswordlessCode
from authapi.upstream.connection_tests import begin_test
from identity.models import Connection, Job, Organization
from tests.factories.saml_login import saml_login
from tests.factories.sign_in import PASSWORD
from tests.peers.hosted.walk import Walk
from tests.peers.hosted.world import EMAIL, TENANT, World


def code_by_email(walk: Walk) -> None:
    walk.ask("by code")
    walk.look("Log in", "Email me a code")
    walk.submit(email="nowhere")
    walk.look("Log in", "Enter an email address like name@example.com.", status=400)
    walk.submit(email=walk.unique("code"))
    walk.look("Check your email", "Send another message")
    walk.submit(code="000000")
    walk.look("Check your email", "This code is wrong or has expired. Enter the newest one, or ask for another.", status=400)
    walk.follow("button[name=again]")
    walk.look("Check your email", "There is a problem", status=429)


def code_by_text_message(walk: Walk) -> None:
    walk.ask("by text")
    walk.look("Log in", "Text me a code")
    walk.submit(phone_number="12")
    walk.look("Log in", "Enter a phone number with the country code, such as +1 555 010 0000.", status=400)
    walk.submit(phone_number=f"+4915112345{_digits(walk)}")
    walk.look("Check your phone", "Send another message")


def _digits(walk: Walk) -> str:
    """Return digits for the end of a phone number, so that no other visit uses the number."""
    return f"{100 + sum(walk.unique('').encode()) % 900}"


def link_in_another_browser(walk: Walk) -> None:
    link = _asked_link(walk)
    walk.look("Check your email", "Use another email address")
    walk.change_browser()
    walk.open(link)
    walk.look("Log in here?", "Log in only if this is your account and you asked for this login yourself.")
    walk.log_in_silently()
    walk.open(link)
    walk.look("Log in here?")


def dead_link(walk: Walk) -> None:
    world = walk.world
    link = _asked_link(walk)
    walk.open(link)
    walk.open(link)
    walk.look(_DEAD["used"], status=410)
    walk.change_browser()
    late = _asked_link(walk, "late")
    rows = PasswordlessCode.objects.of(world.tenant.pk).filter(address=walk.unique("late"))
    rows.update(expires_at=rows[0].created_at, code_expires_at=rows[0].created_at)
    walk.open(late)
    walk.look("This link has expired", status=410)
    walk.open(f"{LINK_PATH}?ticket=unknown")
    walk.look(_DEAD["unknown"], status=404)


_DEAD = {"used": "This link has already been used", "unknown": "This link is incomplete"}


def _asked_link(walk: Walk, name: str = "link") -> str:
    """Request a login by link, and return the link in the mail."""
    walk.ask("by code")
    walk.submit("button[value=link]", email=walk.unique(name))
    link = last_message(walk.world, walk.unique(name)).link
    return link if "://" in link else f"{LINK_PATH}?ticket={link}"


def last_message(world: World, address: str) -> Any:
    """Return the contents of the newest message with a code or link. Fail if no code for the address exists."""
    jobs = Job.objects.of(world.tenant.pk).filter(type=Job.Type.PASSWORDLESS_CODE).order_by("created_at", "pk")
    codes = PasswordlessCode.objects.of(world.tenant.pk).filter(address=address)
    assert codes.exists(), address
    return contents_of(list(jobs)[-1])


def link_account(walk: Walk) -> None:
    walk.log_in_silently()
    client = walk.world.clients["old"]
    form = {"client_id": client.client_id, "client_secret": walk.world.secrets["old"], "connection": walk.world.people.name}
    token = _posted(walk.world, "/oauth/ro", {**form, "grant_type": "password", "username": EMAIL, "password": PASSWORD, "scope": "openid"})
    walk.ask("old", access_token=token["access_token"])
    walk.look("Link another account?", "Link an account")


def cross_origin(walk: Walk) -> None:
    """Check the page before its script continues: load the page without the script, which would continue at once."""
    walk.open("/u/logged-out")
    form = {"client_id": walk.world.clients["old"].client_id, "credential_type": "http://auth0.com/oauth/grant-type/password-realm"}
    sent = {**form, "realm": walk.world.people.name, "username": EMAIL, "password": PASSWORD}
    found = _posted(walk.world, "/co/authenticate", sent, Origin=walk.world.origin)
    with walk.loading_without_script():
        walk.ask("old", login_ticket=found["login_ticket"], realm=walk.world.people.name)
    walk.look("Back to the application", "One moment: we are checking your browser.")


def _posted(world: World, path: str, sent: dict[str, str], **headers: str) -> dict[str, str]:
    asked = Request(world.service + path, json.dumps(sent).encode(), {"Content-Type": "application/json", **headers})
    with urlopen(asked, timeout=20) as answer:
        found: dict[str, str] = json.load(answer)
        return found


def answer_by_form(walk: Walk) -> None:
    """Check the page before its script submits the form: load the page without the script, which would submit at once."""
    walk.log_in_silently()
    with walk.loading_without_script():
        walk.ask("plain", response_mode="form_post")
    walk.look("Back to the application", "Continue")


def answer_by_message(walk: Walk) -> None:
    walk.log_in_silently()
    walk.ask("plain", response_mode="web_message", prompt="none")
    walk.look("Back to the application", "You can close this window.")


def connection_test(walk: Walk) -> None:
    connection = _provider(walk.world)
    address = begin_test(connection, base=walk.world.service)
    state = address.partition("state=")[2]
    walk.open("/u/logged-out")
    sent = {"RelayState": state, "SAMLResponse": "PHNhbWw+"}
    walk.post("/login/callback", sent)
    walk.look("The test failed", "You can close this page.")


def _provider(world: World) -> Connection:
    found = Connection.objects.of(world.tenant.pk).filter(strategy="samlp").first()
    return found or saml_login(world.tenant).connection


def log_out_of_federated_applications(walk: Walk) -> None:
    walk.log_in_silently()
    client_id = walk.world.clients["federated"].client_id
    with walk.loading_without_script():
        walk.open(f"/wsfed/{client_id}")
    with walk.loading_without_script():
        walk.open(f"/wsfed?wa=wsignout1.0&wtrealm=urn:{client_id}&wreply={walk.world.origin}/callback")
    # Without the script, the browser would load the next page after some seconds. So stop the loading.
    walk.page.send("Page.stopLoading")
    walk.page.evaluate("window.stop()")
    walk.look("Logging you out", "This takes a few seconds.")


def invitation(walk: Walk) -> None:
    walk.log_in_silently()
    other = _invite(walk, walk.unique("guest"))
    walk.ask("inviting", **other)
    walk.look("This invitation is for another account")
    guest = walk.world.another_person(walk.unique("invited"), email_verified=False)
    walk.change_browser()
    walk.log_in_silently(guest)
    walk.ask("inviting", **_invite(walk, guest.email or ""))
    walk.look("Confirm your email address", "This address is not confirmed yet. Confirm it to accept the invitation.")


def invitation_over(walk: Walk) -> None:
    tenant_id = walk.world.tenant.pk
    email = walk.unique("late-guest")
    asked = _invite(walk, email)
    row = Invitation.objects.of(tenant_id).get(email=email)
    for changes, heading in (
        ({"revoked_at": timezone.now()}, "This invitation was withdrawn"),
        ({"revoked_at": None, "expires_at": timezone.now()}, "This invitation has expired"),
        ({"accepted_at": timezone.now()}, "This invitation has already been used"),
    ):
        Invitation.objects.of(tenant_id).filter(pk=row.pk).update(**changes)
        walk.ask("inviting", **asked)
        walk.look(heading, status=walk.status())
    walk.open("/u/invitation/open?ticket=unknown")
    walk.look("This invitation does not work", status=walk.status())


def _invite(walk: Walk, email: str) -> dict[str, str]:
    """Invite an email address to an organization. Return the parameters of the link in the mail, which a client sends to `/authorize`."""
    world = walk.world
    organization = Organization.objects.of(world.tenant.pk).order_by("pk")[0]
    wanted = NewInvitation(email=email, inviter_name=TENANT, client_id=world.clients["inviting"].client_id)
    made = create_invitation(tenant_id=world.tenant.pk, organization_id=organization.pk, wanted=wanted, address=world.service)
    return {"invitation": made.ticket, "organization": organization.pk}
