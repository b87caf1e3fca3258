"""What holds for every pass that is registered: what is computed stays, and a second run changes nothing.

Over random programs, of all shapes and dtypes and with nested branches and loops, and over random networks, which have
the formulas that fusions look for.  To the bit where a pass promises it.
"""

import numpy as np
import pytest
from hypothesis import given, settings

import minipd as paddle
from minipd.passes import PassManager, create_pass, pass_names
from minipd.passes.compare import difference, outcome, random_feed, random_state
from minipd.passes.listing import info
from minipd.passes.show import program_of
from minipd.passes.table import pass_options
from tests.ir.random_programs import programs
from tests.passes.meaning import observed
from tests.passes.random_networks import BLOCKS, Network, networks

#: the passes of this floor (those of floors above have tests of their own)
NAMES = [name for name in pass_names() if info(name).file.startswith("minipd/passes/")]
#: results of passes of level 4, which may lower the precision, are compared as numbers of few bits are
LOWERED = 5e-2


def check(name, program, want, feed, state):
    """Run the pass twice on a copy; returns the number of changes.

    want: what the program computes; None if it is not to be run."""
    changed, after = program.clone(), dict(state)
    options = {"param_scope": after} if "param_scope" in pass_options(name) else {}
    made = create_pass(name, options)
    manager = PassManager(opt_level=4, debug=True)
    manager.add_pass(made)
    count = manager.run(changed)
    assert (count == 0) == (changed == program), f"{name} says {count} changes"
    if count == 0:
        return 0
    if want is not None:
        got = outcome(changed, feed, after)
        kept = {n: got[n] for n in want}        # a pass may add outputs
        tolerance = 0.0 if made.exact else LOWERED if made.opt_level == 4 else made.rtol
        assert difference(want, kept, tolerance) is None, f"{name}: {difference(want, kept, tolerance)}"
    text = changed.to_string("exact")
    again = create_pass(name, {"param_scope": after} if options else {})
    assert again.run(changed) == 0 and changed.to_string("exact") == text, f"{name} changes something when run again"
    return count


def check_all(program):
    feed, state = random_feed(program), random_state(program)
    want = outcome(program, feed, state)
    for name in NAMES:
        check(name, program, want, feed, state)


@given(programs(symbolic=False).map(observed))
@settings(max_examples=40)
def test_random_programs_keep_their_meaning(program):
    check_all(program)


@pytest.mark.long
@given(programs(symbolic=False, max_ops=30).map(observed))
@settings(max_examples=120)
def test_many_random_programs_keep_their_meaning(program):
    check_all(program)


@given(programs().map(observed))
@settings(max_examples=20)
def test_programs_of_open_sizes_stay_well_formed(program):
    for name in NAMES:
        check(name, program, None, {}, {})


@given(networks(max_blocks=3))
@settings(max_examples=12)
def test_random_networks_keep_their_meaning(program):
    check_all(program)


@pytest.mark.long
@given(networks(max_blocks=6))
@settings(max_examples=60)
def test_many_random_networks_keep_their_meaning(program):
    check_all(program)


#: passes that change what a program takes and gives, which no block is about; they have tests of their own
OF_ENDS = {"add_shadow_output_after_dead_parameter_pass", "replace_fetch_with_shadow_output_pass"}


def test_each_block_keeps_its_meaning_and_every_pass_changes_some_block():
    changed = set()
    for block in BLOCKS:
        paddle.seed(0)
        program = program_of(Network([block]), (2, 4, 8))
        feed, state = random_feed(program), random_state(program)
        want = outcome(program, feed, state)
        assert all(np.isfinite(a).all() and a.std() > 1e-3 for a in want.values()), block.__name__
        try:
            changed |= {name for name in NAMES if check(name, program, want, feed, state)}
        except AssertionError as error:
            error.add_note(f"in block {block.__name__}")
            raise
    assert set(NAMES) - changed == OF_ENDS, (
        "expected every pass to change some block, so that the tests above are about it: add a block that is written "
        "as its authors would to tests/passes/random_networks.py")
