"""Freed memory is used again: counted in page faults, not in seconds."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import minipd as paddle
x = paddle.ones([1 << 24])                      # 64 MB
y = x + x
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
for _ in range(10):
    y = x + x
print(faults() - before)
"""

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep memory")


def faults(strategy: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120,
                          env={**os.environ, "FLAGS_allocator_strategy": strategy})
    return int(done.stdout)


def test_kept_memory_is_used_again():
    assert faults("auto_growth") * 5 < faults("naive_best_fit")
