"""A login elsewhere that failed. Pure."""

from __future__ import annotations

from authapi.failures import Case, RequestRefused


class UpstreamFailed(RequestRefused):
    """A login elsewhere failed. `detail` is for the tenant's log; people and clients are told the row of the table only."""

    def __init__(self, case: Case, detail: str = "") -> None:
        super().__init__(case, told=detail)
        self.detail = detail
