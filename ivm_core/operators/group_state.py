"""What is known of the changed groups of an aggregate, on the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class GroupState:
    """What is known of the changed groups."""

    change: pa.Table
    """acc(ΔA)."""
    before: pa.Table | None
    """acc(A) of at least these groups; None for the first rows of all."""
    own: pa.Table | None = None
    """The node's own rows before, netted, where it has MIN or MAX."""
    redone: pa.Table | None = None
    """MIN and MAX of the groups where a deletion reached them."""
