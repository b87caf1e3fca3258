"""`paddle.utils`: names that are given, and whether it works."""

from minipd.base import unique_name
from minipd.utils.check import require_version, run_check, try_import

__all__ = ["require_version", "run_check", "try_import", "unique_name"]
