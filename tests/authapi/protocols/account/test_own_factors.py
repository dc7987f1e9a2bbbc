"""Second factors and passkeys at the account page: users manage only their own factors. Sensitive sections require the second
factor, unless the policy of the tenant is `never`.
"""

from __future__ import annotations

import re

import pytest

from authapi.factors.settings import remembered_factors
from authapi.login.sessions import add_proof
from authapi.models import SecondFactorPolicy, TenantSettings
from foundation.secrets.random_secrets import digest_of
from identity.factors.user_factors import factors_of
from identity.models import AuditEntry, EnrolledFactor, User
from tests.authapi.protocols.account.conftest import Account, token_of
from tests.factories.models.authapi import RememberedBrowserFactory
from tests.factories.models.identity import EnrolledFactorFactory
from tests.factories.sign_in import person

Kind = EnrolledFactor.Kind


def set_factors(account: Account, policy: SecondFactorPolicy = SecondFactorPolicy.ON_REQUEST) -> None:
    values = {"factors": ["otp", "recovery-code"], "passkeys": True, "policy": policy.value}
    TenantSettings.objects.of(account.tenant.pk).update(second_factors=values)
    remembered_factors.forget(account.tenant.pk)


def factor(user: User, kind: Kind = Kind.TOTP, name: str = "Phone of Ada") -> EnrolledFactor:
    made = EnrolledFactorFactory.create(tenant_id=user.tenant_id, user=user, kind=kind, name=name)
    return made


def pass_second_step(account: Account) -> None:
    cookie = add_proof(account.browser_session, ("mfa", "otp"))
    assert cookie is not None
    account.browser.cookies["session"] = cookie


@pytest.fixture
def strong(account: Account) -> Account:
    """The account of a user with an authenticator app. The tenant requires a second factor only if an application requests it."""
    set_factors(account)
    factor(account.user)
    return account


def test_the_first_proof_does_not_open_the_page_if_a_second_factor_is_required(strong: Account) -> None:
    set_factors(strong, SecondFactorPolicy.ALWAYS)
    assert [strong.open(name).location.partition("?")[0] for name in ("", "sessions", "password")] == ["/u/mfa"] * 3
    pass_second_step(strong)
    assert strong.open().status == 200


def test_sensitive_sections_require_the_second_factor_even_in_a_remembered_browser(strong: Account) -> None:
    RememberedBrowserFactory.create(tenant_id=strong.tenant.pk, user=strong.user, digest=digest_of("the-browser"))
    strong.browser.cookies["trusted"] = "the-browser"
    assert strong.open("sessions").status == 200
    token = token_of(strong.open("two-step"))
    device = EnrolledFactor.objects.of(strong.tenant.pk).get().device
    assert strong.send("two-step", token=token, act="remove", device=device).location.startswith("/u/login?")
    assert strong.open("password").location.startswith("/u/login?")
    assert len(factors_of(strong.user)) == 1
    form = strong.browser.follow(strong.open("password"))
    answer = strong.browser.submit(form, username="ada@example.test", password="Correct-Horse-7-Battery")
    assert answer.location.startswith("/u/mfa?")
    pass_second_step(strong)
    assert strong.open("password").status == 200


def test_sensitive_sections_require_no_second_factor_if_the_policy_of_the_tenant_is_never(strong: Account) -> None:
    set_factors(strong, SecondFactorPolicy.NEVER)
    assert strong.open("password").status == 200


def test_a_user_can_rename_and_remove_only_own_factors_of_the_open_section(strong: Account) -> None:
    pass_second_step(strong)
    bob = person(strong.connection, email="bob@example.test")
    mine, passkey, foreign = factors_of(strong.user)[0], factor(strong.user, Kind.PASSKEY, "Key"), factor(bob)
    page = strong.open("two-step")
    assert ("Phone of Ada" in page.text, "Authenticator app" in page.text, "Key" in page.text) == (True, True, False)
    for device in (foreign.device, passkey.device, "", "dev_unknown", "x\x00"):
        for act in ("remove", "rename"):
            assert strong.send("two-step", act=act, device=device, name="Mine").status == 400, device
    assert strong.send("two-step", act="rename", device=mine.device, name="x" * 61).status == 400
    assert strong.send("two-step", act="rename", device=mine.device, name="Work").location == "/account/two-step?done=saved"
    assert strong.send("passkeys", act="remove", device=passkey.device).location == "/account/passkeys?done=removed"
    assert strong.send("two-step", act="remove", device=mine.device).location == "/account/two-step?done=removed"
    assert [row.pk for row in EnrolledFactor.objects.of(strong.tenant.pk)] == [foreign.pk]
    entry = AuditEntry.objects.filter(tenant_id=strong.tenant.pk, act="Removed a second factor").get()
    assert (entry.actor_kind, entry.actor_id, entry.facts["name"]) == ("user", strong.user.user_id, "Work")
    assert AuditEntry.objects.get(tenant_id=strong.tenant.pk, act="Removed a passkey").facts["name"] == "Key"


def test_a_new_recovery_code_is_shown_once_and_requires_a_factor(strong: Account) -> None:
    pass_second_step(strong)
    page = strong.send("two-step", act="recovery-code")
    code = re.search(r"<code>([A-Z2-7-]+)</code>", page.text)
    assert (page.status, code is not None, page.headers["cache-control"]) == (200, True, "no-store")
    row = EnrolledFactor.objects.of(strong.tenant.pk).get(kind=Kind.RECOVERY_CODE)
    assert code is not None
    assert code[1] not in row.code_digest
    assert code[1] not in strong.open("two-step").text
    mine = factors_of(strong.user)[0]
    strong.send("two-step", act="remove", device=mine.device)
    assert not EnrolledFactor.objects.of(strong.tenant.pk).exists()
    token = token_of(strong.open("profile"))
    assert strong.send("two-step", token=token, act="recovery-code").status == 400
