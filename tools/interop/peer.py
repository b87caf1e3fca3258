"""Runs where the real Paddle is installed, with nothing of minipd:

    python peer.py save FOLDER      save the models there; prints what failed
    python peer.py run FOLDER       load and run what minipd has saved there; prints how far the numbers are apart
"""

import json
import os
import sys

import numpy as np
import paddle
from models import calls_of, difference, models, save_all


def predicted(prefix, inputs):
    """By Paddle's predictor, which knows the files only."""
    config = paddle.inference.Config(f"{prefix}.json", f"{prefix}.pdiparams")
    config.disable_glog_info()
    config.disable_mkldnn()             # whose layers of float64 compute something else, for files of Paddle too
    predictor = paddle.inference.create_predictor(config)
    for name, array in zip(predictor.get_input_names(), inputs, strict=True):
        predictor.get_input_handle(name).copy_from_cpu(np.ascontiguousarray(array))
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def loaded(prefix, inputs):
    """By the layer that `jit.load` gives."""
    out = paddle.jit.load(prefix)(*map(paddle.to_tensor, inputs))
    return [x.numpy() for x in (out if isinstance(out, (list, tuple)) else [out])]


def run(folder):
    found = {}
    for i, name in enumerate(models(paddle)):
        found[name] = {}
        if not os.path.exists(f"{folder}/{i}.json"):
            continue
        for way in (predicted, loaded):
            try:
                found[name][way.__name__] = max(difference(way(f"{folder}/{i}", inputs), outputs)
                                                for inputs, outputs in calls_of(folder, i))
            except Exception as error:      # one model that fails is one row of the table
                lines = [line for line in str(error).splitlines() if line.strip()] or [""]
                found[name][way.__name__] = f"{type(error).__name__}: {lines[-1][:300]}"
    return found


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    print("\nRESULT", json.dumps(save_all(paddle, folder) if what == "save" else run(folder)))
