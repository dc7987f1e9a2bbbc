"""The options of a connection as inputs: a map is shown as rows, and a switch as a choice.

A save keeps stored members that no input can show.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from authapi.upstream.profile import profile_of
from authapi.upstream.saml.options import FIELDS as ATTRIBUTES
from authapi.upstream.social.options import FIELDS as EXPRESSIONS
from foundation.admin.column_rows import RowsField
from identity.models import Connection, Tenant
from identity.options.enterprise_guides import ATTRIBUTE_FIELDS, TEMPLATE_FIELDS
from identity.options.guides import EXPRESSION_FIELDS
from identity.services.connections import update_connection
from identity.services.failures import Invalid
from tests.factories.admin import browser_of, new_staff, new_tenant, take_from_administrators
from tests.factories.models.identity import ConnectionFactory

OIDC = {"option_client_id": "c"}
USED = {"option_attribute_map__mapping_mode": "use_map"}
MAP = {"mapping_mode": "use_map", "attributes": {"name": "${context.tokenset.cn}"}}


def page(connection: Connection) -> str:
    return reverse("admin:identity_connection_change", args=(quote(connection.pk),))


def now(connection: Connection) -> Connection:
    return Connection.objects.of(connection.tenant_id).get(pk=connection.pk)


def stored(connection: Connection, **columns: Any) -> Connection:
    """Write columns without the checks of the service, as an older version may have done, and return the connection."""
    row = now(connection)
    for name, value in columns.items():
        setattr(row, name, value)
    row.save(update_fields=list(columns))
    return row


def saved(browser: Client, connection: Connection, **fields: Any) -> dict[str, list[str]]:
    """Send the form of a connection, and return its errors by field, or an empty map after a successful save."""
    answer = browser.post(page(connection), fields)
    return {} if answer.status_code == 302 else {name: list(texts) for name, texts in answer.context["adminform"].form.errors.items()}


def rows(option: str, *filled: tuple[str, ...], keys: tuple[str, ...] = ("claim", "field")) -> dict[str, str]:
    return {f"option_{option}-{key}-{number}": text for number, row in enumerate(filled) for key, text in zip(keys, row, strict=True)}


def sent_again(browser: Client, connection: Connection) -> dict[str, Any]:
    """Return the inputs that a browser sends if the user of the form changes nothing."""
    form = browser.get(page(connection)).context["adminform"].form
    sent: dict[str, Any] = {}
    for name, field in form.fields.items():
        value = form[name].value()
        if isinstance(field, RowsField):
            cells = (
                (column.key, number, text) for number, row in enumerate(value) for column, text in zip(field.columns, row, strict=True)
            )
            sent |= {f"{name}-{key}-{number}": text for key, number, text in cells}
        elif value not in (None, False, "") and not isinstance(value, (list, dict)):
            sent[name] = "on" if value is True else value
    return sent


@pytest.fixture
def oidc(tenant: Tenant) -> Connection:
    return ConnectionFactory.create(tenant_id=tenant.pk, name="oidc", strategy="oidc", options={"client_id": "c"})


@pytest.fixture
def saml(tenant: Tenant) -> Connection:
    return ConnectionFactory.create(tenant_id=tenant.pk, name="saml", strategy="samlp")


@pytest.mark.parametrize("name", ["authentication", "connected_accounts"])
class TestSwitches:
    def test_an_unknown_choice_is_refused_at_the_field_and_changes_nothing(self, browser: Client, oidc: Connection, name: str) -> None:
        stored(oidc, **{name: {"active": True}})
        assert list(saved(browser, oidc, **OIDC, **{name: "maybe"})) == [name]
        assert getattr(now(oidc), name) == {"active": True}

    def test_a_change_of_the_switch_keeps_the_other_members_and_the_form_shows_them(
        self, browser: Client, oidc: Connection, name: str
    ) -> None:
        stored(oidc, **{name: {"active": True, "cross_app_access": {"active": True}}})
        content = browser.get(page(oidc)).content.decode()
        assert "Also stored and kept: cross_app_access." in content
        assert not saved(browser, oidc, **OIDC, **{name: "off"})
        assert getattr(now(oidc), name) == {"active": False, "cross_app_access": {"active": True}}

    def test_the_empty_choice_removes_the_other_members(self, browser: Client, oidc: Connection, name: str) -> None:
        stored(oidc, **{name: {"active": True, "cross_app_access": {"active": True}}})
        assert "Not set (removes cross_app_access)" in browser.get(page(oidc)).content.decode()
        assert not saved(browser, oidc, **OIDC, **{name: ""})
        assert getattr(now(oidc), name) is None

    @pytest.mark.parametrize("value", [{"active": "yes"}, {"other": 1}])
    def test_a_stored_value_that_is_no_switch_is_kept_until_another_choice_is_made(
        self, browser: Client, oidc: Connection, name: str, value: Any
    ) -> None:
        stored(oidc, **{name: value})
        assert "As stored: " in browser.get(page(oidc)).content.decode()
        assert not saved(browser, oidc, **OIDC, **{name: "stored", "display_name": "Company"})
        assert (now(oidc).display_name, getattr(now(oidc), name)) == ("Company", value)

    def test_each_choice_is_stored_and_shown(self, browser: Client, oidc: Connection, name: str) -> None:
        values: dict[str, dict[str, bool] | None] = {"on": {"active": True}, "off": {"active": False}, "": None}
        for choice, value in values.items():
            assert not saved(browser, oidc, **OIDC, **{name: choice})
            assert getattr(now(oidc), name) == value
            assert browser.get(page(oidc)).context["adminform"].form[name].value() == choice

    def test_the_service_refuses_a_change_of_the_members_beside_the_switch(self, oidc: Connection, name: str) -> None:
        stored(oidc, **{name: {"active": True, "x": 1}})
        refused: list[Any] = [{"active": True, "x": 2}, {"active": True, "x": 1, "y": 1}, {"x": 1}, {"active": 1}, [], "on"]
        for value in refused:
            with pytest.raises(Invalid, match="Expected an object with active"):
                update_connection(tenant_id=oidc.tenant_id, connection_id=oidc.pk, changes={name: value})
        update_connection(tenant_id=oidc.tenant_id, connection_id=oidc.pk, changes={name: {"active": False, "x": 1}})
        assert getattr(now(oidc), name) == {"active": False, "x": 1}


def test_the_form_offers_the_fields_that_a_login_fills() -> None:
    assert ATTRIBUTE_FIELDS == ATTRIBUTES
    assert EXPRESSION_FIELDS == EXPRESSIONS
    attributes = dict.fromkeys(TEMPLATE_FIELDS, "${context.tokenset.x}")
    filled = profile_of({"x": "https://example.com/ada@example.com"}, {}, {"mapping_mode": "use_map", "attributes": attributes})
    assert filled.keys() == {*TEMPLATE_FIELDS} - {"email"}
    assert profile_of({"x": "ada@example.com"}, {}, {"mapping_mode": "use_map", "attributes": attributes})["email"] == "ada@example.com"


def test_several_attributes_that_fill_one_field_are_stored_in_the_order_of_their_rows(browser: Client, saml: Connection) -> None:
    filled = rows("fieldsMap", ("mail", "email"), ("cn", "name"), ("urn:oid:1", "email"))
    assert not saved(browser, saml, **filled)
    assert now(saml).options["fieldsMap"] == {"email": ["mail", "urn:oid:1"], "name": "cn"}
    assert saved(browser, saml, **rows("fieldsMap", ("mail", "email"), ("mail", "email"))) == {
        "option_fieldsMap": ["Row 2: another row fills email already."]
    }
    assert now(saml).options["fieldsMap"] == {"email": ["mail", "urn:oid:1"], "name": "cn"}


def test_a_form_without_changes_keeps_every_stored_member_of_a_map(browser: Client, saml: Connection) -> None:
    options = {
        "fieldsMap": {"email": ["mail"], "name": 5, "department": "dept", "given_name": [], "nickname": ["a", 1]},
        "idpinitiated": {"enabled": False, "client_id": "shop"},
        "subject": {"format": "x"},
    }
    stored(saml, options=options)
    assert not saved(browser, saml, **sent_again(browser, saml), display_name="Company")
    assert (now(saml).display_name, now(saml).options) == ("Company", options)


def test_members_that_no_row_can_show_are_kept_until_their_checkbox_is_ticked(browser: Client, oidc: Connection) -> None:
    attributes = {"name": "${context.tokenset.cn}", "address": {"street": "${context.tokenset.street}"}}
    stored(oidc, options={"client_id": "c", "attribute_map": {"attributes": attributes, "userinfo_scope": "email"}})
    content = browser.get(page(oidc)).content.decode()
    assert 'name="option_attribute_map__attributes-removed" value="address"' in content
    assert "{ &quot;street&quot;: &quot;${context.tokenset.street}&quot; }" in content
    filled = {**OIDC, **USED, **rows("attribute_map__attributes", ("${context.tokenset.nick}", "nickname"))}
    others = {"options-name-0": "attribute_map.userinfo_scope", "options-value-0": "email"}
    assert not saved(browser, oidc, **filled, **others)
    kept = {"nickname": "${context.tokenset.nick}", "address": attributes["address"]}
    assert now(oidc).options["attribute_map"] == {"mapping_mode": "use_map", "attributes": kept, "userinfo_scope": "email"}
    assert not saved(browser, oidc, **filled, **others, **{"option_attribute_map__attributes-removed": "address"})
    assert now(oidc).options["attribute_map"]["attributes"] == {"nickname": "${context.tokenset.nick}"}


def test_a_stored_value_that_is_no_map_is_kept_until_its_checkbox_is_ticked(browser: Client, oidc: Connection) -> None:
    stored(oidc, options={"client_id": "c", "attribute_map": {"attributes": "all"}})
    filled = {**OIDC, **USED, **rows("attribute_map__attributes", ("${context.tokenset.cn}", "name"))}
    assert not saved(browser, oidc, **OIDC, display_name="Company")
    assert now(oidc).options["attribute_map"] == {"attributes": "all"}
    assert saved(browser, oidc, **filled) == {"option_attribute_map__attributes": ["Remove the stored value before you add rows."]}
    assert not saved(browser, oidc, **filled, **{"option_attribute_map__attributes-replaced": "on"})
    assert now(oidc).options["attribute_map"] == {"mapping_mode": "use_map", "attributes": {"name": "${context.tokenset.cn}"}}


def test_a_map_without_rows_and_rows_without_effect_are_refused_at_their_field(browser: Client, oidc: Connection) -> None:
    row = rows("attribute_map__attributes", ("${context.tokenset.cn}", "name"))
    assert saved(browser, oidc, **OIDC, **USED) == {
        "option_attribute_map__attributes": ["Add a row, or choose Standard claims under Source of the profile."]
    }
    assert saved(browser, oidc, **OIDC, **row) == {
        "option_attribute_map__mapping_mode": ["Choose Standard claims and map, or remove the rows of the attribute map."]
    }
    assert now(oidc).options == {"client_id": "c"}
    stored(oidc, options={"client_id": "c", "attribute_map": {"mapping_mode": "use_map"}})
    assert not saved(browser, oidc, **OIDC, **USED, display_name="Company")
    assert now(oidc).options["attribute_map"] == {"mapping_mode": "use_map"}
    assert not saved(browser, oidc, **OIDC, **USED, **row)
    assert not saved(browser, oidc, **OIDC, **row)
    assert now(oidc).options["attribute_map"] == {"attributes": {"name": "${context.tokenset.cn}"}}


def test_a_sealed_member_of_a_map_stays_when_all_rows_are_emptied(browser: Client, saml: Connection) -> None:
    options = {"fieldsMap": {"email": "mail", "token": {"a": "secret"}}}
    update_connection(tenant_id=saml.tenant_id, connection_id=saml.pk, changes={"options": options})
    assert list(now(saml).sealed_options) == ["fieldsMap/token"]
    assert not saved(browser, saml, **rows("fieldsMap", ("", "")))
    assert (now(saml).options, list(now(saml).sealed_options)) == ({"fieldsMap": {}}, ["fieldsMap/token"])


def test_parameters_for_the_provider_are_rows_with_their_source(browser: Client, oidc: Connection) -> None:
    keys = ("name", "source", "text")
    filled = rows("upstream_params", ("prompt", "value", "login"), ("login_hint", "alias", "hint"), ("", "value", ""), keys=keys)
    assert not saved(browser, oidc, **OIDC, **filled)
    assert now(oidc).options["upstream_params"] == {"prompt": {"value": "login"}, "login_hint": {"alias": "hint"}}
    refused = {
        ("", "value", "x"): "Row 1: enter a name.",
        ("a", "value", ""): "Row 1: enter a value for “a”.",
        ("a", "other", "x"): "Row 1: choose the source of “a”.",
    }
    for row, told in refused.items():
        assert saved(browser, oidc, **OIDC, **rows("upstream_params", row, keys=keys)) == {"option_upstream_params": [told]}
    both = rows("upstream_params", ("a", "value", "x"), ("a", "alias", "y"), keys=keys)
    assert saved(browser, oidc, **OIDC, **both) == {"option_upstream_params": ["Row 2: the name “a” appears twice."]}
    assert now(oidc).options["upstream_params"] == {"prompt": {"value": "login"}, "login_hint": {"alias": "hint"}}


def test_a_secret_among_parameters_is_refused_and_not_sent_back(browser: Client, tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="generic", strategy="oauth2", options={"client_id": "c"})
    filled = {"option_client_id": "c", **rows("authParams", ("client_secret", "typed-secret"), keys=("name", "text"))}
    answer = browser.post(page(row), filled)
    assert "client_secret is a secret." in str(answer.context["adminform"].form.errors["option_authParams"])
    assert "typed-secret" not in answer.content.decode()
    assert "authParams" not in now(row).options


def test_a_secret_that_is_entered_with_its_path_is_added_beside_the_stored_secrets(browser: Client, tenant: Tenant) -> None:
    options = {"client_id": "c", "customHeaders": {"X-One": "1"}}
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="generic", strategy="oauth2", options=options)
    required = {f"option_{name}": f"https://idp.example.test/{name}" for name in ("authorizationURL", "tokenURL", "userInfoURL")}
    sent = {"option_client_id": "c", **required, "more_secrets-name-0": "customHeaders/X-One", "more_secrets-value-0": "1"}
    assert not saved(browser, row, **sent, **{"more_secrets-name-1": "customHeaders/X-Two", "more_secrets-value-1": "2"})
    assert now(row).open_options()["customHeaders"] == {"X-One": "1", "X-Two": "2"}


def test_an_object_with_known_members_has_one_row_per_member(browser: Client, tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="people", options={"attributes": {"email": {"identifier": {"active": True}}}})
    content = browser.get(page(row)).content.decode()
    assert 'value="attributes.email.identifier.active"' in content
    assert "<textarea" not in content.partition("Other options")[2].partition("</fieldset>")[0]
    sent = {name: text for name, text in sent_again(browser, row).items() if name != "options"}
    named = ("attributes.email.identifier.active", "true"), ("attributes.email.profile_required", "true"), ("attributes.other.name", "x")
    filled = {
        f"options-{key}-{number}": text for number, pair in enumerate(named) for key, text in zip(("name", "value"), pair, strict=True)
    }
    clash = {"options-name-3": "attributes", "options-value-3": "x"}
    told = "“attributes” has a row, and its members have rows, too. Keep the row of “attributes” or the rows of its members."
    assert saved(browser, row, **sent, **filled, **clash) == {"options": [told]}
    assert now(row).options == row.options
    assert not saved(browser, row, **sent, **filled)
    assert now(row).options["attributes"] == {"email": {"identifier": {"active": True}, "profile_required": True}}
    assert now(row).open_options()["attributes"]["other.name"] == "x"


def test_a_form_of_a_database_connection_without_changes_keeps_its_options(browser: Client, tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="people")
    assert not saved(browser, row, **sent_again(browser, row), display_name="People")
    assert (now(row).display_name, now(row).options) == ("People", row.options)


def test_a_private_key_can_be_entered_and_is_never_shown(browser: Client, saml: Connection) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----"
    assert not saved(browser, saml, option_signing_key__key=pem, option_signing_key__cert="cert")
    assert (now(saml).options, list(now(saml).sealed_options)) == ({"signing_key": {"cert": "cert"}}, ["signing_key/key"])
    content = browser.get(page(saml)).content.decode()
    assert "MIIB" not in content
    assert "Set. Leave empty to keep it." in content
    assert not saved(browser, saml, option_signing_key__cert="")
    assert list(now(saml).sealed_options) == ["signing_key/key"]


def test_a_stored_list_of_certificates_stays_a_list(browser: Client, saml: Connection) -> None:
    stored(saml, options={"signingCert": ["one", "two"], "user_id_attribute": ["uid", "upn"]})
    assert not saved(browser, saml, **sent_again(browser, saml), display_name="Company")
    assert now(saml).options == {"signingCert": ["one", "two"], "user_id_attribute": ["uid", "upn"]}


def test_the_form_shows_the_profile_that_the_saved_map_creates(browser: Client, oidc: Connection) -> None:
    stored(
        oidc,
        options={"client_id": "c", "attribute_map": {"mapping_mode": "use_map", "attributes": {"nickname": "${context.tokenset.nick}"}}},
    )
    shown = browser.get(page(oidc)).context["mapped"]
    ((title, claims),) = shown["claims"]
    assert title == "ID token"
    assert ("nick", "ada") in claims
    assert (shown["sample"].tested_at, shown["profile"]["nickname"]) == (None, "ada")
    assert "Profile that the saved attribute map creates" in browser.get(page(oidc)).content.decode()


def test_the_form_of_a_database_connection_has_no_preview_of_a_profile(browser: Client, tenant: Tenant) -> None:
    assert browser.get(page(ConnectionFactory.create(tenant_id=tenant.pk))).context["mapped"] is None


def test_an_account_that_may_not_change_connections_sees_values_and_no_inputs(
    browser: Client, oidc: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_connection(
        tenant_id=oidc.tenant_id,
        connection_id=oidc.pk,
        changes={
            "options": {"client_id": "the-client", "client_secret": "never-shown", "attribute_map": MAP},
            "authentication": {"active": True},
        },
    )
    take_from_administrators(monkeypatch, "identity.change_connection")
    content = browser.get(page(oidc)).content.decode()
    assert "the-client" in content
    assert "name: ${context.tokenset.cn}" in content
    assert "never-shown" not in content
    assert 'name="option_client_id"' not in content
    assert 'name="authentication"' not in content
    assert browser.post(page(oidc), {**OIDC, "authentication": "off"}).status_code == 403
    assert now(oidc).authentication == {"active": True}


def test_the_connection_of_another_tenant_is_neither_shown_nor_changed(browser: Client) -> None:
    other = ConnectionFactory.create(tenant_id=new_tenant().pk, name="other", strategy="oidc", options={"client_id": "c"})
    assert browser.get(page(other)).status_code == 404
    assert browser.post(page(other), {**OIDC, "authentication": "on"}).status_code == 404
    assert now(other).authentication is None


def test_an_operator_sees_the_form_of_the_chosen_tenant_only(oidc: Connection, committed_db: None) -> None:
    operator = browser_of(new_staff(None))
    operator.post(reverse("admin:choose_tenant"), {"tenant": new_tenant().pk})
    assert operator.get(page(oidc)).status_code == 404


def browser_without_proof(tenant: Tenant) -> Client:
    """Return a browser of staff whose proof of identity is no longer recent."""
    browser = browser_of(new_staff(tenant))
    session = browser.session
    session["proof"] = {"at": 0, "by": "password"}
    session.save()
    return browser


def test_json_in_place_of_rows_requires_a_recent_proof(tenant: Tenant) -> None:
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="own", strategy="oauth2", options={"client_id": "c"})
    answer = browser_without_proof(tenant).post(page(connection), {"option_authParams": '{"client_secret": "planted"}'})
    assert answer.headers["location"].startswith("/admin/account/prove/?next=")
    assert now(connection).open_options() == {"client_id": "c"}


def test_a_certificate_does_not_replace_a_key_that_is_stored_without_a_certificate(browser: Client, saml: Connection) -> None:
    update_connection(tenant_id=saml.tenant_id, connection_id=saml.pk, changes={"options": {"decryptionKey": "secret-key"}})
    assert list(saved(browser, saml, option_decryptionKey__cert="certificate")) == ["option_decryptionKey__key"]
    assert now(saml).open_options() == {"decryptionKey": "secret-key"}
    assert not saved(browser, saml, option_decryptionKey__cert="certificate", option_decryptionKey__key="new-key")
    assert now(saml).open_options() == {"decryptionKey": {"cert": "certificate", "key": "new-key"}}


@pytest.mark.parametrize("stored_key", ["never-shown", {"key": "never-shown"}, {"cert": "public", "key": "never-shown"}])
def test_a_stored_key_is_shown_as_set_with_and_without_a_certificate(browser: Client, saml: Connection, stored_key: Any) -> None:
    update_connection(tenant_id=saml.tenant_id, connection_id=saml.pk, changes={"options": {"decryptionKey": stored_key}})
    answer = browser.get(page(saml))
    fields = answer.context["adminform"].form.fields
    assert "Set. Leave empty to keep it." in fields["option_decryptionKey__key"].help_text
    assert "Set." not in fields["option_signing_key__key"].help_text
    assert "never-shown" not in answer.content.decode()


def test_a_key_for_signatures_that_no_login_can_use_is_not_shown_as_set(
    browser: Client, saml: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"signing_key": "never-shown"}
    update_connection(tenant_id=saml.tenant_id, connection_id=saml.pk, changes={"options": options})
    assert "signing_key" in now(saml).sealed_options
    answer = browser.get(page(saml))
    assert "Set." not in answer.context["adminform"].form.fields["option_signing_key__key"].help_text
    take_from_administrators(monkeypatch, "identity.change_connection")
    assert shown_values(browser.get(page(saml)).content.decode())["Private key for signatures"] == "Not set"


@pytest.mark.parametrize("stored_key", ["never-shown", {"key": "never-shown"}, {"cert": "public", "key": "never-shown"}])
def test_an_account_that_may_not_change_a_connection_sees_that_a_key_is_set(
    browser: Client, saml: Connection, monkeypatch: pytest.MonkeyPatch, stored_key: Any
) -> None:
    update_connection(tenant_id=saml.tenant_id, connection_id=saml.pk, changes={"options": {"decryptionKey": stored_key}})
    take_from_administrators(monkeypatch, "identity.change_connection")
    content = browser.get(page(saml)).content.decode()
    assert shown_values(content)["Private key for decryption"] == "Set"
    assert shown_values(content)["Private key for signatures"] == "Not set"
    assert "never-shown" not in content


def shown_values(content: str) -> dict[str, str]:
    """Return the values of the read-only lines of a page, by the labels of the lines."""
    lines = re.findall(r'<label>([^<]+):</label>\s*<div class="readonly">(.*?)</div>', content, re.DOTALL)
    return {label: value.strip() for label, value in lines}


def test_a_save_keeps_the_line_breaks_of_a_stored_text(browser: Client, tenant: Tenant) -> None:
    options = {"email": {"body": "Your code\n{{ code }}\n"}}
    connection = ConnectionFactory.create(tenant_id=tenant.pk, name="mail", strategy="email", options=options)
    assert not saved(browser, connection, option_email__body="Your code\r\n{{ code }}\r\n", display_name="Company")
    assert now(connection).display_name == "Company"
    assert now(connection).options["email"]["body"] == "Your code\n{{ code }}\n"


def test_the_checkbox_of_a_stored_member_stays_ticked_after_an_error_elsewhere(browser: Client, oidc: Connection) -> None:
    stored(oidc, options={"client_id": "c", "attribute_map": {**MAP, "attributes": {"address": {"street": "claim"}}}})
    box = r'<input type="checkbox" name="option_attribute_map__attributes-removed" value="address"( checked)?>'
    sent = {**sent_again(browser, oidc), "option_attribute_map__attributes-removed": "address"}
    refused = browser.post(page(oidc), {**sent, "authentication": "maybe"}).content.decode()
    assert re.findall(box, refused) == [" checked"]
    assert re.findall(box, browser.get(page(oidc)).content.decode()) == [""]


def test_markup_in_the_name_of_a_stored_member_is_escaped(browser: Client, oidc: Connection) -> None:
    stored(oidc, authentication={"active": True, "<form action=//evil.example>": 1})
    assert "<form action=//evil" not in browser.get(page(oidc)).content.decode()


def test_removing_the_certificate_of_a_key_requires_a_recent_proof_but_changing_it_does_not(saml: Connection) -> None:
    options = {"signing_key": {"cert": "cert", "key": "secret-key"}}
    update_connection(tenant_id=saml.tenant_id, connection_id=saml.pk, changes={"options": options})
    browser = browser_without_proof(saml.tenant)
    assert not saved(browser, saml, option_signing_key__cert="another")
    assert now(saml).open_options() == {"signing_key": {"cert": "another", "key": "secret-key"}}
    answer = browser.post(page(saml), {"option_signing_key__cert": ""})
    assert answer.headers["location"].startswith("/admin/account/prove/?next=")
    assert now(saml).open_options() == {"signing_key": {"cert": "another", "key": "secret-key"}}
