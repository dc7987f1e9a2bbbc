"""`{% text "login.login.title" %}{% translate "Log in" %}{% endtext %}`: the text of the tenant, otherwise the text inside the tag."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.base import Node, NodeList, Parser, Token
from django.template.context import Context
from django.template.exceptions import TemplateSyntaxError
from django.utils.html import conditional_escape

from authapi.custom_texts import PROMPTS, custom_text

register = template.Library()
_WORDS = 2


class TextNode(Node):
    """A text that a tenant may replace. The text of the service is `inside` and may contain HTML; the text of the tenant is escaped."""

    child_nodelists = ("inside",)

    def __init__(self, path: str, inside: NodeList) -> None:
        self.path = path
        self.inside = inside

    def render(self, context: Context) -> str:
        own = custom_text(self.path, "", **placeholder_values(context))
        # Django escapes variables, but not the output of a tag.
        return conditional_escape(own) if own else self.inside.render(context)


@register.tag
def text(parser: Parser, token: Token) -> TextNode:
    """Mark a text that a tenant may replace. Raises `TemplateSyntaxError` for a path that is not in texts.toml."""
    words = token.split_contents()
    if len(words) != _WORDS or words[1][:1] != words[1][-1:] or words[1][:1] not in "\"'":
        raise TemplateSyntaxError('Write {% text "prompt.screen.key" %}.')
    path = words[1][1:-1]
    prompt, screen, key = [*path.split("."), "", ""][:3]
    if screen not in PROMPTS.get(prompt, {}) or key not in PROMPTS[prompt][screen].texts:
        raise TemplateSyntaxError(f"templates/hosted/texts.toml has no text {path}.")
    inside = parser.parse(("endtext",))
    parser.delete_first_token()
    return TextNode(path, inside)


def placeholder_values(context: Context) -> dict[str, str]:
    """Return the values of the placeholders from the context of a page, unescaped."""
    # The address to which a page has sent a message.
    address = context.get("address")
    client, user, link, invitation = (context.get(name) for name in ("client", "user", "link", "invitation"))
    return {
        "clientName": _first(client, "name", "client_id"),
        "userName": _first(user, "email", "name", "username", "user_id"),
        "inviterName": _member(invitation, "inviter"),
        "organizationName": _member(invitation, "organization"),
        "address": address if isinstance(address, str) else "",
        "connectionName": _member(link, "name"),
    }


def _first(row: Any, *names: str) -> str:
    return next((str(value) for name in names if (value := getattr(row, name, None))), "")


def _member(found: Any, name: str) -> str:
    return str(found.get(name, "")) if isinstance(found, dict) else ""
