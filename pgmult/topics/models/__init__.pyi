from pgmult.topics.models.lda import UncollapsedLDA as UncollapsedLDA
from pgmult.topics.updates.content import ContentPrior as ContentPrior
