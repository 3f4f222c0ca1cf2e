"""A made-up secret, given in every way that there is: no error, log or file repeats it."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from typing import TYPE_CHECKING

import pytest
from pyspark.logger.logger import JSONFormatter

from ivm_core import IncrementalFlow, IvmError, TickFailed, UserError
from ivm_core.api.status import read_status
from ivm_core.cli.main import main
from ivm_core.model.secrets import logger, masked
from ivm_core.store.location import Location
from ivm_core.store.owned_table import OwnedTable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SECRET = "wJalrXUtnFEMI-made-up-K7MDENG"
OPTIONS = {
    "aws_access_key_id": "AKIA-made-up-as-well",
    "aws_secret_access_key": SECRET,
    "aws_region": "nowhere",
    "aws_endpoint": f"http://someone:{SECRET}@127.0.0.1:1",
    "allow_http": "true",
    "max_retries": "0",
    "retry_timeout": "1s",
}


def text_of(error: BaseException) -> str:
    """All that a program sees of an error of ours."""
    parts = [str(error), repr(error), repr(error.args), repr(vars(error))]
    parts += traceback.format_exception(error)
    return "\n".join([*parts, repr(pickle.loads(pickle.dumps(error)))])


def test_no_secret_is_repeated(
    tmp_path: Path,
    spark: SparkSession,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = tmp_path / "flow"
    said: list[str] = []
    caplog.set_level(logging.DEBUG, "ivm_core")
    with IncrementalFlow.open(place, spark, storage_options=OPTIONS) as flow:
        flow.register_source("t", "id INT, x INT")
        flow.register_view("v", "SELECT x, COUNT(*) AS n FROM t GROUP BY x")
        flow.register_view("inverse", "SELECT 10 DIV x AS y FROM t")
        said.append(str(flow.tick("t", [(1, 1)])))
        with pytest.raises(TickFailed) as failed:
            flow.tick("t", [(2, 0)])
        said.append(text_of(failed.value))
        for wrong in (
            lambda: flow.register_source("a", delta_table=f"s3://me:{SECRET}@bucket/a"),
            lambda: flow.register_source("a", delta_table=f"https://x.net/c/a?sig={SECRET}"),
            lambda: flow.register_source("a", delta_table="s3://bucket/a"),
            lambda: flow.checkpoint(f"s3://me:{SECRET}@bucket/c"),
            lambda: flow.checkpoint("s3://bucket/c"),
            lambda: flow.restore(f"az://me:{SECRET}@bucket/c"),
            lambda: IncrementalFlow.open(f"s3://me:{SECRET}@bucket/flow"),
            lambda: IncrementalFlow.open("s3://bucket/flow", storage_options=OPTIONS),
            lambda: OwnedTable.open(Location("s3://bucket/t", {**OPTIONS, "timeout": SECRET})),
        ):
            with pytest.raises(IvmError) as refused:
                wrong()
            said.append(text_of(refused.value))
        flow.checkpoint(tmp_path / "checkpoints")
        flow.checkpoint_full(tmp_path / "full")
        flow.publish()
        said += [str(flow.explain("v")), repr(flow), repr(flow.replay()), flow.openmetrics()]
        said += [repr(flow._engine.layout.root), json.dumps(read_status(place).to_dict())]
    assert main(["status", str(place), "--json"]) == 0
    assert main(["status", f"s3://me:{SECRET}@bucket/flow", "--json"]) == 3
    assert main(["explain", str(place), "v"]) == 0
    printed = capsys.readouterr()
    said += [printed.out, printed.err]
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) > 20
    assert [file for file in written if SECRET.encode() in file.read_bytes()] == []
    assert SECRET not in "\n".join(said)
    assert any("***" in each for each in said)  # a library did repeat it
    assert SECRET not in caplog.text


@pytest.mark.parametrize("formatter", [logging.Formatter(), JSONFormatter()])
def test_logs_are_masked_with_their_tracebacks(
    caplog: pytest.LogCaptureFixture, formatter: logging.Formatter
) -> None:
    Location("s3://bucket", OPTIONS)
    caplog.handler.setFormatter(formatter)
    log = logger("ivm_core.test_secrets")
    try:
        raise ValueError(f"s3://me:{SECRET}@bucket is odd")
    except ValueError as error:
        log.warning("left for later: %s", error, exc_info=True)
    assert "left for later: s3://***@bucket is odd" in caplog.text
    assert "Traceback" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abfss://container@account.dfs.core.windows.net/x", None),
        ("http://a:b@host and s3://c:d/e@f/x", "http://***@host and s3://c:d/e@f/x"),
        ("a: b@c", None),
    ],
)
def test_only_passwords_of_uris_are_masked(text: str, shown: str | None) -> None:
    assert masked(text) == (shown or text)


def test_a_uri_with_a_password_says_where_it_belongs() -> None:
    with pytest.raises(UserError, match="storage_options") as refused:
        Location(f"s3://me:{SECRET}@bucket/flow")
    assert "s3://bucket/flow" in str(refused.value)
    assert Location("abfss://container@account.dfs.core.windows.net/x").uri
