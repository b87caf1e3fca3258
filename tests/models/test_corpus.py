"""The corpus: what is read, what is held out, what is kept between runs, and bad input."""

import lzma
import os
import subprocess
import sys

import numpy as np
import pytest

from minipd.framework.errors import InputError
from minipd.models.corpus import load_corpus, read_text
from minipd.models.entropy import bigram_entropy, unigram_entropy

PROSE = "The quick brown fox jumps over the lazy dog, and the dog does not mind.\n" * 20


@pytest.fixture
def prose(tmp_path):
    file = tmp_path / "prose.txt"
    file.write_text(PROSE)
    return str(file)


def test_the_default_corpus(tmp_path):
    austen = load_corpus(cache=tmp_path)
    assert austen.tokenizer.vocab_size == 1024
    assert austen.tokenizer.decode(austen.tokens).encode() == read_text("austen")
    # What counting achieves: a model must get below the second figure to have learnt more than pairs.
    assert unigram_entropy(austen.train, austen.held_out, 1024) == pytest.approx(5.900, abs=0.0005)
    assert bigram_entropy(austen.train, austen.held_out, 1024) == pytest.approx(3.938, abs=0.0005)


def test_the_last_tenth_is_held_out(prose, tmp_path):
    corpus = load_corpus(prose, 280, tmp_path / "cache")
    n = len(corpus.tokens)
    assert len(corpus.train) == n * 9 // 10 and len(corpus.held_out) == n - n * 9 // 10
    np.testing.assert_array_equal(np.concatenate([corpus.train, corpus.held_out]), corpus.tokens)


def test_tokens_are_kept_by_content_and_vocabulary(prose, tmp_path):
    cache = tmp_path / "cache"
    first = load_corpus(prose, 280, cache)
    files = sorted(file.name for file in cache.iterdir())
    assert len(files) == 2

    again = load_corpus(prose, 280, cache)
    assert again.tokenizer.merges == first.tokenizer.merges
    np.testing.assert_array_equal(again.tokens, first.tokens)
    assert sorted(file.name for file in cache.iterdir()) == files

    load_corpus(prose, 270, cache)
    assert len(list(cache.iterdir())) == 4
    (tmp_path / "prose.txt").write_text(PROSE + "More.")
    assert load_corpus(prose, 280, cache).tokenizer.decode(load_corpus(prose, 280, cache).tokens).endswith("More.")


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x93NUMPY\x01\x00", b"not a file of ours"])
def test_a_damaged_cache_is_made_again(prose, tmp_path, damage):
    cache = tmp_path / "cache"
    first = load_corpus(prose, 280, cache)
    for file in cache.iterdir():
        file.write_bytes(damage)
    np.testing.assert_array_equal(load_corpus(prose, 280, cache).tokens, first.tokens)
    assert all(file.read_bytes() != damage for file in cache.iterdir())


def test_a_cache_that_cannot_be_written_is_done_without(prose, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(UserWarning, match="tokens are not kept .* set MINIPD_CACHE"):
        corpus = load_corpus(prose, 280, tmp_path / "file")
    assert corpus.tokenizer.decode(corpus.tokens) == PROSE


def test_four_processes_start_at_once(prose, tmp_path):
    code = (
        "import sys; from minipd.models.corpus import load_corpus; corpus = load_corpus(sys.argv[1], 280);"
        "print(len(corpus.tokens), corpus.tokens.sum(), len(corpus.tokenizer.merges))"
    )
    environment = {**os.environ, "MINIPD_CACHE": str(tmp_path / "cache")}
    ranks = [
        subprocess.Popen([sys.executable, "-c", code, prose], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    results = [rank.communicate()[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * 4
    assert len(set(results)) == 1 and results[0].endswith("24\n")
    assert len(list((tmp_path / "cache").iterdir())) == 2  # no temporary file is left


def test_a_packed_text(tmp_path):
    file = tmp_path / "prose.txt.xz"
    file.write_bytes(lzma.compress(PROSE.encode()))
    assert read_text(str(file)) == PROSE.encode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.txt", None, "expected a corpus, got '.*none.txt', which does not exist"),
        ("empty.txt", b"", "expected a corpus, got '.*empty.txt', which is empty"),
        ("latin1.txt", "café".encode("latin-1"), r"in UTF-8, got '.*latin1.txt' with byte 0xe9 at offset 3"),
        ("broken.xz", b"no xz at all", "expected a corpus that can be read, got '.*broken.xz'"),
        ("", None, "expected a corpus that can be read, got '.*'"),  # a folder
    ],
)
def test_a_corpus_that_cannot_be_used(tmp_path, name, content, message):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load_corpus(str(file), cache=tmp_path / "cache")
    assert "set data.corpus to a UTF-8 text file, or to austen" in str(caught.value)
    assert not (tmp_path / "cache").exists()
