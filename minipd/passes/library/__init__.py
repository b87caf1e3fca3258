"""The passes, one file each.  Importing enters them in the table."""

from minipd.passes.library import (  # noqa: F401
    common_subexpression_elimination,
    constant_folding,
    dead_code_elimination,
    identity_op_clean,
    rms_norm_fuse,
    rope_fuse,
    swiglu_fuse,
)

__all__: list[str] = []
