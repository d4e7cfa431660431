"""Ways of judging, each beside its control: what an arm makes of one record is an `Outcome`.

`build_arms` is the door. To add an arm, write a class with `judge` and `rehearse` (see `arm.Arm`), name its
kind in `lab.plan.ArmKind` and make it in `building`.
"""

from firecircle.lab.arms.arm import Arm, Case, Seating, Unwatched
from firecircle.lab.arms.building import build_arms

__all__ = ["Arm", "Case", "Seating", "Unwatched", "build_arms"]
