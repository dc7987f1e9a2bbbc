"""The check of a built site reports broken links, and scripts and styles that a page would load from another host."""

from __future__ import annotations

from pathlib import Path

from config.launcher.built_pages import problems


def test_broken_links_missing_anchors_and_scripts_of_other_hosts_are_reported(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "picture.png").write_bytes(b"")
    (tmp_path / "events/index.html").write_text('<h1 id="events">Events</h1><a href="../index.html#top">up</a>')
    (tmp_path / "index.html").write_text(
        '<h1 id="top">Top</h1><img src="picture.png"><img src="data:image/png;base64,AA"><a href="#top">a</a><a href="events/">b</a>'
        '<a href="events/#events">c</a><a href="https://example.com/">d</a><a href="gone.html">e</a><a href="events/#gone">f</a>'
        '<a href="#gone">g</a><script src="https://cdn.example.com/x.js"></script><link href="//fonts.example.com/x.css">'
    )

    assert problems(tmp_path) == [
        "index.html: #gone leads to no anchor on its page",
        "index.html: loads //fonts.example.com/x.css",
        "index.html: events/#gone leads to no anchor on its page",
        "index.html: gone.html leads nowhere",
        "index.html: loads https://cdn.example.com/x.js",
    ]
