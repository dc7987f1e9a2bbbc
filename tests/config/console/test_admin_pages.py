"""Rules for every page of the admin: its host, its content security policy, and successful rendering."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.contrib.admin.utils import quote
from django.contrib.admin.widgets import AdminDateWidget, AdminSplitDateTime, AdminTimeWidget
from django.contrib.auth.models import Group
from django.db import OperationalError, models
from django.test import Client
from django.urls import NoReverseMatch, reverse

from config.console.admin_navigation import DAILY, NAVIGATION
from config.console.admin_site import PlatformAdminSite, site
from config.middleware.content_policy import CONTENT_POLICY
from identity.admin.object_actions import ObjectActionsAdmin
from identity.admin.tenant_page import TenantPage
from identity.models import Tenant, User
from tests.depth import sample
from tests.factories.admin import Rows, addresses_of_page, browser_of, new_staff, new_tenant, take_from_administrators

_OF_DJANGO = (AdminDateWidget, AdminTimeWidget, AdminSplitDateTime)
MODELS = sorted(site._registry, key=lambda model: model._meta.label_lower)
_LOADING = frozenset({"src", "srcset", "action", "formaction", "poster", "data"})


class _Blocked(HTMLParser):
    """Collects the markup that a policy of `default-src 'self'` blocks: style attributes and elements, inline scripts, event handlers, and
    anything loaded from another host. Text of a row is not blocked."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: (value or "").strip().lower() for name, value in attrs}
        is_inline = tag == "style" or (tag == "script" and "src" not in given)
        loads = _LOADING | {"href"} if tag == "link" else _LOADING
        if is_inline or any(
            name == "style"
            or name.startswith("on")
            or value.startswith("javascript:")
            or (name in loads and ("://" in value or value.startswith("//")))
            for name, value in given.items()
        ):
            self.found.append(self.get_starttag_text() or tag)


def blocked(page: str) -> list[str]:
    """Return the tags that the content policy of a page blocks."""
    return _Blocked(page).found


@pytest.mark.parametrize(
    ("markup", "is_blocked"),
    [
        ('<p style="color: red">', True),
        ("<style>p {}</style>", True),
        ("<script>go()</script>", True),
        ('<script src="https://cdn.example.test/x.js"></script>', True),
        ('<a href="/" onclick="go()">', True),
        ('<a href=" javascript:go()">', True),
        ('<link href="//cdn.example.test/x.css"><link href="https://cdn.example.test/x.css">', True),
        ('<p title="an onerror= in a text">&lt;img src=x onerror=go()&gt; style=</p><a href="https://x.example.test">', False),
        ('<script src="/static/x.js"></script><link href="/static/x.css">', False),
    ],
)
def test_blocked_markup_is_found_in_tags_and_not_in_texts(markup: str, *, is_blocked: bool) -> None:
    assert bool(blocked(markup)) is is_blocked


@pytest.fixture
def operator(committed_db: None) -> Client:
    return browser_of(new_staff(None))


def place_of(model: type[models.Model], page: str) -> str:
    return f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/identity/user/", "/admin/static-looking/../login/"])
def test_the_admin_does_not_exist_on_the_host_of_a_tenant(tenant: Tenant, path: str) -> None:
    answer = Client(headers={"host": f"{tenant.pk}.example.test"}).get(path)

    assert answer.status_code == 404
    assert "Django" not in answer.content.decode()


def test_the_root_url_of_the_platform_host_redirects_to_the_admin(tenant: Tenant) -> None:
    answer = Client(headers={"host": "localhost"}).get("/")

    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
    assert Client(headers={"host": "localhost"}).post("/").status_code == 404
    assert Client(headers={"host": f"{tenant.pk}.example.test"}).get("/").status_code == 404


def test_a_url_with_a_nul_character_is_refused(operator: Client) -> None:
    assert operator.get("/admin/identity/user/?q=%00").status_code == 400
    assert operator.get("/admin/identity/connection/%00/change/").status_code == 400


def test_every_answer_has_the_strict_content_security_policy(operator: Client) -> None:
    for path in ("/admin/", "/admin/login/", "/admin/identity/user/", "/admin/nothing/"):
        headers = operator.get(path).headers
        assert headers["Content-Security-Policy"] == CONTENT_POLICY
        assert headers["X-Frame-Options"] == "DENY"
    assert "unsafe" not in CONTENT_POLICY


