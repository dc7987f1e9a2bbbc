"""Only the package `authapi/xml` parses, verifies and decrypts XML from outside."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("foundation", "identity", "authapi", "events", "provisioning", "config")
ROOM = "authapi/xml/"
LIBRARIES = {"lxml", "signxml", "xmlsec", "defusedxml", "xmltodict", "untangle", "bs4", "html5lib"}
STANDARD_PARSERS = ("xml.etree", "xml.dom", "xml.sax", "xml.parsers", "pyexpat")
# Libraries for signatures and encryption. Only the listed modules of the package may import a library.
KNOWN_TO = {"signxml": {"signing.py", "verifying.py"}, "xmlsec": {"encryption.py"}}


def imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def sources() -> list[str]:
    listed = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in listed if name.endswith(".py")]


def test_no_module_outside_the_package_imports_an_xml_library() -> None:
    outside = {name: imported(ROOT / name) for name in sources() if not name.startswith(ROOM)}
    assert [name for name, names in outside.items() if LIBRARIES & {each.partition(".")[0] for each in names}] == []
    assert [name for name, names in outside.items() if any(each.startswith(STANDARD_PARSERS) for each in names)] == []


def test_xml_is_verified_signed_and_decrypted_by_one_module_each() -> None:
    for library, modules in KNOWN_TO.items():
        users = {
            Path(name).name
            for name in sources()
            if name.startswith(ROOM) and library in {each.partition(".")[0] for each in imported(ROOT / name)}
        }
        assert users == modules


def test_one_function_creates_all_parsers() -> None:
    """Only `parsing.parse` creates a parser. The other modules build their trees themselves or call `parsing.parse`."""
    makers = {"XMLParser", "XMLPullParser", "HTMLParser", "fromstring", "XML", "HTML", "iterparse", "parse", "XMLSchema", "XSLT", "XMLID"}
    used = {
        (name, node.attr)
        for name in sources()
        if name.startswith(ROOM)
        for node in ast.walk(ast.parse((ROOT / name).read_text()))
        if isinstance(node, ast.Attribute) and node.attr in makers and isinstance(node.value, ast.Name) and node.value.id == "etree"
    }
    assert used == {("authapi/xml/parsing.py", "XMLPullParser")}
