"""Numbers that look random and follow from a key: the same rows, however they are batched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mixed(keys: Numbers, salt: int) -> NDArray[np.uint64]:
    """Sixty-four bits a key (SplitMix64); another salt gives other bits."""
    with np.errstate(over="ignore"):
        state = keys.astype(np.uint64) * np.uint64(2) + np.uint64(2 * salt + 1) * _STEP
        state = (state ^ (state >> np.uint64(30))) * _FIRST
        state = (state ^ (state >> np.uint64(27))) * _SECOND
        return state ^ (state >> np.uint64(31))


def below(keys: Numbers, salt: int, limit: int | Numbers) -> Numbers:
    """A number from 0 up to `limit`, which is not reached, for each key."""
    limits = np.asarray(limit, dtype=np.uint64)
    return (mixed(keys, salt) % limits).astype(np.int64)


def share(keys: Numbers, salt: int) -> NDArray[np.float64]:
    """A number from 0 up to 1, which is not reached, for each key."""
    return (mixed(keys, salt) >> np.uint64(11)).astype(np.float64) / 2.0**53
