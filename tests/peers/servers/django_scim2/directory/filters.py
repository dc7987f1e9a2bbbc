"""The filter of django-scim2 with the attribute that it does not map by itself."""

from __future__ import annotations

from django_scim.filters import UserFilterQuery


class UserFilter(UserFilterQuery):
    """Without this row a filter on `externalId` finds no user at all."""

    attr_map = {**UserFilterQuery.attr_map, ("externalId", None, None): "scim_external_id"}
