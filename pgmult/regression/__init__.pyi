from pgmult.regression.answers import comparisons as comparisons
from pgmult.regression.answers import contrasts as contrasts
from pgmult.regression.answers import effects as effects
from pgmult.regression.answers import groups as groups
from pgmult.regression.answers import poststratify as poststratify
from pgmult.regression.answers import predict as predict
from pgmult.regression.answers import variance_shares as variance_shares
from pgmult.regression.data import CountedRows as CountedRows
from pgmult.regression.data import EventRows as EventRows
from pgmult.regression.data import LabelledRows as LabelledRows
from pgmult.regression.data import as_counted_rows as as_counted_rows
from pgmult.regression.data import as_event_rows as as_event_rows
from pgmult.regression.data import as_labelled_rows as as_labelled_rows
from pgmult.regression.estimators._linear import ApproximationWarning as ApproximationWarning
from pgmult.regression.estimators._linear import Coefficients as Coefficients
from pgmult.regression.estimators.additive import AdditiveClassifier as AdditiveClassifier
from pgmult.regression.estimators.counts import CountRegressor as CountRegressor
from pgmult.regression.estimators.formula import FormulaFit as FormulaFit
from pgmult.regression.estimators.formula import from_formula as from_formula
from pgmult.regression.estimators.logistic import LogisticClassifier as LogisticClassifier
from pgmult.regression.estimators.multinomial import MultinomialClassifier as MultinomialClassifier
from pgmult.regression.fits.counts import fit_count_regression as fit_count_regression
from pgmult.regression.fits.logistic import (
    fit_grouped_logistic_regression as fit_grouped_logistic_regression,
)
from pgmult.regression.fits.logistic import fit_logistic_regression as fit_logistic_regression
from pgmult.regression.fits.multinomial import fit_softmax_regression as fit_softmax_regression
from pgmult.regression.fits.multinomial import (
    fit_stick_breaking_regression as fit_stick_breaking_regression,
)
from pgmult.regression.models.additive import AdditiveRegression as AdditiveRegression
from pgmult.regression.models.additive import AdditiveRows as AdditiveRows
from pgmult.regression.models.counts import NegativeBinomialRegression as NegativeBinomialRegression
from pgmult.regression.models.counts import PoissonRegression as PoissonRegression
from pgmult.regression.models.logistic import GroupedLogisticRegression as GroupedLogisticRegression
from pgmult.regression.models.logistic import LogisticRegression as LogisticRegression
from pgmult.regression.models.multinomial import SoftmaxRegression as SoftmaxRegression
from pgmult.regression.models.multinomial import StickBreakingRegression as StickBreakingRegression
from pgmult.regression.models.scaled import HalfT as HalfT
from pgmult.regression.models.scaled import Horseshoe as Horseshoe
from pgmult.regression.models.scaled import ScaledRegression as ScaledRegression
from pgmult.regression.reports import report as report
from pgmult.regression.scores import LeaveOneOut as LeaveOneOut
from pgmult.regression.scores import check as check
from pgmult.regression.scores import compare as compare
from pgmult.regression.scores import loo as loo
