"""Every verb of every job is held to every relation, or has a reason why not."""

import pytest
from invariances.frame import lacking, verbs_of

MOST = {"topics": 0, "fields": 0, "sequences": 0, "regression": 0, "choice": 0}


@pytest.mark.parametrize("command", MOST)
def test_every_verb_has_a_cell_or_a_reason(command):
    """No command lacks more cells than it did; what is new comes with its cells."""
    assert len(lacking(command)) <= MOST[command], lacking(command)


def test_verbs_are_those_of_the_command_line():
    assert {"fit", "report", "predict", "check"} <= set(verbs_of("regression"))
