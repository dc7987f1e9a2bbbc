"""`make messages`: update every catalogue from the source, compile it, and list what translators still have to do."""

from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
django.setup()

from config.catalogues.catalogues import merged, path_of, translated_languages, write_catalogue  # noqa: E402  (needs the settings)
from config.catalogues.judging import problems_of, problems_of_files  # noqa: E402  (needs the settings)
from config.catalogues.sources import ROOT, texts_of_source  # noqa: E402  (needs the settings)


def main(arguments: list[str]) -> int:
    """Write the catalogues, or only check them with `--check`. Returns 1 if a catalogue has a problem, otherwise 0."""
    texts = texts_of_source()
    problems: list[str] = []
    for language in translated_languages():
        if "--check" in arguments:
            problems += problems_of_files(language, texts)
        else:
            write_catalogue(language, merged(language, texts))
        catalogue = merged(language, texts)
        found = list(problems_of(language, catalogue, texts))
        problems += found
        print(f"{path_of(language).relative_to(ROOT)}: {len(texts)} texts, {len(found)} to check")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
