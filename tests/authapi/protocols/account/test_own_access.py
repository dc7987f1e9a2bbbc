"""The pages for sessions, applications, linked logins, the download and the deletion. Each page affects only the user who requests it."""

from __future__ import annotations

import json

from authapi.login.sessions import note_client
from authapi.models import AdministrativeLine, Consent, LogoutNotice, RefreshToken, Session
from identity.models import AuditEntry, LinkedIdentity, User
from identity.services.users import link_users
from tests.authapi.browser import Browser, Page
from tests.authapi.protocols.account.conftest import Account, switch, token_of
from tests.factories.models.authapi import ConsentFactory, RefreshTokenFactory
from tests.factories.models.identity import EnrolledFactorFactory
from tests.factories.sign_in import person, session_of, web_client

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
TOLD = {
    "oidc_logout": {
        "backchannel_logout_urls": ["https://app.example.test/backchannel"],
        "backchannel_logout_initiators": {"mode": "all"},
    }
}


def other_person(account: Account) -> User:
    return person(account.connection, email="bob@example.test", name="Bob")


# --- Sessions -----------------------------------------------------------------------------------------------------------------


def test_a_user_sees_and_ends_their_own_sessions(account: Account) -> None:
    shop, _ = web_client(account.tenant, settings=TOLD)
    there, cookie = session_of(account.user, user_agent=FIREFOX, country="DE")
    note_client(there, shop, protocol="oauth")
    token = RefreshTokenFactory.create(tenant_id=account.tenant.pk, user=account.user, sid=there.pk)
    page = account.open("sessions")
    assert page.text.count("This device") == 1
    assert "Firefox on Linux" in page.text
    assert "192.0.2.1, country DE" in page.text
    assert account.send("sessions", session=there.pk).location == "/account/sessions?done=logged-out"
    assert Browser(account.tenant, cookies={"session": cookie}).get("/account").status == 302
    assert RefreshToken.objects.of(account.tenant.pk).get(pk=token.pk).revoked is not None
    assert LogoutNotice.objects.of(account.tenant.pk).get().initiator == "session-revoked"
    entry = AuditEntry.objects.filter(tenant_id=account.tenant.pk, act="Logged out another browser").get()
    assert (entry.actor_kind, entry.facts["session"]) == ("user", there.pk)


def test_a_user_cannot_end_the_current_session_or_sessions_of_other_users(account: Account) -> None:
    foreign, _ = session_of(other_person(account))
    token = token_of(account.open("profile"))
    pages = [
        account.send("sessions", token=token, session=named) for named in (foreign.pk, account.session.pk, "", "sess_unknown", "x\x00y")
    ]
    assert {(page.status, "logged out already" in page.text) for page in pages} == {(400, True)}
    assert Session.objects.of(account.tenant.pk).count() == 2


def test_logging_out_of_all_other_browsers_keeps_this_session_and_its_tokens(account: Account) -> None:
    for _ in range(2):
        session_of(account.user)
    here = RefreshTokenFactory.create(tenant_id=account.tenant.pk, user=account.user, sid=account.browser_session.pk)
    lost = RefreshTokenFactory.create(tenant_id=account.tenant.pk, user=account.user)
    foreign, _ = session_of(other_person(account))
    assert account.send("sessions", session="others").location == "/account/sessions?done=logged-out-elsewhere"
    assert Session.objects.of(account.tenant.pk).filter(user=account.user).count() == 1
    assert Session.objects.of(account.tenant.pk).filter(pk=foreign.pk).exists()
    rows = RefreshToken.objects.of(account.tenant.pk)
    assert (rows.get(pk=here.pk).revoked, rows.get(pk=lost.pk).revoked is None) == (None, False)
    assert "You are not logged in anywhere else." in account.open("sessions").text


# --- Applications -------------------------------------------------------------------------------------------------------------


def test_revoking_an_application_ends_only_the_consent_and_refresh_tokens_of_this_user(account: Account) -> None:
    shop, _ = web_client(account.tenant, name="Foreign shop", is_first_party=False)
    bob = other_person(account)
    for user in (account.user, bob):
        ConsentFactory.create(
            tenant_id=account.tenant.pk, user=user, client=shop, audience="", scopes=["openid", "email", "offline_access"]
        )
        RefreshTokenFactory.create(tenant_id=account.tenant.pk, user=user, application=shop)
    page = account.open("applications")
    assert all(text in page.text for text in ("Foreign shop", "See your email address", "Stay connected while you are away"))
    assert account.send("applications", application="unknown").status == 400
    assert account.send("applications", application=shop.client_id).location == "/account/applications?done=taken-back"
    assert [consent.user_id for consent in Consent.objects.of(account.tenant.pk)] == [bob.pk]
    alive = RefreshToken.objects.of(account.tenant.pk).filter(revoked=None)
    assert [token.user_id for token in alive] == [bob.pk]
    assert "No application has access to your account." in account.open("applications").text


