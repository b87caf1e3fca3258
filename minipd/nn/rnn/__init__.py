"""Recurrent networks: cells compute one step, RNN and BiRNN run a cell over time, LSTM and its like stack them.

    cell        one step
    scan        a cell over all steps; RNN, BiRNN
    stack       SimpleRNN, LSTM, GRU: layers of scans
"""

from minipd.nn.rnn.cell import GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from minipd.nn.rnn.scan import RNN, BiRNN
from minipd.nn.rnn.stack import GRU, LSTM, RNNBase, SimpleRNN

__all__ = ["GRU", "LSTM", "RNN", "BiRNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCellBase", "SimpleRNN",
           "SimpleRNNCell"]
