"""Which options of a connection clients can read back, and which options are sealed, for every strategy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from identity.options.schemas import DATABASE, SCHEMAS, schema_of
from identity.options.schemas.nodes import Members, is_declared, is_kept, joined, names_of, path_of, secret_paths, split
from tests.factories.option_secrets import options_with_secrets

# By strategy: options that clients write and must be able to read back.
ORDINARY: dict[str, dict[str, Any]] = {
    "oidc": {
        "client_id": "c",
        "issuer": "https://idp.example.test",
        "scope": "openid email",
        "type": "back_channel",
        "upstream_params": {"screen_name": {"alias": "login_hint"}, "tenant": {"value": "x"}},
        "attribute_map": {"mapping_mode": "use_map", "attributes": {"address": {"street": "${context.tokenset.street}"}}},
        "connection_settings": {"pkce": "auto"},
        "oidc_metadata": {"issuer": "https://idp.example.test", "grant_types_supported": ["authorization_code"]},
        "domain_aliases": ["example.test"],
    },
    "samlp": {
        "signInEndpoint": "https://idp.example.test/saml?idp=1",
        "signingCert": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "fieldsMap": {"email": ["mail", "urn:oid:1"], "password": "urn:oid:2"},
        "idpinitiated": {"enabled": True, "client_id": "c", "client_protocol": "oauth2", "client_authorizequery": "scope=openid"},
        "signing_key": {"cert": "public"},
        "decryptionKey": {"cert": "public"},
        "thumbprints": ["aa"],
    },
    "pingfederate": {"pingFederateBaseUrl": "https://ping.example.test", "signSAMLRequest": True, "expires": "2030-01-01"},
    "adfs": {"adfs_server": "https://adfs.example.test", "fedMetadataXml": "<xml/>", "user_id_attribute": "upn"},
    "ad": {"ips": ["10.0.0.0/8"], "kerberos": True, "certAuth": False, "agentVersion": "6.1", "certs": ["aa"]},
    "auth0-adldap": {"ips": ["10.0.0.0/8"]},
    "waad": {"client_id": "c", "tenant_domain": "example.test", "ext_groups": True, "ext_refresh_token": True, "identity_api": "v2"},
    "google-apps": {"client_id": "c", "domain": "example.test", "api_enable_users": True, "scope": ["email"]},
    "google-oauth2": {
        "client_id": "c",
        "gmail": True,
        "allowed_audiences": ["a"],
        "scope": ["email"],
        "attribute_map": {"mapping_mode": "use_map", "attributes": {"name": "${context.tokenset.nick}"}},
    },
    "oauth2": {"client_id": "c", "authorizationURL": "https://a.example.test", "tokenURL": "https://t.example.test", "pkce_enabled": True},
    "apple": {"client_id": "c", "team_id": "t", "kid": "k"},
    "facebook": {"client_id": "c", "user_birthday": False},
    "github": {"client_id": "c", "admin_public_key": True},
    "email": {
        "email": {"from": "a@example.test", "subject": "s", "syntax": "liquid", "body": "<b>"},
        "totp": {"length": 6, "time_step": 180},
    },
    "sms": {
        "from": "+123",
        "template": "{{ password }}",
        "twilio_sid": "AC1",
        "gateway_url": "https://sms.example.test/send",
        "gateway_authentication": {"method": "bearer", "audience": "a", "subject": "s", "secret_base64_encoded": True},
    },
}
ORDINARY_DATABASE = {
    "passwordPolicy": "good",
    "password_dictionary": {"enable": True, "dictionary": ["abc"]},
    "password_options": {"history": {"active": True, "size": 3}},
    "attributes": {"username": {"identifier": {"active": True}, "validation": {"allowed_types": {"email": False}}}},
    "authentication_methods": {"password": {"enabled": True}, "passkey": {"enabled": False}},
    "configuration": {},
    "custom_password_hash": {"action_id": "a"},
}


@pytest.mark.parametrize("strategy", sorted(ORDINARY))
def test_ordinary_options_are_read_back_as_they_were_written(strategy: str) -> None:
    parts = split(schema_of(strategy, is_database=False), ORDINARY[strategy])
    assert (parts.shown, parts.secrets) == (ORDINARY[strategy], {})


def test_ordinary_options_of_a_database_connection_are_read_back_as_they_were_written() -> None:
    parts = split(DATABASE, ORDINARY_DATABASE)
    assert (parts.shown, parts.secrets) == (ORDINARY_DATABASE, {})


@pytest.mark.parametrize("strategy", [*SCHEMAS, "database", "unheard-of"])
def test_every_secret_is_sealed_and_restored_to_its_path(strategy: str) -> None:
    schema = schema_of(strategy, is_database=strategy == "database")
    options, hidden = options_with_secrets(strategy, is_database=strategy == "database")
    parts = split(schema, options)

    assert [path for path, text in hidden.items() if text in json.dumps(parts.shown)] == []
    assert [text for text in hidden.values() if text in repr(parts)] == []
    assert joined(parts.shown, parts.secrets) == options


def test_five_names_are_names_of_secrets_in_every_strategy() -> None:
    for strategy in SCHEMAS:
        declared = set(secret_paths(schema_of(strategy, is_database=False)))
        assert {"client_secret", "password", "private_key", "bindPassword", "token"} <= declared, strategy


@pytest.mark.parametrize(
    ("strategy", "options", "sealed"),
    [
        ("oidc", {"clientSecret": "x"}, ["clientSecret"]),
        ("oidc", {"client_id": {"id": "x"}}, ["client_id"]),
        ("oidc", {"client_id": [["x"]]}, ["client_id"]),
        ("oidc", {"oidc_metadata": {"issuer": "i", "client_secret": "x"}}, ["oidc_metadata/client_secret"]),
        ("oidc", {"upstream_params": {"a/b": {"secret": "x"}}}, ["upstream_params/a~1b/secret"]),
        ("oidc", {"issuer": "https://a:b@idp.example.test"}, ["issuer"]),
        ("samlp", {"signingCert": "-----BEGIN RSA PRIVATE KEY-----\nx"}, ["signingCert"]),
        ("samlp", {"decryptionKey": "x"}, ["decryptionKey"]),
        ("samlp", {"signing_key": {"cert": "c", "key": "x", "passphrase": "y"}}, ["signing_key/key", "signing_key/passphrase"]),
        ("sms", {"gateway_url": "https://sms.example.test/?token=x"}, ["gateway_url"]),
        ("sms", {"gateway_authentication": "x"}, ["gateway_authentication"]),
        ("oauth2", {"customHeaders": {"Authorization": "x"}}, ["customHeaders/Authorization"]),
        ("oauth2", {"tokenURL": "https://t.example.test/?key=x"}, ["tokenURL"]),
        ("oauth2", {"userInfoURL": "https://u.example.test/?key=x"}, ["userInfoURL"]),
        ("samlp", {"metadataUrl": "https://m.example.test/?token=x"}, ["metadataUrl"]),
        ("twitter", {"authParams": {"client_secret": "x", "prompt": "login"}}, ["authParams/client_secret"]),
        ("oauth2", {"fieldsMap": [{"a": "x"}]}, ["fieldsMap"]),
        ("email", {"": "x", "~": "y"}, ["", "~0"]),
    ],
)
def test_members_outside_the_schema_are_sealed(strategy: str, options: dict[str, Any], sealed: list[str]) -> None:
    parts = split(schema_of(strategy, is_database=False), options)
    assert list(parts.secrets) == sealed
    assert joined(parts.shown, parts.secrets) == options


def test_a_null_value_is_not_sealed() -> None:
    parts = split(schema_of("oidc", is_database=False), {"client_secret": None, "unknown": None, "icon_url": None})
    assert (parts.shown, parts.secrets) == ({"icon_url": None}, {})


def test_paths_distinguish_names_with_slashes_and_tildes() -> None:
    for names in (("a/b", "c"), ("a", "b/c"), ("~1", "/"), ("",), ("", "")):
        assert tuple(names_of(path_of(names))) == names


@pytest.mark.parametrize(
    ("shown", "sent", "expected"),
    [
        # The change does not name the member.
        ({}, {}, True),
        ({"a": {"r": 1}}, {"a": {"r": 2}}, True),
        ({"a": {"r": 1}}, {"a": {}}, True),
        ({}, {"b": 1}, True),
        # The change names the member, or replaces the object around it.
        ({"a": {"r": 1}}, {"a": {"s": None}}, False),
        ({"a": {"r": 1}}, {"a": {"s": "new"}}, False),
        ({"a": {"r": 1}}, {"a": None}, False),
        ({"a": {"r": 1}}, {"a": "text"}, False),
        ({"a": {"r": 1}}, {"a": [{"s": 1}]}, False),
        # The client can read the object around the member. A request without the object removes it.
        ({"a": {"r": 1}}, {}, False),
    ],
)
def test_a_sealed_member_is_kept_unless_a_change_replaces_or_removes_it(
    shown: dict[str, Any], sent: dict[str, Any], expected: bool
) -> None:
    assert is_kept("a/s", shown=shown, sent=sent) is expected


def test_declared_secrets_are_distinguished_from_unknown_members() -> None:
    saml: Members = schema_of("samlp", is_database=False)
    declared = {path: is_declared(saml, path) for path in ("signing_key/key", "decryptionKey", "client_secret", "unknown", "fieldsMap")}
    assert declared == {"signing_key/key": True, "decryptionKey": True, "client_secret": True, "unknown": False, "fieldsMap": False}
