"""Columns of times."""

from typing import Any

import numpy as np

Times = np.ndarray[Any, np.dtype[np.int64]]
