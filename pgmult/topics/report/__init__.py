"""The report on a run of topics: what it says, and how it looks on a page."""
