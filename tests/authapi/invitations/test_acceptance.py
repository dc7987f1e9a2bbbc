"""Accepting invitations over the ASGI application: by the invited user, with a proof of the email address, and only once."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection

from authapi.invitations.acceptance import Guest, InvitationOfAnother, InvitationOver, accept_invitation
from authapi.invitations.offers import renew_invitation, resend_invitation, revoke_invitation
from authapi.models import Invitation, Session, SignIn
from events.models import Event
from identity.models import Job, OrganizationMemberRole, User
from identity.services.connections import update_connection
from identity.services.memberships import add_connection, add_members
from identity.services.organizations import delete_organization
from identity.services.roles import delete_role
from identity.services.users import create_user, update_user
from tests.authapi.browser import Browser, query_of
from tests.authapi.invitations.conftest import GUEST, ROUTE, Host
from tests.authapi.login.conftest import Login, set_client
from tests.factories.admin import new_tenant
from tests.factories.organizations import make_organization, make_role
from tests.factories.sign_in import PASSWORD, people, person, session_of, web_client


def guest(host: Host, **profile: Any) -> User:
    return person(host.login.connection, email=GUEST, name="Grace Hopper", **profile)


def elsewhere(host: Host) -> Host:
    """Return the same organization and login with another browser."""
    login = host.login
    return Host(Login(login.tenant, login.client, login.connection, login.user, Browser(login.tenant)), host.organization)


def types_of(host: Host) -> list[str]:
    return list(Event.objects.filter(tenant_id=host.tenant_id).order_by("pk").values_list("type", flat=True))


# --- A new user -----------------------------------------------------------------------------------------------------------


def test_a_user_who_signs_up_from_the_mail_gets_the_roles_and_metadata(host: Host) -> None:
    role = make_role(host.login.tenant, "editor")
    invitation = host.invite(roles=[role.pk], user_metadata={"plan": "gold"}, app_metadata={"seat": 7})
    opened = host.open_mail()
    assert opened.location.startswith(f"{ROUTE}?")
    assert query_of(opened.location) == {
        "invitation": [invitation.ticket],
        "organization": [host.organization.pk],
        "organization_name": ["acme"],
    }
    page = host.ask(invitation)
    assert "Ada invites you to <strong>Acme</strong>" in page.text
    page = host.sign_up(page)
    assert "Join Acme?" in page.text
    assert host.members() == []
    before = len(types_of(host))
    answer = host.followed(host.answer(page))
    while answer.location.startswith("/"):
        answer = host.browser.follow(answer)
    assert "code" in answer.answer, answer.text
    user = User.objects.of(host.tenant_id).get(email=GUEST)
    assert host.members() == [user]
    assert (user.email_verified, user.user_metadata, user.app_metadata) == (True, {"plan": "gold"}, {"seat": 7})
    assert list(OrganizationMemberRole.objects.of(host.tenant_id).values_list("user_id", "role_id")) == [(user.pk, role.pk)]
    assert types_of(host)[before:] == ["organization.member.added", "organization.member.role.assigned", "user.updated"]
    assert SignIn.objects.of(host.tenant_id).get(type="si").user_id == user.user_id


def test_an_existing_user_keeps_the_existing_metadata(host: Host) -> None:
    user = guest(host, user_metadata={"plan": "free"})
    invitation = host.invite(user_metadata={"plan": "gold"}, app_metadata={"admin": True})
    page = host.log_in(host.ask(invitation))
    assert "code" in finish(host, page)
    user.refresh_from_db()
    assert (user.user_metadata, user.app_metadata) == ({"plan": "free"}, {})
    assert host.members() == [user]


def finish(host: Host, page: Any) -> dict[str, str]:
    """Accept the invitation, and return the answer to the application."""
    answer = host.answer(page)
    while answer.status in (302, 303) and answer.location.startswith("/u/"):
        answer = host.browser.follow(answer)
    return answer.answer if answer.status in (302, 303) else {"page": answer.text}


# --- Only the invited address ---------------------------------------------------------------------------------------------


def test_the_form_cannot_change_the_address_at_the_sign_up_or_at_the_login(host: Host) -> None:
    invitation = host.invite()
    page = host.ask(invitation)
    assert f'value="{GUEST}"' in page.text
    assert "readonly" in page.text
    host.sign_up(page, email="mallory@example.test", password="Another-Horse-8-Here")
    assert User.objects.of(host.tenant_id).filter(email="mallory@example.test").count() == 0
    other = elsewhere(host)
    page = other.log_in(other.ask(invitation), username="ada@example.test")
    # Ada's password does not match the account of the invited address.
    assert page.status == 400
    assert other.members() == []


def test_a_user_of_another_account_cannot_accept_and_is_asked_to_switch(host: Host) -> None:
    host.login.begin_session()
    page = host.ask(host.invite())
    assert "This invitation is for another account" in page.text
    assert "ada@example.test" in page.text
    refused = host.answer(page, "accept")
    assert refused.status == 403
    assert host.members() == []
    line = SignIn.objects.of(host.tenant_id).get(type="fi")
    assert "another email address" in line.description


def test_declining_redirects_the_user_to_the_application_and_keeps_the_invitation_valid(host: Host) -> None:
    guest(host)
    invitation = host.invite()
    answer = host.answer(host.log_in(host.ask(invitation)), "decline")
    assert answer.answer["error"] == "access_denied"
    assert answer.answer["error_description"] == "User did not accept the invitation"
    invitation.refresh_from_db()
    assert invitation.accepted_at is None


def test_an_account_that_replaces_the_user_between_two_steps_cannot_accept(host: Host) -> None:
    user = guest(host)
    page = host.log_in(host.ask(host.invite()))
    assert "Join Acme?" in page.text
    # Another user logs in, in another window of the same browser.
    host.login.log_in(host.login.ask(prompt="login"))
    again = host.answer(page)
    assert "This invitation is for another account" in again.text
    assert host.members() == []
    # The attempt also fails with the id of the invited user in the form.
    assert host.answer(again, user=user.user_id).status == 200
    assert host.members() == []


# --- The proof of the address ---------------------------------------------------------------------------------------------


def test_the_ticket_alone_does_not_prove_access_to_the_mailbox(host: Host) -> None:
    invitation = host.invite()
    # The attacker has the ticket from a log of the application or from the interface, but not the mail.
    page = host.sign_up(host.ask(invitation))
    assert "Confirm your email address" in page.text
    assert host.answer(page, "accept").status == 403
    assert host.members() == []
    user = User.objects.of(host.tenant_id).get(email=GUEST)
    assert not user.email_verified
    # The owner of the mailbox confirms the address, and can then accept the invitation.
    update_user(tenant_id=host.tenant_id, user_id=user.user_id, changes={"email_verified": True})
    assert "code" in finish(host, host.ask(invitation))
    assert host.members() == [user]


def test_opening_the_mail_does_not_verify_an_account_that_an_attacker_created(host: Host) -> None:
    attacker = create_user(tenant_id=host.tenant_id, connection=host.login.connection, email=GUEST, email_verified=False, password=PASSWORD)
    # The attacker plants a session of the attacker's account in the browser of the invited user, who then opens the mail.
    planted = Login(host.login.tenant, host.login.client, host.login.connection, attacker, host.browser)
    planted.log_in(planted.ask(), identifier=GUEST)
    invitation = host.invite()
    host.open_mail()
    page = host.ask(invitation)
    assert "Confirm your email address" in page.text
    assert host.answer(page, "accept").status == 403
    attacker.refresh_from_db()
    assert not attacker.email_verified
    assert host.members() == []


def test_a_mark_is_valid_only_for_its_invitation_and_until_the_next_mail(host: Host) -> None:
    first = host.invite()
    host.open_mail()
    second = host.invite()
    assert "Confirm your email address" in host.sign_up(host.ask(second)).text
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=2), tick=False):
        resend_invitation(tenant_id=host.tenant_id, organization_id=host.organization.pk, invitation_id=first.pk)
        assert "Confirm your email address" in host.log_in(host.ask(first, prompt="login"), username=GUEST).text
    assert host.members() == []


def test_confirmation_mails_are_limited_and_sent_only_to_the_invited_address(host: Host) -> None:
    invitation = host.invite()
    page = host.sign_up(host.ask(invitation))
    answers = [host.answer(page, "mail") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert f"We sent an email to {GUEST}" in answers[0].text


def test_opening_the_mail_does_not_use_up_the_invitation(host: Host) -> None:
    invitation = host.invite()
    secret = host.mailed_secret()
    # A mail scanner opens the link several times, in its own browser.
    for _ in range(3):
        page = Browser(host.login.tenant).get("/u/invitation/open", {"ticket": secret})
        assert page.status == 302
        assert page.headers["referrer-policy"] == "no-referrer"
    assert "Join Acme?" in host.sign_up(marked(host, secret, invitation)).text


def marked(host: Host, secret: str, invitation: Invitation) -> Any:
    host.browser.get("/u/invitation/open", {"ticket": secret})
    return host.ask(invitation)


# --- Used, revoked and expired invitations ------------------------------------------------------------------------------------


def test_a_used_invitation_shows_an_error_except_to_the_user_who_accepted_it(host: Host) -> None:
    guest(host)
    invitation = host.invite()
    ticket = invitation.ticket
    secret = host.mailed_secret()
    assert "code" in finish(host, host.log_in(host.ask(invitation)))
    # The user presses back and tries again in the same browser.
    assert "code" in host.ask(ticket).answer
    stranger = elsewhere(host)
    page = stranger.ask(ticket)
    assert page.status == 410
    assert "This invitation has already been used" in page.text
    assert f'href="{ROUTE}?iss=' in page.text
    assert host.browser.get("/u/invitation/open", {"ticket": secret}).status == 410
    invitation.refresh_from_db()
    assert invitation.ticket == ""


def test_two_accounts_with_the_invited_address_cannot_both_accept(host: Host) -> None:
    user = guest(host)
    other = people(host.login.tenant, host.login.client, name="others")
    add_connection(tenant_id=host.tenant_id, organization_id=host.organization.pk, connection_id=other.pk)
    rival = person(other, email=GUEST)
    invitation = host.invite()
    first = host.log_in(host.ask(invitation))
    second = Host(Login(host.login.tenant, host.login.client, other, rival, Browser(host.login.tenant)), host.organization)
    second.browser.cookies["session"] = session_of(rival)[1]
    late = second.ask(invitation)
    assert "Join Acme?" in late.text
    finish(host, first)
    lost = second.followed(second.answer(late))
    assert lost.status == 410
    assert host.members() == [user]


@pytest.mark.parametrize(("days", "state", "words"), [(8, "expired", "expired"), (0, "revoked", "withdrawn")])
def test_an_ended_invitation_shows_an_error_before_the_user_logs_in(host: Host, days: int, state: str, words: str) -> None:
    invitation = host.invite()
    ticket, secret = invitation.ticket, host.mailed_secret()
    if state == "revoked":
        revoke_invitation(tenant_id=host.tenant_id, organization_id=host.organization.pk, invitation_id=invitation.pk)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=days), tick=False):
        page = host.ask(ticket)
        assert (page.status, words in page.text) == (410, True)
        assert f'href="{ROUTE}?iss=' in page.text
        mailed = host.browser.get("/u/invitation/open", {"ticket": secret})
        assert (mailed.status, words in mailed.text) == (410, True)
        assert "invited" not in host.browser.cookies


def test_an_invitation_that_is_revoked_while_the_page_is_open_cannot_be_accepted(host: Host) -> None:
    guest(host)
    invitation = host.invite()
    page = host.log_in(host.ask(invitation))
    revoke_invitation(tenant_id=host.tenant_id, organization_id=host.organization.pk, invitation_id=invitation.pk)
    assert "withdrawn" in host.followed(host.answer(page)).text
    assert host.members() == []
    form = host.ask(host.invite())
    Invitation.objects.of(host.tenant_id).update(expires_at=datetime.now(UTC))
    assert "expired" in host.log_in(form, username=GUEST).text


# --- Invitations of other tenants, organizations and clients ------------------------------------------------------------------


def test_an_invitation_of_another_tenant_or_organization_or_client_is_unknown(host: Host) -> None:
    other_organization = make_organization(host.login.tenant, "other")
    add_connection(tenant_id=host.tenant_id, organization_id=other_organization.pk, connection_id=host.login.connection.pk)
    other_client, _ = web_client(host.login.tenant, settings={"organization_usage": "allow", "initiate_login_uri": ROUTE})
    foreign = Host(foreign_login(), host.organization)
    ticket = host.invite().ticket
    for page in (
        host.ask(ticket, organization=other_organization.pk),
        host.ask(ticket, client_id=other_client.client_id),
        host.ask("uinv_0123456789abcdef"),
        host.ask("x" * 500),
        host.ask(host.invite().pk),
        foreign.ask(ticket),
    ):
        assert page.status == 404, page.text
        assert "This invitation does not work" in page.text
        assert GUEST not in page.text
    assert Browser(foreign.login.tenant).get("/u/invitation/open", {"ticket": host.mailed_secret()}).status == 404


def foreign_login() -> Login:
    tenant = new_tenant()
    client, _ = web_client(tenant, settings={"organization_usage": "allow", "initiate_login_uri": ROUTE})
    connection = people(tenant, client)
    return Login(tenant, client, connection, person(connection), Browser(tenant))


def test_an_invitation_requires_its_organization_in_the_request(host: Host) -> None:
    answer = host.ask(host.invite(), organization=None)
    assert answer.answer["error_description"] == "parameter organization is required with the parameter invitation"


def test_a_silent_request_shows_no_page_of_an_invitation(host: Host) -> None:
    guest(host)
    invitation = host.invite()
    assert host.ask(invitation, prompt="none").answer["error"] == "login_required"
    host.log_in(host.ask(invitation))
    assert host.ask(invitation, prompt="none").answer["error"] == "interaction_required"


def test_an_invitation_for_a_connection_cannot_be_accepted_through_another_connection(host: Host) -> None:
    other = people(host.login.tenant, host.login.client, name="others")
    add_connection(tenant_id=host.tenant_id, organization_id=host.organization.pk, connection_id=other.pk)
    guest(host)
    invitation = host.invite(connection_id=other.pk)
    host.log_in(host.ask(invitation), username=GUEST)
    assert host.members() == []
    # A session of the other connection is not valid for this login.
    session = Login(host.login.tenant, host.login.client, host.login.connection, host.login.user, host.browser)
    session.log_in(session.ask(), identifier=GUEST)
    assert "Join Acme?" not in host.ask(invitation).text


# --- Changes during an invitation -------------------------------------------------------------------------------------------


def test_a_deleted_role_does_not_prevent_the_acceptance(host: Host) -> None:
    kept, gone = make_role(host.login.tenant, "kept"), make_role(host.login.tenant, "gone")
    user = guest(host)
    invitation = host.invite(roles=[kept.pk, gone.pk])
    delete_role(tenant_id=host.tenant_id, role_id=gone.pk)
    assert "code" in finish(host, host.log_in(host.ask(invitation)))
    assert list(OrganizationMemberRole.objects.of(host.tenant_id).values_list("user_id", "role_id")) == [(user.pk, kept.pk)]


def test_an_invitation_is_deleted_with_its_organization(host: Host) -> None:
    guest(host)
    invitation = host.invite()
    page = host.log_in(host.ask(invitation))
    delete_organization(tenant_id=host.tenant_id, organization_id=host.organization.pk)
    assert not Invitation.objects.of(host.tenant_id).exists()
    assert host.followed(host.answer(page)).status == 404
    assert host.ask(invitation).status == 404


def test_a_member_who_accepts_an_invitation_gets_its_roles(host: Host) -> None:
    role = make_role(host.login.tenant, "editor")
    user = guest(host)
    add_members(tenant_id=host.tenant_id, organization_id=host.organization.pk, user_ids=[user.user_id])
    assert "code" in finish(host, host.log_in(host.ask(host.invite(roles=[role.pk]))))
    assert host.members() == [user]
    assert OrganizationMemberRole.objects.of(host.tenant_id).filter(user=user, role=role).exists()


# --- Contents of pages --------------------------------------------------------------------------------------------------------


def test_the_first_page_does_not_reveal_whether_the_invited_address_has_an_account(host: Host) -> None:
    unknown = host.ask(host.invite())
    guest(host)
    known = host.ask(host.invite())

    def visible(page: Any) -> str:
        return str(page.text.replace(page.fields()["state"], ""))

    assert (unknown.status, visible(unknown)) == (known.status, visible(known))


def test_names_are_escaped_on_every_page(host: Host) -> None:
    guest(host)
    evil = '<script>alert(1)</script><a href="https://evil.test">'
    page = host.ask(host.invite(inviter_name=evil))
    asked = host.log_in(page)
    for shown in (page, asked):
        assert b"<script>alert" not in shown.body
        assert b"&lt;script&gt;" in shown.body
        assert "script-src 'unsafe" not in shown.headers["content-security-policy"]


def test_a_guest_who_opened_the_mail_can_sign_up_despite_disabled_sign_ups(host: Host) -> None:
    update_connection(tenant_id=host.tenant_id, connection_id=host.login.connection.pk, changes={"options": {"disable_signup": True}})
    invitation = host.invite()
    assert "/u/signup" not in host.ask(invitation).text
    host.sign_up(host.ask(invitation))
    assert not User.objects.of(host.tenant_id).filter(email=GUEST).exists()
    host.open_mail()
    assert "Join Acme?" in host.sign_up(host.ask(invitation)).text


def test_an_invitation_to_a_client_that_denies_organizations_is_refused(host: Host) -> None:
    invitation = host.invite()
    set_client(host.login, settings={"organization_usage": "deny"})
    assert host.ask(invitation).answer["error"] == "invalid_request"


def test_only_one_of_two_simultaneous_acceptances_succeeds(host: Host) -> None:
    first = guest(host)
    other = people(host.login.tenant, host.login.client, name="others")
    second = person(other, email=GUEST)
    invitation, start = host.invite(), threading.Barrier(2)
    outcomes: list[str] = []

    def accept(user: User) -> None:
        start.wait()
        try:
            accept_invitation(invitation, Guest(user, user.connection))
            outcomes.append("accepted")
        except InvitationOver:
            outcomes.append("over")
        finally:
            connection.close()

    threads = [threading.Thread(target=accept, args=(user,)) for user in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["accepted", "over"]
    assert len(host.members()) == 1


def test_an_acceptance_repeats_the_checks_that_the_page_has_made(host: Host) -> None:
    user, other = guest(host), people(host.login.tenant, host.login.client, name="others")
    add_connection(tenant_id=host.tenant_id, organization_id=host.organization.pk, connection_id=other.pk)
    bound = host.invite(connection_id=other.pk)
    with pytest.raises(InvitationOfAnother):
        accept_invitation(bound, Guest(user, user.connection))
    shown = host.invite()
    renew_invitation(tenant_id=host.tenant_id, organization_id=host.organization.pk, invitation_id=shown.pk)
    with pytest.raises(InvitationOver):
        accept_invitation(shown, Guest(user, user.connection))
    update_user(tenant_id=host.tenant_id, user_id=user.user_id, changes={"blocked": True})
    with pytest.raises(InvitationOver):
        accept_invitation(host.invite(), Guest(user, user.connection))
    assert host.members() == []


def test_no_user_logs_in_with_an_invitation_that_expires_while_the_form_is_open(host: Host) -> None:
    guest(host)
    form = host.ask(host.invite())
    Invitation.objects.of(host.tenant_id).update(expires_at=datetime.now(UTC))
    assert "expired" in host.log_in(form, username=GUEST).text
    assert not Session.objects.of(host.tenant_id).exists()


def test_a_guest_who_opened_the_mail_gets_no_mail_to_verify_the_address(host: Host, settings: Any) -> None:
    settings.MAIL_REACHES_PEOPLE = True
    jobs = Job.objects.of(host.tenant_id).filter(type=Job.Type.VERIFICATION_EMAIL)
    invitation = host.invite()
    host.open_mail()
    host.sign_up(host.ask(invitation))
    assert not jobs.exists()
    other = elsewhere(host)
    other.sign_up(other.ask(host.invite("hedy@example.test")))
    assert jobs.count() == 1
