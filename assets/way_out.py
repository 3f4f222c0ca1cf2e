"""What an error says to do, for a reader who has Dagster before them and no program.

The core speaks to programs: it names methods of a flow. A run is started by a button, and what a
pipeline is made of stands in its files.
"""

from __future__ import annotations

import re

from ivm_core import HistoryLost, SourceReplaced

_ANOTHER_SOURCE = (
    "declare the table that is there now as a source of another name in pipeline.yaml, and let the "
    "views read that one; views that don't read the old one go on when they alone are materialized"
)
_WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(re.escape(HistoryLost.default_fix)), _ANOTHER_SOURCE),
    (re.compile(re.escape(SourceReplaced.default_fix)), _ANOTHER_SOURCE),
    (
        re.compile(r"flow\.repair\(\)"),
        "a run of the pipeline's history/replay with the tag tideview/replay: repair",
    ),
    (re.compile(r"reopen the flow to continue after it"), "run again when the other has ended"),
    (re.compile(r"flow\.publish\(\)"), "the next tick"),
    (re.compile(r"tick all views once: flow\.tick\(\)"), "materialize all views once"),
    (re.compile(r"go on with flow\.tick\(\)"), "materialize the views again"),
    (re.compile(r", with flow\.alter_view,"), " in their files, run them,"),
    (re.compile(r"add columns with flow\.alter_source"), "add columns to the table"),
    (re.compile(r"\(flow\.restore\)"), "(tideview restore)"),
)


def in_dagster(text: str) -> str:
    """The text of an error with ways out that can be gone in Dagster."""
    for said, words in _WORDS:
        text = said.sub(words, text)
    return text
