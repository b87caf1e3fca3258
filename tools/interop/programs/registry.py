"""The list, and what its programs start with."""

#: name -> a function of paddle that builds a program with static.data, and returns the loss if it can be differentiated
PROGRAMS = {}


def program(function):
    assert function.__name__ not in PROGRAMS, function.__name__
    PROGRAMS[function.__name__] = function
    return function


def data(paddle, name="x", shape=(2, 6), dtype="float32", stop=False):
    x = paddle.static.data(name, list(shape), dtype)
    x.stop_gradient = stop
    return x
