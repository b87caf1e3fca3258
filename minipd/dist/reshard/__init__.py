"""Resharding: from one set of placements to another.

    plan.py     the steps, a pure function of placements
    run.py      the steps carried out on what a rank holds
"""
