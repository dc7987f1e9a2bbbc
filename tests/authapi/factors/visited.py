"""Every page of second factors in each of its states, for tests that check the structure of pages."""

from __future__ import annotations

from django.test import override_settings

from authapi.accounts.setup_links import PATH, create_setup_link
from identity.models import EnrolledFactor
from tests.authapi.browser import Page
from tests.authapi.factors.test_enrolment_page import secret_on
from tests.authapi.factors.walks import NUMBER, Walk, app_code, give_address, give_app, give_key, set_factors
from tests.authapi.login.conftest import Login

_KINDS = ("phone", "email", "webauthn-roaming", "webauthn-platform", "totp")
_EVERY = ("otp", "sms", "email", "webauthn-roaming", "webauthn-platform")


def challenge_pages(visit: Login) -> list[Page]:
    """Return the challenge pages: each method, wrong answers, an early request for a new code, and the new recovery code."""
    set_factors(visit.tenant, *_EVERY)
    _, code = give_app(visit.user)
    for kind, address in (("phone", NUMBER), ("email", "ada@example.test")):
        give_address(visit.user, kind, address)
    for kind in ("webauthn-roaming", "webauthn-platform"):
        give_key(visit.user, visit.browser.host, kind)
    walk = Walk(visit)
    with override_settings(SMS_SENDER={"kind": "console"}):
        state = walk.to_second().fields()["state"]
        rows = EnrolledFactor.objects.of(visit.tenant.pk)
        devices = [rows.get(kind=kind).device for kind in ("phone", "email")]
        ways = ("totp", *devices, "webauthn-roaming", "webauthn-platform", "recovery-code", "list")
        pages = [walk.browser.get("/u/mfa", {"state": state, "method": way}) for way in ways]
        wrong = [walk.browser.submit(page, code="000000") for page in (pages[0], pages[1], pages[5])]
        wrong += [walk.browser.submit(pages[1], again="1"), walk.browser.submit(pages[3], credential="{}")]
        shown = walk.give(pages[5], code=code)
        assert "Save your recovery code" in shown.text
        return [*pages, *wrong, shown, walk.browser.submit(shown)]


def enrolment_pages(visit: Login) -> list[Page]:
    """Return the pages that set up a factor: the list of factors, each kind of factor, refused answers, and the recovery code."""
    set_factors(visit.tenant, *_EVERY, policy="always")
    walk = Walk(visit)
    with override_settings(SMS_SENDER={"kind": "console"}):
        listed = walk.to_second()
        keys = [walk.give(listed, kind=kind) for kind in ("webauthn-roaming", "webauthn-platform")]
        mailed, asked = walk.give(listed, kind="email"), walk.give(listed, kind="phone")
        odd, sent = walk.browser.submit(asked, phone_number="12"), walk.give(asked, phone_number=NUMBER)
        app = walk.give(listed, kind="totp")
        wrong = walk.browser.submit(app, code="000000")
        shown = walk.give(app, code=app_code(secret_on(app)))
        return [listed, *keys, mailed, asked, odd, sent, app, wrong, shown]


def setup_pages(visit: Login) -> list[Page]:
    """Return the pages of setup links: the list of factors, each kind, refused answers, the recovery code, a used and an unknown link."""
    set_factors(visit.tenant, *_EVERY)
    secret = create_setup_link(user=visit.user).address.partition("?ticket=")[2]
    link = {"ticket": secret, "at": ""}
    with override_settings(SMS_SENDER={"kind": "console"}):
        asked = visit.browser.get(PATH, link)
        pages = [visit.browser.follow(visit.browser.post(PATH, {**link, "kind": kind})) for kind in _KINDS]
        odd = visit.browser.post(PATH, {**link, "at": "phone", "phone_number": "12"})
        sent = visit.browser.follow(visit.browser.post(PATH, {**link, "at": "phone", "phone_number": NUMBER}))
        wrong = visit.browser.post(PATH, {**link, "at": "totp", "code": "000000"})
        done = visit.browser.post(PATH, {**link, "at": "totp", "code": app_code(secret_on(pages[-1]))})
        assert "recovery code" in done.text
        return [asked, *pages, odd, sent, wrong, done, visit.browser.get(PATH, link), visit.browser.get(PATH, {"ticket": "unknown"})]


def added_setup_pages(visit: Login) -> list[Page]:
    """Return the pages of a setup link for a user who has factors: the proof of each factor, and the page after a proof."""
    set_factors(visit.tenant, *_EVERY)
    key, _ = give_app(visit.user)
    give_address(visit.user, "phone", NUMBER)
    give_key(visit.user, visit.browser.host)
    secret = create_setup_link(user=visit.user, adds=True).address.partition("?ticket=")[2]
    with override_settings(SMS_SENDER={"kind": "console"}):
        device = EnrolledFactor.objects.of(visit.tenant.pk).get(kind="phone").device
        ways = ("totp", device, "webauthn-roaming", "list")
        pages = [visit.browser.get(PATH, {"ticket": secret, "method": way}) for way in ways]
        empty = visit.browser.post(PATH, {"ticket": secret, "method": "totp", "code": ""})
        proven = visit.browser.post(PATH, {"ticket": secret, "method": "totp", "code": app_code(key, steps=1)})
        return [*pages, empty, visit.browser.follow(proven)]
