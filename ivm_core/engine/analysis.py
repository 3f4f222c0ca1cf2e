"""Spark's analyzer as the judge of a view's names, types and determinism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from ivm_core.engine.evaluation import spark_message
from ivm_core.frontend.unnamed import Given
from ivm_core.model.errors import (
    DuplicateName,
    InvalidName,
    NotIncremental,
    SqlError,
    UnknownName,
    Unsupported,
    UserError,
)
from ivm_core.operators.arrow_types import from_spark, from_spark_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from ivm_core.engine.gears import Gears
    from ivm_core.model.schema import Schema
    from ivm_core.model.types import DataType

RANDOM = "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION"
UNRESOLVED = (
    "UNRESOLVED_COLUMN",
    "UNRESOLVED_FIELD",
    "TABLE_OR_VIEW_NOT_FOUND",
    "UNRESOLVED_ROUTINE",
)


class SparkAnalyser:
    """Asks Spark about queries over empty relations of the declared schemas."""

    def __init__(self, gears: Gears, where: str) -> None:
        """`where` names the view in messages."""
        self._gears = gears
        self._where = where

    def original(
        self, sql: str, relations: Mapping[str, Schema], given: Given | None = None
    ) -> Schema:
        """Columns of the user's own text; a UserError with Spark's message for what it refuses.

        Columns that Spark calls by their text, for want of a name, have the `given` names.
        """
        found = self.judged(sql, relations)
        try:
            for each, name in zip(found, (given or Given()).renamed(found.names), strict=True):
                each.name = name
            return from_spark(found, self._where)
        except (InvalidName, DuplicateName) as error:
            where = f"{self._where}, {error.where}" if error.where else self._where
            raise type(error)(error.what, where, error.fix) from error

    def judged(self, sql: str, relations: Mapping[str, Schema]) -> StructType:
        """What Spark says of a text; a UserError with Spark's message for what it refuses."""
        try:
            return self._gears.analysed(sql, relations)
        except ParseException as error:
            raise SqlError(
                f"Spark can't parse the SQL: {spark_message(error)}",
                where=self._where,
                fix="write one SELECT in Spark SQL",
            ) from error
        except Py4JJavaError as error:
            if "StackOverflowError" not in str(error):
                # Spark's own analyzer stumbled over it; its stack is the cause
                raise UserError(
                    f"Spark fails on the SQL: {_java_message(error)}",
                    where=self._where,
                    fix="look for calls and operators whose arguments have another type",
                ) from error
            raise SqlError(
                "the SQL is nested too deeply for Spark",
                where=self._where,
                fix="split the query into several views, or long chains of operators into parts",
            ) from error
        except PySparkException as error:
            condition = error.getCondition() or ""
            kind = UnknownName if condition.startswith(UNRESOLVED) else UserError
            raise kind(
                f"Spark refuses the SQL: {spark_message(error)}",
                where=self._where,
                fix="correct the query; the message is Spark's own",
            ) from error

    def types_of(self, sql: str, relations: Mapping[str, Schema]) -> list[DataType]:
        """Types of the columns of a query of ours."""
        try:
            found = self._gears.analysed(sql, relations)
        except AnalysisException as error:
            if (error.getCondition() or "").startswith(UNRESOLVED):
                raise UnknownName(f"Spark says: {spark_message(error)}", self._where) from error
            raise Unsupported(
                "a construct of this query",
                position=self._where,
                reason=f"taken apart, Spark says: {spark_message(error)}",
                rewrite="split the query into simpler views",
            ) from error
        return [from_spark_type(each.dataType, f"{self._where}, {each.name}") for each in found]

    def columns_of(self, sql: str, relations: Mapping[str, Schema]) -> list[tuple[str, str]] | None:
        """Names and types of the columns of a part of a query; None for what Spark refuses."""
        try:
            found = self._gears.analysed(sql, relations)
        except (PySparkException, Py4JJavaError):
            return None
        return [(each.name, each.dataType.simpleString()) for each in found]

    def refuse_random(self, sql: str, relations: Mapping[str, Schema], names: list[str]) -> None:
        """NotIncremental for expressions that Spark calls non-deterministic."""
        try:
            self._gears.analysed(sql, relations)
        except AnalysisException as error:
            if RANDOM not in (error.getCondition() or ""):
                return
            raise NotIncremental(
                ", ".join(names),
                position=self._where,
                reason="Spark calls the expression non-deterministic: it may give another value "
                "at every run",
                rewrite="store the value in the source when the row is made, or register the "
                "function with deterministic=True if it is",
            ) from error


def _java_message(error: Py4JJavaError) -> str:
    """What an exception of Java's says, without its stack."""
    return str(error.java_exception.getMessage() or error.java_exception.getClass().getName())
