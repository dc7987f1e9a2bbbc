"""The URL of a list cannot filter by columns that the admin hides."""

from __future__ import annotations

import pytest
from django.db import models
from django.test import Client
from django.urls import reverse

from config.console.admin_site import site
from identity.models import Tenant
from tests.factories.models.identity import StaffFactory

_PASSWORD = "Correct-Horse-7-Battery"
# Columns with secrets, by the label of the model.
_HIDDEN = {
    "identity.staff": ("password",),
    "identity.passwordcredential": ("password_hash",),
    "authapi.client": ("secret_digest", "sealed_secret"),
    "authapi.refreshtoken": ("sealed_successor", "token_checksum"),
    "authapi.signingkey": ("sealed_private_key",),
    "authapi.samlkey": ("sealed_private_key",),
    "provisioning.actionsecret": ("sealed",),
}
_ASKED = [(label, column) for label, columns in _HIDDEN.items() for column in columns]
_MODELS = {model._meta.label_lower: model for model in site._registry}


@pytest.fixture
def browser(tenant: Tenant) -> Client:
    browser = Client(headers={"host": "localhost"})
    browser.force_login(StaffFactory.create(tenant_id=tenant.pk, email=f"staff@{tenant.pk}.example.test", password=_PASSWORD))
    return browser


def _list_of(model: type[models.Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@pytest.mark.parametrize(("label", "column"), _ASKED)
@pytest.mark.parametrize("lookup", ["", "__startswith", "__gte"])
def test_a_list_cannot_be_filtered_by_a_hidden_column(browser: Client, label: str, column: str, lookup: str) -> None:
    model = _MODELS[label]
    model._meta.get_field(column)

    assert browser.get(_list_of(model), {f"{column}{lookup}": "a"}).status_code == 400


@pytest.mark.parametrize("label", sorted(_MODELS))
def test_every_filter_of_a_list_works(browser: Client, label: str) -> None:
    page = site.get_model_admin(_MODELS[label])
    offered = [name for name in page.list_filter if isinstance(name, str)]

    answers = [browser.get(_list_of(_MODELS[label]), {f"{name}__isnull": "False"}).status_code for name in offered]

    assert set(answers) <= {200}
