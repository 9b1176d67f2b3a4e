"""scikit-learn's faces of regressions."""
