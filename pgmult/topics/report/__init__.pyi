from pgmult.topics.report.report import TopicReport as TopicReport
