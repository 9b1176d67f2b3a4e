"""scikit-learn estimators of regressions."""
