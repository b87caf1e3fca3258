"""A program of the list, built by whichever `paddle` is given."""

import numpy as np


def build(paddle, function):
    """(main program, startup program, loss or None)."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        loss = function(paddle)
    return main, startup, loss


def feeds_of(main):
    """The same numbers for the same inputs, in both."""
    rng = np.random.default_rng(5)
    found = {}
    for op in main.global_block().ops:
        if op.name() == "pd_op.data" and op.results()[0].persistable is False:
            shape = [3 if d < 0 else d for d in op.results()[0].shape]
            kind = str(op.results()[0].dtype)
            name = op.attrs()["name"]
            found[name] = (rng.integers(0, 2, shape).astype("int64") if "int64" in kind else rng.standard_normal(
                shape).astype("float64" if "float64" in kind else "float32"))
    return found


def with_gradients(paddle, function):
    """The text of the program with gradients of its inputs, its feeds, and the gradients' values."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    paddle.seed(3)
    with paddle.static.program_guard(main, startup):
        loss = function(paddle)
        wrt = [op.results()[0] for op in main.global_block().ops
               if op.name() in ("pd_op.data", "builtin.parameter") and not op.results()[0].stop_gradient]
        grads = paddle.static.gradients([loss], wrt)
    pairs = [(w, g) for w, g in zip(wrt, grads, strict=True) if g is not None]
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)
    feeds = feeds_of(main)
    text = str(main)
    parameters = {op.attrs()["parameter_name"]: i for i, op in enumerate(main.global_block().ops)
                  if op.name() == "builtin.parameter"}
    read = [main.global_block().ops[i].results()[0] for i in parameters.values()]
    values = executor.run(main, feed=feeds, fetch_list=[loss, *(g for _, g in pairs), *read])
    ops = main.global_block().ops
    places = [[(i, j) for i, op in enumerate(ops) for j, r in enumerate(op.results()) if r.is_same(v)][0]
              for v in (loss, *(g for _, g in pairs))]
    n = len(places)
    return {"text": text, "feeds": {k: v.tolist() for k, v in feeds.items()}, "places": places,
            "values": [v.tolist() for v in values[:n]],
            "parameters": {k: v.tolist() for k, v in zip(parameters, values[n:], strict=True)}}
