"""The lists of functions against the Spark that is installed: an upgrade that adds one shows here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ivm_core.frontend import functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAINTAINED = {"count", "sum", "avg", "mean", "min", "max"}
# groups of Spark's registry that hold nothing but functions of their kind
GROUPS = {
    "agg_funcs": functions.OTHER_AGGREGATES | MAINTAINED,
    "window_funcs": functions.WINDOW_FUNCTIONS,
    "generator_funcs": functions.GENERATORS,
}


@pytest.fixture(scope="module")
def groups(spark: SparkSession) -> dict[str, set[str]]:
    java = spark._jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    catalog = spark._jsparkSession.sessionState().catalog()
    found: dict[str, set[str]] = {}
    for (name,) in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        group = catalog.lookupFunctionInfo(java.FunctionIdentifier(name)).getGroup()
        found.setdefault(group, set()).add(name)
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_every_function_of_the_group_is_known(group: str, groups: dict[str, set[str]]) -> None:
    assert groups[group] <= GROUPS[group]


def test_every_listed_function_exists(groups: dict[str, set[str]]) -> None:
    there = set().union(*groups.values()) | {"current_role"}
    listed = [value for value in vars(functions).values() if isinstance(value, frozenset)]
    # these are table-valued or known to the parser only
    absent = {"collations", "sql_keywords", "variant_explode", "variant_explode_outer"}
    assert set().union(*listed) - there <= absent


def test_aggregates_hide_in_other_groups(groups: dict[str, set[str]]) -> None:
    suspects = {
        name
        for group, names in groups.items()
        if group not in GROUPS
        for name in names
        if name.endswith("_agg") or name.startswith("vector_") or "accumulate" in name
    }
    scalars = {
        "vector_cosine_similarity",
        "vector_inner_product",
        "vector_l2_distance",
        "vector_norm",
        "vector_normalize",
    }
    assert suspects - scalars <= functions.OTHER_AGGREGATES
