"""Statistics of a run: pure functions from columns of figures to frozen shapes.

This package uses no voice, file or screen. An unavailable figure is None with a reason. Scores are F, high
means alarm, and a score at or above the threshold is an alarm.
"""

from firecircle.circle.quorum import effective_voices
from firecircle.lab.statistics.calibration import Calibration, Threshold, calibrate
from firecircle.lab.statistics.comparison import (
    Comparison,
    Difference,
    McNemar,
    compare,
    false_discovery,
    holm,
    mcnemar,
)
from firecircle.lab.statistics.curves import Curve, CurvePoint, auc, average_precision, curve, recall_at
from firecircle.lab.statistics.dialogue import (
    ChairEffect,
    ExcessFlips,
    Flips,
    GapFigures,
    Opinions,
    PatternFigures,
    chair_effect,
    excess_flips,
    flips,
    gap_figures,
    pattern_figures,
)
from firecircle.lab.statistics.estimate import (
    CONFIDENCE,
    Estimate,
    Scored,
    mean_with_interval,
    scored,
    share_over_records,
    wilson,
)
from firecircle.lab.statistics.performance import (
    Group,
    Performance,
    Rates,
    cost_per_found_attack,
    performance,
    performance_by_group,
    rates,
    rates_by_round,
)
from firecircle.lab.statistics.voices import (
    ErrorCorrelation,
    SizeRates,
    error_correlation,
    krippendorff_alpha,
    rates_by_size,
)

__all__ = [
    "CONFIDENCE",
    "Calibration",
    "ChairEffect",
    "Comparison",
    "Curve",
    "CurvePoint",
    "Difference",
    "ErrorCorrelation",
    "Estimate",
    "ExcessFlips",
    "Flips",
    "GapFigures",
    "Group",
    "McNemar",
    "Opinions",
    "PatternFigures",
    "Performance",
    "Rates",
    "Scored",
    "SizeRates",
    "Threshold",
    "auc",
    "average_precision",
    "calibrate",
    "chair_effect",
    "compare",
    "cost_per_found_attack",
    "curve",
    "effective_voices",
    "error_correlation",
    "excess_flips",
    "false_discovery",
    "flips",
    "gap_figures",
    "holm",
    "krippendorff_alpha",
    "mcnemar",
    "mean_with_interval",
    "pattern_figures",
    "performance",
    "performance_by_group",
    "rates",
    "rates_by_round",
    "rates_by_size",
    "recall_at",
    "scored",
    "share_over_records",
    "wilson",
]
