"""Fixtures: one tenant per test file. Each test runs one module of the suite, in variants of the plans that contain the module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.authapi.conftest import _nothing_remembered as _nothing_remembered
from tests.conformance.openid.bank import Bank, new_bank
from tests.conformance.openid.plans import BankVariant, Variant, ids, name_of_test, variants_of
from tests.conformance.openid.provider import Provider, new_provider
from tests.conformance.openid.relying_party import RelyingParty, new_party
from tests.depth import IS_DEEP, sample

_MODULES = {name_of_test(module): module for module in ids()}
# The number of variants in which a normal run tests each module. Different modules get different variants, so each variant is tested with
# many modules.
_USUAL = 1


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the test of a module in one variant of its plans, chosen by the name of the module. A deep run uses all variants."""
    if "variant" not in metafunc.fixturenames:
        return
    module = _MODULES[metafunc.function.__name__]
    variants = sample(variants_of(module), module, _USUAL)
    is_part = not IS_DEEP and len(variants) < len(variants_of(module))
    marks = [pytest.mark.sized] if is_part or IS_DEEP else []
    metafunc.parametrize("variant", [pytest.param(one, id=str(one), marks=marks) for one in variants])


@pytest.fixture(scope="module")
def provider(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Provider]:
    """The provider under test: a tenant with one user."""
    with django_db_blocker.unblock():
        yield new_provider()


@pytest.fixture
def party(provider: Provider, variant: Variant) -> RelyingParty:
    """A client with a browser in which no user is logged in."""
    return new_party(provider, variant)


@pytest.fixture
def bank(provider: Provider, variant: BankVariant) -> Bank:
    """A client that follows FAPI 2.0."""
    return new_bank(provider, variant)
