"""Functions by name that a view can't call as scalars, or whose value is logical time.

A test compares these lists with the registry of the Spark that is installed.
"""

from __future__ import annotations

OTHER_AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "array_agg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "grouping_id",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max_by",
        "measure",
        "median",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "regr_sxx",
        "regr_sxy",
        "regr_syy",
        "schema_of_variant_agg",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
        "tuple_intersection_agg_double",
        "tuple_intersection_agg_integer",
        "tuple_sketch_agg_double",
        "tuple_sketch_agg_integer",
        "tuple_union_agg_double",
        "tuple_union_agg_integer",
        "var_pop",
        "var_samp",
        "variance",
        "vector_avg",
        "vector_sum",
    ]
)
GROUPING = frozenset(["grouping", "grouping_id"])
"""What a grouping set says of itself; Spark lists them among the aggregates."""
ORDERED_BY_WINDOW = frozenset(["first", "first_value", "last", "last_value"])
OPEN_AGGREGATES = {
    **dict.fromkeys(["vector_avg", "vector_sum"], "SUM or AVG of each element"),
    **{
        name: "COUNT(DISTINCT x), PERCENTILE(x, …) or a GROUP BY, which are exact"
        for name in sorted(OTHER_AGGREGATES)
        if name.startswith(("approx_top_k", "hll_", "kll_", "theta_", "tuple_", "histogram_"))
    },
    "measure": "the expression of the measure",
}
"""Aggregates whose value depends on how Spark lays out the rows, and what to write instead."""
WINDOW_FUNCTIONS = frozenset(
    [
        "cume_dist",
        "dense_rank",
        "lag",
        "lead",
        "nth_value",
        "ntile",
        "percent_rank",
        "rank",
        "row_number",
    ]
)
GENERATORS = frozenset(
    [
        "collations",
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "sql_keywords",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    ]
)
RANDOM = frozenset(["rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid"])
OF_THE_SESSION = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_path",
        "current_role",
        "current_schema",
        "current_timezone",
        "current_user",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "monotonically_increasing_id",
        "session_user",
        "spark_partition_id",
        "user",
        "version",
    ]
)
WITHOUT_PARENTHESES = frozenset(
    [
        "current_catalog",
        "current_database",
        "current_date",
        "current_path",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtimestamp",
        "session_user",
        "user",
    ]
)
"""Names that mean a function of Spark's wherever they stand."""
CALLS_OF_JAVA = frozenset(["java_method", "reflect", "try_reflect"])
NOW = frozenset(["current_timestamp", "now"])
TODAY = frozenset(["current_date", "curdate"])
NOW_WITHOUT_ZONE = frozenset({"localtimestamp"})
OTHER_CLOCKS = frozenset({"current_time"})
