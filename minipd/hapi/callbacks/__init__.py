"""What happens while a Model trains, evaluates and predicts, beside that."""

from minipd.hapi.callbacks.base import Callback
from minipd.hapi.callbacks.checkpoint import ModelCheckpoint
from minipd.hapi.callbacks.progress import ProgBarLogger
from minipd.hapi.callbacks.rate import LRScheduler, ReduceLROnPlateau
from minipd.hapi.callbacks.stopping import EarlyStopping

__all__ = ["Callback", "EarlyStopping", "LRScheduler", "ModelCheckpoint", "ProgBarLogger", "ReduceLROnPlateau"]
