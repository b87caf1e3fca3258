"""Losses as layers.

    base             what they share
    classification, binary, regression, margin, sequence, many_classes      as in `minipd.nn.functional.loss`
"""

from minipd.nn.loss.binary import (
    BCELoss,
    BCEWithLogitsLoss,
    MultiLabelSoftMarginLoss,
    SoftMarginLoss,
)
from minipd.nn.loss.classification import CrossEntropyLoss, NLLLoss
from minipd.nn.loss.many_classes import AdaptiveLogSoftmaxWithLoss, HSigmoidLoss
from minipd.nn.loss.margin import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from minipd.nn.loss.regression import (
    GaussianNLLLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    PoissonNLLLoss,
    SmoothL1Loss,
)
from minipd.nn.loss.sequence import CTCLoss, RNNTLoss

__all__ = ["AdaptiveLogSoftmaxWithLoss", "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss",
           "CrossEntropyLoss", "GaussianNLLLoss", "HSigmoidLoss", "HingeEmbeddingLoss", "KLDivLoss", "L1Loss",
           "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
           "NLLLoss", "PoissonNLLLoss", "RNNTLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
           "TripletMarginWithDistanceLoss"]
