"""Links in the menu of a row's page. A link opens another page and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest


@dataclass(frozen=True)
class ObjectLink:
    """A link that the page of a row shows to accounts with `permission`, which the linked page requires.

    `address` returns the URL of the linked page. An empty URL hides the link for rows to which it does not apply.
    """

    name: str
    label: str
    address: Callable[[Any], str]
    permission: str

    def is_for(self, request: HttpRequest) -> bool:
        """Tell whether the account may open the linked page."""
        return request.user.has_perm(self.permission)
