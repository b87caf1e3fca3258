"""`paddle.vision`: models for images."""

from minipd.vision import models

__all__ = ["models"]
