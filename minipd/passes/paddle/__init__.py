"""Rules and passes under the names of Paddle's Python API.

    drr         DrrPatternContext: a rule as a graph of named operators and tensors
    pattern     its two sides; match: what they ask, and the attributes that they give
    view        the program as Paddle has it, in which such rules are matched
    result      what a rule writes, read as a saved program is
    names       the same in `minipd.pir`
"""
