from pgmult.mixtures.collapsed import ExpressionProblem as ExpressionProblem
from pgmult.mixtures.collapsed import GaussianMixtureProblem as GaussianMixtureProblem
from pgmult.mixtures.estimator import CollapsedGaussianMixture as CollapsedGaussianMixture
from pgmult.mixtures.expression import Alignments as Alignments
from pgmult.mixtures.expression import TranscriptExpression as TranscriptExpression
from pgmult.mixtures.expression import as_alignments as as_alignments
