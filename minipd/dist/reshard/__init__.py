"""Resharding: from one set of placements to another.

    steps.py      what a step is: one mesh axis changes, or blocks are exchanged; which steps keep the value
    plan.py       the steps on one mesh, a pure function of placements: a search for the cheapest
    between.py    from one mesh to another: steps there, messages or broadcasts, steps here
    cost.py       what a step sends, to the byte, and what that costs
    across.py     which block goes from which rank to which
    messages.py   who sends what to whom in a reshard: for pictures, and for counting
    run.py        the plans carried out on what a rank holds; blocks.py: blocks of it, given, taken and put together
"""
