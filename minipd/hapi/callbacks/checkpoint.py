"""Saving while training."""

from __future__ import annotations

import os

from minipd.hapi.callbacks.base import Callback

__all__ = ["ModelCheckpoint"]


class ModelCheckpoint(Callback):
    """Saves the model as `save_dir/<epoch>` after every `save_freq`-th epoch, and as `save_dir/final` at the end.

    Without save_dir it does nothing.
    """

    def __init__(self, save_freq: int = 1, save_dir: str | None = None):
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir
        self.epoch = 0

    def on_epoch_begin(self, epoch: int | None = None, logs: dict | None = None) -> None:
        self.epoch = epoch or 0

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self.epoch % self.save_freq == 0:
            self._save(str(epoch))

    def on_train_end(self, logs: dict | None = None) -> None:
        self._save("final")

    def _save(self, name: str) -> None:
        if self.save_dir and self.model is not None:
            path = os.path.join(self.save_dir, name)
            print(f"save checkpoint at {os.path.abspath(path)}")
            self.model.save(path)
