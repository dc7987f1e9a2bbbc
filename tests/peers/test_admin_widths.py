"""The widths of pages of the admin: wide lists fit a desktop, and the button that saves a long form stays in view on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from identity.models import Connection, Tenant
from identity.services.users import update_user
from provisioning.models import DeadLetter
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff
from tests.factories.identity import make_user
from tests.factories.models.events import EventStreamFactory
from tests.factories.models.identity import ConnectionFactory
from tests.factories.models.provisioning import ActionFactory, DeadLetterFactory, DeliveryFactory
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Chromium, Page, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

_BEYOND = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('#changelist .results'))"
# Whether the header or the bar of buttons covers the focused field. If a field is high, only its first lines must be in view.
_IS_HIDDEN = """(() => {
    const field = document.activeElement, {left, top, width, height} = field.getBoundingClientRect();
    const seen = document.elementFromPoint(left + width / 2, top + Math.min(height / 2, 12));
    return !(field === seen || field.contains(seen) || seen?.contains(field));
})()"""
_IS_IN_VIEW = """((button) => {
    const {left, top, width, height} = button.getBoundingClientRect();
    return document.elementFromPoint(left + width / 2, top + height / 2) === button;
})(document.querySelector('input[name=_save]'))"""


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def page(web: WebProcess, browser: Chromium, tenant: Tenant) -> Page:
    """Return a tab in which an administrator of the tenant is signed in."""
    session, tab = browser_of(new_staff(tenant)), browser.page()
    name = settings.SESSION_COOKIE_NAME
    tab.send("Network.setCookie", name=name, value=session.cookies[name].value, url=base_of(web), httpOnly=True)
    return tab


def base_of(web: WebProcess) -> str:
    return f"http://127.0.0.1:{web.address[1]}"


def make_letter(connection: Connection) -> DeadLetter:
    """Create a dead letter with a long error text, for a user and a stream with long names."""
    user = make_user(connection=connection, email="wolfeschlegelsteinhausenbergerdorff@subsidiary.example.test")
    update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"name": "Wolfe Schlegelsteinhausenbergerdorff"})
    delivery = DeliveryFactory.create(
        tenant_id=user.tenant_id, key=f"user:{user.user_id}", state="dead", attempts=6, last_attempt_at=timezone.now()
    )
    reason = "POST /Users answered 409 [uniqueness]: one or more of the attribute values are already in use or are reserved"
    letter: DeadLetter = DeadLetterFactory.create(delivery=delivery, reason=reason, error_status=409, attempts=6)
    DeliveryFactory.create(tenant_id=user.tenant_id, key="user:database|0123456789abcdef01234567")
    return letter


@pytest.mark.parametrize("name", ["deadletter", "delivery"])
def test_the_list_shows_state_and_action_on_a_desktop_without_scrolling(
    page: Page, web: WebProcess, database_connection: Connection, name: str
) -> None:
    make_letter(database_connection)
    page.show_as(width=1440)
    page.open(base_of(web) + reverse(f"admin:provisioning_{name}_changelist"))

    assert page.evaluate(_BEYOND) <= 0
    assert page.evaluate("[...document.querySelectorAll('#result_list tbody tr')].every((row) => row.querySelector('.badge'))")
    assert "ago" in page.text("#result_list") or "just now" in page.text("#result_list")
    assert page.complaints == []


@pytest.mark.parametrize("width", [360, 1440])
def test_the_save_button_stays_in_view_and_its_bar_covers_no_focused_field(
    page: Page, web: WebProcess, database_connection: Connection, width: int
) -> None:
    page.show_as(width=width, height=740)
    page.open(base_of(web) + reverse("admin:identity_connection_change", args=(quote(database_connection.pk),)))
    assert page.evaluate("document.documentElement.scrollHeight > innerHeight * 2 || innerWidth > 500")
    assert page.evaluate(_IS_IN_VIEW)

    page.evaluate("document.querySelector('form#connection_form').querySelector('input:not([type=hidden]), select, textarea').focus()")
    for _ in range(80):
        assert not page.evaluate(_IS_HIDDEN), page.evaluate("document.activeElement.outerHTML")[:300]
        assert page.evaluate(_IS_IN_VIEW)
        if page.evaluate("document.activeElement.name === '_save'"):
            break
        page.press("Tab")
    assert page.evaluate("document.activeElement.name === '_save'")
    page.press("Enter")
    page.until(f"location.pathname === '{reverse('admin:identity_connection_changelist')}' && document.readyState === 'complete'")


def test_the_menu_of_an_object_without_a_main_button_is_in_view_on_a_phone(
    page: Page, web: WebProcess, database_connection: Connection
) -> None:
    page.show_as(width=360, height=740)
    page.open(base_of(web) + reverse("admin:identity_connection_change", args=(quote(database_connection.pk),)))
    page.click(".object-acts .menu summary")
    box = page.evaluate("(({left, right}) => [left, right])(document.querySelector('.object-acts .menu ul').getBoundingClientRect())")
    assert 0 <= box[0] < box[1] <= 360


def test_rows_of_a_name_and_a_value_can_be_added_and_removed(page: Page, web: WebProcess, database_connection: Connection) -> None:
    page.open(base_of(web) + reverse("admin:identity_connection_change", args=(quote(database_connection.pk),)))
    page.evaluate("document.querySelectorAll('#content fieldset details').forEach((folded) => { folded.open = true })")
    rows = "[...document.querySelectorAll('.field-metadata .pair:not(.pair-head)')].filter((row) => !row.hidden)"
    assert page.evaluate(f"{rows}.length") == 1
    for number, name in enumerate(("owner", "plan", "region", "zone")):
        page.evaluate(f"{rows}.at(-1).querySelector('input').focus()")
        page.send("Input.insertText", text=name)
        page.press("Tab")
        page.send("Input.insertText", text=str(number))
        page.click(".field-metadata .pair-add")
    assert page.evaluate(f"document.activeElement === {rows}.at(-1).querySelector('input')")
    page.evaluate(f"{rows}[1].querySelector('.pair-remove-row').click()")
    assert page.evaluate(f"document.activeElement === {rows}[1].querySelector('input')")
    page.click("input[name=_save]")

    expected = {"owner": "0", "region": "2", "zone": "3"}
    eventually(lambda: Connection.objects.of(database_connection.tenant_id).get(pk=database_connection.pk).metadata == expected)
    assert page.complaints == []


def fields_map(connection: Connection) -> Any:
    return Connection.objects.of(connection.tenant_id).get(pk=connection.pk).options["fieldsMap"]


def test_rows_of_a_claim_and_a_field_work_with_and_without_scripts(page: Page, web: WebProcess, tenant: Tenant) -> None:
    options = {"fieldsMap": {"email": "mail", "name": "cn"}}
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="saml", strategy="samlp", options=options)
    address = base_of(web) + reverse("admin:identity_connection_change", args=(quote(connection.pk),))
    rows = "[...document.querySelectorAll('.field-option_fieldsMap .pair:not(.pair-head)')].filter((row) => !row.hidden)"
    page.open(address)
    assert page.evaluate(f"{rows}.length") == 3
    page.evaluate(f"{rows}[0].querySelector('.pair-remove-row').click()")
    page.click(".field-option_fieldsMap .pair-add")
    assert page.evaluate(f"{rows}.at(-1).querySelector('select').selectedIndex") == 0
    # The numbers in the names of the inputs determine the order in which the map is stored and its claims are used.
    numbers = page.evaluate(f"{rows}.map((row) => Number(/[0-9]+$/.exec(row.querySelector('input').name)[0]))")
    assert numbers == sorted(numbers)
    page.evaluate(f"{rows}.at(-1).querySelector('input').value = 'givenName'; {rows}.at(-1).querySelector('select').value = 'given_name'")
    page.click("input[name=_save]")
    eventually(lambda: fields_map(connection) == {"name": "cn", "given_name": "givenName"})

    page.without_script()
    page.open(address)
    page.fill("[name=option_fieldsMap-claim-4]", "sn")
    page.evaluate("document.querySelector('[name=option_fieldsMap-field-4]').value = 'family_name'")
    page.fill("[name=option_fieldsMap-claim-0]", "")
    page.evaluate("document.querySelector('[name=option_fieldsMap-field-0]').value = ''")
    page.click("input[name=_save]")
    page.without_script(is_off=False)
    eventually(lambda: fields_map(connection) == {"given_name": "givenName", "family_name": "sn"})
    assert page.complaints == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make test-peers")
@pytest.mark.parametrize("strategy", ["oidc", "samlp", "oauth2", "sms"])
def test_a_form_with_rows_is_accessible_at_both_widths_in_light_and_dark_mode(
    page: Page, web: WebProcess, tenant: Tenant, strategy: str
) -> None:
    options = {
        "client_id": "c",
        "attribute_map": {"attributes": {"name": "${context.tokenset.cn}", "address": {"street": "${context.tokenset.street}"}}},
        "fieldsMap": {"user_id": "data.id"},
        "upstream_params": {"prompt": {"value": "login"}, "odd": {"value": 1}},
    }
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="whole", strategy=strategy, options=options)
    page.open(base_of(web) + reverse("admin:identity_connection_change", args=(quote(connection.pk),)))
    page.evaluate("document.querySelectorAll('#content fieldset details').forEach((folded) => { folded.open = true })")

    assert barriers_of(page) == []


def test_each_value_of_an_unfinished_setup_is_in_view_on_a_phone(page: Page, web: WebProcess, tenant: Tenant) -> None:
    action = ActionFactory.create(tenant_id=tenant.pk)
    EventStreamFactory.create(tenant_id=tenant.pk, status="disabled", destination_type="action", destination={"action_id": str(action.pk)})
    page.show_as(width=360, height=740)
    page.open(f"{base_of(web)}/admin/provisioning/connect/")

    assert "Discard" in page.text("#content")
    cells = "[...document.querySelectorAll('#content table :is(tbody th, td, td a)')]"
    assert page.evaluate(f"{cells}.length") == 6
    assert page.evaluate(f"{cells}.every((cell) => cell.getBoundingClientRect().right <= innerWidth)")


@pytest.mark.parametrize("width", [360, 1440])
def test_the_link_that_adds_an_object_is_beside_the_field_that_chooses_the_object(page: Page, web: WebProcess, width: int) -> None:
    page.show_as(width=width)
    page.open(base_of(web) + reverse("admin:identity_organizationmember_add"))
    page.until("document.querySelectorAll('.related-widget-wrapper .select2-container').length === 2")
    places = """[...document.querySelectorAll('.related-widget-wrapper')].map((wrapper) => {
        const choice = wrapper.querySelector('.select2-container').getBoundingClientRect();
        const link = wrapper.querySelector('.add-related').getBoundingClientRect();
        const middle = (link.top + link.bottom) / 2;
        return link.left >= choice.right && link.right <= innerWidth && middle > choice.top && middle < choice.bottom;
    })"""
    assert page.evaluate(places) == [True, True]


def test_claims_of_a_preview_are_rows_with_and_without_scripts(page: Page, web: WebProcess, tenant: Tenant) -> None:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="corp", strategy="oidc", options={"client_id": "c"})
    page.show_as(width=360, height=740)
    page.open(base_of(web) + reverse("admin:identity_connection_provider", args=(quote(connection.pk),)))
    rows = "[...document.querySelectorAll('.pairs:has([name^=id_token]) .pair:not(.pair-head)')].filter((row) => !row.hidden)"
    assert page.evaluate(f"{rows}.length") == 5
    page.evaluate(f"{rows}.at(-1).querySelector('input').focus()")
    page.send("Input.insertText", text="nickname")
    page.press("Tab")
    page.send("Input.insertText", text="{open")
    # Tab reaches the button that removes the row, and then the button that adds a row.
    page.press("Tab")
    page.press("Tab")
    page.press("Enter")
    assert page.evaluate(f"document.activeElement === {rows}.at(-1).querySelector('input')")
    page.press("Enter")
    page.until("document.querySelector('.errorlist')?.innerText.includes('The value of “nickname” cannot be read as JSON.')")
    assert page.evaluate(f"{rows}[4].querySelector('[name*=value]').value") == "{open"
    assert page.evaluate("document.documentElement.scrollWidth") == 360

    page.without_script()
    page.fill("[name=id_token-value-4]", "ada")
    page.click("[name=preview]")
    page.without_script(is_off=False)
    page.until("[...document.querySelectorAll('#content h3')].some((head) => head.innerText === 'Profile')")
    assert "nickname\nada" in page.text("#content")
    assert page.complaints == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make test-peers")
@pytest.mark.parametrize("strategy", ["oidc", "samlp", "github"])
def test_the_claims_of_a_preview_are_accessible_at_both_widths_in_light_and_dark_mode(
    page: Page, web: WebProcess, tenant: Tenant, strategy: str
) -> None:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="whole", strategy=strategy, options={"client_id": "c"})
    page.open(base_of(web) + reverse("admin:identity_connection_provider", args=(quote(connection.pk),)))
    page.click("[name=preview]")
    page.until("[...document.querySelectorAll('#content h3')].some((head) => head.innerText === 'Profile')")

    assert barriers_of(page) == []
