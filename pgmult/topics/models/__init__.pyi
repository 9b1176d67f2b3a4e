from pgmult.topics.updates.content import ContentPrior as ContentPrior