@pytest.mark.sized
@pytest.mark.parametrize("is_bound", [True, False], ids=["one tenant", "all tenants"])
def test_every_page_renders_and_complies_with_the_content_security_policy(operator: Client, *, is_bound: bool) -> None:
    rows = Rows(new_tenant())
    if is_bound:
        operator.post(reverse("admin:choose_tenant"), {"tenant": rows.tenant.pk})
    for model in MODELS if is_bound else sample(MODELS, "all tenants", len(MODELS) // 2):
        row = rows.of(model) if getattr(site.get_model_admin(model), "tenant_column", None) else None
        addresses = [reverse(place_of(model, "changelist")), reverse(place_of(model, "add"))]
        if row is not None:
            addresses += [reverse(place_of(model, page), args=(quote(row.pk),)) for page in ("change", "delete", "history")]
            addresses += actions_of(model, quote(row.pk))
        for address in addresses:
            answer = operator.get(address, follow=True)
            assert answer.status_code in {200, 403}, address
            assert not blocked(answer.content.decode()), address


def actions_of(model: type[models.Model], key: str) -> list[str]:
    page = site.get_model_admin(model)
    actions = page.object_actions if isinstance(page, ObjectActionsAdmin) else ()
    return [reverse(place_of(model, "action"), args=(key, action.name)) for action in actions]


def test_no_form_has_a_date_widget_of_django(operator: Client) -> None:
    # The theme has no style for the calendar of these widgets.
    rows = Rows(new_tenant())
    operator.post(reverse("admin:choose_tenant"), {"tenant": rows.tenant.pk})
    request = operator.get("/admin/").wsgi_request
    found = []
    for model in MODELS:
        page = site.get_model_admin(model)
        row = rows.of(model) if getattr(page, "tenant_column", None) else None
        forms = [page.get_form(request)] if page.has_add_permission(request) else []
        forms += [page.get_form(request, row, change=True)] if row is not None and page.has_change_permission(request, row) else []
        found += [
            f"{model.__name__}.{name}" for form in forms for name, field in form.base_fields.items() if isinstance(field.widget, _OF_DJANGO)
        ]
    assert found == []


def test_the_navigation_contains_every_model_and_every_page_once() -> None:
    named = [label for labels in NAVIGATION.values() for label in labels]

    assert sorted(named) == sorted([*(model._meta.label_lower for model in MODELS), *(page.label for page in site.pages)])
    assert set(named) >= DAILY
    assert list(NAVIGATION) == ["People", "Applications", "Streams", "Provisioning", "Security", "Platform"]


def test_the_secondary_navigation_links_are_on_every_page_and_lead_to_working_pages(operator: Client) -> None:
    further = reverse("admin:identity_groupmember_changelist")
    start = operator.get(reverse("admin:index")).content.decode()

    assert all(f'href="{reverse(place_of(model, "changelist"))}"' in start for model in MODELS)
    assert '<details class="nav-more" open>' not in start
    assert '<details class="nav-more" open>' in operator.get(further).content.decode()


def test_switching_the_tenant_on_the_page_of_a_row_leads_to_the_list_of_rows(operator: Client) -> None:
    people = Rows(new_tenant()).of(User)
    after = {
        reverse("admin:identity_user_change", args=(quote(people.pk),)): reverse("admin:identity_user_changelist"),
        reverse("admin:identity_user_changelist"): reverse("admin:identity_user_changelist"),
        reverse("admin:password_change"): reverse("admin:password_change"),
    }
    for address, following in after.items():
        page = operator.get(address).content.decode()
        assert f'{reverse("admin:choose_tenant")}?next={following}"' in page.replace("%2F", "/"), address


@pytest.mark.parametrize("page", site.pages, ids=lambda page: page.label)
def test_a_page_of_a_tenant_renders_and_complies_with_the_content_security_policy(operator: Client, page: TenantPage) -> None:
    operator.post(reverse("admin:choose_tenant"), {"tenant": new_tenant().pk})
    answer = operator.get(page.address)

    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == CONTENT_POLICY
    assert not blocked(answer.content.decode())
    assert f'href="{page.address}"' in operator.get(reverse("admin:index")).content.decode()


@pytest.mark.parametrize("page", site.pages, ids=lambda page: page.label)
def test_a_page_of_a_tenant_asks_an_operator_to_choose_the_tenant(operator: Client, page: TenantPage) -> None:
    new_tenant(), new_tenant()
    answer = operator.get(page.address)

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("admin:choose_tenant"))


