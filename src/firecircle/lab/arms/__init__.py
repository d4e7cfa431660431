"""Ways of judging, each with its control: an arm's result for one record is an `Outcome`.

Call `building.build_arms`. To add an arm, write a class with `judge` and `rehearse` (see `arm.Arm`), name its
kind in `lab.plan.ArmKind` and create it in `building`.
"""
