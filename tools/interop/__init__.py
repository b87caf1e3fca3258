"""minipd and the real Paddle, each with what the other has saved: `make interop`.

    models      the models, written once for both: the program interface is the same
    peer        what runs where Paddle is installed: save models there, or run what minipd has saved
    programs    static programs, written once for both, and training programs of Paddle's
    text        their texts compared, and Paddle's gradients run here
    training    programs of Paddle's after `minimize`, run here to Paddle's losses
    __main__    all of it, and tables of how far the numbers are apart
"""
