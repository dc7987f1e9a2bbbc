"""A second factor or a passkey is added at the account page in one session, after a new proof, and only if the factor is confirmed."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings

from authapi.accounts.self_service.adding import SetupOver, add_made_key, begin_address, begin_app
from authapi.accounts.self_service.own_act import OwnAct
from authapi.factors.challenges import Prover, bound_to_session
from authapi.factors.limits import Whereabouts
from authapi.factors.relying_party import party_of
from authapi.factors.settings import remembered_factors
from authapi.login.cookies import form_token
from authapi.models import FactorChallenge
from authapi.services.account_client import account_client
from events.models import Event
from identity.factors.user_factors import MOST_FACTORS
from identity.hosts import resolve_host
from identity.models import AuditEntry, EnrolledFactor, User
from identity.services.users import update_user
from tests.authapi.browser import Browser, Page
from tests.authapi.factors.passkeys import ON as PASSKEYS_ON
from tests.authapi.factors.walks import (
    NUMBER,
    app_code,
    devices_of,
    give_address,
    give_app,
    give_key,
    messages_of,
    notices_of,
    sent_code,
    set_factors,
)
from tests.authapi.passwordless.messages import wrong
from tests.authapi.protocols.account.conftest import Account, token_of
from tests.deadlines import eventually
from tests.factories.authenticator import Authenticator
from tests.factories.models.identity import EnrolledFactorFactory
from tests.factories.sign_in import person, session_of

ALL = ("otp", "sms", "email", "webauthn-roaming", "webauthn-platform")
ADD = "two-step/add"


@pytest.fixture
def open_account(account: Account) -> Iterator[Account]:
    """The account of a user who has no factor, at a tenant that offers passkeys and all kinds of factors."""
    set_factors(account.tenant, *ALL, policy="on-request", passkeys=True)
    account.connection.options = {**account.connection.options, **PASSKEYS_ON}
    account.connection.save(update_fields=["options"])
    with override_settings(SMS_SENDER={"kind": "console"}):
        yield account
    remembered_factors.clear()


def elsewhere(account: Account, user: User | None = None) -> Browser:
    """Return a second browser with a new session: of this user, or of the given `user`."""
    browser = Browser(account.tenant, address="192.0.2.99")
    browser.cookies["session"] = session_of(user or account.user)[1]
    return browser


def sent(browser: Browser, place: str, **fields: str) -> Page:
    """Submit the form of a page, and return the answer."""
    token = form_token(browser.cookies["session"])
    return browser.post(f"/account/{place}", {"form_token": token, **fields}, Origin=f"http://{browser.host}")


def begun(browser: Browser, kind: str, **fields: str) -> Page:
    """Choose a kind of factor, and return its page."""
    chosen = sent(browser, ADD, kind=kind)
    assert chosen.location == f"/account/{ADD}/{kind}"
    page = browser.follow(chosen)
    return browser.follow(sent(browser, f"{ADD}/{kind}", **fields)) if fields else page


def secret_on(page: Page) -> str:
    found = re.search(r'class="key"><bdi>([A-Z2-7 ]+)</bdi>', page.body.decode())
    assert found is not None, page.text
    return found[1].replace(" ", "")


def options_on(page: Page) -> dict[str, Any]:
    found = re.search(r'data-options="([^"]*)"', page.body.decode())
    assert found is not None, page.text
    options: dict[str, Any] = json.loads(html.unescape(found[1]))
    return options


def key_for(browser: Browser, **how: Any) -> Authenticator:
    return Authenticator(**{"origin": f"http://{browser.host}", "rp_id": browser.host, **how})


def kinds_in(account: Account) -> list[str]:
    return sorted(EnrolledFactor.objects.of(account.tenant.pk).filter(is_confirmed=True).values_list("kind", flat=True))


def test_a_setup_cannot_be_confirmed_in_another_session_of_the_user(open_account: Account) -> None:
    mine, thief = open_account.browser, elsewhere(open_account)
    secret = secret_on(begun(mine, "totp"))
    assert thief.get(f"/account/{ADD}/totp").location == f"/account/{ADD}?failed=setup-over"
    assert sent(thief, f"{ADD}/totp", code=app_code(secret)).location == f"/account/{ADD}?failed=setup-over"
    begun(mine, "phone", phone_number=NUMBER)
    code = sent_code(open_account.tenant)
    refused = sent(thief, f"{ADD}/phone", code=code)
    assert (refused.status, "Text me a code" in refused.text) == (200, True)
    made = key_for(mine).made(options_on(mine.get("/account/passkeys/add")))
    thief.get("/account/passkeys/add")
    assert sent(thief, "passkeys/add", credential=made).status == 400
    assert kinds_in(open_account) == []
    assert sent(mine, f"{ADD}/phone", code=code).status == 200
    assert kinds_in(open_account) == ["phone", "recovery-code"]


def test_a_session_needs_a_recent_proof_of_all_factors_to_add_a_factor(open_account: Account) -> None:
    mine = open_account.browser
    secret, token = secret_on(begun(mine, "totp")), token_of(mine.get("/account/profile"))
    pages = (ADD, f"{ADD}/totp", f"{ADD}/webauthn-roaming", "passkeys/add")
    open_account.grow_old()
    for place in pages:
        assert open_account.open(place).location.startswith("/u/login?"), place
        assert open_account.send(place, token=token, kind="totp", code=app_code(secret)).location.startswith("/u/login?"), place
    open_account.grow_old(seconds=0)
    assert mine.post(f"/account/{ADD}/totp", {"code": app_code(secret)}, Origin="http://evil.example").status == 400
    give_address(open_account.user, "phone", NUMBER)
    for place in pages:
        assert mine.get(f"/account/{place}").location.startswith("/u/"), place
    assert devices_of(open_account.user) == ["phone"]
    assert FactorChallenge.objects.of(open_account.tenant.pk).filter(challenge__gt=b"").count() == 0


def test_adding_a_factor_fails_when_another_factor_is_enrolled_at_the_same_time(open_account: Account) -> None:
    mine, found = open_account.browser, []
    code, token = app_code(secret_on(begun(mine, "totp"))), token_of(mine.get("/account/profile"))

    def confirm() -> None:
        found.append(open_account.send(f"{ADD}/totp", token=token, code=code).location)
        connection.close()

    late = threading.Thread(target=confirm)
    with transaction.atomic():
        # The page has read that the user has no factor, and waits for the lock on the user.
        give_address(open_account.user, "phone", NUMBER)
        late.start()
        eventually(waits_for_lock)
    late.join()
    assert (found, devices_of(open_account.user)) == ([f"/account/{ADD}/totp"], ["phone"])


def waits_for_lock() -> bool:
    with connection.cursor() as cursor:
        # Without this statement, PostgreSQL returns the statistics that this transaction read first.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        return bool(cursor.fetchone()[0])


def test_a_new_security_key_is_accepted_only_once_and_only_for_one_account(open_account: Account) -> None:
    mine, place = open_account.browser, f"{ADD}/webauthn-roaming"
    taken = give_key(person(open_account.connection, email="bob@example.test"), mine.host)
    key, evil = key_for(mine, verifies=False), key_for(mine, origin="http://evil.example")
    page = begun(mine, "webauthn-roaming")
    assert sent(mine, place, credential=evil.made(options_on(page))).status == 400
    # The refused answer has used up the challenge.
    assert sent(mine, place, credential=key.made(options_on(page))).status == 400
    again = sent(mine, place, credential=taken.made(options_on(mine.get(f"/account/{place}"))))
    assert (again.status, "set up for an account already" in again.text) == (409, True)
    # The browser has to verify the user for a passkey. The challenge of a passkey is not valid on another page.
    unverified = key.made(options_on(mine.get("/account/passkeys/add")))
    assert sent(mine, "passkeys/add", credential=unverified).status == 400
    passkey = key_for(mine).made(options_on(mine.get("/account/passkeys/add")))
    assert sent(mine, place, credential=passkey).status == 400
    for odd in ("", "{}", "[", "x" * 30_000):
        mine.get(f"/account/{place}")
        assert sent(mine, place, credential=odd).status == 400
    assert devices_of(open_account.user) == []


def test_a_user_can_rename_only_their_own_passkeys(open_account: Account) -> None:
    mine = open_account.browser
    bob = person(open_account.connection, email="bob@example.test")
    foreign, app = (
        EnrolledFactorFactory.create(tenant_id=bob.tenant_id, user=user, kind=kind, name="Old", is_confirmed=True)
        for user, kind in ((bob, "passkey"), (open_account.user, "totp"))
    )
    EnrolledFactor.objects.of(bob.tenant_id).filter(pk=app.pk).update(kind="recovery-code")
    for device in (foreign.device, app.device, "", "dev_unknown", "x\x00"):
        assert mine.get("/account/passkeys/name", {"device": device}).location == "/account/passkeys", device
        assert sent(mine, "passkeys/name", device=device, name="Mine").location == "/account/passkeys", device
    assert set(EnrolledFactor.objects.of(bob.tenant_id).values_list("name", flat=True)) == {"Old"}


def test_a_kind_of_factor_that_the_user_could_not_use_cannot_be_added(open_account: Account) -> None:
    mine, user = open_account.browser, open_account.user
    token = token_of(open_account.open("profile"))
    set_factors(open_account.tenant, "otp", "sms", "email", policy="on-request")
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"email_verified": False})
    with override_settings(SMS_SENDER={}):
        page = mine.get(f"/account/{ADD}")
        said = [label in page.text for label in ("Authenticator app", "Code by text message", "Code by email", "Security key")]
        assert said == [True, False, False, False]
        for kind in ("phone", "email", "webauthn-roaming", "webauthn-platform", "passkey", "recovery-code", "x"):
            assert sent(mine, ADD, kind=kind).status == 200
            assert open_account.send(f"{ADD}/{kind}", token=token, code="1", credential="{}", phone_number=NUMBER).status == 404, kind
    assert mine.get("/account/passkeys/add").status == 404
    secret = secret_on(begun(mine, "totp"))
    set_factors(open_account.tenant, "otp", policy="never")
    assert mine.get(f"/account/{ADD}").status == 404
    assert open_account.send(f"{ADD}/totp", token=token, code=app_code(secret)).status == 404
    assert (kinds_in(open_account), messages_of(open_account.tenant)) == ([], [])


def test_a_kind_of_factor_disabled_after_the_page_was_loaded_cannot_be_set_up(open_account: Account) -> None:
    host, session = resolve_host(open_account.browser.host), open_account.browser_session
    assert host is not None
    own = OwnAct(host, account_client(open_account.tenant.pk), session, "192.0.2.1", "Test")
    prover = Prover(session.user, Whereabouts("192.0.2.1"), bound_to_session(session.pk))
    set_factors(open_account.tenant, "sms", policy="on-request")
    with pytest.raises(SetupOver):
        begin_app(own, prover=prover)
    with pytest.raises(SetupOver):
        begin_address(own, prover=prover, kind="email")
    with pytest.raises(SetupOver):
        add_made_key(own, prover=prover, kind="passkey", answer="{}", party=party_of(host))
    assert not EnrolledFactor.objects.of(open_account.tenant.pk).exists()


def test_an_account_has_a_limited_number_of_factors(open_account: Account) -> None:
    mine, user = open_account.browser, open_account.user
    EnrolledFactorFactory.create_batch(MOST_FACTORS, tenant_id=user.tenant_id, user=user, kind="passkey")
    for kind in ("totp", "email"):
        full = sent(mine, ADD, kind=kind)
        assert (full.status, "as many methods and passkeys" in full.text) == (409, True)
    assert sent(mine, f"{ADD}/phone", phone_number=NUMBER).status == 409
    made = key_for(mine).made(options_on(mine.get("/account/passkeys/add")))
    assert sent(mine, "passkeys/add", credential=made).status == 409
    assert (len(kinds_in(open_account)), messages_of(open_account.tenant)) == (MOST_FACTORS, [])


def test_guesses_are_limited_and_a_second_code_can_be_sent_only_after_a_pause(open_account: Account) -> None:
    mine = open_account.browser
    begun(mine, "phone", phone_number=NUMBER)
    code = sent_code(open_account.tenant)
    assert sent(mine, f"{ADD}/phone", again="1").status == 429
    refused = sent(mine, f"{ADD}/phone", code=wrong(code))
    assert (refused.status, "wrong or has expired" in refused.text) == (400, True)
    assert FactorChallenge.objects.of(open_account.tenant.pk).get().failures == 1
    secret = secret_on(begun(mine, "totp"))
    found = [sent(mine, f"{ADD}/totp", code="000000").status for _ in range(10)]
    # The wrong code for the text message also counts as a guess, so only nine further guesses are checked.
    assert found == [400] * 9 + [429]
    assert sent(mine, f"{ADD}/totp", code=app_code(secret)).status == 429
    assert kinds_in(open_account) == []


def test_adding_an_app_shows_a_recovery_code_once_and_counts_as_a_proof_in_the_session(open_account: Account) -> None:
    mine, user = open_account.browser, open_account.user
    page = begun(mine, "totp")
    secret, cookie = secret_on(page), mine.cookies["session"]
    assert secret_on(mine.get(f"/account/{ADD}/totp")) == secret
    shown = sent(mine, f"{ADD}/totp", code=f"{app_code(secret)[:3]} {app_code(secret)[3:]}")
    code = re.search(r"<code>([A-Z2-7-]+)</code>", shown.text)
    assert (shown.status, code is not None, shown.headers["cache-control"]) == (200, True, "no-store")
    assert mine.cookies["session"] != cookie
    assert [method["name"] for method in open_account.browser_session.methods] == ["pwd", "mfa", "otp"]
    # Adding the second app creates no recovery code and does not change the profile.
    second = sent(mine, f"{ADD}/totp", code=app_code(secret_on(begun(mine, "totp"))))
    assert second.location == "/account/two-step?done=added"
    listed = mine.follow(second)
    assert ("The method is added." in listed.text, code is not None and code[1] in listed.text) == (True, False)
    assert devices_of(user) == ["totp", "totp"]
    assert notices_of(open_account.tenant) == ["added", "added"]
    events = [json.loads(bytes(one.body))["data"] for one in Event.objects.filter(tenant_id=user.tenant_id, type="user.updated")]
    assert [one["object"]["multifactor"] for one in events if one["object"].get("multifactor")] == [["guardian"]]
    assert "Account" in json.dumps(events[-1]["context"])
    entries = AuditEntry.objects.filter(tenant_id=user.tenant_id, act="Added a second factor")
    assert [(entry.actor_kind, entry.actor_id) for entry in entries] == [("user", user.user_id)] * 2


def test_a_phone_and_the_verified_address_of_the_profile_are_added_by_codes(open_account: Account) -> None:
    mine, user = open_account.browser, open_account.user
    begun(mine, "phone")
    for typed in ("", "12", "+1 900 555 0100"):
        assert sent(mine, f"{ADD}/phone", phone_number=typed).status == 400
    assert messages_of(open_account.tenant) == []
    page = mine.follow(sent(mine, f"{ADD}/phone", phone_number=NUMBER))
    assert NUMBER in page.text
    assert "Text me a code" in mine.get(f"/account/{ADD}/phone", {"other": "1"}).text
    assert sent(mine, f"{ADD}/phone", code=sent_code(open_account.tenant)).status == 200
    assert sent(mine, ADD, kind="email", address="eve@example.test", phone_number="eve@example.test").status == 303
    added = sent(mine, f"{ADD}/email", code=sent_code(open_account.tenant))
    assert added.location == "/account/two-step?done=added"
    assert sorted(EnrolledFactor.objects.of(user.tenant_id).exclude(address="").values_list("address", flat=True)) == [NUMBER, user.email]
    assert sent(mine, f"{ADD}/phone", phone_number=NUMBER).status == 409
    assert "Code by email" not in mine.get(f"/account/{ADD}").text


def test_a_key_and_a_named_passkey_are_added(open_account: Account) -> None:
    mine, user = open_account.browser, open_account.user
    made = key_for(mine).made(options_on(mine.get("/account/passkeys/add")))
    added = sent(mine, "passkeys/add", credential=made)
    page = mine.follow(added)
    assert (added.location.partition("&")[0], "The passkey is added." in page.text) == ("/account/passkeys/name?done=passkey-added", True)
    device = EnrolledFactor.objects.of(user.tenant_id).get().device
    assert sent(mine, "passkeys/name", device=device, name="x" * 61).status == 400
    assert sent(mine, "passkeys/name", device=device, name="Phone").location == "/account/passkeys?done=saved"
    # A passkey is not a second factor: the profile does not mention the passkey, and the methods of the session stay the same.
    assert (open_account.told().multifactor, len(open_account.browser_session.methods)) == ([], 1)
    page = begun(mine, "webauthn-roaming")
    asked = options_on(page)
    assert (len(asked["excludeCredentials"]), asked["authenticatorSelection"]["authenticatorAttachment"]) == (1, "cross-platform")
    assert sent(mine, f"{ADD}/webauthn-roaming", credential=key_for(mine, verifies=False).made(asked)).status == 200
    factors = EnrolledFactor.objects.of(user.tenant_id).exclude(kind="recovery-code").order_by("pk")
    assert [(one.kind, one.name, one.relying_party) for one in factors] == [
        ("passkey", "Phone", mine.host),
        ("webauthn-roaming", "", mine.host),
    ]
    assert open_account.told().multifactor == ["guardian"]
    give_app(user)
    assert mine.get(f"/account/{ADD}").status == 200


def test_a_passkey_that_no_connection_accepts_is_not_offered(open_account: Account) -> None:
    mine, connection = open_account.browser, open_account.connection
    assert mine.get("/account/passkeys/add").status == 200
    connection.options = {**connection.options, "authentication_methods": {"passkey": {"enabled": False}}}
    connection.save(update_fields=["options"])
    assert [mine.get(f"/account/{page}").status for page in ("passkeys", "passkeys/add")] == [404, 404]
