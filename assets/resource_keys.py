"""Under which names the definitions of a pipeline find their resources.

Dagster has one name space of resources for all definitions that are merged: a project that has a
`spark` of its own lets ours have another name.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dagster import Resolvable

from ivm_core import UserError

if TYPE_CHECKING:
    from tideview.resources.flow_store import FlowStore
    from tideview.resources.local_spark import LocalSpark


class HasResources(Protocol):
    """What a step or a sensor is given."""

    @property
    def resources(self) -> Any:
        """The resources that it asked for, by key."""


@dataclass(frozen=True)
class ResourceKeys(Resolvable):
    """The keys of the store of flows, and of Spark."""

    flows: str = "flows"
    spark: str = "spark"

    def __post_init__(self) -> None:
        """Refuse one name for both."""
        if self.flows == self.spark:
            what = f"the store of flows and Spark have one name, {self.flows}"
            raise UserError(what, "resource_keys", "give them different ones")

    @property
    def both(self) -> set[str]:
        """What a step that reads or writes a flow asks for."""
        return {self.flows, self.spark}

    def store(self, context: HasResources) -> "FlowStore":
        """The store of flows."""
        found: FlowStore = getattr(context.resources, self.flows)
        return found

    def session(self, context: HasResources) -> "LocalSpark":
        """Spark, not started yet."""
        found: LocalSpark = getattr(context.resources, self.spark)
        return found


USUAL = ResourceKeys()
