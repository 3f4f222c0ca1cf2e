"""Tideview's core: materialized views on Spark and Delta Lake, exact after every tick."""

from ivm_core.api.batch import DeltaBatch
from ivm_core.api.datalog_run import BatchResult, run
from ivm_core.api.fact_rows import StepDelta
from ivm_core.api.flow import IncrementalFlow
from ivm_core.api.session import Session
from ivm_core.engine.alter_report import AlterReport
from ivm_core.engine.checkpointing import Checkpoint
from ivm_core.engine.explanation import Explanation, WhyNot
from ivm_core.engine.restoring import Restored
from ivm_core.engine.summary import SourceSummary, StepSummary, ViewSummary
from ivm_core.model.errors import (
    BatchError,
    CheckpointError,
    ClosedFlow,
    ConstraintViolation,
    CorruptStore,
    DatalogError,
    DefinitionConflict,
    DuplicateName,
    HistoryLost,
    InternalError,
    InvalidName,
    IvmError,
    LogicalTimeError,
    NewerFormat,
    NotAFlow,
    NotIncremental,
    OtherPlan,
    OutOfRange,
    RecursionLimit,
    SourceReplaced,
    SparkLost,
    SqlError,
    TickConflict,
    TickFailed,
    UnknownName,
    Unsupported,
    UserError,
    WriteFailed,
    WrongThread,
)

__all__ = [
    "AlterReport",
    "BatchError",
    "BatchResult",
    "Checkpoint",
    "CheckpointError",
    "ClosedFlow",
    "ConstraintViolation",
    "CorruptStore",
    "DatalogError",
    "DefinitionConflict",
    "DeltaBatch",
    "DuplicateName",
    "Explanation",
    "HistoryLost",
    "IncrementalFlow",
    "InternalError",
    "InvalidName",
    "IvmError",
    "LogicalTimeError",
    "NewerFormat",
    "NotAFlow",
    "NotIncremental",
    "OtherPlan",
    "OutOfRange",
    "RecursionLimit",
    "Restored",
    "Session",
    "SourceReplaced",
    "SourceSummary",
    "SparkLost",
    "SqlError",
    "StepDelta",
    "StepSummary",
    "TickConflict",
    "TickFailed",
    "UnknownName",
    "Unsupported",
    "UserError",
    "ViewSummary",
    "WhyNot",
    "WriteFailed",
    "WrongThread",
    "run",
]