def test_a_page_of_a_tenant_keeps_its_filter_while_an_operator_chooses_the_tenant(operator: Client) -> None:
    tenant, _ = new_tenant(), new_tenant()
    wanted = f"{reverse('admin:events_live')}?entity=user%3Ax"
    asked = operator.get(wanted, follow=True)
    chosen = operator.post(reverse("admin:choose_tenant"), {"tenant": tenant.pk, "next": asked.context["next"]}, follow=True)

    assert chosen.redirect_chain == [(wanted, 302)]
    assert chosen.context["entity"] == "user:x"


@pytest.mark.parametrize("page", site.pages, ids=lambda page: page.label)
def test_a_page_of_a_tenant_is_refused_without_its_permission(
    committed_db: None, page: TenantPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = browser_of(new_staff(new_tenant()))
    take_from_administrators(monkeypatch, page.permission)

    for address in addresses_of_page(page):
        assert browser.get(address).status_code == 403, address
        assert browser.post(address).status_code == 403, address
    assert f'href="{page.address}"' not in browser.get(reverse("admin:index")).content.decode()


@pytest.mark.parametrize("page", site.pages, ids=lambda page: page.label)
def test_a_page_of_a_tenant_requires_a_sign_in(committed_db: None, page: TenantPage) -> None:
    visitor = Client(headers={"host": "localhost"})

    for address in addresses_of_page(page):
        assert visitor.get(address).headers["Location"].startswith(reverse("admin:login")), address


def test_pages_do_not_show_names_of_frameworks() -> None:
    assert not site.is_registered(Group)
    assert not [model for model in MODELS if model._meta.app_label in {"oauth2_provider", "auth", "sessions"}]
    assert isinstance(site, PlatformAdminSite)
    with pytest.raises(NoReverseMatch):
        reverse("admin:auth_group_changelist")


def test_an_admin_class_that_does_not_limit_its_rows_to_tenants_is_refused() -> None:
    from django.contrib.admin import ModelAdmin
    from django.core.exceptions import ImproperlyConfigured

    with pytest.raises(ImproperlyConfigured):
        PlatformAdminSite().register(User, ModelAdmin)


def test_a_list_ends_after_a_limited_number_of_rows_and_shows_the_limit(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foundation.admin.bounded_paginator.COUNT_LIMIT", 1)
    monkeypatch.setattr("foundation.admin.bounded_paginator.bounded_count.__defaults__", (1,))
    new_tenant(), new_tenant()

    page = operator.get(reverse("admin:identity_tenant_changelist")).content.decode()

    assert "The list shows only the first 1 rows" in page


def test_an_error_page_shows_our_own_text_and_no_stack_trace(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError("a secret detail")

    operator.raise_request_exception = False
    monkeypatch.setattr("config.console.dashboard.page.read_state", fail)
    answer = operator.get("/admin/")

    assert answer.status_code == 500
    assert "Something went wrong" in answer.content.decode()
    assert "secret detail" not in answer.content.decode()
    assert not blocked(answer.content.decode())


def test_a_page_answers_503_with_advice_while_the_database_is_unavailable(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise OperationalError("the server of a secret name closed the connection")

    operator.raise_request_exception = False
    monkeypatch.setattr("config.console.dashboard.page.read_state", fail)
    answer = operator.get("/admin/")

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "The database does not answer at present." in answer.content.decode()
    assert "secret name" not in answer.content.decode()


@pytest.mark.parametrize("path", ["/admin/identity/user/missing/change/", "/admin/nothing/"])
def test_the_page_for_an_unknown_url_of_the_admin_links_to_the_start_page(operator: Client, path: str) -> None:
    answer = operator.get(path)

    assert answer.status_code == 404
    assert 'href="/admin/"' in answer.content.decode()


def test_a_form_without_a_csrf_token_is_refused_with_our_own_text(committed_db: None) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    answer = strict.post("/admin/login/", {"username": "a@b.test", "password": "x"})

    assert answer.status_code == 403
    assert "This form has expired" in answer.content.decode()
