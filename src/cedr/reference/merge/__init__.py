"""Logical merge, slow and obvious: mutual consistency, compatibility, and Algorithms R3 and R4 element by element."""

from cedr.reference.merge.compatible import Violation, compatible
from cedr.reference.merge.consistent import can_become, mutually_consistent, repair
from cedr.reference.merge.r3 import ReferenceR3
from cedr.reference.merge.r4 import ReferenceR4

__all__ = ["ReferenceR3", "ReferenceR4", "Violation", "can_become", "compatible", "mutually_consistent", "repair"]
