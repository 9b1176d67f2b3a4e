from pgmult.regression.data import CountedRows as CountedRows
from pgmult.regression.data import LabelledRows as LabelledRows
from pgmult.regression.data import as_counted_rows as as_counted_rows
from pgmult.regression.data import as_labelled_rows as as_labelled_rows
from pgmult.regression.estimators.logistic import (
    BayesianLogisticRegression as BayesianLogisticRegression,
)
from pgmult.regression.estimators.logistic import (
    HierarchicalLogisticRegression as HierarchicalLogisticRegression,
)
from pgmult.regression.estimators.multinomial import MultinomialRegression as MultinomialRegression
from pgmult.regression.fits.logistic import (
    fit_grouped_logistic_regression as fit_grouped_logistic_regression,
)
from pgmult.regression.fits.logistic import fit_logistic_regression as fit_logistic_regression
from pgmult.regression.fits.multinomial import fit_softmax_regression as fit_softmax_regression
from pgmult.regression.fits.multinomial import (
    fit_stick_breaking_regression as fit_stick_breaking_regression,
)
from pgmult.regression.fits.probit import fit_probit_regression as fit_probit_regression
from pgmult.regression.models.logistic import GroupedLogisticRegression as GroupedLogisticRegression
from pgmult.regression.models.logistic import LogisticRegression as LogisticRegression
from pgmult.regression.models.stick_breaking import (
    StickBreakingRegression as StickBreakingRegression,
)
