"""Checks the shape of SCIM answers before they are used. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from provisioning.mapping.schemas import ERROR, LIST_RESPONSE, USER
from provisioning.runs.failures import InvalidResponseShape


@dataclass(frozen=True)
class ScimError:
    """The body of an error answer; missing members are empty strings."""

    scim_type: str = ""
    detail: str = ""
    # Whether the body has the schema of SCIM errors (RFC 7644, 3.12). Without this schema, a 404 may be about the route, and not about
    # the resource.
    is_scim: bool = False


def created_user(status: int, body: bytes) -> Mapping[str, Any]:
    """Return the user in a 2xx answer to a create; its `id` is a string (spec, "SCIM server requirements")."""
    document = _document("POST", status, body)
    _user_id(document, "POST", status)
    return document


def read_user(status: int, body: bytes, resource_id: str) -> dict[str, Any]:
    """Return the user in the answer to a GET by id; the answer must have the status 200 and the requested id (RFC 7644, 3.4.1)."""
    if status != 200:
        raise invalid_shape("GET", status, "200 with the user is expected")
    document = _document("GET", status, body)
    if _user_id(document, "GET", status) != resource_id:
        raise invalid_shape("GET", status, "the user has another id than requested")
    return dict(document)


def written_user(verb: str, status: int, body: bytes, resource_id: str) -> Mapping[str, Any]:
    """Return the user in a 2xx answer to PUT or PATCH: an empty object for 204, or the written user for 200 or 201.

    See RFC 7644, 3.5.1 and 3.5.2. All other answers raise `InvalidResponseShape`, and so does an answer whose user has no id or another id.
    """
    if status == 204 and not body:
        return {}
    if status not in (200, 201):
        raise invalid_shape(verb, status, "204 without a body, or 200 with the user, is expected")
    document = _document(verb, status, body)
    if _user_id(document, verb, status) != resource_id:
        raise invalid_shape(verb, status, "the user has another id than the written user")
    return document


def check_deleted(status: int) -> None:
    """Accept 204 as answer to DELETE, and also 200 and 202, which some servers send; raise `InvalidResponseShape` otherwise."""
    if status not in (200, 202, 204):
        raise invalid_shape("DELETE", status, "204 is expected")


def found_resources(status: int, body: bytes) -> list[dict[str, Any]]:
    """Return the resources in the answer to a filter. The answer must have the status 200; one invalid element invalidates the list."""
    if status != 200:
        raise invalid_shape("GET", status, "200 with a ListResponse is expected")
    document = _document("GET", status, body)
    _check_schemas(document, LIST_RESPONSE, "GET", status)
    resources = document.get("Resources")
    if not isinstance(resources, list):
        raise invalid_shape("GET", status, "a ListResponse with a Resources array is expected")
    for resource in resources:
        if not isinstance(resource, dict) or not is_id(resource.get("id")):
            raise invalid_shape("GET", status, "every resource needs a string id")
    return resources


def scim_error(body: bytes) -> ScimError:
    """Parse the body of an error answer, whose content may be anything. Accepts SCIM 1.1 errors as well."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ScimError()
    if not isinstance(document, dict):
        return ScimError()
    schemas = document.get("schemas")
    errors = document.get("Errors")
    legacy = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else {}
    return ScimError(
        scim_type=_text(document.get("scimType")),
        detail=_text(document.get("detail")) or _text(legacy.get("description")),
        is_scim=isinstance(schemas, list) and ERROR in schemas,
    )


def invalid_shape(verb: str, status: int, expected: str) -> InvalidResponseShape:
    """Return a failure with the text that the spec requires ("Provisioning action", rule 1)."""
    return InvalidResponseShape(
        f"invalid response shape: {verb} answered {status}, but {expected} (RFC 7644)", status=status, scim_type="invalidResponseShape"
    )


def is_id(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _document(verb: str, status: int, body: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid_shape(verb, status, "a JSON object is expected") from error
    if not isinstance(document, dict):
        raise invalid_shape(verb, status, "a JSON object is expected")
    return document


def _user_id(document: Mapping[str, Any], verb: str, status: int) -> str:
    _check_schemas(document, USER, verb, status)
    identifier = document.get("id")
    if not isinstance(identifier, str) or not is_id(identifier):
        raise invalid_shape(verb, status, "a User with a string id is expected")
    return identifier


def _check_schemas(document: Mapping[str, Any], expected: str, verb: str, status: int) -> None:
    """Refuse a document whose `schemas` lack `expected`. A document without `schemas` is checked by its content only."""
    schemas = document.get("schemas")
    if schemas is not None and not (isinstance(schemas, list) and expected in schemas):
        raise invalid_shape(verb, status, f"schemas with {expected} are expected")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
