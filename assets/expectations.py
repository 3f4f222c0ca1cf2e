"""A view's Great Expectations suite, one check an expectation, on the view's rows in Spark.

Great Expectations takes long to import: that is left to the step that needs it.
"""

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    MetadataValue,
    multi_asset_check,
)

from ivm_core import CorruptStore, IvmError, SparkLost
from tideview.assets.expectation_words import call, not_evaluated, raised, refused
from tideview.assets.failures import told_in_our_words
from tideview.assets.markdown import rows_table
from tideview.assets.names import asset_key
from tideview.assets.resource_keys import USUAL, ResourceKeys
from tideview.assets.verdicts import frontier_of, not_checked, not_ticked, verdict
from tideview.assets.way_out import in_dagster
from tideview.resources.pipeline_spec import Expectation, Pipeline, ViewSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ivm_core import IncrementalFlow

SEVERITIES = {
    "critical": AssetCheckSeverity.ERROR,
    "warning": AssetCheckSeverity.WARN,
    "info": AssetCheckSeverity.WARN,
}
SHOWN = 20
NAMED_ROWS = 100_000
"""Rows of a view up to which unexpected rows are named by their keys; else by their values."""
_OTHER = re.compile(r"[^A-Za-z0-9_]+")


def check_names(view: ViewSpec) -> dict[str, Expectation]:
    """The expectations of a view by the names of their checks."""
    found: dict[str, Expectation] = {}
    for each in view.expectations:
        columns = [value for key, value in sorted(each.kwargs.items()) if key.startswith("column")]
        words = [each.type, *(value for value in columns if isinstance(value, str))]
        name = each.name or _OTHER.sub("_", "_".join(words))
        number = 1
        while (name if number == 1 else f"{name}_{number}") in found:
            number += 1
        found[name if number == 1 else f"{name}_{number}"] = each
    return found


