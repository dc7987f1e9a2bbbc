"""Recipes and metadata of applications are converted to settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from authapi.api.addon_bodies import SamlAddon
from authapi.api.client_bodies import ClientToChange
from authapi.protocols.saml.metadata import read_partner
from authapi.protocols.saml.names import EMAIL_ADDRESS, EMAIL_NAME
from authapi.protocols.saml.partners import proposed
from authapi.protocols.saml.recipes import recipes
from authapi.protocols.saml.settings import settings_of
from authapi.xml.bindings import HTTP_POST, HTTP_REDIRECT
from authapi.xml.certificates import pem_of
from tests.authapi.protocols.saml.test_metadata import CONSUMER, key_of, partner
from tests.authapi.xml.signed_messages import trusted

ROOT = Path(__file__).resolve().parents[4]
LOGOUTS = "".join(
    f'<md:SingleLogoutService Binding="{binding}" Location="https://sp.test/{place}"/>'
    for binding, place in ((HTTP_REDIRECT, "redirect"), (HTTP_POST, "post"))
)


@pytest.mark.parametrize("name", list(recipes()))
def test_a_recipe_is_a_valid_add_on(name: str) -> None:
    recipe = recipes()[name]
    callbacks, addon = recipe.filled("acme")
    judge = SamlAddon(data=addon)
    assert judge.is_valid(), judge.errors
    assert ClientToChange(data={"callbacks": callbacks}).is_valid()
    assert "{place}" not in f"{callbacks}{addon}"
    assert settings_of(addon).audience
    assert recipe.there
    assert recipe.where


def test_the_manual_names_each_of_the_ten_recipes() -> None:
    assert len(recipes()) == 10
    page = (ROOT / "docs/how-to/saml-applications.md").read_text()
    assert [recipe.title for recipe in recipes().values() if recipe.title not in page] == []


def test_a_placeholder_value_with_quotes_stays_text() -> None:
    callbacks, addon = recipes()["slack"].filled('a", "issuer": "x')
    assert "issuer" not in addon
    assert callbacks == ['https://a", "issuer": "x.slack.com/sso/saml']


def test_metadata_is_converted_to_settings() -> None:
    facts = read_partner(
        partner(
            key_of("first", ' use="signing"'),
            key_of("second", ' use="encryption"'),
            LOGOUTS,
            f"<md:NameIDFormat>urn:x</md:NameIDFormat><md:NameIDFormat>{EMAIL_NAME}</md:NameIDFormat>",
            CONSUMER,
            attributes=' AuthnRequestsSigned="true"',
        )
    )
    found = proposed(facts, {"lifetimeInSeconds": 60})
    assert found.callbacks == ("https://sp.test/acs",)
    assert found.addon == {
        "lifetimeInSeconds": 60,
        "audience": "urn:sp",
        "logout": {"callback": "https://sp.test/post", "slo_enabled": True},
        "binding": HTTP_POST,
        "signingCert": pem_of(trusted()),
        "nameIdentifierFormat": EMAIL_NAME,
        "nameIdentifierProbes": [EMAIL_ADDRESS],
    }
    assert len(found.notes) == 2
    assert proposed(facts, {}, encrypts=True).addon["encryptionCert"] == pem_of(trusted("second"))
    assert SamlAddon(data=dict(found.addon)).is_valid()


def test_a_certificate_in_metadata_does_not_make_signatures_required() -> None:
    found = proposed(read_partner(partner(key_of("first", ' use="signing"'), CONSUMER)), {})
    assert "signingCert" not in found.addon
    assert "left out" in found.notes[0]


def test_the_default_address_comes_first_and_each_address_keeps_its_index() -> None:
    other = f'<md:AssertionConsumerService Binding="{HTTP_POST}" Location="https://sp.test/other" index="0"/>'
    found = proposed(read_partner(partner(other, CONSUMER)), {})
    assert found.callbacks == ("https://sp.test/acs", "https://sp.test/other")
    settings = settings_of(found.addon)
    assert (settings.address_at(2), settings.address_at(0)) == ("https://sp.test/acs", "https://sp.test/other")
