"""The installed script, in processes of its own: what it starts, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ivm_core import IncrementalFlow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(sys.executable).with_name("tideview")
READING = """
import sys
from ivm_core.cli.main import main

flow = sys.argv[1]
codes = [
    main(["status", flow]),
    main(["explain", flow, "totals"]),
    main(["explain", flow, "totals", "--why-not"]),
    main(["snapshot", flow, "totals"]),
    main(["changes", flow, "totals"]),
    main(["watch", flow, "totals", "--since", "1", "--for", "0"]),
]
print(codes)
"""


def test_reading_starts_no_spark(shop: Path, tmp_path: Path) -> None:
    without_java = os.environ | {"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", READING, shop],
        env=without_java,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[0, 0, 0, 0, 0, 0]", done.stderr


def test_a_watch_shows_what_comes_and_ends_cleanly_on_ctrl_c(
    shop: Path, spark: SparkSession
) -> None:
    command = [SCRIPT, "watch", shop, "totals", "--since", "1", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["tick"] == 2
        with IncrementalFlow.open(shop, spark) as flow:
            flow.tick("orders", [(9, "cy", 1)])
        assert json.loads(watching.stdout.readline()) == {
            "tick": 3,
            "view": "totals",
            "changes": [{"customer": "cy", "n": 1, "total": 1, "_weight": 1}],
        }
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate(timeout=30)
        assert watching.returncode == 0
    assert out == ""
    assert "go on with --since 3" in err


def ticked(shop: Path, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "new.jsonl"
    file.write_text('{"id": 8, "customer": "ann", "amount": 4}\n')
    return subprocess.run(
        [SCRIPT, "tick", shop, f"orders={file}", "--json"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_script_takes_a_small_batch_without_spark(shop: Path, tmp_path: Path) -> None:
    done = ticked(shop, tmp_path, JAVA_HOME=str(tmp_path), PATH=str(tmp_path))
    summary = json.loads(done.stdout)
    assert summary["tick"] == 3
    assert summary["statements"] == 0


def test_the_script_takes_a_batch_with_a_spark_of_its_own(
    shop: Path, tmp_path: Path, spark: SparkSession
) -> None:
    with IncrementalFlow.open(shop, spark) as flow:
        flow.register_view("loud", "SELECT upper(customer) AS c FROM orders", hydrate=True)
    done = ticked(shop, tmp_path, TIDEVIEW_DRIVER_MEMORY="1g")
    summary = json.loads(done.stdout)
    assert summary["tick"] == 4
    assert summary["statements"] == 1
    assert "tideview: ticking" in done.stderr
