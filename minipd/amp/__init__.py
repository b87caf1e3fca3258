"""Automatic mixed precision (Paddle's `paddle.amp`)."""

from minipd.amp import debugging
from minipd.amp.at_root import autocast
from minipd.amp.auto_cast import (
    amp_guard,
    auto_cast,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_enabled,
    is_bfloat16_supported,
    is_float16_supported,
)
from minipd.amp.decorate import amp_decorate, decorate
from minipd.amp.grad_scaler import AmpScaler, GradScaler
from minipd.amp.lists import black_list, white_list

__all__ = ["AmpScaler", "GradScaler", "amp_decorate", "amp_guard", "auto_cast", "autocast", "black_list", "debugging",
           "decorate", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
           "is_autocast_enabled", "is_bfloat16_supported", "is_float16_supported", "white_list"]
