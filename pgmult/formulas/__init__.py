"""Formulas: a language of terms, and the design matrices that they make of tables."""
