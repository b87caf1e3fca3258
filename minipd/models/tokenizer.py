"""A byte-level tokenizer: text to ids and back, for any text, with the merges that `bpe` learnt."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.models.bpe import BYTES, Pair, learn_merges, merge, split_words, text_bytes, text_of_bytes

CACHED_WORDS = 1 << 18  # the word cache starts anew beyond this many, so that it cannot grow without end


class Tokenizer:
    """Byte-pair encoding with given merges; ids are 0 to `vocab_size - 1`, the first 256 of them single bytes.

    Args:
        merges: pair number i becomes id 256 + i; both its ids are smaller than that.

    Raises:
        InputError: a merge uses an id that does not exist before it.

    >>> tokenizer = Tokenizer([(ord("a"), ord("b")), (ord(" "), 256)])
    >>> tokenizer.encode("ab ab")
    array([256, 257], dtype=int32)
    >>> tokenizer.decode([257, 256, 33])
    ' abab!'
    """

    def __init__(self, merges: Iterable[Pair]) -> None:
        self.merges: list[Pair] = []
        self._bytes = [bytes([i]) for i in range(BYTES)]  # what each id stands for
        for left, right in merges:
            if not (0 <= left < self.vocab_size and 0 <= right < self.vocab_size):
                raise InputError(
                    f"a merge of ids below {self.vocab_size}",
                    f"merge number {len(self.merges)} of ids {left} and {right}",
                    "give the merges in the order in which they were learnt",
                )
            self._bytes.append(self._bytes[left] + self._bytes[right])
            self.merges.append((left, right))
        self._rank = {pair: i for i, pair in enumerate(self.merges)}
        self._words: dict[str, list[int]] = {}

    @classmethod
    def train(cls, text: str, vocab_size: int) -> "Tokenizer":
        """Learn a vocabulary of at most `vocab_size` ids from `text`; a short text gives a smaller one.

        Raises:
            InputError: `vocab_size` is below 256, so it cannot hold the bytes.

        >>> Tokenizer.train("so so so so", 258).vocab_size
        258
        """
        if vocab_size < BYTES:
            raise InputError(
                f"a vocabulary of at least {BYTES} ids, one for each byte", str(vocab_size), "set a larger vocab_size"
            )
        return cls(learn_merges(split_words(text), vocab_size - BYTES))

    @property
    def vocab_size(self) -> int:
        """How many ids there are."""
        return len(self._bytes)

    def encode(self, text: str | bytes) -> NDArray[np.int32]:
        """The ids of `text`: int32[number of tokens]. Bytes need not be UTF-8.

        Raises:
            UnicodeEncodeError: `text` holds half of a surrogate pair.

        >>> Tokenizer([]).encode("é")
        array([195, 169], dtype=int32)
        """
        ids: list[int] = []
        for word in split_words(text_of_bytes(text) if isinstance(text, bytes) else text):
            known = self._words.get(word)
            ids.extend(self._encode_word(word) if known is None else known)
        return np.array(ids, dtype=np.int32)

    def _encode_word(self, word: str) -> list[int]:
        ids = list(text_bytes(word))
        never = len(self.merges)
        # In the order of training. A merge makes only pairs that were learnt after it, so the ranks rise and this ends.
        while len(ids) > 1:
            pair = min(zip(ids, ids[1:], strict=False), key=lambda pair: self._rank.get(pair, never))
            rank = self._rank.get(pair)
            if rank is None:
                break
            ids = merge(ids, pair, BYTES + rank)
        if len(self._words) >= CACHED_WORDS:
            self._words.clear()
        self._words[word] = ids
        return ids

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that `ids` stand for: the inverse of `encode`, exactly.

        Raises:
            InputError: an id is not in the vocabulary.
        """
        pieces = []
        for i in map(int, ids):
            if not 0 <= i < self.vocab_size:
                raise InputError(
                    f"ids from 0 to {self.vocab_size - 1}", f"id {i}", "decode with the tokenizer that made the ids"
                )
            pieces.append(self._bytes[i])
        return b"".join(pieces)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; bytes that are no UTF-8, such as half a character, become U+FFFD.

        Raises:
            InputError: an id is not in the vocabulary.

        >>> Tokenizer([]).decode([195, 169, 195])
        'é\\ufffd'
        """
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def save(self, path: str | Path) -> None:
        """Write the tokenizer as JSON: `{"merges": [[left, right], ...]}`; the file is whole or absent."""
        write_atomically(Path(path), json.dumps({"merges": self.merges}))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read what `save` wrote.

        Raises:
            InputError: there is no such file, or it is no tokenizer.
        """
        try:
            merges = json.loads(Path(path).read_text("utf-8"))["merges"]
            return cls((int(left), int(right)) for left, right in merges)
        except (OSError, ValueError, KeyError, TypeError) as error:  # InputError of a wrong merge is a ValueError too
            raise InputError(
                "a tokenizer, as JSON with its merges",
                f"{path} ({type(error).__name__}: {reason(error)})",
                "delete it, it is made again; or name another file",
            ) from error
