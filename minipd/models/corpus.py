"""The text that a model is trained on: read, tokenized once and kept, its last tenth held out."""

import hashlib
import io
import lzma
import warnings
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minipd.framework.environment import cache_folder
from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.models.tokenizer import Tokenizer

BUILT_IN = {"austen": "austen.txt.xz"}  # name -> file of this package's data
CACHE_FORMAT = "1"  # part of every cache key: raise it when the same text gets other tokens than before


@dataclass(frozen=True)
class Corpus:
    """A tokenized text.

    The tokenizer has seen the whole text: it fixes the unit in which a loss is counted, and predicts nothing. The model
    sees `train` only.
    """

    name: str
    tokenizer: Tokenizer
    tokens: NDArray[np.int32]  # [number of tokens], in the order of the text

    @property
    def _cut(self) -> int:
        return len(self.tokens) * 9 // 10

    @property
    def train(self) -> NDArray[np.int32]:
        """The first nine tenths of the tokens."""
        return self.tokens[: self._cut]

    @property
    def held_out(self) -> NDArray[np.int32]:
        """The last tenth, for validation."""
        return self.tokens[self._cut :]


def read_text(corpus: str) -> bytes:
    """The UTF-8 bytes of a corpus: the built-in one called "austen", else the text file at this path (`.xz` too).

    Raises:
        InputError: there is no such file, it cannot be read, it is empty, or it is not UTF-8.

    >>> read_text("austen")[:4]
    b'EMMA'
    """
    do = f"set data.corpus to a UTF-8 text file, or to {' or '.join(BUILT_IN)}, which comes with minipd"
    try:
        if corpus in BUILT_IN:
            data = lzma.decompress(resources.files("minipd.models").joinpath("data", BUILT_IN[corpus]).read_bytes())
        else:
            data = Path(corpus).read_bytes()
            if corpus.endswith(".xz"):
                data = lzma.decompress(data)
        data.decode("utf-8")
    except FileNotFoundError as error:
        raise InputError("a corpus", f"{corpus!r}, which does not exist", do) from error
    except UnicodeDecodeError as error:
        raise InputError(
            "a corpus in UTF-8", f"{corpus!r} with byte 0x{data[error.start]:02x} at offset {error.start}", do
        ) from error
    except (OSError, lzma.LZMAError, ValueError) as error:  # ValueError: a path with a null byte in it
        raise InputError("a corpus that can be read", f"{corpus!r} ({reason(error)})", do) from error
    if not data:
        raise InputError("a corpus", f"{corpus!r}, which is empty", do)
    return data


def load_corpus(corpus: str = "austen", vocab_size: int = 1024, cache: Path | None = None) -> Corpus:
    """Read a corpus, learn its tokenizer and tokenize it, or take both from the cache.

    The cache key is the content of the text and the vocabulary size. Any number of processes may start at once: each
    computes what it does not find, all compute the same, and files appear whole.

    Args:
        corpus: "austen", or the path of a UTF-8 text file.
        vocab_size: how many ids the tokenizer may use, at least 256.
        cache: the folder to keep tokens in; by default `framework.environment.cache_folder()`.

    Raises:
        InputError: the corpus cannot be used (see `read_text`), or the vocabulary is too small.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     text = Path(folder, "song.txt")
    ...     _ = text.write_text("row, row, row your boat")
    ...     song = load_corpus(str(text), vocab_size=260, cache=Path(folder, "cache"))
    >>> len(song.train), len(song.held_out), song.tokenizer.decode(song.held_out)
    (13, 2, 'at')
    """
    data = read_text(corpus)
    key = hashlib.sha256(f"{CACHE_FORMAT} {vocab_size} ".encode() + data).hexdigest()[:24]
    folder = cache_folder() if cache is None else cache
    tokenizer_file, tokens_file = folder / f"bpe-{key}.json", folder / f"tokens-{key}.npy"
    try:
        return Corpus(corpus, Tokenizer.load(tokenizer_file), _load_tokens(tokens_file))
    except (InputError, OSError, ValueError, EOFError):
        pass  # not there yet, or damaged: both are computed again below
    text = data.decode("utf-8")
    tokenizer = Tokenizer.train(text, vocab_size)
    made = Corpus(corpus, tokenizer, tokenizer.encode(text))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(tokenizer_file)
        packed = io.BytesIO()
        np.save(packed, made.tokens)
        write_atomically(tokens_file, packed.getvalue())
    except OSError as error:  # a read-only home is no reason not to train
        why = f"tokens are not kept for the next run: {reason(error)}; set MINIPD_CACHE to a folder"
        warnings.warn(why, stacklevel=2)
    return made


def _load_tokens(path: Path) -> NDArray[np.int32]:
    tokens = np.load(path, allow_pickle=False)
    if tokens.dtype != np.int32 or tokens.ndim != 1:
        raise ValueError(f"{path} holds {tokens.dtype}{list(tokens.shape)}, no tokens")
    return tokens
