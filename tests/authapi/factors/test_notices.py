"""Users get one mail about each changed factor, unless the tenant has switched these mails off."""

from __future__ import annotations

from django.core import mail
from django.test import override_settings

from identity.factors.user_factors import remove_all_factors, remove_factor
from identity.messages.templates import save_template
from identity.models import EnrolledFactor, Job, User
from identity.services.jobs import run_job
from identity.services.users import update_user
from tests.authapi.factors.walks import devices_of, give_address, give_app, notices_of
from tests.authapi.factors.walks import login as login
from tests.authapi.login.conftest import Login


def device_of(user: User, kind: str) -> str:
    return EnrolledFactor.objects.of(user.tenant_id).get(user=user, kind=kind).device


def test_a_user_gets_one_mail_about_each_change(login: Login) -> None:
    user = login.user
    give_app(user)
    give_address(user, "phone", "+4915112345678")
    remove_factor(tenant_id=user.tenant_id, user_id=user.user_id, device=device_of(user, "phone"))
    # The second call removes nothing, because the user has no factors left, and so sends no mail.
    for _ in range(2):
        remove_all_factors(tenant_id=user.tenant_id, user_id=user.user_id)
    assert notices_of(login.tenant) == ["added", "added", "removed", "removed"]
    jobs = Job.objects.of(login.tenant.pk).filter(parameters__kind="factor_notice").order_by("created_at", "pk")
    for job in (jobs[0], jobs[0], jobs[2]):
        run_job(job.pk)
    added, removed = mail.outbox[-2:]
    assert (added.to, len(mail.outbox)) == (["ada@example.test"], 2)
    assert "was added to your account" in str(added.body)
    assert "If this was not you, change your password" in str(added.body)
    assert "was removed from your account" in str(removed.body)


def test_a_change_succeeds_when_no_mail_can_be_sent(login: Login) -> None:
    user = login.user
    with override_settings(MAIL_IS_CONFIGURED=False):
        give_app(user)
    save_template(tenant_id=user.tenant_id, name="factor_notice", values={"is_enabled": False})
    give_address(user, "phone", "+4915112345678")
    save_template(tenant_id=user.tenant_id, name="factor_notice", values={"is_enabled": True})
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"email": "", "username": "ada"})
    user.refresh_from_db()
    give_address(user, "email", "elsewhere@example.test")
    assert (devices_of(user), notices_of(login.tenant)) == (["email", "phone", "totp"], [])
