from pgmult.mixtures.collapsed import ExpressionProblem as ExpressionProblem
from pgmult.mixtures.collapsed import GaussianMixtureProblem as GaussianMixtureProblem
from pgmult.mixtures.data import Alignments as Alignments
from pgmult.mixtures.data import as_alignments as as_alignments
from pgmult.mixtures.estimator import CollapsedGaussianMixture as CollapsedGaussianMixture
from pgmult.mixtures.models import TranscriptExpression as TranscriptExpression
