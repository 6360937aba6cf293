"""The algorithms by name."""

from cedr.operators.merge.base import LMerge
from cedr.operators.merge.r0 import R0
from cedr.operators.merge.r1 import R1
from cedr.operators.merge.r2 import R2
from cedr.operators.merge.r3 import R3
from cedr.operators.merge.r3_naive import R3Naive
from cedr.operators.merge.r4 import R4

ALGORITHMS: dict[str, type[LMerge]] = {"R0": R0, "R1": R1, "R2": R2, "R3": R3, "R3-": R3Naive, "R4": R4}
