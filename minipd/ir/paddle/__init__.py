"""Paddle's form of a program, and the way there and back.

Our rows and Paddle's operators differ in places: ours take the key of a random draw as an operand, Paddle's keep a
seed; Paddle's `sum` has a `dtype`, its `slice` three attributes more, and where ours store 64-bit numbers
Paddle's often store 32.  A program *in Paddle's form* (`program.form == "paddle"`) is an ordinary program whose
operations are exactly Paddle's.  It is printed, parsed, saved and loaded; what runs, is differentiated and goes through
passes is ours.

    to_paddle(program)      our form -> Paddle's     (save)
    from_paddle(program)    Paddle's form -> ours    (load)

The numbers do not change on the way.
"""

from minipd.ir.paddle import effect_forms as _effects
from minipd.ir.paddle import functions as _functions
from minipd.ir.paddle import layer_forms as _layers
from minipd.ir.paddle import making_forms as _making
from minipd.ir.paddle import math_forms as _math
from minipd.ir.paddle import optimizer_forms as _optimizers
from minipd.ir.paddle import random_forms as _random
from minipd.ir.paddle import recurrent_forms as _recurrent
from minipd.ir.paddle import shape_forms as _shapes
from minipd.ir.paddle import whole_forms as _wholes
from minipd.ir.paddle.load import from_paddle
from minipd.ir.paddle.save import to_paddle

#: modules that fill the tables of forms
FORMS = (_effects, _functions, _layers, _making, _math, _optimizers, _random, _recurrent, _shapes, _wholes)

__all__ = ["from_paddle", "to_paddle"]
