"""Nexmark's events by number: of fifty one is a person, three are auctions, the rest are bids.

Written from the public description of the benchmark: proportions, hot auctions, sellers, bidders
and channels, prices over six decades, identifiers that grow with the events. Everything about an
event follows from its number and a seed, so it doesn't matter how events are cut into batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.numbers import Numbers, below, share
from ivm_core.model.schema import parse_schema
from ivm_core.operators.arrow_types import arrow_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMAS = {
    "person": (
        "id BIGINT, name STRING, email STRING, credit_card STRING, city STRING, state STRING, "
        "date_time TIMESTAMP, extra STRING"
    ),
    "auction": (
        "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
        "date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"
    ),
    "bid": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, "
        "date_time TIMESTAMP, extra STRING"
    ),
}
PERSONS, AUCTIONS, ALL = 1, 3, 50
"""Of so many events in all."""
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
FIRST_MICROSECOND = 1_700_000_000_000_000
HOT_AUCTIONS, HOT_SELLERS, HOT_BIDDERS, HOT_CHANNELS = 2, 4, 4, 2
"""One of so many is not a hot one."""
HOT_EVERY = 100
"""Every so manieth auction, seller and bidder is hot while it is among the newest."""
ACTIVE_PERSONS, IN_FLIGHT = 1_000, 100
CHANNELS = 10_000
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond",
    "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
FIRST_NAMES = (
    "Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter",
)  # fmt: skip
LAST_NAMES = (
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
)
HOT_CHANNEL_NAMES = ("Google", "Facebook", "Baidu", "Apple")
WORDS = ("amber", "brass", "cedar", "denim", "ember", "flint", "grove", "heron", "ivory", "jade")


class Nexmark:
    """Makes the events of any range of numbers."""

    def __init__(self, seed: int = 1, microseconds: int = 100) -> None:
        """`microseconds` are between two events."""
        self._seed = seed * 1_000
        self._microseconds = microseconds

    def events(self, first: int, behind: int) -> dict[str, pa.Table]:
        """The three tables of the events from `first` up to `behind`, which is not among them."""
        numbers = np.arange(first, behind)
        place = numbers % ALL
        return {
            "person": self._persons(numbers[place < PERSONS]),
            "auction": self._auctions(numbers[(place >= PERSONS) & (place < PERSONS + AUCTIONS)]),
            "bid": self._bids(numbers[place >= PERSONS + AUCTIONS]),
        }

    def _persons(self, events: Numbers) -> pa.Table:
        first, last = (self._of(events, 1, FIRST_NAMES), self._of(events, 2, LAST_NAMES))
        digits = [_text(below(events, self._seed + 3 + n, 9_000) + 1_000) for n in range(4)]
        host = self._of(events, 7, WORDS)
        return _table(
            "person",
            _last_person(events),
            pc.binary_join_element_wise(first, last, " "),
            pc.binary_join_element_wise(first, pc.binary_join_element_wise(host, "com", "."), "@"),
            pc.binary_join_element_wise(*digits, " "),
            self._of(events, 8, CITIES),
            self._of(events, 9, STATES),
            self._times(events),
            self._extra(events, 10),
        )

    def _auctions(self, events: Numbers) -> pa.Table:
        newest = _last_person(events)
        hot = newest // HOT_EVERY * HOT_EVERY
        seller = np.where(
            below(events, self._seed + 20, HOT_SELLERS) > 0,
            np.maximum(hot, FIRST_ID),
            self._active_person(events, newest, 21),
        )
        price = self._price(events, 22)
        length = 1 + below(events, self._seed + 24, 2 * IN_FLIGHT * ALL // AUCTIONS)
        times = self._times(events)
        return _table(
            "auction",
            _last_auction(events),
            pc.binary_join_element_wise(
                self._of(events, 25, WORDS), self._of(events, 26, WORDS), " "
            ),
            self._extra(events, 27),
            price,
            price + self._price(events, 23),
            times,
            times + length * self._microseconds,
            seller,
            FIRST_CATEGORY + below(events, self._seed + 28, CATEGORIES),
            self._extra(events, 29),
        )

    def _bids(self, events: Numbers) -> pa.Table:
        newest = _last_auction(events)
        oldest = np.maximum(newest - IN_FLIGHT, FIRST_ID)
        auction = np.where(
            below(events, self._seed + 40, HOT_AUCTIONS) > 0,
            np.maximum(newest // HOT_EVERY * HOT_EVERY, FIRST_ID),
            oldest + below(events, self._seed + 41, newest - oldest + 1),
        )
        people = _last_person(events)
        bidder = np.where(
            below(events, self._seed + 42, HOT_BIDDERS) > 0,
            np.maximum(people // HOT_EVERY * HOT_EVERY, FIRST_ID) + 1,
            self._active_person(events, people, 43),
        )
        numbers = below(events, self._seed + 45, CHANNELS)
        hot = below(events, self._seed + 46, HOT_CHANNELS) > 0
        other = pc.binary_join_element_wise("channel", _text(numbers), "-")
        channel = pc.if_else(pa.array(hot), self._of(events, 47, HOT_CHANNEL_NAMES), other)
        folders = [self._of(events, 48 + n, WORDS) for n in range(3)]
        url = pc.binary_join_element_wise(
            "https://www.nexmark.com", *folders, "item.htm?query=1", "/"
        )
        with_number = pc.binary_join_element_wise(url, _text(numbers), "&channel_id=")
        return _table(
            "bid",
            auction,
            bidder,
            self._price(events, 52),
            channel,
            pc.if_else(pa.array(hot), url, with_number),
            self._times(events),
            self._extra(events, 53),
        )

    def _times(self, events: Numbers) -> Numbers:
        return FIRST_MICROSECOND + events * self._microseconds

    def _price(self, events: Numbers, salt: int) -> Numbers:
        """In cents, as likely between 1 and 10 as between 100,000 and 1,000,000."""
        return np.round(10.0 ** (share(events, self._seed + salt) * 6) * 100).astype(np.int64)

    def _active_person(self, events: Numbers, newest: Numbers, salt: int) -> Numbers:
        oldest = np.maximum(newest - ACTIVE_PERSONS, FIRST_ID)
        return oldest + below(events, self._seed + salt, newest - oldest + 1)

    def _of(self, events: Numbers, salt: int, choices: Sequence[str]) -> pa.Array:
        places = below(events, self._seed + salt, len(choices))
        return pa.array(choices, pa.string()).take(pa.array(places))

    def _extra(self, events: Numbers, salt: int) -> pa.Array:
        """Some text that makes events as long as the description says."""
        parts = [self._of(events, salt * 100 + n, WORDS) for n in range(4)]
        return pc.binary_join_element_wise(*parts, " ")


def _last_person(events: Numbers) -> Numbers:
    """The newest person at an event; a person's own number at its event."""
    return FIRST_ID + events // ALL * PERSONS


def _last_auction(events: Numbers) -> Numbers:
    """The newest auction at an event; an auction's own number at its event."""
    rounds, place = np.divmod(events, ALL)
    inside = np.clip(place - PERSONS, -1, AUCTIONS - 1)
    return np.maximum(FIRST_ID + rounds * AUCTIONS + inside, FIRST_ID)


def _text(numbers: Numbers) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _table(name: str, *columns: object) -> pa.Table:
    schema = arrow_schema(parse_schema(SCHEMAS[name]), weight=False)
    arrays = []
    for given, field in zip(columns, schema, strict=True):
        array = given if isinstance(given, pa.Array | pa.ChunkedArray) else pa.array(given)
        arrays.append(array.cast(field.type))
    return pa.table(arrays, schema=schema)
