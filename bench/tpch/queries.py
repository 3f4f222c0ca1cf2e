"""The 22 queries of `queries/`, with the standard's validation parameters.

Two of them depend on the scale: the fraction of query 11 is 0.0001 divided by it, as the standard
says; and below scale 0.1 there are hardly any orders of more than 300 pieces, so that query 18
asks for 230.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).with_name("queries")


def queries(scale: float) -> dict[str, str]:
    """The texts by name, `q01` to `q22`."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.sql"))}
    found["q11"] = _replaced(found["q11"], "0.0001", f"{0.0001 / min(scale, 1.0):.6f}")
    if scale < 0.1:
        found["q18"] = _replaced(found["q18"], "> 300", "> 230")
    return found


def _replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise ValueError(f"{old!r} is not in the query")
    return text.replace(old, new)
