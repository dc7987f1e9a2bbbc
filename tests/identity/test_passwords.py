from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from identity.passwords import POLICIES, Weakness, history_size, password_problem, policy_of, shortest_length

WEAKEST = {"none": "a", "low": "aaaaaa", "fair": "aaaaaAa1", "good": "aaaaaA1a", "excellent": "aabbAA11ab"}


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_accepts_its_shortest_password_and_no_shorter_one(policy: str) -> None:
    options = {"passwordPolicy": policy}
    assert password_problem(WEAKEST[policy], options) is None
    assert password_problem(WEAKEST[policy][1:], options) is not None


def test_the_policies_fair_and_good_require_different_kinds_of_characters() -> None:
    assert password_problem("aaaaaaa1", {"passwordPolicy": "fair"}) is not None
    assert password_problem("aaaaaa1!", {"passwordPolicy": "good"}) is None
    assert password_problem("aaaaaa11", {"passwordPolicy": "good"}) is not None


def test_the_policy_excellent_refuses_three_equal_characters_in_a_row() -> None:
    assert password_problem("Abcdefg1!!!", {"passwordPolicy": "excellent"}) is not None
    assert password_problem("Abcdefg1!!x!", {"passwordPolicy": "excellent"}) is None


def test_a_minimum_length_in_the_options_replaces_the_minimum_length_of_the_policy() -> None:
    options = {"passwordPolicy": "low", "password_complexity_options": {"min_length": 12}}
    assert password_problem("a" * 11, options) is not None
    assert password_problem("a" * 12, options) is None


def test_dictionary_words_and_personal_data_are_refused_if_the_options_require_it() -> None:
    options = {"passwordPolicy": "low", "password_dictionary": {"enable": True, "dictionary": ["Sesame99"]}}
    assert password_problem("sesame99", options) is not None
    personal = ["ada.lovelace@example.test", None, "Ada"]
    options = {"passwordPolicy": "low", "password_no_personal_info": {"enable": True}}
    assert password_problem("my-Ada.Lovelace-1", options, personal) is not None
    assert password_problem("adadada", options, personal) is None
    assert password_problem("my-Ada.Lovelace-1", {"passwordPolicy": "low"}, personal) is None


@given(password=st.text(max_size=600), policy=st.sampled_from(POLICIES))
def test_a_refusal_never_repeats_the_password(password: str, policy: str) -> None:
    problem = password_problem(password, {"passwordPolicy": policy})
    assert problem is None or len(password) < 9 or password not in problem.text


def test_a_common_password_is_refused_only_if_the_dictionary_is_enabled() -> None:
    common = frozenset({"password1"})
    assert password_problem("Password1", {"passwordPolicy": "fair"}, common=common) is None
    found = password_problem("Password1", {"passwordPolicy": "fair", "password_dictionary": {"enable": True}}, common=common)
    assert found is not None
    assert found.weakness is Weakness.DICTIONARY


@pytest.mark.parametrize(
    ("history", "size"),
    [
        (None, 0),
        ({"enable": False, "size": 3}, 0),
        ({"enable": True}, 5),
        ({"enable": True, "size": 3}, 3),
        ({"enable": True, "size": 99}, 24),
        ({"enable": True, "size": True}, 5),
        ({"enable": True, "size": -1}, 0),
        ("odd", 0),
    ],
)
def test_the_number_of_remembered_passwords_is_read_from_the_options_and_limited(history: object, size: int) -> None:
    assert history_size({"password_history": history}) == size


def test_invalid_options_of_the_password_policy_are_replaced_by_the_default_policy() -> None:
    options = {"passwordPolicy": "unheard of", "password_complexity_options": {"min_length": "ten"}}
    assert policy_of(options) == "good"
    assert shortest_length(options) == 8
