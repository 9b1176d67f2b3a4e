from pgmult.topics.reports.report import TopicReport as TopicReport
