"""The files of this folder are scripts for Paddle, which test_guide.py runs: there is nothing in them to collect."""

collect_ignore_glob = ["*.py"]
