"""Locations that tests read and write: a local directory, and the same as an object store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ivm_core.store.location import Location

if TYPE_CHECKING:
    from collections.abc import Mapping


class AsObjectStore(Location):
    """A local directory that is treated like an object store: everything through `deltalake`."""

    def __init__(
        self, target: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(target, storage_options)
        os.makedirs(self._target, exist_ok=True)
        self.is_local = False
        self._target = f"file://{self._target}"
