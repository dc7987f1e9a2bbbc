"""Which language is spoken: the languages that have a catalogue, those that a tenant enables, and the one that a person asks for.

Outside of `speaking` everything is English: the admin, the management interface and the worker. Decision: docs/adr/0099.
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

# How a moment is written, in the letters of Django's templates. The admin has formats of its own (`config/formats`).
_MOMENTS = {
    "en": "j F Y, H:i",
    "de": r"j. F Y, H:i",
    "fr": r"j F Y \à H:i",
    "es": r"j \d\e F \d\e Y, H:i",
    "ja": "Y年n月j日 H:i",
    "ar": "j F Y، H:i",
}
# An attacker sends as many and as long ones as the request may hold. RFC 5646, 4.4.1: no registered tag is longer than 35.
_MOST_WISHES, _LONGEST_TAG = 20, 35
# Where applications keep the language of a user, in the order in which they are asked.
LANGUAGE_NAMES = ("lang", "language", "locale", "preferred_language")


@dataclass(frozen=True)
class Language:
    """A language with a catalogue: its English name, its own, and whether it is written from right to left."""

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
# The language of the request that is being answered, empty where no person has asked.
_asked: ContextVar[str] = ContextVar("asked_language", default="")
_is_speaking: ContextVar[bool] = ContextVar("is_speaking", default=False)


def let_tenants_enable(read: Callable[[str], Sequence[str]]) -> None:
    """Let `read(tenant_id)` say which languages a tenant enables; the settings of tenants are above this app."""
    global _read_enabled
    _read_enabled = read


def enabled_languages(tenant_id: str) -> tuple[str, ...]:
    """Return the languages that a tenant enables and that have a catalogue, its default first; never empty."""
    named = _read_enabled(tenant_id) if _read_enabled is not None else ()
    return tuple(code for code in named if code in LANGUAGES) or (DEFAULT,)


def spoken_language(tenant_id: str, *, wished: Iterable[str] = (), accept_language: str = "") -> str:
    """Return the language for a person: the first wish that the tenant enables, else of the header, else the tenant's default."""
    enabled = enabled_languages(tenant_id)
    return named_language(enabled, wished=wished, accept_language=accept_language) or enabled[0]


def named_language(enabled: Sequence[str], *, wished: Iterable[str] = (), accept_language: str = "") -> str:
    """Return the first of the wishes, then of the header `Accept-Language`, that is enabled; empty where none is.

    A lookup of RFC 4647, 3.4: `de-AT` finds `de`. What is malformed, too long or too much is left out.
    """
    ranges = [*[wish for _, wish in zip(range(_MOST_WISHES), wished, strict=False)], *_preferred(accept_language)]
    return next((found for one in ranges if (found := _lookup(one, enabled))), "")


def language_for(user: User | None, tenant_id: str, *, asked: str = "") -> str:
    """Return the language of a mail or message: the one of the request that caused it, else the user's, else the tenant's default."""
    return spoken_language(tenant_id, wished=[asked, *own_languages(user)])


def own_languages(user: User | None) -> list[str]:
    """Return what applications have noted as the language of a user, best first; nothing that is no text."""
    known = user.user_metadata if user is not None and isinstance(user.user_metadata, dict) else {}
    return [text for name in LANGUAGE_NAMES if isinstance(text := known.get(name), str)]


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Speak a language within the block, and what was spoken before after it. Raises `ValueError` for one without a catalogue."""
    _require(language)
    spoken, is_speaking = _asked.set(language), _is_speaking.set(True)
    try:
        with translation.override(language):
            yield
    finally:
        _asked.reset(spoken)
        _is_speaking.reset(is_speaking)


def speak(language: str) -> None:
    """Go on in another language until the innermost `speaking` ends, for a page that learns later whose login it shows.

    Raises `RuntimeError` outside of one: the thread would keep the language and answer the next request in it.
    """
    _require(language)
    if not _is_speaking.get():
        raise RuntimeError("A language lasts for a block: call `speak` within `speaking`.")
    _asked.set(language)
    translation.activate(language)


@contextmanager
def asked_in(language: str) -> Iterator[None]:
    """Let what the block causes, such as a mail, be in this language, while the answer stays English; empty says nothing."""
    token = _asked.set(language)
    try:
        yield
    finally:
        _asked.reset(token)


def asked_language() -> str:
    """Return the language of the request that is being answered; empty where no person has asked for one."""
    return _asked.get()


def written_time(moment: datetime) -> str:
    """Return a moment of UTC as the spoken language writes it."""
    code = translation.get_language() or DEFAULT
    return dateformat.format(moment.astimezone(UTC), _MOMENTS[code if code in _MOMENTS else DEFAULT])


def _require(language: str) -> None:
    if language not in LANGUAGES:
        raise ValueError(f"There is no catalogue of the language {language[:_LONGEST_TAG]!r}: {', '.join(LANGUAGES)}.")


def _preferred(header: str) -> list[str]:
    """Return the language ranges of a header, best first (RFC 9110, 12.5.4); weight 0 is a refusal.

    A malformed header has none. Django reads the first 500 characters.
    """
    return [tag for tag, weight in parse_accept_lang_header(header) if weight > 0]


def _lookup(tag: str, enabled: Sequence[str]) -> str:
    if len(tag) > _LONGEST_TAG:
        return ""
    # `de_DE` is how programs write what RFC 5646 writes as `de-DE`.
    parts = tag.lower().replace("_", "-").split("-")
    while parts:
        candidate = "-".join(parts)
        if candidate in enabled:
            return candidate
        parts.pop()
        # A single letter introduces what was just removed (RFC 4647, 3.4).
        if parts and len(parts[-1]) == 1:
            parts.pop()
    return ""
