"""The error of a failed login through a provider. Pure."""

from __future__ import annotations

from authapi.failures import Case, RequestRefused


class UpstreamFailed(RequestRefused):
    """A login through a provider failed. `detail` is for the sign-in log. Users and clients get only the text of `case`."""

    def __init__(self, case: Case, detail: str = "") -> None:
        super().__init__(case, told=detail)
        self.detail = detail
