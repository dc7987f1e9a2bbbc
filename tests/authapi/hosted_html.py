"""Rules for the HTML of every hosted page: one heading, named fields, errors at their fields, nothing inline, and a small size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

STATIC = Path(__file__).resolve().parents[2] / "static"
MOST_BYTES = 30_000
_UNTYPED = ("hidden", "submit", "button", "checkbox", "radio")
_ALLOWED_SCRIPT = "script-src 'self'"


@dataclass
class Element:
    """One start tag."""

    tag: str
    attributes: dict[str, str]
    form: str | None

    @property
    def is_typed(self) -> bool:
        """Return whether a user types into the field."""
        return self.tag == "input" and self.attributes.get("type", "text") not in _UNTYPED and "hidden" not in self.attributes


@dataclass
class Document(HTMLParser):
    """Parses a page, and lists its elements in the order of the source."""

    source: str
    elements: list[Element] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._form: str | None = None
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = attributes.get("id", f"form-{len(self.elements)}")
        self.elements.append(Element(tag, attributes, self._form))
        if tag not in ("input", "meta", "link", "img", "br", "path", "circle"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass
        if tag == "form":
            self._form = None

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def ids(self) -> list[str]:
        return [element.attributes["id"] for element in self.elements if "id" in element.attributes]


def flaws(body: str, headers: Mapping[str, str], *, with_policy: bool = True) -> list[str]:
    """Return the violations of the rules in the HTML of a hosted page, one sentence each.

    With `with_policy`, also check the policy of the page for scripts.
    """
    page = Document(body)
    return [
        *_frame(page),
        *_nothing_inline(page, headers.get("content-security-policy", "") if with_policy else None),
        *_fields(page),
        *_errors(page),
        *_weight(page, body),
    ]


def _frame(page: Document) -> list[str]:
    root = page.all("html")[0].attributes
    found = [] if root.get("lang") and root.get("dir") in ("ltr", "rtl") else ["The page does not declare its language and text direction."]
    if len(page.all("h1")) != 1:
        found.append(f"The page has {len(page.all('h1'))} h1 elements.")
    if not page.texts.get("title", "").strip():
        found.append("The page has no title.")
    repeated = [name for name, count in Counter(page.ids()).items() if count > 1]
    return found + [f"The id {name} occurs more than once." for name in repeated]


def _nothing_inline(page: Document, policy: str | None) -> list[str]:
    found = [f"<{one.tag}> has an inline style." for one in page.elements if "style" in one.attributes or one.tag == "style"]
    found += [f"<{one.tag}> has {name}." for one in page.elements for name in one.attributes if name.startswith("on")]
    scripts = page.all("script")
    found += [
        f"A script comes from {one.attributes.get('src')}." for one in scripts if not one.attributes.get("src", "").startswith("/static/")
    ]
    if "script" in page.texts:
        found.append("A script is inline.")
    if policy is not None:
        if scripts and _ALLOWED_SCRIPT not in policy:
            found.append("The policy does not allow the scripts of the service.")
        if not scripts and "script-src" in policy:
            found.append("The policy allows a script that the page does not have.")
        if "unsafe" in policy:
            found.append("The policy contains an unsafe source.")
    return found


def _fields(page: Document) -> list[str]:
    labelled = {one.attributes.get("for") for one in page.all("label")}
    found = []
    for one in (each for each in page.elements if each.is_typed):
        name = one.attributes.get("name") or one.attributes.get("id", "?")
        if one.attributes.get("id") not in labelled:
            found.append(f"The field {name} has no label.")
        found += [f"The field {name} has no {wanted}." for wanted in ("autocomplete", "maxlength") if wanted not in one.attributes]
        if one.attributes.get("type") == "password" and one.attributes.get("value"):
            found.append(f"The field of the secret {name} contains a value.")
    if sum("autofocus" in one.attributes for one in page.elements) > 1:
        found.append("Two elements have autofocus.")
    return found


def _errors(page: Document) -> list[str]:
    ids, found = set(page.ids()), []
    for one in page.elements:
        described = one.attributes.get("aria-describedby", "").split()
        found += [f"{name} describes a field but does not exist." for name in described if name not in ids]
        if one.attributes.get("aria-invalid") == "true" and not any(name.endswith("-error") or name == "errors" for name in described):
            found.append(f"The invalid field {one.attributes.get('name')} does not refer to its error.")
    links = [one.attributes.get("href", "") for one in page.all("a")]
    return found + [f"{link} links to no field." for link in links if link.startswith("#") and link[1:] not in ids]


def _weight(page: Document, body: str) -> list[str]:
    loaded = [one.attributes.get("href", "") for one in page.all("link") if one.attributes.get("rel") == "stylesheet"]
    loaded += [one.attributes.get("src", "") for one in page.all("script")]
    files = [STATIC / address.removeprefix("/static/") for address in loaded if address.startswith("/static/")]
    # A form can contain a signed and encrypted response to its application. The application determines the length of the response.
    carried = sum(len(one.attributes.get("value", "")) for one in page.all("input") if one.attributes.get("name") == "SAMLResponse")
    weight = len(body.encode()) - carried + sum(file.stat().st_size for file in files)
    return [] if weight < MOST_BYTES else [f"The page and its files have {weight} bytes, the limit is {MOST_BYTES}."]
