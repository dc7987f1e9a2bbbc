"""Every page that is generated from the code, by its path below `docs/reference`."""

from __future__ import annotations

from pathlib import Path

from config.manual import event_pages, event_schema, interface_pages
from config.manual.commands_page import commands_page
from config.manual.errors_page import errors_page
from config.manual.metrics_page import metrics_page
from config.manual.settings_page import settings_page
from config.manual.upstream_page import upstream_page


def all_pages() -> dict[str, str]:
    """Return the text of every page."""
    return {
        "settings.md": settings_page(),
        "events/index.md": event_pages.overview_page(),
        "events/event-data.schema.json": event_schema.schema_document(),
        **{f"events/{name}.md": text for name, text in event_pages.resource_pages().items()},
        "management/index.md": interface_pages.overview_page(),
        **{f"management/{name}.md": text for name, text in interface_pages.resource_pages().items()},
        "management/client-libraries.md": upstream_page(),
        "errors.md": errors_page(),
        "metrics.md": metrics_page(),
        "commands.md": commands_page(),
    }


def stale_pages(place: Path, pages: dict[str, str]) -> list[str]:
    """Return the names of pages that are missing, differ from the code, or have lost their source."""
    differing = [name for name, text in pages.items() if not (place / name).exists() or (place / name).read_text() != text]
    return sorted({*differing, *_left_over(place, pages)})


def write_pages(place: Path, pages: dict[str, str]) -> list[str]:
    """Write the changed pages below `place`, delete obsolete pages, and return the names of the changed and deleted pages."""
    changed = stale_pages(place, pages)
    for name in changed:
        if name in pages:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(pages[name])
        else:
            (place / name).unlink()
    return changed


def _left_over(place: Path, pages: dict[str, str]) -> list[str]:
    # A directory of generated pages contains no other files, so a file without a page is obsolete.
    directories = {name.partition("/")[0] for name in pages if "/" in name}
    found = [str(file.relative_to(place)) for directory in directories for file in (place / directory).glob("*.*")]
    return [name for name in found if name not in pages]
