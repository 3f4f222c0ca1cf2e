"""`python -m bench`: the speed bars, as a table on stdout, a JSON file and one HTML report."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.dataset import Datasets
from bench.html_report import html
from bench.machine import describe
from bench.measure import STARTED, Plan, progress
from bench.measured import keep
from bench.other_sparks import started_spark
from bench.programs import ELSEWHERE, LEFT_OUT_OF_QUICK, PROGRAMS, Bench, run
from bench.report import table
from bench.tpch.queries import queries
from bench.tpch.stock import Stocks

if TYPE_CHECKING:
    from bench.measure import Section

RESULTS = Path(__file__).parent / "results"
FULL = Plan(rows=(100_000, 1_000_000, 10_000_000))
QUICK = Plan(
    rows=(100_000,),
    repeats=2,
    warm_ups=1,
    ticks=24,
    scale=0.01,
    refreshes=1,
    refresh_ticks=2,
    shares=(0.001, 0.1),
    scales=(0.01, 0.05),
    state_ticks=24,
    events=50_000,
    tick_events=(1_000_000,),
    is_quick=True,
)


def main(words: list[str] | None = None) -> int:
    """Measure and report; 1 for wrong results and failures, with --strict for missed bars too."""
    options = _options(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = _plan(options)
    chosen = [name for name in PROGRAMS if name in (options.only or PROGRAMS)]
    if options.spark and not options.only:
        chosen = [name for name in chosen if name not in ELSEWHERE]
    if options.quick and not options.only:
        chosen = [name for name in chosen if name not in LEFT_OUT_OF_QUICK]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    folder = Path(tempfile.mkdtemp(prefix="tideview-bench-"))
    sections: list[Section] = []
    try:
        progress("starting Spark")
        given = started_spark(options.spark, options.memory, folder / "spark", dict(options.conf))
        with given as spark:
            about: dict[str, Any] = {"started": started, **describe(spark)}
            datasets = Datasets(spark, folder / "orders")
            stocks = Stocks(spark, folder / "tpch-tables")
            for name in chosen:
                began = time.perf_counter()
                progress(f"{name}: begins")
                section = run(name, Bench(spark, datasets, stocks, folder / name, plan))
                section.raw["took_s"] = time.perf_counter() - began
                sections.append(section)
                shutil.rmtree(folder / name, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    about["seconds"] = time.perf_counter() - STARTED
    about["load_average_at_the_end"] = os.getloadavg()
    about["plan"] = {
        **vars(plan),
        "only": chosen,
        "spark": options.spark or "local",
        "is_full": is_full(plan) and not options.spark,
    }
    print(table(sections, about))
    file = options.json or RESULTS / f"{_name(options, chosen)}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {**about, "sections": [section.as_json() for section in sections]}
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    progress(f"written to {file}")
    page = options.html or file.with_name("report.html")
    page.write_text(html(json.loads(file.read_text(encoding="utf-8"))), encoding="utf-8")
    progress(f"written to {page}")
    if options.keep:
        for kept in keep(content):
            progress(f"written to {kept}")
    if not all(section.is_right for section in sections):
        return 1
    missed = [bar for section in sections for bar in section.bars if not bar.met]
    return 1 if missed and options.strict else 0


def is_full(plan: Plan) -> bool:
    """Whether it measures no less than the bars ask for; larger scales are more."""
    return (
        plan == replace(FULL, scale=plan.scale, scales=plan.scales)
        and plan.scale >= FULL.scale
        and {*FULL.scales} <= {*plan.scales}
    )


def _plan(options: argparse.Namespace) -> Plan:
    """What the options say, and for the rest the quick plan or the full one."""
    given = {
        name: getattr(options, name)
        for name in (
            "rows",
            "repeats",
            "ticks",
            "scale",
            "scales",
            "shares",
            "state_ticks",
            "events",
        )
    }
    given |= {"tick_events": options.tick_events, "queries": tuple(options.query or ())}
    base = QUICK if options.quick else FULL
    return replace(base, **{name: value for name, value in given.items() if value})


def _name(options: argparse.Namespace, chosen: list[str]) -> str:
    parts = ["quick" if options.quick else "full"]
    if options.rows:
        parts = ["rows", *map(str, options.rows)]
    if options.spark:
        parts.append(options.spark.partition(":")[0])
    if options.only:
        parts += chosen
    return "-".join(parts)


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures ticks against Spark's own work in one warm session, and holds the "
        "ratios to their bars. Results are compared with Spark's. The full run takes long.",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="100k orders, small scales, fewer repeats, queries and programs: it says which",
    )
    parser.add_argument(
        "--only", action="append", choices=list(PROGRAMS), help="just this one; may be given again"
    )
    parser.add_argument(
        "--rows",
        type=_sizes,
        metavar="N[,N…]",
        help="sizes of orders instead of 100k, 1M and 10M; ratios are of the largest to the "
        "smallest, the long run takes the second largest",
    )
    parser.add_argument(
        "--repeats",
        type=_positive,
        metavar="N",
        help="samples of each kind; TPC-H and Nexmark have their own, long ones take fewer",
    )
    parser.add_argument(
        "--ticks",
        type=_ticks,
        metavar="N",
        help="length of the long run, and of `kernel` and `durability`",
    )
    parser.add_argument(
        "--scale",
        type=float,
        metavar="S",
        help="TPC-H's scale, and the size of `recursion` (1; quick 0.01)",
    )
    parser.add_argument(
        "--scales", type=_floats, metavar="S[,S…]", help="TPC-H's scales in `flat` (0.1,1)"
    )
    parser.add_argument(
        "--shares",
        type=_floats,
        metavar="X[,X…]",
        help="parts of the orders changed in `tpch-changes` (0.00001,0.001,0.1)",
    )
    parser.add_argument(
        "--query",
        action="append",
        metavar="qNN",
        help="just this query of TPC-H or Nexmark (q0 to q22 there); may be given again",
    )
    parser.add_argument(
        "--events", type=_positive, metavar="N", help="events of Nexmark before the first tick"
    )
    parser.add_argument(
        "--tick-events", type=_counts, metavar="N[,N…]", help="events of a tick in `throughput`"
    )
    parser.add_argument(
        "--state-ticks", type=_ticks, metavar="N", help="ticks before bytes are counted in `state`"
    )
    parser.add_argument(
        "--spark",
        metavar="URL",
        help="another Spark than a local one: sc://HOST:PORT, spark://HOST:PORT; or `connect` for "
        "a Connect server, `cluster` for a master and two workers that are started here",
    )
    parser.add_argument(
        "--conf",
        action="append",
        type=_setting,
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark's, as spark.executor.memory=8g; may be given again",
    )
    parser.add_argument("--memory", default="8g", help="heap of Spark's JVM (default %(default)s)")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where the figures go (default bench/results/…)"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="the report's file (default beside the JSON)"
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="put what each program found in bench/measured, from which the documentation's pages "
        "are made (python -m bench.pages --docs); not what failed or is wrong",
    )
    parser.add_argument(
        "--strict", action="store_true", help="a missed bar is an exit code of 1, as errors are"
    )
    options = parser.parse_args(words)
    if options.quick and options.keep:
        parser.error("--keep is for figures of full runs; --quick measures less than bars ask for")
    if options.conf and options.keep:
        parser.error("--keep is for figures without --conf: the pages say nothing of settings")
    known = {*queries(1.0), *(f"q{number}" for number in range(23))}
    unknown = [name for name in options.query or () if name not in known]
    if unknown:
        parser.error(f"there is no query {unknown[0]}; TPC-H has q01 to q22, Nexmark q0 to q22")
    return options


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError("NAME=VALUE, with a name that begins with spark.")
    return name, value


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _ticks(text: str) -> int:
    number = _positive(text)
    if number < 4:
        raise argparse.ArgumentTypeError("at least 4, so that early and late ones are apart")
    return number


def _sizes(text: str) -> tuple[int, ...]:
    sizes = sorted({_positive(each) for each in text.split(",")})
    if sizes[0] < 5_000:
        raise argparse.ArgumentTypeError("at least 5000 orders, else there is nothing to scatter")
    return tuple(sizes)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(sorted({_positive(each) for each in text.split(",")}))


def _floats(text: str) -> tuple[float, ...]:
    numbers = tuple(sorted({float(each) for each in text.split(",")}))
    if numbers[0] <= 0:
        raise argparse.ArgumentTypeError("above 0")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