# --- Linked logins ------------------------------------------------------------------------------------------------------------


def linked(account: Account, user: User, email: str) -> LinkedIdentity:
    secondary = person(account.connection, email=email)
    link_users(tenant_id=account.tenant.pk, primary_id=user.user_id, secondary_id=secondary.user_id)
    return LinkedIdentity.objects.of(account.tenant.pk).get(identifier=secondary.identifier)


def test_a_user_can_unlink_only_their_own_linked_logins_and_never_the_main_login(account: Account) -> None:
    mine, foreign = linked(account, account.user, "second@example.test"), linked(account, other_person(account), "third@example.test")
    page = account.open("identities")
    assert ("second@example.test" in page.text, "third@example.test" in page.text) == (True, False)
    for named in (str(foreign), account.user.user_id, "database|unknown", ""):
        assert account.send("identities", identity=named).status == 400, named
    assert LinkedIdentity.objects.of(account.tenant.pk).count() == 2
    assert account.send("identities", identity=str(mine)).location == "/account/identities?done=unlinked"
    assert [row.pk for row in LinkedIdentity.objects.of(account.tenant.pk)] == [foreign.pk]
    assert User.objects.of(account.tenant.pk).filter(user_id=str(mine)).exists()
    # The session began through the connection of the unlinked login, so the session ends.
    assert account.open().status == 302


# --- Activity, data, deletion -------------------------------------------------------------------------------------------------


def test_the_activity_section_shows_only_the_activity_of_this_user(account: Account) -> None:
    bob = other_person(account)
    account.send("password", present="wrong", password="Another-Horse-8", repeated="Another-Horse-8")
    _, cookie = session_of(bob)
    page = account.open("activity")
    assert ("Logged in" in page.text, "Password not changed" in page.text) == (True, True)
    assert "No activity" in Browser(account.tenant, cookies={"session": cookie}).get("/account/activity").text


def download(account: Account) -> Page:
    return account.send("data")


def test_a_download_contains_the_stored_data_of_the_user_and_no_secret(account: Account) -> None:
    shop, _ = web_client(account.tenant, name="Foreign shop")
    ConsentFactory.create(tenant_id=account.tenant.pk, user=account.user, client=shop)
    token = RefreshTokenFactory.create(tenant_id=account.tenant.pk, user=account.user, application=shop)
    factor = EnrolledFactorFactory.create(user=account.user, tenant_id=account.tenant.pk)
    factor.set_secret("JBSWY3DPEHPK3PXP")
    factor.save()
    other = other_person(account)
    page = download(account)
    assert page.status == 200
    assert page.headers["content-disposition"].startswith('attachment; filename="account-')
    assert page.headers["cache-control"] == "no-store"
    made = json.loads(page.body)
    assert (made["profile"]["email"], len(made["sessions"]), len(made["allowed_applications"])) == ("ada@example.test", 1, 1)
    assert (len(made["factors"]), made["log"][-1]["type"], made["incomplete"]) == (1, "s", [])
    session = account.session
    digest = account.told().password_credential.password_hash
    for secret in ("JBSWY3DPEHPK3PXP", factor.sealed_secret, session.digest, digest, token.token, other.user_id):
        assert secret not in page.text
    for _ in range(4):
        assert download(account).status == 200
    assert download(account).status == 429
    assert account.open("data", form_token="x").headers["content-type"].startswith("text/html")


def test_a_tenant_can_disable_the_download_and_the_deletion(account: Account) -> None:
    token = token_of(account.open("profile"))
    switch(account.tenant, data_export=False, deletion=False)
    for section in ("data", "delete"):
        assert account.open(section).status == 404
        assert account.send(section, token=token, account="ada@example.test").status == 404
    assert account.told() is not None
    page = account.open()
    assert ("/account/data" in page.text, "/account/delete" in page.text) == (False, False)


def test_an_account_is_deleted_after_its_name_was_typed_and_applications_are_notified(account: Account) -> None:
    shop, _ = web_client(account.tenant, settings=TOLD)
    note_client(account.session, shop, protocol="oauth")
    for typed in ("", "bob@example.test", "yes"):
        assert account.send("delete", account=typed).status == 400
    page = account.send("delete", account=" ADA@example.test ")
    assert (page.status, page.location) == (303, "/account/deleted")
    assert "session" not in account.browser.cookies
    assert "Your account is deleted" in account.browser.follow(page).text
    assert not User.objects.of(account.tenant.pk).filter(pk=account.user.pk).exists()
    assert LogoutNotice.objects.of(account.tenant.pk).get().initiator == "account-deleted"
    codes = AdministrativeLine.objects.of(account.tenant.pk).filter(user_id=account.user.user_id).values_list("type", flat=True)
    assert "sdu" in codes
    entry = AuditEntry.objects.filter(tenant_id=account.tenant.pk, object_type="identity.user", kind="delete").get()
    assert (entry.actor_kind, entry.actor_id) == ("user", account.user.user_id)
