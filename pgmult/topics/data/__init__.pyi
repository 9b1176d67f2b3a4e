from pgmult.topics.data.corpus import StructuredCorpus as StructuredCorpus
from pgmult.topics.data.timed import TimedCorpus as TimedCorpus
