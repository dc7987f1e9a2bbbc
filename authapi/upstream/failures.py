"""The error of a failed login through a provider. Pure."""

from __future__ import annotations

from authapi.failures import Case, RequestRefused


class UpstreamFailed(RequestRefused):
    """A login through a provider failed. `detail` is for the sign-in log; users and clients get the text of the failure table only."""

    def __init__(self, case: Case, detail: str = "") -> None:
        super().__init__(case, told=detail)
        self.detail = detail
