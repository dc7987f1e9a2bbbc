"""Changes the branding and the theme of a tenant with the unmodified Python client. Runs in a separate Python environment."""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.core.api_error import ApiError  # type: ignore[import-untyped]  # as above


def refusal(call: Any, *arguments: Any, **named: Any) -> list[Any]:
    """Return the status and the code of the error that a call raises, or an empty list if it succeeds."""
    try:
        call(*arguments, **named)
    except ApiError as error:
        return [error.status_code, error.body.get("errorCode")]
    return []


def settings(client: Any, seen: dict[str, Any]) -> None:
    changed = client.branding.update(
        colors={"primary": "#0b6e4f", "page_background": "#f4f5fa"},
        logo_url="https://cdn.example.com/logo.png",
        favicon_url="https://cdn.example.com/icon.png",
        font={"url": "https://cdn.example.com/brand.woff2"},
    )
    read = client.branding.get()
    seen["settings"] = [read.colors.primary, read.logo_url, read.favicon_url, read.font.url, read.dict() == changed.dict()]
    seen["bad settings"] = refusal(client.branding.update, logo_url="javascript:alert(1)")


def themes(client: Any, seen: dict[str, Any], groups: dict[str, Any]) -> None:
    seen["none"] = refusal(client.branding.themes.get_default)
    made = client.branding.themes.create(**groups, display_name="Ours")
    seen["made"] = [made.display_name, made.widget.logo_height, made.fonts.title.size, made.colors.captcha_widget_theme]
    key = made.theme_id
    seen["same"] = client.branding.themes.get_default().dict() == client.branding.themes.get(key).dict()
    wide = {**groups, "page_background": {**groups["page_background"], "page_layout": "left"}}
    seen["updated"] = client.branding.themes.update(key, **wide).page_background.page_layout
    seen["second"] = refusal(client.branding.themes.create, **groups, request_options={"max_retries": 0})
    faint = {**groups, "colors": {**groups["colors"], "header": "#fdfdfd"}}
    seen["unreadable"] = refusal(client.branding.themes.update, key, **faint)
    client.branding.themes.delete(key)
    seen["gone"] = refusal(client.branding.themes.get, key)


def main() -> None:
    base_url, token, groups = sys.argv[1:]
    client = Auth0(base_url=base_url, token=token)
    seen: dict[str, Any] = {}
    settings(client, seen)
    themes(client, seen, json.loads(groups))
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main()
