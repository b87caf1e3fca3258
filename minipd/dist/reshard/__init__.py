"""Resharding: from one set of placements to another.

    plan.py     the steps on one mesh, a pure function of placements
    run.py      the steps carried out on what a rank holds
    across.py   from one mesh to another: which block goes from which rank to which, and its sending and receiving
"""
