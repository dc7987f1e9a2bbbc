"""Makes django-scim2 filter users by the attribute `externalId`, which it does not support by default."""

from __future__ import annotations

from django_scim.filters import UserFilterQuery


class UserFilter(UserFilterQuery):
    """A filter whose map also contains `externalId`. Without this entry, a filter on `externalId` finds no user."""

    attr_map = {**UserFilterQuery.attr_map, ("externalId", None, None): "scim_external_id"}
