"""Request bodies for organizations and their connections."""

from __future__ import annotations

from rest_framework import serializers

from foundation.api.fields import Closed, JsonObject, ListOf, Switch, Text
from identity.api.relation_bodies import connection_id
from identity.models.organizations import ACCESS_LEVELS

_MOST_METADATA = 25
_LEVELS = [name for name, _ in ACCESS_LEVELS]


class EnabledConnectionToChange(Closed):
    """The flags of `enabled_connections`, the older form."""

    assign_membership_on_login = Switch(required=False)
    show_as_button = Switch(required=False)
    is_signup_enabled = Switch(required=False)


class EnabledConnectionToAdd(EnabledConnectionToChange):
    connection_id = connection_id()


class OrganizationConnectionToChange(EnabledConnectionToChange):
    """The flags of `connections`, the newer form; null clears a flag."""

    is_enabled = Switch(required=False)
    organization_connection_name = Text(required=False, max_length=50, allow_null=True)
    organization_access_level = serializers.ChoiceField(required=False, choices=_LEVELS, allow_null=True)
    organization_member_access_level = serializers.ChoiceField(required=False, choices=_LEVELS, allow_null=True)


class OrganizationConnectionToAdd(OrganizationConnectionToChange):
    connection_id = connection_id()


class OrganizationSettings(Closed):
    """Members of both request bodies: to create and to change an organization."""

    display_name = Text(required=False, max_length=255, allow_null=True)
    branding = JsonObject(required=False, allow_null=True)
    metadata = JsonObject(required=False, most=_MOST_METADATA, texts=True, allow_null=True)
    token_quota = JsonObject(required=False, allow_null=True)
    third_party_client_access = Text(required=False, max_length=32, allow_null=True)
    is_app_entitlement_active = Switch(required=False, allow_null=True)


class OrganizationToChange(OrganizationSettings):
    name = Text(required=False, max_length=50)


class OrganizationToCreate(OrganizationSettings):
    name = Text(max_length=50)
    enabled_connections = ListOf(required=False, child=EnabledConnectionToAdd())


KEPT = ("token_quota", "third_party_client_access", "is_app_entitlement_active")
