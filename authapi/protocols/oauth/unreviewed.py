"""The warning on the consent page about a self-registered application: its name is not verified."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from authapi.login.wish import Circumstance, Terms
from authapi.models import Client


def warned(terms: Terms, client: Client, *, answers_to: str = "") -> Terms:
    """Return the terms. If a client registered itself and is not first-party, its terms get a warning and the host that gets the answer."""
    if not client.is_self_registered or client.is_first_party:
        return terms
    warning = _("This application registered itself, and its name is not verified. Allow it only if you know where it comes from.")
    place = urlsplit(answers_to).hostname or urlsplit(answers_to).scheme
    added = (Circumstance(_("You continue to"), place),) if place else ()
    joined = " ".join(text for text in (terms.warning, warning) if text)
    return replace(terms, circumstances=(*terms.circumstances, *added), warning=joined)
