"""A tenant's own texts for hosted pages: writing them through the management interface, and showing them on the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.template import Engine, TemplateSyntaxError
from django.template.loader import get_template
from django.templatetags.i18n import BlockTranslateNode, TranslateNode

from authapi import custom_texts, tenant_settings
from authapi.custom_texts import PROMPTS, UPSTREAM_PROMPTS
from authapi.models import Client, CustomText, TenantSettings
from authapi.pages.form_fields import identifier_labels
from authapi.services.custom_texts import LONGEST_TEXT, set_custom_texts
from authapi.templatetags.texts import TextNode
from config.catalogues.sources import texts_of_source
from identity.models import AuditEntry, Tenant
from tests.authapi.browser import Browser, Page
from tests.authapi.login.conftest import Login, login  # noqa: F401  (this fixture is used here, too)
from tests.factories.admin import new_tenant
from tests.management import Management

LOGIN = "prompts/login/custom-text/en"


@pytest.fixture(autouse=True)
def _fresh_texts() -> Iterator[None]:
    custom_texts.remembered_texts.clear()
    tenant_settings.remembered_settings.clear()
    yield
    custom_texts.remembered_texts.clear()


def page_of(login: Login, language: str = "en", **asked: Any) -> Page:  # noqa: F811  (the fixture)
    return login.browser.follow(login.ask(ui_locales=language, **asked))


def heading(page: Page) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page.body.decode(), re.DOTALL)
    assert found
    return found.group(1).strip()


# --- The interface -------------------------------------------------------------------------------------------------------------


def test_a_write_replaces_all_texts_of_a_prompt_and_they_are_read_back(api: Management, tenant: Tenant) -> None:
    assert api.get(LOGIN).json == {}
    written = {"login": {"title": "Welcome", "buttonText": "Continue"}}
    assert api.put(LOGIN, written).json == written
    assert api.get(LOGIN).json == written
    assert api.get("prompts/login/custom-text/de").json == {}
    assert api.put(LOGIN, {"login": {"title": "Hello", "buttonText": "", "description": "  "}}).json == {"login": {"title": "Hello"}}
    assert AuditEntry.objects.filter(tenant_id=tenant.pk, object_type="authapi.customtext").exists()
    assert api.put(LOGIN, {}).json == {}
    assert not CustomText.objects.of(tenant.pk).exists()


def test_prompts_without_pages_have_no_texts(api: Management) -> None:
    for prompt in sorted(UPSTREAM_PROMPTS - PROMPTS.keys()):
        assert api.get(f"prompts/{prompt}/custom-text/en").json == {}
        assert api.put(f"prompts/{prompt}/custom-text/en", {}).status == 200
    answer = api.put("prompts/mfa-voice/custom-text/en", {"mfa-voice-challenge": {"title": "Hi"}})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert "Prompts with texts are login, signup" in answer.json["message"]


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("prompts/loginn/custom-text/en", {}, "Choose from login, signup"),
        ("prompts/login/custom-text/pt", {}, "Choose from en, de, fr, es, ja, ar"),
        ("prompts/login/custom-text/de-AT", {}, "Choose from en, de"),
        (LOGIN, {"logni": {"title": "x"}}, "Unknown screen logni. Choose from login"),
        (LOGIN, {"login": {"heading": "x"}}, "Unknown key heading. Choose from pageTitle, title, description"),
        (LOGIN, {"login": "x"}, "Expected type object"),
        (LOGIN, {"login": {"title": {"en": "x"}}}, "Expected type string"),
        (LOGIN, {"login": {"title": 5}}, "Expected type string"),
        (LOGIN, {"login": {"title": "x" * (LONGEST_TEXT + 1)}}, "at most 500 characters"),
        (LOGIN, {"login": {"title": "a\nb"}}, "one line of plain text"),
        (LOGIN, {"login": {"title": "a\u202eb"}}, "without control characters"),
        (LOGIN, {"login": {"title": "Hi ${password}"}}, "Unknown placeholder ${password}. Choose from ${clientName}, ${companyName}"),
        (LOGIN, {"login": {"title": "Hi ${}"}}, "Unknown placeholder"),
        (LOGIN, ["login"], "Expected type object"),
    ],
)
def test_invalid_texts_are_refused_with_the_list_of_valid_names(api: Management, path: str, body: Any, named: str) -> None:
    api.put(LOGIN, {"login": {"title": "Before"}})
    answer = api.put(path, body)
    assert answer.status == 400, answer.json
    assert named in answer.json["message"]
    assert api.get(LOGIN).json == {"login": {"title": "Before"}}


def test_an_unknown_prompt_is_refused_in_the_same_format_as_an_unknown_language(api: Management) -> None:
    assert api.get("prompts/loginn/custom-text/en").status == 400
    assert api.get("prompts/login/custom-text/xx").status == 400


def test_the_texts_require_their_scopes(tenant: Tenant) -> None:
    assert Management(tenant, scope="read:prompts").get(LOGIN).status == 200
    assert Management(tenant, scope="read:prompts").put(LOGIN, {}).json["errorCode"] == "insufficient_scope"
    assert Management(tenant, scope="update:prompts").get(LOGIN).json["errorCode"] == "insufficient_scope"


# --- On the pages --------------------------------------------------------------------------------------------------------------


def test_a_text_is_shown_only_in_its_language_at_its_tenant(login: Login) -> None:  # noqa: F811
    TenantSettings(tenant=login.tenant, values={"enabled_locales": ["en", "de"]}).save()
    own = {"login": {"title": "Willkommen", "buttonText": "Weiter geht es", "wrong-email-credentials": "Das war nichts."}}
    set_custom_texts(tenant_id=login.tenant.pk, prompt="login", language="de", texts=own)
    page = page_of(login, "de")
    assert heading(page) == "Willkommen"
    assert ">Weiter geht es</button>" in page.text
    assert "Das war nichts." in login.browser.submit(page, username="ada@example.test", password="wrong").text
    assert heading(page_of(login, "en")) == "Log in"
    other = new_tenant()
    with_texts = CustomText.objects.of(other.pk)
    assert not with_texts.exists()


def test_a_change_is_visible_immediately_in_the_process_that_made_the_change(login: Login) -> None:  # noqa: F811
    assert heading(page_of(login)) == "Log in"
    set_custom_texts(tenant_id=login.tenant.pk, prompt="login", language="en", texts={"login": {"title": "Welcome"}})
    assert heading(page_of(login)) == "Welcome"
    set_custom_texts(tenant_id=login.tenant.pk, prompt="login", language="en", texts={})
    assert heading(page_of(login)) == "Log in"


ATTACK = "<script>alert(1)</script>&\"'{{ client }}{% load x %}%(application)s"


def test_html_and_template_tags_in_a_text_are_shown_as_text(login: Login) -> None:  # noqa: F811
    texts = dict.fromkeys(PROMPTS["login"]["login"].texts, ATTACK)
    set_custom_texts(tenant_id=login.tenant.pk, prompt="login", language="en", texts={"login": texts})
    page = page_of(login)
    wrong = login.browser.submit(page, username="ada@example.test", password="wrong")
    for shown in (page, wrong):
        source = shown.body.decode()
        assert "<script>" not in source
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in source
        assert ATTACK in unescape(heading(shown))


def test_placeholders_are_replaced_once_with_escaped_values(login: Login) -> None:  # noqa: F811
    Client.objects.of(login.tenant.pk).update(name="<b>${companyName}</b> & Co")
    from authapi import client_auth

    client_auth.clients.clear()
    TenantSettings(tenant=login.tenant, values={"friendly_name": "A <i>company</i>"}).save()
    own = {"login": {"title": "Log in to ${companyName} for ${clientName}"}}
    set_custom_texts(tenant_id=login.tenant.pk, prompt="login", language="en", texts=own)
    assert heading(page_of(login)) == (
        "Log in to A &lt;i&gt;company&lt;/i&gt; for &lt;b&gt;${companyName}&lt;/b&gt; &amp; Co"
    )  # fmt: skip


def test_a_page_without_a_client_leaves_the_placeholder_of_the_client_empty(login: Login) -> None:  # noqa: F811
    login.begin_session()
    own = {"logout": {"title": "Leave ${companyName}, ${userName}?"}}
    set_custom_texts(tenant_id=login.tenant.pk, prompt="logout", language="en", texts=own)
    page = login.browser.get("/oidc/logout")
    assert heading(page).startswith("Leave ")
    assert heading(page).endswith(", ada@example.test?")


def test_no_text_of_another_tenant_is_ever_shown(login: Login) -> None:  # noqa: F811
    other = new_tenant()
    set_custom_texts(tenant_id=other.pk, prompt="logout", language="en", texts={"logout": {"title": "Theirs"}})
    assert "Theirs" not in Browser(login.tenant).get("/u/logged-out").text
    assert heading(page_of(login)) == "Log in"


# --- The table -----------------------------------------------------------------------------------------------------------------

_MARK = re.compile(r'custom_text\(\s*"([\w.-]+)",\s*_\(\s*"([^"]*)"\s*\)')


def nodes_of(path: Path) -> Iterator[TextNode]:
    found: Any = get_template(f"hosted/{path.relative_to(settings.BASE_DIR / 'templates' / 'hosted')}")
    yield from found.template.nodelist.get_nodes_by_type(TextNode)


def english_of(node: TextNode) -> str:
    inside = [one for one in node.inside if isinstance(one, TranslateNode | BlockTranslateNode)]
    assert len(inside) == 1, node.path
    found: Any = inside[0]
    if isinstance(found, BlockTranslateNode):
        return str(found.render_token_list(found.singular)[0])
    return str(found.filter_expression.var.literal)


def marked_texts() -> set[tuple[str, str]]:
    found = {
        (node.path, english_of(node)) for path in (settings.BASE_DIR / "templates" / "hosted").rglob("*.html") for node in nodes_of(path)
    }
    found |= identifier_labels()
    for path in (settings.BASE_DIR / "authapi").rglob("*.py"):
        found |= set(_MARK.findall(path.read_text()))
    return found


def test_the_table_contains_exactly_the_texts_that_templates_and_code_mark() -> None:
    table = {
        (f"{prompt}.{name}.{key}", text)
        for prompt, screens in PROMPTS.items()
        for name, screen in screens.items()
        for key, text in screen.texts.items()
    }
    assert marked_texts() == table
    assert {text for _, text in table} <= {text.singular for text in texts_of_source().values()}


def test_every_prompt_has_a_name_that_client_libraries_know() -> None:
    assert set(PROMPTS) <= UPSTREAM_PROMPTS


def test_a_screen_accepts_the_placeholders_of_its_own_texts() -> None:
    for screens in PROMPTS.values():
        for screen in screens.values():
            assert "companyName" in screen.placeholders
            for key in screen.texts:
                assert set(custom_texts.PLACEHOLDER.findall(custom_texts.default_text(screen, key))) <= set(screen.placeholders), key


@pytest.mark.parametrize("tag", ['{% text "login.login.nothing" %}', "{% text login.login.title %}", '{% text "login" %}', "{% text %}"])
def test_a_template_cannot_mark_a_text_that_is_missing_in_the_table(tag: str) -> None:
    engine = Engine(libraries={"texts": "authapi.templatetags.texts"})
    with pytest.raises(TemplateSyntaxError):
        engine.from_string("{% load texts %}" + tag + "x{% endtext %}")
