"""The refused words and constructions, what to write instead, and the allowed exceptions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A pattern that no text may contain, and the advice for its author. A space in a pattern matches any white space."""

    pattern: re.Pattern[str]
    advice: str


def _rule(pattern: str, advice: str, *, flags: int = re.IGNORECASE) -> Rule:
    return Rule(re.compile(pattern.replace(" ", r"\s+"), flags), advice)


RULES = (
    _rule(r"\b(?:nobody|somebody|anybody|everybody|whoever|whomever|no one|someone|anyone)\b", "name the actor: a client, a reader, staff"),
    _rule(r"\b(?:whatever|wherever|whichever)\b", "name the case, or write 'any'"),
    _rule(r"\bWho [a-z]+", "name the actor: 'A client that'", flags=0),
    _rule(r"^test who\b", "name the actor: 'test a client that'"),
    _rule(r"(?:^|[.;:|>] )Of (?:an?|the|what|these|those) ", "begin with the subject", flags=re.MULTILINE),
    _rule(r"\b(?:what|who) (?:is|are|was) (?:no|none)\b", "write 'an invalid ...', or 'that is not'"),
    _rule(r"\bstands? (?:in (?!for\b)|here|there|above|below|beside|behind)", "write 'is in', 'contains' or 'lists'"),
    _rule(r"\b(?:is|are|was|were) away\b", "write 'is unavailable'"),
    _rule(r"\bgo(?:es|ing|ne)? round\b", "write 'bypasses'"),
    _rule(
        r"\b(?:go|goes|asks?|reads?|writes?) on\b(?! (?:the|a|an|its|their|one|this|every|each|port|request|behalf)\b)",
        "write 'continues' or 'resumes'",
    ),
    _rule(r"\bhears? of\b", "write 'gets' or 'is notified of'"),
    _rule(r"\bof late\b", "write 'recently'"),
    _rule(r"\b(?:not said|way out|look into your mail)\b", "write 'not set', 'fix' or 'check your email'"),
    _rule(
        r"\b(?:colour|honour|neighbour|behaviour|favour|labour)\w*|\b(?:dial|label|model)led\b|\b(?:centre|licence|whilst)\b"
        r"|\b(?:author|recogn|normal|serial|initial|organ|param(?:etr)|sum(?:mar)|minim)is(?:e[ds]?|ing|ation)\b",
        "use the American spelling",
    ),
)

# Phrases that a rule would refuse and that stay: the path of the file, the phrase in its text, and the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("docs/adr/README.md", "nobody"): "part of the name of a file, which stays",
    ("docs/how-to/translate.md", "Organisation"): "the German word in the glossary of translators",
    ("docs/how-to/translate.md", "organisation"): "the French word in the glossary of translators",
}


def refused(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the position, the refused words and the advice of each finding in a text of the file."""
    for rule in RULES:
        for match in rule.pattern.finditer(text):
            words = " ".join(match.group().split()).strip(".;:|> ")
            if (path, words) not in EXCEPTIONS:
                yield match.start(), words, rule.advice
