"""Byte-pair encoding, the algorithm: split text into words, then learn which adjacent pairs to merge.

Start from bytes (ids 0 to 255). Again and again, take the most frequent pair of neighbours and make it a new id. Pairs
never cross a word: the text is cut into words first, so a word's pairs count as often as the word occurs, and a corpus
shrinks to its few thousand distinct words.

Sources: Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016), section 3.2; the
words are those of GPT-2 (Radford and others, 2019), with Python's character classes in place of Unicode's.
"""

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

Pair = tuple[int, int]

BYTES = 256  # ids below are single bytes; merge number i makes id 256 + i

# A contraction's tail; letters, digits or other signs with the space before them; the white space that is left, of
# which the last one is kept for the word that follows. Every character is in one class, so the words join to the text.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def split_words(text: str) -> list[str]:
    """The words of `text`, each with the space before it; `"".join` of them is `text`.

    >>> split_words("Emma hadn't 21 _friends_.  No")
    ['Emma', ' hadn', "'t", ' 21', ' _', 'friends', '_.', ' ', ' No']
    """
    return WORD.findall(text)


def text_bytes(text: str) -> bytes:
    """UTF-8, with the stray bytes of `text_of_bytes` as they were.

    Raises:
        UnicodeEncodeError: `text` holds half of a surrogate pair, which no byte stands for.
    """
    return text.encode("utf-8", "surrogateescape")


def text_of_bytes(data: bytes) -> str:
    """Any bytes as text that `text_bytes` turns back: a byte that is no UTF-8 becomes a lone surrogate.

    >>> text_of_bytes(b"caf\\xc3\\xa9 \\xff"), text_bytes(text_of_bytes(b"\\xff"))
    ('café \\udcff', b'\\xff')
    """
    return data.decode("utf-8", "surrogateescape")


def merge(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Replace every `pair` of neighbours in `ids` by `new`, from the left.

    >>> merge([1, 1, 1, 2, 1, 1], (1, 1), 9)
    [9, 1, 2, 9]
    """
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def learn_merges(words: Iterable[str], count: int) -> list[Pair]:
    """The first `count` merges that byte-pair encoding learns from `words`.

    The most frequent pair goes first; of equally frequent ones the pair with the smaller ids, so the result depends on
    the words alone, not on their order. A pair that occurs only once is not merged, so a short text gives fewer merges.

    >>> learn_merges([" ab", " ab", "abab"], 10)  # "ab" becomes 256, then " ab" becomes 257
    [(97, 98), (32, 256)]
    """
    distinct = Counter(words)
    ids = [list(text_bytes(word)) for word in distinct]
    times = list(distinct.values())

    counts: Counter[Pair] = Counter()  # of every pair, over the corpus as merged so far
    where: defaultdict[Pair, set[int]] = defaultdict(set)  # the words that hold a pair, or once held it
    for i, word in enumerate(ids):
        for pair in zip(word, word[1:], strict=False):
            counts[pair] += times[i]
            where[pair].add(i)

    # Invariant: every pair that occurs has an entry with its present count in the heap. Entries with an older count
    # stay there and are passed over: that is cheaper than finding and moving them.
    heap = [(-n, pair) for pair, n in counts.items()]
    heapq.heapify(heap)
    merges: list[Pair] = []
    while heap and len(merges) < count:
        negative, pair = heapq.heappop(heap)
        if counts[pair] != -negative:
            continue
        if counts[pair] < 2:
            break
        new = BYTES + len(merges)
        merges.append(pair)
        changed: set[Pair] = set()
        for i in where.pop(pair):  # the other words keep their pairs, so their counts stand
            old = ids[i]
            ids[i] = merge(old, pair, new)
            for gone in zip(old, old[1:], strict=False):
                counts[gone] -= times[i]
                changed.add(gone)
            for come in zip(ids[i], ids[i][1:], strict=False):
                counts[come] += times[i]
                changed.add(come)
                where[come].add(i)
        for other in changed:
            if counts[other]:
                heapq.heappush(heap, (-counts[other], other))
    return merges
