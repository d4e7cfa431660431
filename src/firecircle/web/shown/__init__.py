"""What a page shows of a circle, worked out before any markup: places, figures, lines of a chart."""
