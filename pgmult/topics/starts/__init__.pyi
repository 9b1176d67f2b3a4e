from pgmult.topics.starts.find import TopicStart as TopicStart
