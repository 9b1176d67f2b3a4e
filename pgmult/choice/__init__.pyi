from pgmult.choice.data import ChoiceRows as ChoiceRows
from pgmult.choice.data import choices_of as choices_of
from pgmult.choice.data import lengthen as lengthen
from pgmult.choice.mixed_logit import MixedLogit as MixedLogit
from pgmult.choice.mixed_logit import MixedLogitState as MixedLogitState
