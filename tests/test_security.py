"""No pickle, no eval, no text pasted into SQL: read off the source of the whole product.

A rule here is a walk over syntax trees. What each of them finds is shown on lines that break it.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("ivm_core", "resources", "assets", "pipelines")
RUNS_DATA = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle"}
RUNS_TEXT = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.unsafe_load"}
TAKES_SQL = {"sql", "expr", "selectExpr", "parse_one", "maybe_parse", "to_table", "condition"}
QUOTED_BY_HAND = {
    "ivm_core/engine/core.py": "DESCRIBE DETAIL of a name whose parts are quoted one by one",
}


def name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_pasted(node: ast.expr, pasted: set[str]) -> bool:
    """Whether a text is put together from parts."""
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(part, ast.FormattedValue) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        return any(
            is_pasted(side, pasted)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "format" and isinstance(node.func.value, ast.Constant)
    return isinstance(node, ast.Name) and node.id in pasted


def found_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name.partition(".")[0] for each in node.names]
            yield from (f"{node.lineno}: imports {name}" for name in names if name in RUNS_DATA)
        elif (
            isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in RUNS_DATA
        ):
            yield f"{node.lineno}: imports {node.module}"
        elif isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.JoinedStr):
            yield from _of_text(node)
        if isinstance(node, ast.FunctionDef):
            yield from _of_function(node)


def _of_call(node: ast.Call) -> Iterator[str]:
    name = name_of(node.func)
    if name in RUNS_TEXT:
        yield f"{node.lineno}: calls {name}"
    for keyword in node.keywords:
        if keyword.arg == "shell" and getattr(keyword.value, "value", None) is True:
            yield f"{node.lineno}: runs a shell"


def _of_text(node: ast.JoinedStr) -> Iterator[str]:
    for part, after in zip(node.values, node.values[1:], strict=False):
        ends = isinstance(part, ast.Constant) and str(part.value).endswith("`")
        if ends and isinstance(after, ast.FormattedValue):
            yield f"{node.lineno}: puts a name in backticks"


def _of_function(node: ast.FunctionDef) -> Iterator[str]:
    pasted: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and is_pasted(each.value, pasted):
            pasted |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            called = name_of(each.func).rpartition(".")[2] or getattr(each.func, "attr", "")
            if called in TAKES_SQL and any(is_pasted(given, pasted) for given in each.args):
                yield f"{each.lineno}: {called}() of a text that is put together"


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_runs_what_it_is_given(room: str) -> None:
    found = [
        f"{place}:{finding}"
        for file in sorted((ROOT / room).rglob("*.py"))
        for place in [file.relative_to(ROOT).as_posix()]
        for finding in found_in(ast.parse(file.read_text()))
        if not (place in QUOTED_BY_HAND and "sql()" in finding)
        # what people read in Dagster is Markdown
        and not (room == "assets" and "backticks" in finding)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from marshal import loads",
        "eval(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "columns = f'`{name}`'",
        "def f(name): spark.sql(f'SELECT * FROM {name}')",
        "def f(name): spark.sql('SELECT * FROM ' + name)",
        "def f(name): F.expr('SUM(%s)' % name)",
        "def f(name): parse_one('SUM({})'.format(name))",
        "def f(name):\n    text = f'SELECT {name}'\n    return session.sql(text)",
    ],
)
def test_the_rules_find_what_breaks_them(line: str) -> None:
    assert list(found_in(ast.parse(line)))


def test_the_rules_let_pass_what_is_quoted() -> None:
    lines = "def f(name):\n    frame.select(quote(name))\n    return spark.sql(text_of(tree))"
    assert not list(found_in(ast.parse(lines)))
