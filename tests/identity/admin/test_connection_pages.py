"""The pages of connections in the admin. A form can write secrets, but no page shows a stored secret."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from identity.models import Connection, Job, Tenant, User
from identity.services import deletions
from identity.services.connections import update_connection
from identity.services.failures import Invalid
from tests.factories.models.identity import ConnectionFactory, UserFactory

SECRET = "the-secret-of-the-directory"


@pytest.fixture
def company(tenant: Tenant) -> Connection:
    return ConnectionFactory.create(
        tenant_id=tenant.pk, name="company", strategy="oidc", options={"client_id": "x", "client_secret": SECRET}
    )


def page(connection: Connection, name: str = "change") -> str:
    return reverse(f"admin:identity_connection_{name}", args=(quote(connection.pk),))


def now(connection: Connection) -> Connection:
    return Connection.objects.of(connection.tenant_id).get(pk=connection.pk)


def test_a_secret_option_is_never_shown(browser: Client, company: Connection) -> None:
    shown = browser.get(page(company)).content.decode()

    assert SECRET not in shown
    assert company.sealed_options["client_secret"] not in shown
    assert "Set. Leave empty to keep it." in shown


def test_a_secret_is_kept_when_other_options_change(browser: Client, company: Connection) -> None:
    answer = browser.post(page(company), {"options": '{"client_id": "y"}'})

    assert answer.headers.get("location") == reverse("admin:identity_connection_changelist"), answer.content.decode()
    assert now(company).options == {"client_id": "y"}
    assert now(company).secret_option("client_secret") == SECRET


def test_a_new_value_replaces_a_secret_and_null_removes_it(browser: Client, company: Connection) -> None:
    browser.post(page(company), {"options": '{"client_id": "x", "client_secret": "another"}'})
    assert now(company).secret_option("client_secret") == "another"

    browser.post(page(company), {"options": '{"client_id": "x", "client_secret": null}'})
    assert now(company).secret_option("client_secret") is None


def test_a_secret_without_a_field_has_a_masked_row_in_which_it_can_be_changed(browser: Client, tenant: Tenant, company: Connection) -> None:
    options = {"client_id": "x", "pin": "1234", "upstream": {"key": "k"}}
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="other", strategy="oidc", options=options)
    shown = browser.get(page(row)).content.decode()
    assert 'name="more_secrets-name-0" value="pin" readonly' in shown
    assert 'type="password" name="more_secrets-value-0"' in shown
    assert "1234" not in shown

    kept = {"option_client_id": "x", "more_secrets-name-0": "pin", "more_secrets-value-0": ""}
    browser.post(page(row), kept)
    assert now(row).secret_option("pin") == "1234"
    browser.post(page(row), {**kept, "more_secrets-value-0": "5678", "more_secrets-name-2": "token", "more_secrets-value-2": "t"})
    assert (now(row).secret_option("pin"), now(row).secret_option("token")) == ("5678", "t")
    browser.post(page(row), {**kept, "more_secrets-removed": "pin"})
    assert (now(row).secret_option("pin"), now(row).secret_option("token")) == (None, "t")


def test_options_without_a_field_of_their_own_are_shown_and_saved_as_rows(browser: Client, tenant: Tenant) -> None:
    row = ConnectionFactory.create(tenant_id=tenant.pk, name="other", strategy="ad", options={"agentVersion": "x", "kerberos": True})
    shown = browser.get(page(row)).content.decode()
    assert 'name="options-name-0" value="agentVersion"' in shown
    assert 'name="options-value-0" value="x"' in shown

    sent = {"option_kerberos": "on", "options-name-0": "agentVersion", "options-value-0": "y", "options-name-1": "", "options-value-1": ""}
    browser.post(page(row), sent)
    assert now(row).options == {"agentVersion": "y", "kerberos": True}


def test_a_refused_form_does_not_show_the_secrets_that_were_entered_in_rows(browser: Client, company: Connection) -> None:
    sent = {"name": "company", "strategy": "oidc", "option_client_id": "x", "more_secrets-name-0": "pin", "more_secrets-value-0": "typed"}
    shown = browser.post(reverse("admin:identity_connection_add"), sent).content.decode()

    assert "already exists" in shown
    assert "Enter these again: pin." in shown
    assert 'name="more_secrets-name-0" value="pin"' in shown
    assert "typed" not in shown


def test_a_refused_form_does_not_show_the_secrets_that_were_entered_as_json(browser: Client, company: Connection) -> None:
    options = (
        '{"client_id": "y", "issuer": "https://a:b@idp.example.test", "client_secret": "typed-secret", "unknown": {"pin": "typed-too"}}'
    )
    answer = browser.post(
        reverse("admin:identity_connection_add"), {"name": "company", "strategy": "oidc", "options": options, "display_name": "Shown"}
    )

    said = answer.content.decode()
    assert answer.status_code == 200
    assert "already exists" in said
    assert "Enter these again: client_secret, issuer, unknown." in said
    assert ("Shown" in said, "client_id" in said) == (True, True)
    assert [text for text in ("typed-secret", "typed-too", "a:b@") if text in said] == []


def test_a_changed_url_requires_the_secret_that_is_sent_to_it(browser: Client, company: Connection) -> None:
    answer = browser.post(page(company), {"options": '{"client_id": "x", "issuer": "https://elsewhere.example.test"}'})

    assert "send client_secret again" in answer.content.decode()
    assert now(company).options == {"client_id": "x"}


def test_an_option_with_an_on_off_object_refuses_unknown_members(browser: Client, company: Connection) -> None:
    sent = {"options": '{"client_id": "x"}', "authentication": '{"active": true, "password": "x"}'}
    answer = browser.post(page(company), sent)

    assert list(answer.context["adminform"].form.errors) == ["authentication"]
    assert now(company).authentication is None

    with pytest.raises(Invalid, match="Expected an object with active"):
        update_connection(
            tenant_id=company.tenant_id, connection_id=company.pk, changes={"authentication": {"active": True, "password": "x"}}
        )


def test_the_form_reports_a_name_that_another_connection_has(browser: Client, company: Connection) -> None:
    answer = browser.post(reverse("admin:identity_connection_add"), {"name": "company", "strategy": "samlp"})

    assert "already exists" in answer.content.decode()


def test_the_name_and_the_strategy_cannot_be_changed(browser: Client, company: Connection) -> None:
    browser.post(page(company), {"name": "renamed", "strategy": "samlp", "display_name": "Company", "options": '{"client_id": "x"}'})

    assert (now(company).name, now(company).strategy, now(company).display_name) == ("company", "oidc", "Company")


def test_the_page_says_that_deleting_a_connection_deletes_its_users_first(browser: Client, company: Connection) -> None:
    UserFactory.create(tenant_id=company.tenant_id, connection=company, identifier="a", email="a@example.test")

    assert "All users of the connection are deleted first" in browser.get(page(company, "delete")).content.decode()
    browser.post(page(company, "delete"), {"post": "yes"})

    assert not Connection.objects.of(company.tenant_id).exists()
    assert not User.objects.of(company.tenant_id).exists()


def test_a_large_deletion_lists_the_rows_to_delete_and_shows_its_progress(
    browser: Client, company: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "CHUNK_ROWS", 2)
    for number in range(6):
        UserFactory.create(tenant_id=company.tenant_id, connection=company, identifier=str(number), email=f"{number}@example.test")

    assert "<li>6 users</li>" in browser.get(page(company, "delete")).content.decode()
    assert "Deletion" not in browser.get(reverse("admin:identity_connection_changelist")).content.decode().partition("<thead>")[2]
    said = browser.post(page(company, "delete"), {"post": "yes"}, follow=True).content.decode()

    job = Job.objects.of(company.tenant_id).get()
    assert f'<a href="{reverse("admin:identity_job_change", args=(quote(job.pk),))}">job {job.pk}</a>' in said
    assert "Being deleted, 33 %" in said
    assert "Being deleted, 33 %" in browser.get(page(company)).content.decode()
    assert "is being deleted" in browser.post(page(company), {"display_name": "New", "options": '{"client_id": "x"}'}).content.decode()


def test_metadata_is_edited_in_rows_but_realms_and_applications_in_text_areas(browser: Client, company: Connection) -> None:
    fields = {"metadata-name-0": "owner", "metadata-value-0": "sales", "realms": "company\nheadquarters", "enabled_clients": "one\n\ntwo"}

    browser.post(page(company), {"options": '{"client_id": "x"}', **fields})

    changed = now(company)
    assert (changed.metadata, changed.realms) == ({"owner": "sales"}, ["company", "headquarters"])
    assert sorted(changed.enabled_clients) == ["one", "two"]
    assert 'value="owner"' in browser.get(page(company)).content.decode()


def test_a_user_without_a_name_is_shown_with_the_email_address(browser: Client, company: Connection) -> None:
    UserFactory.create(tenant_id=company.tenant_id, connection=company, identifier="a", email="ada@example.test")

    (panel,) = browser.get(f"{page(company)}?tab=users").context["panels"]
    assert [(row[0].text, row[0].note) for row in panel.rows] == [("ada@example.test", "")]


def test_the_tab_of_users_needs_the_same_number_of_queries_for_more_users(
    browser: Client, company: Connection, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    place, make = f"{page(company)}?tab=users", partial(UserFactory.create, tenant_id=company.tenant_id, connection=company)
    user = make(identifier="a", email="ada@example.test", name="Ada Lovelace")
    browser.get(place)

    with CaptureQueriesContext(connection) as queries:
        (panel,) = browser.get(place).context["panels"]
    person = panel.rows[0][0]
    assert (person.text, person.note, person.copied) == ("Ada Lovelace", "ada@example.test", user.user_id)
    assert person.url == reverse("admin:identity_user_change", args=(quote(user.pk),))

    for number in range(5):
        make(identifier=str(number), email=f"{number}@example.test", name=f"User {number}")
    with django_assert_num_queries(len(queries)):
        assert len(browser.get(place).context["panels"][0].rows) == 6
