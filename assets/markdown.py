"""Rows and SQL as markdown, for metadata that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST_CELL = 120


def sql_blocks(statements: Sequence[str]) -> str:
    """SQL, one block a statement."""
    return "\n\n".join(block(statement, "sql") for statement in statements)


def block(text: str, language: str) -> str:
    """A text as code; nothing for none."""
    return f"```{language}\n{text}\n```" if text else ""


def rows_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as a table; nothing for none."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = [
        [_cell(name) for name in names],
        ["---"] * len(names),
        *([_cell(row[name]) for name in names] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    text = str(value).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
