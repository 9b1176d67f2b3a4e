from pgmult.topics.scores.completion import CompletionScore as CompletionScore
from pgmult.topics.scores.completion import DocumentCompletion as DocumentCompletion
from pgmult.topics.scores.completion import completion_score as completion_score
from pgmult.topics.scores.completion import unigram_log_predictive as unigram_log_predictive
from pgmult.topics.scores.selection import Candidate as Candidate
from pgmult.topics.scores.selection import TopicChoice as TopicChoice
