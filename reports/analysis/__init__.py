"""Compare what results files contain: effects of an upgrade, agreement, errors, costs."""
