"""The pages on which a user adds a factor or a passkey, for tests that check the structure of pages."""

from __future__ import annotations

from django.test import override_settings

from authapi.login.cookies import form_token
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import EnrolledFactor
from tests.authapi.browser import Page
from tests.authapi.factors.passkeys import ON as PASSKEYS_ON
from tests.authapi.factors.walks import NUMBER, app_code, set_factors
from tests.authapi.login.conftest import Login
from tests.authapi.protocols.account.test_adding import ADD, ALL, secret_on
from tests.factories.models.identity import EnrolledFactorFactory


def adding_pages(visit: Login) -> list[Page]:
    """Return the pages on which a user adds a factor or a passkey: every choice, and both steps of a phone, an app and a passkey."""
    update_tenant_settings(tenant_id=visit.tenant.pk, changes={"account_page": {"enabled": True}})
    set_factors(visit.tenant, *ALL, policy="on-request", passkeys=True)
    visit.connection.options = {**visit.connection.options, **PASSKEYS_ON}
    visit.connection.save(update_fields=["options"])
    visit.begin_session()
    with override_settings(SMS_SENDER={"kind": "console"}):
        return _pages(visit)


def _pages(visit: Login) -> list[Page]:
    browser = visit.browser

    def sent(place: str, **fields: str) -> Page:
        fields["form_token"] = form_token(browser.cookies["session"])
        page = browser.post(f"/account/{place}", fields, Origin=f"http://{browser.host}")
        return browser.follow(page) if page.status == 303 else page

    keys = [sent(ADD, kind=kind) for kind in ("webauthn-roaming", "webauthn-platform")]
    keys += [sent(f"{ADD}/webauthn-roaming", credential="{}"), browser.get("/account/passkeys/add")]
    phone = [sent(ADD, kind="phone"), sent(f"{ADD}/phone", phone_number="12"), sent(f"{ADD}/phone", phone_number=NUMBER)]
    phone += [sent(f"{ADD}/phone", code="000000"), sent(f"{ADD}/phone", again="1")]
    app, mailed = sent(ADD, kind="totp"), sent(ADD, kind="email")
    shown = sent(f"{ADD}/totp", code=app_code(secret_on(app)))
    assert "This is your new recovery code." in shown.text
    EnrolledFactorFactory.create(tenant_id=visit.tenant.pk, user=visit.user, kind="passkey")
    device = EnrolledFactor.objects.of(visit.tenant.pk).get(kind="passkey").device
    named = [browser.get("/account/passkeys/name", {"device": device}), sent("passkeys/name", device=device, name="x" * 61)]
    lists = [browser.get(f"/account/{place}") for place in (ADD, "two-step", "passkeys")]
    pages = [*keys, *phone, app, mailed, shown, *named, *lists]
    assert [page.status for page in pages] == [200, 200, 400, 200, 200, 400, 200, 400, 429, 200, 200, 200, 200, 400, 200, 200, 200]
    # The pages must be small, because users on a slow connection wait for the whole page.
    assert max(len(page.body) for page in pages) < 30_000
    return pages
