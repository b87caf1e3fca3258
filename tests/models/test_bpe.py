"""The fast trainer and encoder against the algorithm as the paper states it, and the words against the text."""

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minipd.models.bpe import learn_merges, merge, split_words, text_bytes, text_of_bytes
from minipd.models.tokenizer import Tokenizer

SMALL_ALPHABET = st.text(alphabet="ab n'.", max_size=40)  # few signs, so that pairs repeat and overlap


def learn_merges_naively(words: list[str], count: int) -> list[tuple[int, int]]:
    """Count all pairs of all words anew for every merge."""
    corpus = [list(word.encode()) for word in words]
    merges: list[tuple[int, int]] = []
    while len(merges) < count:
        counts = Counter(pair for ids in corpus for pair in zip(ids, ids[1:], strict=False))
        if not counts or max(counts.values()) < 2:
            break
        best = max(counts.values())
        pair = min(pair for pair, n in counts.items() if n == best)
        corpus = [merge(ids, pair, 256 + len(merges)) for ids in corpus]
        merges.append(pair)
    return merges


def encode_naively(text: str, merges: list[tuple[int, int]]) -> list[int]:
    """Replay every merge in the order of training."""
    result = []
    for word in split_words(text):
        ids = list(word.encode())
        for i, pair in enumerate(merges):
            ids = merge(ids, pair, 256 + i)
        result += ids
    return result


def test_a_text_worked_by_hand():
    # The example of the paper, with a space before the word for its mark after it.
    words = [" low"] * 5 + [" lower"] * 2 + [" newest"] * 6 + [" widest"] * 3
    merges = learn_merges(words, 4)
    # e s: 9; then es t: 9; then l o, o w and " l": 7 each, of which " l" has the smallest ids; then l-words again.
    assert merges[:2] == [(ord("e"), ord("s")), (256, ord("t"))]
    assert merges[2] == (ord(" "), ord("l"))
    assert merges[3] == (ord("o"), ord("w"))


@given(st.lists(SMALL_ALPHABET, max_size=20), st.integers(0, 30))
@example(["aaaa", "aaa", "aaaaa"], 5)  # pairs that overlap
def test_trainer_equals_the_naive_one(words, count):
    assert learn_merges(words, count) == learn_merges_naively(words, count)


def test_trainer_equals_the_naive_one_on_prose():
    prose = "It is a truth universally acknowledged, that a man in possession of a good fortune, must be in want " * 3
    words = split_words(prose + "\nof a wife.  However little known the feelings or views of such a man may be...\n\n")
    assert learn_merges(words, 200) == learn_merges_naively(words, 200)


@given(SMALL_ALPHABET, SMALL_ALPHABET)
def test_encoder_equals_a_replay_of_the_merges(learnt, text):
    merges = learn_merges(split_words(learnt), 30)
    assert Tokenizer(merges).encode(text).tolist() == encode_naively(text, merges)


def test_merges_do_not_depend_on_the_order_of_words():
    words = split_words("she sells sea shells on the sea shore; the shells she sells are sea shells " * 4)
    shuffled = words.copy()
    random.Random(3).shuffle(shuffled)
    assert learn_merges(words, 60) == learn_merges(shuffled, 60)


def test_pairs_that_occur_once_are_not_merged():
    assert learn_merges(["abc"], 10) == []
    assert learn_merges(["abc", "abd"], 10) == [(ord("a"), ord("b"))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't we'll", ["don", "'t", " we", "'ll"]),
        ("a  b", ["a", " ", " b"]),  # the last space belongs to the word
        ("a \n\n b", ["a", " \n\n", " b"]),
        ("end\n", ["end", "\n"]),
        ("naïve 42nd", ["naïve", " 42", "nd"]),
        ("x_y", ["x", "_", "y"]),
        ("", []),
    ],
)
def test_words(text, words):
    assert split_words(text) == words


@given(st.text())
def test_words_join_to_the_text(text):
    assert "".join(split_words(text)) == text


@given(st.binary())
def test_words_of_any_bytes_join_to_the_bytes(data):
    assert b"".join(map(text_bytes, split_words(text_of_bytes(data)))) == data
