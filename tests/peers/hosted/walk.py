"""A user with a browser in one language, with or without scripts: the actions of the user, and the checks of each page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from django.utils import translation
from django.utils.translation import gettext

from authapi.login.cookies import SESSION, cookie_name
from config.catalogues.catalogues import read_catalogue, strings_of
from config.catalogues.sources import texts_of_source
from config.launcher.peers import PLACE
from identity.models import User
from tests.factories.sign_in import PASSWORD, session_of
from tests.peers.chromium import Page
from tests.peers.hosted.world import EMAIL, NAMES, World

AXE = PLACE / "node_modules" / "axe-core" / "axe.min.js"
PHONE, DESKTOP = (360, 740), (1280, 800)
# Windows, each with width, height and scale factor. The second window is a desktop window with a zoom of 200 %, so it is half as wide.
_NARROW = ((320, 640, 1), (640, 400, 2), (*PHONE, 1), (*DESKTOP, 1))
_LOOKS = tuple((size, scheme) for size in (PHONE, DESKTOP) for scheme in ("light", "dark"))
# The rules that axe applies by default, and the rule for the target size of WCAG 2.2.
_ALL_RULES = "rules: {'target-size': {enabled: true}}"
# Rules whose result depends on the window or the colors. The other rules check only the HTML, which is the same in every window.
_RULES_OF_LOOKS = "runOnly: ['color-contrast', 'target-size', 'link-in-text-block', 'scrollable-region-focusable']"
_RUN_AXE = (
    "axe.run(document, {{resultTypes: ['violations'], {rules}}})"
    ".then((found) => found.violations.map(({{id, nodes}}) => [id, nodes[0].html, nodes[0].failureSummary]))"
)
_TOO_WIDE = """(() => {
  const room = document.documentElement.clientWidth;
  const outside = [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() && !one.closest('.visually-hidden, svg'))
    .filter((one) => { const box = one.getBoundingClientRect(); return box.width && (box.left < -1 || box.right > room + 1); });
  return [document.documentElement.scrollWidth - room, ...outside.map((one) => one.outerHTML.slice(0, 100))];
})()"""
# The texts of the page, including attributes that screen readers read. Identifiers and elements in another language are left out.
_TEXTS = """(() => {
  const found = document.title.split(' · '), skipped = 'script, style, code, bdi, body [lang], [hidden]';
  const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) if (!nodes.currentNode.parentElement.closest(skipped)) found.push(nodes.currentNode.data);
  for (const name of ['title', 'alt', 'aria-label', 'placeholder'])
    for (const one of document.querySelectorAll(`body [${name}]`)) found.push(one.getAttribute(name));
  return found.map((text) => text.replace(/\\s+/g, ' ').trim()).filter((text) => text);
})()"""
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w+\}")


class Walk:
    """A user in a tab with its own profile. Each call of `look` checks one state of a page."""

    def __init__(self, world: World, language: str, *, has_script: bool, pictures: Path | None = None) -> None:
        self.world = world
        self.language = language
        self.has_script = has_script
        self._pictures = pictures
        self.page = self._new_page()
        self.looks = 0

    def _new_page(self) -> Page:
        page = self.world.browser.page()
        page.send("Network.enable")
        page.send("Network.setExtraHTTPHeaders", headers={"Accept-Language": self.language})
        page.send("Emulation.setFocusEmulationEnabled", enabled=True)
        page.show_as()
        page.without_script(is_off=not self.has_script)
        return page

    def unique(self, name: str) -> str:
        """Return an email address that only this walk uses. It names the language, and whether the walk has scripts."""
        return f"{name}-{self.language}-{'script' if self.has_script else 'plain'}@example.test"

    def change_browser(self) -> None:
        """Continue in a new tab with a new profile, as in another browser without cookies."""
        self.page = self._new_page()

    def log_in_silently(self, user: User | None = None, **session: Any) -> None:
        """Give the browser the cookie of a new session, as after a completed login."""
        _, cookie = session_of(user or self.world.user, **session)
        self.page.send("Network.setCookie", name=cookie_name(SESSION), value=cookie, url=self.world.service)

    def open(self, address: str) -> None:
        self.page.open(self.world.service + address if address.startswith("/") else address)

    def post(self, path: str, fields: dict[str, str]) -> None:
        """Send a form from a page of another site to the service."""
        inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
        form = f'<form method="post" action="{self.world.service}{path}">{inputs}<button type="submit"></button></form>'
        self.open(f"{self.world.origin}/callback")
        self.page.evaluate(f"document.body.innerHTML = {json.dumps(form)}")
        self.follow("button")

    @contextmanager
    def loading_without_script(self) -> Iterator[None]:
        """Load pages without their scripts while the block runs, because a script would continue to the next page at once."""
        self.page.without_script()
        yield
        self.page.without_script(is_off=not self.has_script)

    def ask(self, client: str, **asked: str) -> None:
        """Start a login of this client with additional parameters."""
        self.open(self.world.authorize(client, **asked))

    def follow(self, selector: str) -> None:
        """Click a link or a button, and wait for the next page."""
        self.world.browser.forget()
        self.page.evaluate("window.isOld = true")
        self.page.click(selector)
        self.page.until("!window.isOld && document.readyState === 'complete' && location.href !== 'about:blank'")

    def submit(self, button: str = "form button[type=submit]:not(.link)", **fields: str) -> None:
        """Fill in the main form of the page and submit it with a button."""
        for name, value in fields.items():
            self.page.fill(f"[name={name}]", value)
        self.follow(button)

    def submit_login(self, email: str = EMAIL, password: str = PASSWORD) -> None:
        self.submit(username=email, password=password)

    # --- Checks --------------------------------------------------------------------------------------------------------------

    def look(self, heading: str, says: str = "", *, status: int = 200) -> None:
        """Check the open page: its heading, texts, status and language, and that it has no defect in any window and color scheme."""
        self.looks += 1
        place = f"{heading!r} {says!r}"
        with translation.override(self.language):
            assert self.page.text("h1") == gettext(heading), (place, self.page.evaluate("location.href"), self.page.text())
            assert gettext(says) in self.page.text(), (place, self.page.text())
        assert self.status() == status, place
        direction = "rtl" if self.language == "ar" else "ltr"
        assert self.page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [self.language, direction], place
        foreign = foreign_texts(self.page.evaluate(_TEXTS), self.language)
        assert foreign == [], (place, foreign)
        assert self._complaints() == [], place
        for width, height, factor in _NARROW:
            self._resize(width, height, factor)
            assert self.page.evaluate(_TOO_WIDE) == [0], (place, width)
        self._look_with_axe(place)
        self.page.show_as()

    def _look_with_axe(self, place: str) -> None:
        if not self.has_script:
            self._picture(place)
            return
        self.page.evaluate(_source_of_axe())
        for number, ((width, height), scheme) in enumerate(_LOOKS):
            self.page.show_as(width=width, height=height, scheme=scheme)
            found = self.page.evaluate(_RUN_AXE.format(rules=_RULES_OF_LOOKS if number else _ALL_RULES))
            self._picture(f"{place}-{width}-{scheme}")
            assert found == [], (place, width, scheme, found)

    def _resize(self, width: int, height: int, factor: int) -> None:
        self.page.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=factor, mobile=width < 500)

    def status(self) -> Any:
        """Return the HTTP status of the page."""
        return self.page.evaluate("performance.getEntriesByType('navigation')[0].responseStatus")

    def _complaints(self) -> list[str]:
        """Return the errors in the console, without the error about the HTTP status of the page, which `look` checks."""
        own = str(self.page.evaluate("location.href")).partition("#")[0]
        refused = "Failed to load resource: the server responded with a status of"
        return [one for one in self.page.complaints if not (one.startswith(refused) and one.endswith(own))]

    def _picture(self, place: str) -> None:
        if self._pictures is not None:
            name = re.sub(r"\W+", "-", f"{self.language}-{place}{'' if self.has_script else '-plain'}")
            self.page.picture(self._pictures / f"{name}.png")


@cache
def _source_of_axe() -> str:
    return AXE.read_text() + "; true"


@cache
def _known_texts(language: str) -> re.Pattern[str]:
    """Return a pattern that matches the texts that a page may show in a language, split at their markup.

    The texts come from the source for English, and from the catalog for other languages.
    """
    if language == "en":
        texts = {text for one in texts_of_source().values() for text in (one.singular, one.plural)}
    else:
        texts = {text for message in read_catalogue(language) if message.id for text in strings_of(message)}
    parts = {" ".join(part.split()) for text in texts for part in re.split(r"</?\w+>", text)}
    worded = [part for part in parts if re.search(r"[^\W\d_]{2}", _PLACEHOLDER.sub("", part))]
    known = "|".join(".+?".join(map(re.escape, _PLACEHOLDER.split(part))) for part in sorted(worded, key=len, reverse=True))
    return re.compile(rf"(?:[.،。] )?(?:{known})(?: (?:{known}))*")


def foreign_texts(texts: list[str], language: str) -> list[str]:
    """Return the texts in other languages: all texts except those of `language`, names, addresses, numbers and single characters."""
    known = _known_texts(language)
    return [
        text
        for text in texts
        if text not in NAMES and not re.fullmatch(r"[\w.+•-]+@example\.test|[\W\d_]+|\w", text) and not known.fullmatch(text)
    ]
