"""A report on a posterior of topics: as text for a terminal, and as one HTML page.

`topic_report` computes everything once; `as_text` and `as_html` show it.
"""

from pgmult.topics.report.contents import TopicReport, run_facts, topic_report
from pgmult.topics.report.page import as_html
from pgmult.topics.report.text import as_text, matches_as_text

__all__ = [
    "TopicReport",
    "as_html",
    "as_text",
    "matches_as_text",
    "run_facts",
    "topic_report",
]
