"""Custom texts of hosted pages: `/prompts/{prompt}/custom-text/{language}`."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.custom_texts import PROMPTS
from authapi.services.custom_texts import LONGEST_TEXT, custom_texts_of, set_custom_texts
from foundation.api.endpoint import Endpoint
from foundation.api.fields import Closed, JsonObject
from foundation.api.operations import Operation, Schema
from foundation.api.refusals import invalid_body

_KEYS: Schema = {"type": "object", "additionalProperties": {"type": "string", "maxLength": LONGEST_TEXT}}
TEXTS: Schema = {
    "type": "object",
    "description": f"Texts by screen and key. Prompts with texts are {', '.join(PROMPTS)}.",
    "additionalProperties": _KEYS,
}
_MOST_SCREENS = 50


class CustomTexts(Closed):
    """Screens by name, each with its texts by key. `services.custom_texts` checks the names."""

    def get_fields(self) -> dict[str, Any]:
        """Return a field for every screen of every prompt, for the OpenAPI document. `services.custom_texts` checks which screens a prompt
        has."""
        return {name: JsonObject(required=False) for screens in PROMPTS.values() for name in screens}


class CustomTextEndpoint(Endpoint):
    """The texts of one prompt in one language."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation("get_custom_text", "Read the custom texts of a prompt in a language", ("read:prompts",), 200, TEXTS),
        "update": Operation(
            "set_custom_text",
            "Replace the custom texts of a prompt in a language; omitted or empty texts have their default",
            ("update:prompts",),
            200,
            TEXTS,
            CustomTexts,
        ),
    }

    def list(self, request: Request, prompt: str, language: str) -> Response:
        return Response(custom_texts_of(tenant_id=self.tenant_id, prompt=prompt, language=language))

    def update(self, request: Request, prompt: str, language: str) -> Response:
        if not isinstance(request.data, dict) or len(request.data) > _MOST_SCREENS:
            raise invalid_body("Expected type object", "body")
        return Response(set_custom_texts(tenant_id=self.tenant_id, prompt=prompt, language=language, texts=request.data))
