"""Text to ids and back, for any text; files of tokenizers, good and bad."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd.framework.errors import InputError
from minipd.models.tokenizer import Tokenizer

TEXT = "Emma Woodhouse, handsome, clever, and rich, with a comfortable home and happy disposition; café — naïve.\n" * 4
TOKENIZER = Tokenizer.train(TEXT, 300)


@given(st.text())
def test_round_trip_of_any_text(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.binary())
def test_round_trip_of_any_bytes(data):
    assert TOKENIZER.decode_bytes(TOKENIZER.encode(data)) == data


@given(st.text(alphabet="Emma Wod,é\n", max_size=60), st.text(alphabet="Emma Wod,é\n", max_size=60))
def test_the_word_cache_changes_nothing(first, second):
    used = Tokenizer(TOKENIZER.merges)
    used.encode(first)
    np.testing.assert_array_equal(used.encode(second), Tokenizer(TOKENIZER.merges).encode(second))


def test_ids_are_int32_and_in_the_vocabulary():
    ids = TOKENIZER.encode(TEXT)
    assert ids.dtype == np.int32 and ids.ndim == 1
    assert TOKENIZER.vocab_size == 300 and 256 <= ids.max() < 300
    assert len(ids) < len(TEXT.encode()) / 1.5  # 44 merges shorten their own text
    assert TOKENIZER.encode("").shape == (0,)


def test_half_a_character_is_replaced():
    assert TOKENIZER.decode(list("é".encode())[:1]) == "\ufffd"


def test_training_twice_gives_the_same():
    assert Tokenizer.train(TEXT, 300).merges == TOKENIZER.merges


def test_a_short_text_gives_a_smaller_vocabulary():
    assert Tokenizer.train("abc", 1024).vocab_size == 256


def test_save_and_load(tmp_path):
    TOKENIZER.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.merges == TOKENIZER.merges
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"merges": [[1]]}', '{"merges": [["a", "b"]]}', json.dumps({"merges": [[999, 1]]})]
)
def test_a_file_that_is_no_tokenizer(tmp_path, content):
    file = tmp_path / "tokenizer.json"
    file.write_text(content)
    with pytest.raises(InputError, match=r"expected a tokenizer, as JSON with its merges, got .*tokenizer\.json"):
        Tokenizer.load(file)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="FileNotFoundError"):
        Tokenizer.load(tmp_path / "none.json")


@pytest.mark.parametrize("bad", [300, -1])
def test_an_id_outside_the_vocabulary(bad):
    with pytest.raises(InputError, match=f"expected ids from 0 to 299, got id {bad}"):
        TOKENIZER.decode([65, bad])


def test_a_vocabulary_without_room_for_the_bytes():
    with pytest.raises(InputError, match="at least 256 ids, one for each byte, got 255"):
        Tokenizer.train(TEXT, 255)


def test_merges_out_of_order():
    with pytest.raises(InputError, match="merge of ids below 256, got merge number 0 of ids 256 and 97"):
        Tokenizer([(256, 97)])
