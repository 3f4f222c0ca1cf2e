"""DuckDB's side of `worker`: runs in the peers' environment, with nothing of Tideview's."""

import json
import sys

import duckdb


def main() -> None:
    """Answer until there are no more questions."""
    file, sql = sys.argv[1:]
    base = duckdb.connect(file)
    base.execute("SET threads = 2")
    _say(duckdb.__version__)
    for line in sys.stdin:
        question = json.loads(line)
        if question["do"] == "refresh":
            for table, files in question["files"].items():
                base.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS FROM read_parquet({files})")
            base.execute(f"CREATE OR REPLACE TABLE result AS {sql}")
            base.execute("CHECKPOINT")
            _say(True)
        else:
            cents = "CAST(total * 100 AS BIGINT)"
            names = [row[0] for row in base.execute("DESCRIBE result").fetchall()]
            wanted = [cents if name == "total" else name for name in names]
            _say(base.execute(f"SELECT {', '.join(wanted)} FROM result").fetchall())


def _say(answer: object) -> None:
    print(json.dumps({"answer": answer}), flush=True)


if __name__ == "__main__":
    main()
