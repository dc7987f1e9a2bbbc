"""The search field of the list of users. A term that names a field is a query in the syntax of the management interface."""

from __future__ import annotations

import re

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest

from identity.admin.scope import tenant_in_scope
from identity.models import User
from identity.search.compiling import compiled_search
from identity.search.queries import InvalidSearch
from identity.search.rows import UserConditions, is_indexed

# Matches a word, a colon and a value. Does not match email addresses.
_NAMES_A_FIELD = re.compile(r"(?:^|[\s(+-])[A-Za-z_][\w.\\]*:\S")
# A provider, a bar and an identifier, which may contain colons: `oidc|my-connection:123`. In a query, a colon comes before any bar.
_USER_ID = re.compile(r"[\w.-]+\|\S+")


def is_query(term: str) -> bool:
    """Tell whether a text names a field, as in `name:jo*`."""
    return not _USER_ID.fullmatch(term) and bool(_NAMES_A_FIELD.search(term))


def found_by_query(request: HttpRequest, rows: QuerySet[User], term: str, *, only_indexed: bool = False) -> QuerySet[User] | None:
    """Return the users that match a query. An error in the query is shown as a message, and the result is empty.

    With `only_indexed`, returns None for a query without a suitable index: for such a query, the database would read all rows one by one.
    """
    tenant_id = tenant_in_scope(request)
    if tenant_id is None:
        messages.error(request, "Choose a tenant first. A query searches the users of one tenant.")
        return rows.none()
    try:
        asked = compiled_search(term)
    except InvalidSearch as error:
        messages.error(request, f"Invalid search: {error}.")
        return rows.none()
    if only_indexed and not is_indexed(asked):
        return None
    return rows.filter(UserConditions(tenant_id).of(asked))
