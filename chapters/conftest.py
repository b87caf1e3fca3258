"""The tests and checks of the chapters run with what holds for every test: see `tests/conftest.py`."""

from tests.conftest import own_context  # noqa: F401  (importing it also sets the profile of hypothesis)
