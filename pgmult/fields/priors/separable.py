"""Which columns a covariance looks at, and how it splits into factors over them."""

from itertools import product

from pgmult.fields.covariances import Constant, Covariance, Product, Sum


def columns_of(covariance: Covariance, num_columns: int) -> frozenset[int]:
    """The columns of inputs, of `num_columns`, that a covariance looks at."""
    if isinstance(covariance, Sum | Product):
        return frozenset().union(*(columns_of(part, num_columns) for part in covariance.parts))
    if isinstance(covariance, Constant):
        return frozenset()
    return frozenset(range(num_columns) if covariance.active is None else covariance.active)


def product_terms(
    covariance: Covariance, column: int, num_columns: int
) -> list[tuple[Covariance, ...]]:
    """The covariance as a sum of products, multiplied out as far as `column` is concerned.

    Every factor of a product looks at `column` and is no sum or product itself, or does not look
    at it at all.
    """
    if column not in columns_of(covariance, num_columns):
        return [(covariance,)]
    if isinstance(covariance, Sum):
        return [
            term for part in covariance.parts for term in product_terms(part, column, num_columns)
        ]
    if isinstance(covariance, Product):
        terms = (product_terms(part, column, num_columns) for part in covariance.parts)
        return [sum(factors, ()) for factors in product(*terms)]
    return [(covariance,)]
