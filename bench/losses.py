"""Where we lose: what results say against us, in words, worst news first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Content = dict[str, Any]
"""The JSON of a run."""
SIZES = ("tpch --scale 10", "flat --scales 0.1,1,10")
"""What bars ask for beside the sizes that programs have by themselves."""


def losses(sections: Sequence[Mapping[str, Any]]) -> list[str]:
    """What failed, differs, misses a bar or is slower than a peer, and what a bar allows to be."""
    found = [
        *(f"{each['title']}: failed, {each['error']}" for each in sections if each["error"]),
        *(
            f"{each['title']}: wrong result, {name}"
            for each in sections
            for name, equal in each["checks"].items()
            if not equal
        ),
    ]
    return [*found, *_missed(sections), *_slower(sections), *_above(sections)]


def nowhere(sections: Sequence[Mapping[str, Any]]) -> str:
    """What to say where nothing is lost: bars and peers only count where they were measured."""
    beside = any(each.get("ratios") for each in sections)
    bars = "every bar that was measured is met" if unmeasured(sections) else "every bar is met"
    return f"Nowhere: {bars}" + (", and nobody was faster." if beside else ".")


def unmeasured(sections: Sequence[Mapping[str, Any]]) -> list[str]:
    """Programs that a run left out, and the sizes of programs that bars are about."""
    from bench.programs import PROGRAMS

    measured = {each["key"] for each in sections}
    with_sizes = {f"{each['key']} {each.get('options', '')}" for each in sections}
    return [
        *(name for name in PROGRAMS if name not in measured),
        *(each for each in SIZES if each not in with_sizes),
    ]


def bar_text(bar: Mapping[str, Any]) -> str:
    """The limit as people write it."""
    return f"{'≤' if bar['sense'] == '<=' else '≥'} {bar['limit']:g}×"


def _missed(sections: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for section in sections:
        for bar in section["bars"]:
            if not bar["met"]:
                yield f"{bar['name']}: {bar['ratio']:.2f}×, the bar is {bar_text(bar)}"


def _slower(sections: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for section in sections:
        for each in section.get("ratios", ()):
            if each["ratio"] < 1:
                yield f"{each['name']}: {each['ratio']:.2f}×, so they are the faster"


def _above(sections: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What costs more than what it is held against, though no more than its bar allows."""
    for section in sections:
        for bar in section["bars"]:
            if bar["met"] and bar["sense"] == "<=" and bar["ratio"] > 1:
                yield f"{bar['name']}: {bar['ratio']:.2f}×, within the bar of {bar_text(bar)}"
