"""The addresses of `/authorize`, of its pages and of logouts."""

from __future__ import annotations

from django.urls import URLPattern, path

from authapi.pages.consent import consent_page
from authapi.pages.login import login_page
from authapi.pages.select_account import select_account_page
from authapi.views.authorize import authorize
from authapi.views.logout import confirmed_logout, logged_out, plain_logout, rp_logout


def sign_in_urls() -> list[URLPattern]:
    """Return the addresses at which people log in and out."""
    return [
        path("authorize", authorize),
        path("u/login", login_page),
        path("u/consent", consent_page),
        path("u/select-account", select_account_page),
        path("v2/logout", plain_logout),
        path("oidc/logout", rp_logout),
        path("u/logout", confirmed_logout),
        path("u/logged-out", logged_out),
    ]
