"""`alter`, `drop`, `rename` and `publish` do what the flow's methods do, and say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import DeltaTable

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Tool


def test_definitions_change_from_the_command_line(
    tideview: Tool, shop: Path, tmp_path: Path
) -> None:
    text = tmp_path / "totals.sql"
    text.write_text("SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    refused = tideview("alter", shop, "totals", "--file", text, "--json")
    same = tideview("alter", shop, "totals", "--sql", "SELECT nope FROM orders", "--json")
    assert (same.code, same.json["error"]["kind"]) == (3, "UnknownName")
    assert refused.code == 0, refused.err
    assert refused.json["swapped"]
    assert refused.json["tick"] == 3
    assert "prepared as" in tideview(
        "alter", shop, "large", "--sql", "SELECT id, customer FROM orders", "--prepare"
    ).out  # fmt: skip
    assert tideview("drop", shop, "large@2").code == 0
    for wrong in (["totals"], ["orders", "--columns", "id BIGINT", "--sql", "SELECT 1"]):
        assert tideview("alter", shop, *wrong).code == 3
    assert tideview("alter", shop, "totals", "--file", tmp_path / "none").code == 3
    assert tideview("alter", shop, "totals", "--sql", "SELECT 1 AS x", "--also", "x").code == 3

    wider = "id BIGINT, customer STRING, amount INT, note STRING"
    added = tideview("alter", shop, "orders", "--columns", wider, "--dedup", "content", "--json")
    assert added.json["added"] == ["note"], added.err
    assert tideview("alter", shop, "orders", "--dedup", "off").code == 0

    assert (
        tideview("publish", shop, "totals", "--lag", 3, "--json").json["published"][0]["tick"] == 3
    )
    assert tideview("publish", shop, "totals", "--lag", "never").code == 3
    assert tideview("rename", shop, "totals", "sums").code == 0
    assert tideview("publish", shop, "sums").code == 0
    assert DeltaTable(shop / "published" / "sums").metadata().configuration["tideview.lag"] == "3"
    assert "no longer published" in tideview("publish", shop, "--stop").out
    assert not list((shop / "published").iterdir())

    in_use = tideview("drop", shop, "sums", "--json")
    assert (in_use.code, in_use.json["error"]["kind"]) == (3, "UserError")
    assert tideview("drop", shop, "sums", "--cascade", "--json").json["dropped"] == [
        "sums",
        "cities",
    ]
