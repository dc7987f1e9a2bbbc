"""Errors of requests of WS-Federation applications."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class WsFedCase(Case):
    # This error is shown on a page, because no URL of the application is trusted yet.
    OFF = 400, "invalid_request", "WS-Federation is off for this application: its add-on wsfed is not set."
