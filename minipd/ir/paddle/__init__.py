"""Paddle's form of a program, and the way there and back.

Our rows and Paddle's operators differ in places: ours take the key of a random draw as an operand, Paddle's keep a
seed; Paddle's `sum` has a `dtype`, its `slice` three attributes more, and where ours store 64-bit numbers
Paddle's often store 32.  A program *in Paddle's form* (`program.form == "paddle"`) is an ordinary program whose
operations are exactly Paddle's.  It is printed, parsed, saved and loaded; what runs, is differentiated and goes through
passes is ours.

    to_paddle(program)      our form -> Paddle's     (save)
    from_paddle(program)    Paddle's form -> ours    (load)

The numbers do not change on the way.

To read the package, follow one operator.  `operators.txt` has the signature of each of Paddle's (written by
`tools/paddle_schema.py`, read by `signatures`).  Where names of operands and attributes are those of our row nothing
more is needed: `same`, in `save` and in `load`.  Where they differ there is an entry, both directions side by side:

    @form("square_root", paddle="sqrt")         `form` explains these; the entries are in `*_forms`
    class SquareRoot:
        def save(to, call): ...                 `save`: a Saver; `calls`: a Call
        def load(at, op): ...                   `load`: a Loader; `structure`: what is no call

Some need more than one row, or less:

    functions       an operator of Paddle's that is read as a public function of ours (`pd_op.elu`)
    whole_*         such a function, written as one operator again: the trace has noted what it called
    gradients       `X_grad` is read as a call of X's gradient rules
    in_place        `X_` writes an operand: what reads that afterwards reads the result; state is written by name
    reasons         rows that Paddle has nothing for, and why
    parts           those of them that are written as others before a program is saved (a step of an LSTM)
    numbers         sizes that a program of Paddle's computes are attributes of ours again
    open_sizes      and the way back, where a file must have no size that is not known
    text, raw       how values, types and attributes are spelled in print
    axes            axes and indices, which may be negative there
"""

from minipd.ir.paddle import conv_forms as _conv_forms
from minipd.ir.paddle import effect_forms as _effect_forms
from minipd.ir.paddle import functions as _functions
from minipd.ir.paddle import fused_forms as _fused_forms
from minipd.ir.paddle import gather_forms as _gather_forms
from minipd.ir.paddle import group_forms as _group_forms
from minipd.ir.paddle import joining_forms as _joining_forms
from minipd.ir.paddle import layer_forms as _layer_forms
from minipd.ir.paddle import loss_forms as _loss_forms
from minipd.ir.paddle import making_forms as _making_forms
from minipd.ir.paddle import math_forms as _math_forms
from minipd.ir.paddle import norm_forms as _norm_forms
from minipd.ir.paddle import optimizer_forms as _optimizer_forms
from minipd.ir.paddle import random_forms as _random_forms
from minipd.ir.paddle import recurrent_forms as _recurrent_forms
from minipd.ir.paddle import reduction_forms as _reduction_forms
from minipd.ir.paddle import scalar_forms as _scalar_forms
from minipd.ir.paddle import shape_forms as _shape_forms
from minipd.ir.paddle import slice_forms as _slice_forms
from minipd.ir.paddle import whole_forms as _whole_forms
from minipd.ir.paddle import whole_layers as _whole_layers
from minipd.ir.paddle import whole_losses as _whole_losses
from minipd.ir.paddle.load import from_paddle
from minipd.ir.paddle.save import to_paddle

#: modules that fill the tables of forms
FORMS = (
    _functions, _conv_forms, _effect_forms, _fused_forms, _gather_forms, _group_forms, _joining_forms, _layer_forms,
    _loss_forms, _making_forms, _math_forms, _norm_forms, _optimizer_forms, _random_forms, _recurrent_forms,
    _reduction_forms, _scalar_forms, _shape_forms, _slice_forms, _whole_forms, _whole_layers, _whole_losses)

__all__ = ["from_paddle", "to_paddle"]
