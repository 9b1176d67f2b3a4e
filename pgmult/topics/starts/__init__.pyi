from pgmult.topics.starts.allocations import StartScores as StartScores
from pgmult.topics.starts.find import TopicStart as TopicStart
