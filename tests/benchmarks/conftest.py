"""Benchmarks are no part of the package; their parts are found where they lie."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
