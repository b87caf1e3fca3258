"""Every public class, made with random arguments, and what can be done with the result: calls, methods, iteration.

Layers, losses, optimizers, schedules, metrics, samplers, initializers, clips and scalers are held to what functions
are: they answer, or they say in the user's terms what is wrong.
"""

import itertools

import pytest

import minipd as paddle
from tests.fuzz.arguments import Arguments, complaint, little_memory, shown

NAMESPACES = [paddle.nn, paddle.nn.initializer, paddle.optimizer, paddle.optimizer.lr, paddle.metric, paddle.io,
              paddle.amp, paddle.regularizer]

#: what starts processes, touches files, or is the user's to define; a Subset fails in the words of the user's dataset
LEFT_OUT = {"Subset", "DataLoader", "Layer", "Module", "Optimizer", "LRScheduler", "Metric", "Initializer", "Dataset",
            "IterableDataset", "Sampler", "BeamSearchDecoder", "RNNCellBase"}
METHODS_LEFT_OUT = {"values", "whole", "row", "forward", "backward", "to", "cuda", "xpu", "register_state_dict_hook"}


def public_classes():
    found = {}
    for module in NAMESPACES:
        for name in module.__all__:
            cls = getattr(module, name)
            if isinstance(cls, type) and name not in LEFT_OUT:
                found[f"{module.__name__.replace('minipd', 'paddle')}.{name}"] = cls
    return found


CLASSES = public_classes()


def uses(made):
    """What can be done with an instance, by name: (the function, how many of its first parameters it has already)."""
    own = {name: getattr(made, name) for name in dir(type(made))
           if not name.startswith("_") and name not in METHODS_LEFT_OUT and callable(getattr(type(made), name))}
    if isinstance(made, paddle.nn.Layer):
        own = {"forward": made}
    elif callable(made):
        own["call"] = made
    if hasattr(made, "__iter__"):
        own["iterate"] = lambda: list(itertools.islice(made, 5))
    if hasattr(made, "__len__"):
        own["len"] = lambda: len(made)
    own["print"] = lambda: repr(made)
    return own


def signature_of(made, name, use):
    return made.forward if isinstance(made, paddle.nn.Layer) and name == "forward" else use


def complaints(name, seed, tries):
    found = []
    for n in range(tries):
        arguments = Arguments(f"{name} {seed} {n}")
        args, kwargs = arguments.draw(CLASSES[name])
        said = f"{name}({shown(args, kwargs)})"
        with little_memory():
            made, wrong = complaint(CLASSES[name], args, kwargs)
            if made is not None:
                able = uses(made)
                for use in arguments.rng.sample(sorted(able), min(3, len(able))):
                    args, kwargs = arguments.draw(signature_of(made, use, able[use]))
                    _, wrong = complaint(able[use], args, kwargs)
                    if wrong:
                        said += f".{use}({shown(args, kwargs)})"
                        break
        if wrong:
            found.append(f"{said}\n    {wrong}")
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLASSES)
def test_random_arguments(name):
    found = complaints(name, 0, 15)
    assert not found, "\n".join(found[:3])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLASSES)
def test_many_random_arguments(name):
    """Some minutes in all."""
    found = complaints(name, 1, 500)
    assert not found, "\n".join(found[:3])
