"""Losses.

    classification   one class out of many
    binary           yes or no, one probability or logit per question
    regression       numbers and distributions
    margin           distances and margins
    sequence         labels whose places in the input are not known
    many_classes     classes by the thousands
"""

from minipd.nn.functional.loss.binary import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    log_loss,
    multi_label_soft_margin_loss,
    sigmoid_focal_loss,
    soft_margin_loss,
)
from minipd.nn.functional.loss.classification import (
    cross_entropy,
    dice_loss,
    nll_loss,
    softmax_with_cross_entropy,
)
from minipd.nn.functional.loss.many_classes import (
    adaptive_log_softmax_with_loss,
    class_center_sample,
    hsigmoid_loss,
    margin_cross_entropy,
)
from minipd.nn.functional.loss.margin import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_label_margin_loss,
    multi_margin_loss,
    npair_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from minipd.nn.functional.loss.regression import (
    gaussian_nll_loss,
    kl_div,
    l1_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    square_error_cost,
)
from minipd.nn.functional.loss.sequence import ctc_loss, rnnt_loss

__all__ = ["adaptive_log_softmax_with_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
           "class_center_sample", "cosine_embedding_loss", "cross_entropy", "ctc_loss",
           "dice_loss", "gaussian_nll_loss", "hinge_embedding_loss", "hsigmoid_loss", "kl_div", "l1_loss", "log_loss",
           "margin_cross_entropy", "margin_ranking_loss", "mse_loss", "multi_label_margin_loss",
           "multi_label_soft_margin_loss", "multi_margin_loss", "nll_loss", "npair_loss", "poisson_nll_loss",
           "rnnt_loss", "sigmoid_focal_loss", "smooth_l1_loss", "soft_margin_loss", "softmax_with_cross_entropy",
           "square_error_cost", "triplet_margin_loss", "triplet_margin_with_distance_loss"]
