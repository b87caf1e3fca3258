"""Where the real Paddle is installed: what it prints, and the gradients that it computes."""

import json
import sys

import paddle

from tools.interop.programs import PROGRAMS, build
from tools.interop.programs.building import with_gradients


def main(path):
    paddle.enable_static()
    found = {}
    for name, function in PROGRAMS.items():
        built, startup, loss = build(paddle, function)
        found[name] = {"main": str(built), "startup": str(startup)}
        if loss is not None:
            found[name]["backward"] = with_gradients(paddle, function)
    with open(path, "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