def expectation_checks(
    pipeline: Pipeline, keys: ResourceKeys = USUAL
) -> list[AssetChecksDefinition]:
    """A check for every expectation of every view; none where there are none."""
    views = {
        view.name: check_names(view)
        for view in pipeline.views
        if view.expectations and "expectations" in pipeline.checks_of(view).run
    }
    specs = [
        AssetCheckSpec(
            name,
            asset=asset_key(pipeline, view.name),
            description=_description(each),
            blocking="expectations" in pipeline.checks_of(view).blocking,
            metadata={"expectation": each.type, "severity": each.severity},
        )
        for view in pipeline.views
        for name, each in views.get(view.name, {}).items()
    ]
    if not specs:
        return []

    @multi_asset_check(
        name=f"{pipeline.name}_expectations",
        specs=specs,
        can_subset=True,
        required_resource_keys=keys.both,
    )
    def expectations(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
        flows, spark = keys.store(context), keys.session(context)
        selected = context.selected_asset_check_keys
        with told_in_our_words():
            frontier = frontier_of(pipeline, flows)
        ready: dict[str, dict[str, Expectation]] = {}
        for view, wanted in views.items():
            for name, each in wanted.items():
                if AssetCheckSpec(name, asset=asset_key(pipeline, view)).key not in selected:
                    continue
                if view not in frontier.views or not frontier.views[view].tick:
                    yield not_ticked(pipeline, view, name)
                else:
                    ready.setdefault(view, {})[name] = each
        if not ready:
            return
        with told_in_our_words(), flows.read(pipeline, spark.session(pipeline.spark)) as flow:
            for view, chosen in ready.items():
                is_small = frontier.views[view].rows <= NAMED_ROWS
                yield from _checked(pipeline, flow, view, chosen, is_small)

    return [expectations]


def _checked(
    pipeline: Pipeline,
    flow: "IncrementalFlow",
    view: str,
    chosen: dict[str, Expectation],
    is_small: bool,
) -> Iterator[AssetCheckResult]:
    """The verdicts of a view; where its rows can't be read, that is told of each of them."""
    try:
        key = flow.explain(view).key if is_small else None
        found = validated(flow.snapshot(view), view, chosen, key)
    except SparkLost:
        raise
    except CorruptStore as error:
        told = in_dagster(str(error))
        yield from (verdict(pipeline, view, name, passed=False, told=told) for name in chosen)
    except IvmError as error:
        told = in_dagster(str(error))
        yield from (not_checked(pipeline, view, name, told) for name in chosen)
    else:
        for name, each in chosen.items():
            yield _result(pipeline, view, name, each, found[name])


def validated(
    frame: "DataFrame", view: str, wanted: dict[str, Expectation], key: tuple[str, ...] | None
) -> dict[str, dict[str, Any]]:
    """What Great Expectations says of each, by the names of the checks."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.expectations.metadata_types import FailureSeverity

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}  # type: ignore[assignment]
    source = context.data_sources.add_spark(view, persist=False)
    batch = (
        source.add_dataframe_asset(view)
        .add_batch_definition_whole_dataframe(view)
        .get_batch({"dataframe": frame})
    )
    suites: list[gx.ExpectationSuite] = []
    found: dict[str, dict[str, Any]] = {}
    for name, each in wanted.items():
        nth = sum(_is_alike(each, other) for other in _before(wanted, name))
        while nth >= len(suites):
            suites.append(gx.ExpectationSuite(f"{view}_{len(suites)}"))
        try:
            suites[nth].add_expectation_configuration(
                ExpectationConfiguration(
                    type=each.type,
                    kwargs=dict(each.kwargs),
                    severity=FailureSeverity(each.severity),
                    meta={"check": name},
                )
            )
        except Exception as error:  # of whatever kind: it is about this expectation alone
            why = {"exception_message": refused(each, error)}
            found[name] = {"success": False, "exception_info": why}
    shown: dict[str, Any] = {"result_format": "SUMMARY", "partial_unexpected_count": SHOWN}
    if key and not any("." in name for name in key):  # Great Expectations takes it for a path
        shown |= {"result_format": "COMPLETE", "unexpected_index_column_names": list(key)}
    told: list[dict[str, Any]] = [
        each.to_json_dict()
        for suite in suites
        if suite.expectations
        for each in batch.validate(suite, result_format=shown).results
    ]
    return found | {each["expectation_config"]["meta"]["check"]: each for each in told}


def _before(wanted: dict[str, Expectation], name: str) -> Iterator[Expectation]:
    return (wanted[other] for other in takewhile(lambda other: other != name, wanted))


def _is_alike(one: Expectation, other: Expectation) -> bool:
    """Whether a suite takes one for the other: it keeps one of a type for the same columns."""

    def about(each: Expectation) -> dict[str, Any]:
        return {key: value for key, value in each.kwargs.items() if key.startswith("column")}

    return one.type == other.type and about(one) == about(other)


def _result(
    pipeline: Pipeline, view: str, name: str, wanted: Expectation, found: dict[str, Any]
) -> AssetCheckResult:
    result = found.get("result") or {}
    why = raised(found.get("exception_info") or {})
    numbers = {
        key: value
        for key, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    rows = result.get("unexpected_index_list") or [
        {"value": value} for value in result.get("partial_unexpected_list") or ()
    ]
    told = "holds" if found["success"] else _told(result)
    return AssetCheckResult(
        passed=bool(found["success"]),
        asset_key=asset_key(pipeline, view),
        check_name=name,
        severity=SEVERITIES[wanted.severity],
        description=not_evaluated(wanted, why) if why else f"{wanted.type}: {told}",
        metadata={
            "expectation": wanted.type,
            "arguments": dict(wanted.kwargs),
            "severity": wanted.severity,
            **numbers,
            **({"observed": str(result["observed_value"])} if "observed_value" in result else {}),
            "unexpected_rows": MetadataValue.md(rows_table(rows[:SHOWN]) or "none"),
        },
    )


def _told(result: dict[str, Any]) -> str:
    if "unexpected_count" in result:
        return f"{result['unexpected_count']} rows are not as expected"
    return f"{result.get('observed_value')} was observed"


def _description(expectation: Expectation) -> str:
    return f"Great Expectations: {call(expectation)}"
