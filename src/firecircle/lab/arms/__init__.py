"""Ways of judging, each beside its control: what an arm makes of one record is an `Outcome`.

`building.build_arms` is the door. To add an arm, write a class with `judge` and `rehearse` (see `arm.Arm`),
name its kind in `lab.plan.ArmKind` and make it in `building`.
"""
