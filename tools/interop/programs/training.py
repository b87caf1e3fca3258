"""Where the real Paddle is installed: programs after `minimize`, what they start from, and what they come to.

    python -m tools.interop.programs.training FILE
"""

import json
import sys

import numpy as np
import paddle

STEPS = 4


def optimizers():
    make = paddle.optimizer
    return {
        "SGD": lambda: make.SGD(0.1),
        "SGD, a schedule": lambda: make.SGD(make.lr.StepDecay(0.1, 2)),
        "Momentum, Nesterov": lambda: make.Momentum(0.1, 0.9, use_nesterov=True),
        "Momentum, decay": lambda: make.Momentum(0.1, 0.9, weight_decay=0.01),
        "Adam": lambda: make.Adam(0.05),
        "Adam, clipped": lambda: make.Adam(0.05, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)),
        "AdamW": lambda: make.AdamW(0.05, weight_decay=0.1),
        "RMSProp": lambda: make.RMSProp(0.05),
        "RMSProp, centered": lambda: make.RMSProp(0.05, momentum=0.5, centered=True),
        "Adagrad": lambda: make.Adagrad(0.05),
        "Adamax": lambda: make.Adamax(0.05),
        "Adadelta": lambda: make.Adadelta(0.5),
        "Lamb": lambda: make.Lamb(0.05),
    }


def trained(make, x, y):
    """The texts, the state before, and the losses of some steps."""
    main, startup, scope = paddle.static.Program(), paddle.static.Program(), paddle.static.Scope()
    paddle.seed(1)
    with paddle.static.scope_guard(scope), paddle.static.program_guard(main, startup):
        inputs = [paddle.static.data(name, [-1, width], "float32") for name, width in (("x", 6), ("y", 1))]
        nn = paddle.nn
        net = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1D(4), nn.Tanh(), nn.Linear(4, 1))
        loss = nn.functional.mse_loss(net(inputs[0]), inputs[1])
        make().minimize(loss)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        ops = main.global_block().ops
        names = [op.attrs()["parameter_name" if op.name() == "builtin.parameter" else "name"] for op in ops
                 if op.name() == "builtin.parameter" or op.name() == "pd_op.data" and op.results()[0].persistable]
        state = {n: np.asarray(scope.find_var(n).get_tensor()) for n in names}
        text, first = str(main), {n: [v.tolist(), list(v.shape)] for n, v in state.items()}
        place = next((i, j) for i, op in enumerate(ops) for j, r in enumerate(op.results()) if r.is_same(loss))
        losses = [float(executor.run(main, feed={"x": x, "y": y}, fetch_list=[loss])[0]) for _ in range(STEPS)]
    return {"text": text, "startup": str(startup), "state": first, "place": place, "losses": losses}


def main(path):
    paddle.enable_static()
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 6)).astype("float32"), rng.standard_normal((5, 1)).astype("float32")
    runs = {name: trained(make, x, y) for name, make in optimizers().items()}
    with open(path, "w") as file:
        json.dump({"x": x.tolist(), "y": y.tolist(), "runs": runs}, file)


if __name__ == "__main__":
    main(sys.argv[1])
