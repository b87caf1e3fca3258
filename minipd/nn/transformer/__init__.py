"""The Transformer (Vaswani et al. 2017) as layers: attention, encoder and decoder layers, and stacks of them."""

from minipd.nn.transformer.attention import MultiHeadAttention
from minipd.nn.transformer.block import TransformerDecoderLayer, TransformerEncoderLayer
from minipd.nn.transformer.stack import Transformer, TransformerDecoder, TransformerEncoder

__all__ = ["MultiHeadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]
