"""OpenAPI schemas of destinations in requests: one schema per type of destination."""

from __future__ import annotations

from foundation.api.operations import Schema

_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 4096}
_SHOWN: Schema = {"type": "string", "minLength": 1, "maxLength": 128}


def _closed(**members: Schema) -> Schema:
    return {"type": "object", "required": list(members), "additionalProperties": False, "properties": members}


def _of_type(name: str, configuration: Schema) -> Schema:
    return _closed(type={"type": "string", "enum": [name]}, configuration=configuration)


def _proof(method: str, **members: Schema) -> Schema:
    return _closed(method={"type": "string", "enum": [method]}, **members)


_WEBHOOK = _closed(
    webhook_endpoint={"type": "string", "format": "uri", "minLength": 1, "maxLength": 2048, "description": "An https address."},
    webhook_authorization={
        "oneOf": [
            _proof("basic", username=_SHOWN, password=_SECRET),
            _proof("bearer", token=_SECRET),
            _proof("custom_header", header_key=_SHOWN, header_value=_SECRET),
        ]
    },
)
_WEBHOOK["properties"]["webhook_signature"] = {
    **_proof("standard-webhooks", secret={**_SECRET, "description": "`whsec_` and base64 of 24 to 64 random bytes."}),
    "nullable": True,
}
DESTINATION: Schema = {
    "oneOf": [
        _of_type("action", _closed(action_id={"type": "string", "format": "uuid"})),
        _of_type("webhook", _WEBHOOK),
        _of_type("eventbridge", {"type": "object", "description": "Refused: this service does not deliver to EventBridge."}),
    ]
}
