"""What may go wrong with a request of an application that speaks WS-Federation."""

from __future__ import annotations

from enum import unique

from authapi.failures import Case


@unique
class WsFedCase(Case):
    # Shown on a page: no address of the application is trusted yet.
    OFF = 400, "invalid_request", "WS-Federation is off for this application: its add-on wsfed is not set."
