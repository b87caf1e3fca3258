"""The high-level interface: a model that trains itself, and tables of what is in it.

    model       Model: fit, evaluate, predict, save, load
    batches     one batch at a time, and what goes into the network of it
    callbacks   what happens at the beginning and the end of everything
    summary     the table of layers, shapes and parameters
    flops       how many multiplications a network takes
"""

from minipd.hapi import callbacks
from minipd.hapi.flops import flops
from minipd.hapi.model import Model
from minipd.hapi.summary import summary

__all__ = ["Model", "callbacks", "flops", "summary"]
