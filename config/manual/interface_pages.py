"""The pages of the management interface, from the OpenAPI document: one page about what all operations share, and one for each resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from config.api import openapi_document
from config.manual.interface_words import RESOURCES
from config.manual.markdown import code, codes, contents, page, table

_METHODS = ("get", "post", "put", "patch", "delete")
_INTRODUCTION = """# Management interface

{count} operations below `https://<host of the tenant>/api/v2`. Their OpenAPI 3 document is <a href="openapi.json">openapi.json</a>;
a running service serves the document at `/api/v2/openapi.json`, and Swagger UI at `/api/docs` on the platform's host.

```sh
curl https://id.example.com/api/v2/users -H "Authorization: Bearer $TOKEN"
```

- **Token.** A bearer token whose audience is `https://<host of the tenant>/api/v2/`. The client is a global client or has a client grant.
  The scopes are listed beside each operation: of scopes joined by *or*, one is enough; scopes joined by *and* are all required.
- **Rates.** Each response has `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`; above the limit the status is 429.
- **Errors** have [one body](../errors.md#management-interface). Every operation may answer {common}; further statuses are listed
  with the operation.
- **Lists** have pages. Select a page by `page` and `per_page`, or use the checkpoint form: `take` requests the first items, and `from`
  the items after the last row of the previous page. If events report changes of the rows, the first page of the list has the header
  `X-Events-Cursor` ([how to keep a copy](../../how-to/snapshot-and-stream.md)).
- **Bodies** are JSON or form-encoded; a body with a member that is not described is refused.
- **Client libraries** of another vendor work unmodified with this interface: [the operations that they can use](client-libraries.md).
- **Labels.** An operation without a label is generally available. Other operations have a label after their summary.
"""
_GENERALLY_AVAILABLE = "Generally Available"


@dataclass(frozen=True)
class _Operation:
    """One operation of the document, with its method and path."""

    method: str
    path: str
    described: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.described["operationId"])

    @property
    def summary(self) -> str:
        label = self.described["x-release-lifecycle"]
        return f"{self.described['summary']}{'' if label == _GENERALLY_AVAILABLE else f' *({label})*'}"

    @property
    def scopes(self) -> str:
        alternatives = [scheme["client_credentials"] for scheme in self.described["security"] if scheme.get("client_credentials")]
        return " or ".join(" and ".join(code(scope) for scope in together) for together in alternatives) or "any"

    @property
    def statuses(self) -> list[str]:
        return list(self.described["responses"])

    @property
    def title(self) -> str:
        return f"{self.method.upper()} {self.path}"


def overview_page() -> str:
    """Return the page of what all operations share, with a table of the resources."""
    rows = ((f"[{_title(name)}]({name}.md)", RESOURCES[name], str(len(operations))) for name, operations in _by_resource().items())
    count = sum(len(operations) for operations in _by_resource().values())
    return page(
        _INTRODUCTION.format(count=count, common=codes(sorted(_common_statuses()))),
        "## Resources",
        table(("Resource", "What it is", "Operations"), rows),
        contents(),
    )


def resource_pages() -> dict[str, str]:
    """Return the pages of the resources by their names."""
    return {name: _resource_page(name, operations) for name, operations in _by_resource().items()}


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    return dict(orjson.loads(openapi_document()))


def _by_resource() -> dict[str, list[_Operation]]:
    found: dict[str, list[_Operation]] = {}
    for path, methods in _document()["paths"].items():
        for method in _METHODS:
            if method in methods:
                operation = _Operation(method, path, methods[method])
                found.setdefault(operation.described["tags"][0], []).append(operation)
    return dict(sorted(found.items()))


def _title(name: str) -> str:
    return name.replace("-", " ").capitalize()


def _common_statuses() -> set[str]:
    everywhere = [{status for status in each.statuses if status >= "400"} for some in _by_resource().values() for each in some]
    return set.intersection(*everywhere)


def _resource_page(name: str, operations: list[_Operation]) -> str:
    rows = ((code(each.title), each.summary, each.scopes, _answers(each)) for each in operations)
    return page(
        f"# {_title(name)}",
        f"{RESOURCES[name][:1].upper()}{RESOURCES[name][1:]}.",
        table(("Operation", "What it does", "Scope", "Answers"), rows),
        *(_operation_block(each) for each in operations),
    )


def _answers(operation: _Operation) -> str:
    common = _common_statuses()
    return ", ".join(status for status in operation.statuses if status not in common)


def _operation_block(operation: _Operation) -> str:
    parameters = [each for each in operation.described.get("parameters", []) if each["in"] != "path"]
    body = _body_fields(operation)
    if not parameters and not body:
        return ""
    return page(
        f"## {code(operation.title)}",
        f"`{operation.id}`: {operation.summary}.",
        table(("Parameter", "Type", "Meaning"), _parameter_rows(parameters)) if parameters else "",
        _body_table(body) if body else "",
    )


def _parameter_rows(parameters: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for each in parameters:
        name = code(each["name"]) + (" (header)" if each["in"] == "header" else "") + (" (needed)" if each.get("required") else "")
        yield name, _type(each["schema"]), each.get("description", "")


def _body_table(members: list[tuple[str, str, str, str]]) -> str:
    """Return the table of a body. The table has the column of meanings only if a member has a meaning."""
    columns = ("Member of the body", "Type", "Needed", "Meaning")
    shown = len(columns) if any(meaning for *_, meaning in members) else len(columns) - 1
    return table(columns[:shown], (member[:shown] for member in members))


def _body_fields(operation: _Operation) -> list[tuple[str, str, str, str]]:
    """Return each member of a body: its name, its type, whether it is needed, and its meaning."""
    content = operation.described.get("requestBody", {}).get("content", {})
    # All content types of one body have the same members.
    schema = next((_resolved(form["schema"]) for form in content.values()), {})
    if schema.get("type") == "array":
        schema = _resolved(schema["items"])
    required = schema.get("required", [])
    members = schema.get("properties", {})
    return [
        (code(name), _type(member), "yes" if name in required else "", member.get("description", "")) for name, member in members.items()
    ]


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return dict(_document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if len(schema.get("allOf", [])) == 1:
        return _resolved(schema["allOf"][0])
    return schema


def _type(schema: dict[str, Any]) -> str:
    schema = {**_resolved(schema), **{name: value for name, value in schema.items() if name == "default"}}
    if "enum" in schema:
        words = _choices([value for value in schema["enum"] if value not in {"", None}])
    elif "oneOf" in schema:
        words = " or ".join(dict.fromkeys(_type(each) for each in schema["oneOf"]))
    elif schema.get("type") == "array":
        words = f"list of {_type(schema.get('items', {}))}"
    else:
        words = {"string": "text", "boolean": "true or false", "object": "object"}.get(
            str(schema.get("type")), str(schema.get("type", "any"))
        )
    return words + _bounds(schema) + ("" if schema.get("default") in {None, ""} else f"; default {code(_literal(schema['default']))}")


def _choices(values: list[Any]) -> str:
    return codes(str(value) for value in values) if len(values) <= 8 else f"one of {len(values)}, such as {code(str(values[0]))}"


def _bounds(schema: dict[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f", {least} to {most}"
    if least is not None:
        return f", at least {least}"
    return f", at most {schema['maxLength']} characters" if "maxLength" in schema else ""


def _literal(value: Any) -> str:
    return orjson.dumps(value).decode() if isinstance(value, bool) else str(value)
