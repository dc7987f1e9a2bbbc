"""Selects the language of a response by the user's preference, among the enabled languages of the tenant that have a catalogue.

Outside of `speaking` all texts are English: the admin, the management interface and the worker. Decision: docs/adr/0099.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils import dateformat, translation
from django.utils.translation.trans_real import parse_accept_lang_header

if TYPE_CHECKING:
    from identity.models import User

# Formats of dates and times, in the syntax of Django's `date` filter. The admin has its own formats (`config/formats`).
_MOMENTS = {
    "en": "j F Y, H:i",
    "de": r"j. F Y, H:i",
    "fr": r"j F Y \à H:i",
    "es": r"j \d\e F \d\e Y, H:i",
    "ja": "Y年n月j日 H:i",
    "ar": "j F Y، H:i",
}
# Limits for preferences: an attacker can send as many as fit into a request. No registered tag has more than 35 characters (RFC 5646,
# 4.4.1).
_MOST_WISHES, _LONGEST_TAG = 20, 35
# Names in `user_metadata` under which applications store the language of a user, in the order of preference.
LANGUAGE_NAMES = ("lang", "language", "locale", "preferred_language")


@dataclass(frozen=True)
class Language:
    """A language with a catalogue: its English name, its own name, and whether it is written from right to left."""

    code: str
    name: str
    own_name: str
    is_rtl: bool


def _known_languages() -> dict[str, Language]:
    named = ((code, name, translation.get_language_info(code)) for code, name in settings.LANGUAGES)
    return {code: Language(code, str(name), info["name_local"], info["bidi"]) for code, name, info in named}


LANGUAGES = _known_languages()
DEFAULT = settings.LANGUAGE_CODE

_read_enabled: Callable[[str], Sequence[str]] | None = None
# The language of the present request; empty if the user has not chosen one.
_asked: ContextVar[str] = ContextVar("asked_language", default="")
_is_speaking: ContextVar[bool] = ContextVar("is_speaking", default=False)


def let_tenants_enable(read: Callable[[str], Sequence[str]]) -> None:
    """Register `read(tenant_id)`, which returns the languages that a tenant enables.

    This setting of tenants is in another app, which this app does not import.
    """
    global _read_enabled
    _read_enabled = read


def enabled_languages(tenant_id: str) -> tuple[str, ...]:
    """Return the enabled languages of a tenant that have a catalogue, its default first. Never empty."""
    named = _read_enabled(tenant_id) if _read_enabled is not None else ()
    return tuple(code for code in named if code in LANGUAGES) or (DEFAULT,)


def spoken_language(tenant_id: str, *, wished: Iterable[str] = (), accept_language: str = "") -> str:
    """Return the language of a user: the first enabled preference, else the best enabled language of the header, else the default."""
    enabled = enabled_languages(tenant_id)
    return named_language(enabled, wished=wished, accept_language=accept_language) or enabled[0]


def named_language(enabled: Sequence[str], *, wished: Iterable[str] = (), accept_language: str = "") -> str:
    """Return the first enabled language of `wished`, else of the header `Accept-Language`; empty if none is enabled.

    The search follows the lookup of RFC 4647, 3.4: `de-AT` finds `de`. Ignores tags that are malformed or too long, and all tags beyond the
    maximum number of tags.
    """
    ranges = [*[wish for _, wish in zip(range(_MOST_WISHES), wished, strict=False)], *_preferred(accept_language)]
    return next((found for one in ranges if (found := _lookup(one, enabled))), "")


def language_for(user: User | None, tenant_id: str, *, asked: str = "") -> str:
    """Return the language of a mail or text message: the language of the request that caused it, else of the user, else the tenant's
    default.
    """
    return spoken_language(tenant_id, wished=[asked, *own_languages(user)])


def own_languages(user: User | None) -> list[str]:
    """Return the languages that applications have stored for a user, best first. Ignores values that are not text."""
    known = user.user_metadata if user is not None and isinstance(user.user_metadata, dict) else {}
    return [text for name in LANGUAGE_NAMES if isinstance(text := known.get(name), str)]


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Activate a language within the block. Raises `ValueError` for a language without a catalogue."""
    _require(language)
    spoken, is_speaking = _asked.set(language), _is_speaking.set(True)
    try:
        with translation.override(language):
            yield
    finally:
        _asked.reset(spoken)
        _is_speaking.reset(is_speaking)


def speak(language: str) -> None:
    """Switch the language until the innermost `speaking` block ends. Pages that find the user only after the block has begun need this
    function.

    Raises `RuntimeError` outside of `speaking`: the thread would keep the language for its next request.
    """
    _require(language)
    if not _is_speaking.get():
        raise RuntimeError("A language lasts for a block: call `speak` within `speaking`.")
    _asked.set(language)
    translation.activate(language)


@contextmanager
def asked_in(language: str) -> Iterator[None]:
    """Use this language for messages that the block causes, such as a mail, while the response stays English. Empty means no choice."""
    token = _asked.set(language)
    try:
        yield
    finally:
        _asked.reset(token)


def asked_language() -> str:
    """Return the language of the present request; empty if the user has not chosen one."""
    return _asked.get()


def written_time(moment: datetime) -> str:
    """Return a time in UTC, in the format of the active language."""
    code = translation.get_language() or DEFAULT
    return dateformat.format(moment.astimezone(UTC), _MOMENTS[code if code in _MOMENTS else DEFAULT])


def _require(language: str) -> None:
    if language not in LANGUAGES:
        raise ValueError(f"There is no catalogue of the language {language[:_LONGEST_TAG]!r}: {', '.join(LANGUAGES)}.")


def _preferred(header: str) -> list[str]:
    """Return the language ranges of a header, best first (RFC 9110, 12.5.4), without those of weight 0.

    Empty for a malformed header. Django reads the first 500 characters.
    """
    return [tag for tag, weight in parse_accept_lang_header(header) if weight > 0]


def _lookup(tag: str, enabled: Sequence[str]) -> str:
    if len(tag) > _LONGEST_TAG:
        return ""
    # Programs write `de_DE` for the tag `de-DE` of RFC 5646.
    parts = tag.lower().replace("_", "-").split("-")
    while parts:
        candidate = "-".join(parts)
        if candidate in enabled:
            return candidate
        parts.pop()
        # Also remove a single-letter subtag: it only introduces the subtag after it, which was just removed (RFC 4647, 3.4).
        if parts and len(parts[-1]) == 1:
            parts.pop()
    return ""
