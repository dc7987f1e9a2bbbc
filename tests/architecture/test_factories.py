"""Each model has one factory, which all tests use."""

from __future__ import annotations

from collections import Counter

from django.apps import apps
from django.db import models

from tests.factories.admin import Rows
from tests.factories.models.identity import TenantFactory
from tests.factories.models.registry import FACTORIES, WITHOUT_A_FACTORY, factories

OURS = ("identity", "authapi", "events", "provisioning")


def models_of_ours() -> list[type[models.Model]]:
    return [model for name in OURS for model in apps.get_app_config(name).get_models()]


def test_every_model_has_one_factory_or_a_reason_for_having_none() -> None:
    made = Counter(factory._meta.model._meta.label_lower for factory in factories())
    labels = {model._meta.label_lower for model in models_of_ours()}

    assert labels - set(made) == set(WITHOUT_A_FACTORY)
    assert [label for label, count in made.items() if count > 1] == []


def test_every_factory_creates_a_row(committed_db: None) -> None:
    rows = Rows(TenantFactory.create())

    for model in FACTORIES:
        assert rows.of(model).pk is not None, model._meta.label_lower
