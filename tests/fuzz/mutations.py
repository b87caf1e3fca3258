"""Damaged copies of real files: cut short, bytes and pieces exchanged, removed, repeated, or put in."""

import itertools

#: what a damaged or hostile text may have anywhere
TEXTS = (
    "", "(", ")", "{", "}", "[", "]", "<", ">", ",", ":", '"', "\\", "\n", "\0", "\ud800", "\u2028", "%", "%0", "%1",
    "^", "-1", "0", "1e400", "nan", "-inf", "null", "true", "9" * 40, "9" * 5000, "-" * 200, "S0", "S0//0",
    "S0*" * 300 + "S0",
    "(A+B)*(C+D)*(E+F)" * 9, "tensor<" + "2x" * 500 + "f32>", "tensor<99999999999x99999999999xf32>", "vec[" * 300,
    "[" * 3000, "{" * 3000, "(" * 3000, '{"a":' * 2000, "<<NULL VALUE>>", '"pd_op.while"', '"cf.yield"', "} else {",
    "assume S0 == S0+1, \"\", \"\"\n", "ints(", "i64(", '"id":0', '"id":1', '"#":"0.a_i32"', '"D":', '"blocks":[',
)


def text_mutations(text, rng):
    """An endless sequence of damaged copies."""
    for n in itertools.count():
        damaged = text
        for _ in range(1 + n % 3):
            damaged = _damage(damaged, rng, TEXTS[int(rng.integers(len(TEXTS)))])
        yield damaged


def byte_mutations(data, rng):
    """The same for bytes."""
    for n in itertools.count():
        damaged = data
        for _ in range(1 + n % 3):
            piece = bytes(rng.integers(0, 256, int(rng.integers(1, 12))).astype("uint8"))
            huge = rng.choice([b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0" * 9, b"\x08\xff\xff\xff\xff\x0f", piece])
            damaged = _damage(damaged, rng, bytes(huge))
        yield damaged


def _damage(data, rng, piece):
    """One change; works on text and on bytes."""
    if not data:
        return piece
    a, b = sorted(int(i) for i in rng.integers(0, len(data) + 1, 2))
    c = min(len(data), a + int(rng.integers(1, 40)))
    match int(rng.integers(7)):
        case 0:
            return data[:a]                                             # cut short
        case 1:
            return data[:a] + data[c:]                                  # a piece is missing
        case 2:
            return data[:a] + piece + data[a:]                          # something is put in
        case 3:
            return data[:a] + piece + data[c:]                          # something stands in its place
        case 4:
            return data[:c] + data[a:]                                  # a piece twice
        case 5:
            return data[:a] + data[b:b + c - a] + data[c:]              # a piece of elsewhere
        case _:
            return data[b:] + data[:b]                                  # ends exchanged
