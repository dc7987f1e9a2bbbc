"""Adds the attribute `externalId` to the filter of django-scim2, which does not contain it by default."""

from __future__ import annotations

from django_scim.filters import UserFilterQuery


class UserFilter(UserFilterQuery):
    """Without the additional entry of the map, a filter on `externalId` finds no user."""

    attr_map = {**UserFilterQuery.attr_map, ("externalId", None, None): "scim_external_id"}
