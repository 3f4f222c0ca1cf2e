"""What import-linter can't see: names that must not be touched anywhere in the core."""

from __future__ import annotations

import ast
from pathlib import Path

CORE = Path(__file__).resolve().parent.parent / "ivm_core"
UNKNOWN_TO_SPARK_CONNECT = {"sparkContext", "_sc", "_jvm", "_jsc", "_jdf", "_jsparkSession", "rdd"}


def test_the_core_touches_nothing_that_spark_connect_lacks() -> None:
    touched = [
        f"{file.relative_to(CORE)}:{node.lineno} {node.attr}"
        for file in sorted(CORE.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in UNKNOWN_TO_SPARK_CONNECT
    ]
    assert touched == []
