"""The grammar of a search query: the operators of Lucene, escapes, wildcards and ranges, and the queries that are refused."""

from __future__ import annotations

import threading

import pytest

from identity.search.grammar import parsed_search
from identity.search.queries import LONGEST, AllOf, AnyOf, Between, Clause, Exact, Exists, InvalidSearch, Not, Pattern, Term


def term(text: str) -> Term:
    return Term((), Exact(text))


A, B, C = term("a"), term("b"), term("c")
NOT_A: Clause = Not(A)
NOT_B: Clause = Not(B)
A_OR_B: Clause = AnyOf((A, B))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a b", AnyOf((A, B))),
        ("a OR b OR c", AnyOf((A, B, C))),
        ("a AND b", AllOf((A, B))),
        # As in Lucene, AND makes the terms on both sides required, and OR leaves a term optional. Beside a required term, an optional term
        # has no effect.
        ("a OR b AND c", AllOf((B, C))),
        ("a AND b OR c", AllOf((A, B))),
        ("(a AND b) OR c", AnyOf((AllOf((A, B)), C))),
        ("a AND (b OR c)", AllOf((A, AnyOf((B, C))))),
        ("+a b", A),
        ("a -b", AllOf((A, Not(B)))),
        ("a NOT b", AllOf((A, Not(B)))),
        ("a OR NOT b", AllOf((A, Not(B)))),
        ("NOT a", Not(A)),
        ("NOT a AND NOT b", AllOf((NOT_A, NOT_B))),
        ("a AND (NOT b)", AllOf((A, Not(B)))),
        ("NOT (a OR b)", Not(A_OR_B)),
        ("a^3", A),
        ("and or not", AnyOf((term("and"), term("or"), term("not")))),
        ("*", AllOf(())),
        ("*:*", AllOf(())),
    ],
)
def test_operators_have_the_same_meaning_as_in_lucene(text: str, meaning: Clause) -> None:
    assert parsed_search(text) == meaning


@pytest.mark.parametrize(
    ("text", "path", "matcher"),
    [
        ('email:"a@b.c"', ("email",), Exact("a@b.c")),
        ("user_id:auth0|1", ("user_id",), Exact("auth0|1")),
        (r"name:a\*b\:\ \"c", ("name",), Exact('a*b: "c')),
        (r'name:"a\"b\\c*"', ("name",), Exact('a"b\\c*')),
        ("name:jo*", ("name",), Pattern(("jo", ""), (False,))),
        ("name:j?n*", ("name",), Pattern(("j", "n", ""), (True, False))),
        ("name:jo**", ("name",), Pattern(("jo", ""), (False,))),
        ("email:*@corp.com", ("email",), Pattern(("", "@corp.com"), (False,))),
        ("name:*", ("name",), Exists()),
        ("_exists_:app_metadata.a", ("app_metadata", "a"), Exists()),
        (r"app_metadata.a\.b.c:x", ("app_metadata", "a.b", "c"), Exact("x")),
        ("phone_number:+49", ("phone_number",), Exact("+49")),
        ("n:[1 TO 2}", ("n",), Between("1", "2", includes_low=True, includes_high=False)),
        ("n:{* TO -2]", ("n",), Between(None, "-2", includes_low=False)),
        ("n:>=3", ("n",), Between("3", None)),
        ("n:<3", ("n",), Between(None, "3", includes_high=False)),
        ('d:["2026-01-01T00:00:00+02:00" TO *]', ("d",), Between("2026-01-01T00:00:00+02:00", None)),
        ("d:[2026-01-01T10:00:00.123Z TO *]", ("d",), Between("2026-01-01T10:00:00.123Z", None)),
    ],
)
def test_a_term_consists_of_a_field_and_a_value(text: str, path: tuple[str, ...], matcher: object) -> None:
    assert parsed_search(text) == Term(path, matcher)  # type: ignore[arg-type]


def test_the_field_of_a_group_applies_to_terms_without_their_own_field() -> None:
    assert parsed_search("f:(a OR b)") == AnyOf((Term(("f",), Exact("a")), Term(("f",), Exact("b"))))
    assert parsed_search("f:(a g:b)") == AnyOf((Term(("f",), Exact("a")), Term(("g",), Exact("b"))))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("  ", "is empty"),
        ("a OR", "ends too early"),
        ("(a", "a bracket may not be closed"),
        ("()", "cannot be read from character 2"),
        ('a:"x', "a quotation mark is not closed"),
        ("a && b", "write AND, OR and NOT"),
        ("!a", "write AND, OR and NOT"),
        ("a:/x/", "regular expressions are not supported"),
        ("a~2", "fuzzy searches"),
        ('"a b"~2', "fuzzy searches"),
        ("name:*jo", "3 letters or digits"),
        ("name:*---*", "3 letters or digits"),
        ("a^1.2.3", "number after"),
        ("a^.", "number after"),
        ("a~1.2.3", "number after"),
        ('"a"~1.', "number after"),
        ("name:*a*b*c*d*e*f*ghi", "more than 5 wildcards"),
        ("na*me:x", "the name of a field has no wildcards"),
        ("a..b:x", "not the name of a field"),
        ("_exists_:(a b)", "needs the name of one field"),
        ("x" * (LONGEST + 1), "more than 4096 characters"),
        ("a " * 129, "more than 128 terms"),
        ("a AND b OR " * 350 + "c", "more than 128 terms"),
        ("(" * 17 + "a" + ")" * 17, "nested deeper than 16 levels"),
        ("(" * 2000 + "a" + ")" * 2000, "nested deeper than 16 levels"),
        ("NOT " * 600 + "a", "nested deeper than 16 levels"),
        ("a:" * 600 + "b", "nested deeper than 16 levels"),
        ("-" * 4000 + "a", "nested deeper than 16 levels"),
        ("\\" * 4001, "cannot be read"),
        ('"' + '\\"' * 2000, "a quotation mark is not closed"),
        ("[" * 4000, "cannot be read"),
    ],
)
def test_an_invalid_query_is_refused_with_an_explanation(text: str, reason: str) -> None:
    with pytest.raises(InvalidSearch, match=reason):
        parsed_search(text)


def test_several_threads_can_parse_queries_concurrently() -> None:
    wrong: list[str] = []

    def read(number: int) -> None:
        for turn in range(200):
            text = f"v{number}x{turn}"
            one: Clause = AnyOf((Term(("f",), Exact(text)), Term(("f",), Exact("b"))))
            other: Clause = Not(Term(("g",), Exact(text)))
            if parsed_search(f"f:({text} OR b) AND NOT g:{text}") != AllOf((one, other)):
                wrong.append(text)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
