"""Renders each response as JSON, encoded once, without regard to the header `Accept`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class JsonAnswer(BaseRenderer):
    """`application/json; charset=utf-8`."""

    media_type = "application/json"
    format = "json"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None) -> bytes:
        return b"" if data is None else orjson.dumps(data)


class AlwaysJson(BaseContentNegotiation):
    """Chooses the parser by content type and never refuses an `Accept` header: client libraries send `*/*` or invalid values."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        sent = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type
