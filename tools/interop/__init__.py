"""minipd and the real Paddle, each with what the other has saved: `make interop`.

    models      the models, written once for both: the program interface is the same
    peer        what runs where Paddle is installed: save models there, or run what minipd has saved
    __main__    both directions, and a table of how far the numbers are apart
"""
