"""The link of an approval request: which users can see and answer the request on its page. To open the link is not yet an approval."""

from __future__ import annotations

from authapi.login.cookies import SESSION, cookie_name
from authapi.models import CibaRequest, Consent
from authapi.services.clients import update_client
from tests.authapi.browser import Browser
from tests.authapi.memory import forget_all
from tests.authapi.protocols.ciba.conftest import CallCenter
from tests.factories.sign_in import person, session_of


def test_opening_the_link_approves_nothing_and_shows_the_request_only_to_its_user(center: CallCenter) -> None:
    link = center.begin()
    for headers in ({}, {"Sec-Purpose": "prefetch"}):
        for method in ("GET", "HEAD"):
            answer = Browser(center.tenant).send(method, link, headers=headers)
            assert answer.status == 302
            assert answer.location.startswith("/u/login")
    scanner = Browser(center.tenant)
    page = scanner.follow(scanner.get(link))
    assert "21-49-38" not in page.text
    assert "ada@" not in page.text
    # Even in the browser of the right user, opening the link does not answer the request. Only a submitted form answers the request.
    asking = center.open(link)
    assert "21-49-38" in asking.text
    assert center.browser.get(asking.form_action()).status in (302, 400)
    assert center.browser.post(link, {"answer": "allow"}).status == 405
    assert center.error() == (400, "authorization_pending")
    assert center.row.status == CibaRequest.Status.PENDING


def test_the_page_shows_the_application_the_time_and_the_location_of_the_request(center: CallCenter) -> None:
    page = center.open(center.begin())
    for text in ("Call center", "21-49-38", "198.51.100.7", "UTC", "See your profile", "Allow this only if you expect the request"):
        assert text in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"


def test_another_user_cannot_see_or_answer_the_request(center: CallCenter) -> None:
    other = person(center.connection, email="eve@example.test")
    link, eve = center.begin(), Browser(center.tenant)
    refused = center.open(link, eve, email="eve@example.test")
    assert (refused.status, "This request is for another account" in refused.text) == (403, True)
    assert "21-49-38" not in refused.text
    # Even with a session, Eve cannot see the request: the link leads her to the login page, and the approval page answers 403.
    eve.cookies[cookie_name(SESSION)] = session_of(other)[1]
    begun = eve.get(link)
    assert begun.location.startswith("/u/login")
    state = begun.answer["state"]
    peeked = eve.get("/u/consent", {"state": state})
    assert (peeked.status, "21-49-38" in peeked.text) == (403, False)
    fields = {"state": state, "user": center.user.user_id, "form_token": eve.follow(begun).fields()["form_token"]}
    for answer in ("allow", "deny"):
        assert eve.post("/u/consent", {**fields, "answer": answer}).status == 403
    assert center.error() == (400, "authorization_pending")


def test_forms_of_another_browser_and_forged_forms_are_refused(center: CallCenter) -> None:
    page = center.open(center.begin())
    fields = {**page.fields(), "answer": "allow"}
    assert Browser(center.tenant).post("/u/consent", fields).status == 400
    forged = {name: value for name, value in fields.items() if name != "form_token"}
    assert center.browser.post("/u/consent", forged).status == 400
    assert center.error() == (400, "authorization_pending")


def test_the_application_receives_the_denial_and_the_user_is_not_asked_again(center: CallCenter) -> None:
    link = center.begin()
    denied = center.answer(link, "deny")
    assert denied.location.endswith("/approve/denied")
    assert "the application gets none" in center.browser.follow(denied).text
    assert center.error() == (400, "access_denied")
    assert "ciba_denied" in center.lines()


def test_the_page_says_that_a_request_is_already_answered_or_expired(center: CallCenter) -> None:
    link = center.begin()
    page = center.open(link)
    assert "Request approved" in center.browser.follow(center.browser.submit(page, answer="allow")).text
    # A second press of the button has the same result as the first press.
    assert center.browser.submit(page, answer="allow").location.endswith("/approve/done")
    again = Browser(center.tenant).get(link)
    assert (again.status, "This request was already answered" in again.text) == (400, True)
    center.poll()
    waiting = center.begin()
    page = center.open(waiting)
    center.expire()
    for answer in (center.browser.submit(page, answer="allow"), center.browser.get(waiting)):
        assert (answer.status, "This request has expired" in answer.text) == (400, True)
    assert center.error() == (400, "expired_token")


def test_an_earlier_consent_does_not_answer_a_request(center: CallCenter) -> None:
    center.answer(center.begin())
    assert center.poll().status == 200
    assert Consent.objects.of(center.tenant.pk).exists()
    assert "Allow access?" in center.open(center.begin()).text


def test_every_unusable_link_gets_the_same_refusal(center: CallCenter) -> None:
    link = center.begin()
    page = center.open(link)
    for wrong in ("/approve", "/approve?ticket=guess", link[:-1]):
        assert center.browser.get(wrong).status == 404
    update_client(tenant_id=center.tenant.pk, client_id=center.client.client_id, changes={"grant_types": ["refresh_token"]})
    forget_all()
    assert center.browser.get(link).status == 404
    assert center.browser.submit(page, answer="allow").status == 400
    assert center.row.status == CibaRequest.Status.PENDING
