from pgmult.topics.data.structured import StructuredCorpus as StructuredCorpus
from pgmult.topics.data.timed import TimedCorpus as TimedCorpus
