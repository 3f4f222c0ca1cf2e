"""Tideview's core: materialized views on Spark and Delta Lake, exact after every tick."""

from ivm_core.api.batch import DeltaBatch
from ivm_core.api.flow import IncrementalFlow
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
    OutOfRange,
    SourceReplaced,
    SqlError,
    TickConflict,
    TickFailed,
    UnknownName,
    Unsupported,
    UserError,
    WrongThread,
)

__all__ = [
    "AlterReport",
    "BatchError",
    "Checkpoint",
    "CheckpointError",
    "ClosedFlow",
    "ConstraintViolation",
    "CorruptStore",
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
    "OutOfRange",
    "Restored",
    "SourceReplaced",
    "SourceSummary",
    "SqlError",
    "StepSummary",
    "TickConflict",
    "TickFailed",
    "UnknownName",
    "Unsupported",
    "UserError",
    "ViewSummary",
    "WhyNot",
    "WrongThread",
]
