"""What files say, turned into the values of `pipeline_spec`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ivm_core import UserError
from ivm_core.api.datalog_views import derived_relations
from tideview.resources.cron import is_cron, shortest_gap
from tideview.resources.freshness_rules import LONGEST, SHORTEST
from tideview.resources.pipeline_spec import (
    CHECKS,
    Automation,
    CheckPolicy,
    Expectation,
    Freshness,
    RecursionSpec,
    Retention,
    Schedules,
    SensorSpec,
    SourceSpec,
    SparkSpec,
    ViewSpec,
    refuse_taken_names,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.api.datalog_views import Derived, ProgramFile
    from ivm_core.api.declaration import Declaration, DeclaredSource
    from ivm_core.api.documents import Document, Key
    from ivm_core.api.view_file import ViewFile

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SECOND = timedelta(seconds=1)
_AS_THEY_ARE = ("owners", "tags", "group")


def pipeline_settings(declared: Declaration) -> dict[str, Any]:
    """Everything of a checked declaration but its name and its sources."""
    content, document = declared.content, declared.document
    sensor, schedules = content.get("sensor", {}), content.get("schedules", {})
    for each in ("tick", "replay", "maintenance"):
        if each in schedules:
            _check_cron(document, ("schedules", each), schedules[each])
    _check_zone(document, ("schedules", "timezone"), schedules)
    spark = dict(content.get("spark", {}))
    _check_spark(document, spark)
    settings: dict[str, Any] = {
        "description": content.get("description", "").strip(),
        "schedules": Schedules(**schedules),
        "sensor": SensorSpec(
            every=duration(document, ("sensor", "every"), sensor.get("every", "5s"), SECOND),
            running=sensor.get("running", True),
        ),
        "retention": Retention(**content.get("retention", {})),
        "recursion": RecursionSpec(**content.get("recursion", {})),
        "spark": SparkSpec(**spark),
        "checks": _policy(content.get("checks", {})),
        "changed_views": content.get("changed_views", "alter"),
    }
    if "store" in content:
        settings["store"] = _folder(declared, ("store",), content["store"])
    return settings | {key: content[key] for key in ("owners", "tags") if key in content}


def source_spec(declared: Declaration, source: DeclaredSource) -> SourceSpec:
    """A source with all that the file says of it."""
    given = source.settings
    places: dict[str, Any] = {}
    key: Key = ("sources", source.name)
    if "delta_table" in given:
        places["delta_table"] = declared.place((*key, "delta_table"), given["delta_table"])
    if "inbox" in given:
        places["inbox"] = _folder(declared, (*key, "inbox"), given["inbox"])
    kept = ("dedup", "dedup_entries", *_AS_THEY_ARE)
    return SourceSpec(
        name=source.name,
        schema=source.schema,
        primary_key=source.primary_key,
        description=source.description,
        where=source.where,
        **places,
        **{each: given[each] for each in kept if each in given},
    )


def view_spec(file: ViewFile) -> ViewSpec:
    """A view with all that its file says of it."""
    expectations = tuple(
        Expectation(**each, where=file.front.where(("expectations", number)))
        for number, each in enumerate(file.front.content.get("expectations", ()))
    )
    refuse_taken_names(
        expectations, lambda number: file.front.where(("expectations", number, "name"))
    )
    return ViewSpec(
        name=file.text.name,
        sql=file.text.sql,
        description=file.description,
        require=file.text.require,
        expectations=expectations,
        schema=file.text.columns,
        where=file.text.where,
        **_shown(file.front),
    )


def program_specs(file: ProgramFile) -> list[ViewSpec]:
    """The relations that a program derives, with all that its file says of them."""
    shown = _shown(file.front)
    return [derived_spec(each, description=file.description, **shown) for each in file.relations]


def datalog_views(program: str, name: str = "the program") -> list[ViewSpec]:
    """The views of a Datalog program, for a pipeline in Python; `name` is for messages.

    Its inputs are sources and views of the pipeline. `DatalogError`, `Unsupported` for what has no
    meaning.
    """
    return [derived_spec(each) for each in derived_relations(program, name)]


def derived_spec(derived: Derived, **shown: Any) -> ViewSpec:
    """A relation of a program as a view."""
    text = derived.text
    return ViewSpec(
        name=text.name,
        sql=text.sql,
        schema=text.columns,
        rules=derived.rules,
        expects=text.expects,
        where=text.where,
        **shown,
    )


def _shown(front: Document) -> dict[str, Any]:
    """What front matter says of how something is shown, checked and run."""
    given = front.content
    return {
        "freshness": _freshness(front),
        "checks": _policy(given["checks"]) if "checks" in given else None,
        "automation": _automation(front),
        **{key: given[key] for key in _AS_THEY_ARE if key in given},
    }


def _folder(declared: Declaration, key: Key, text: str) -> str:
    place = declared.place(key, text)
    if "://" in place:
        raise UserError(
            f"{text} is no folder",
            where=declared.where(key),
            fix="what a pipeline writes is in a folder of this machine, or a mounted one",
        )
    return place


def duration(document: Document, key: Key, text: str, least: timedelta = timedelta(0)) -> timedelta:
    """`30s`, `5m`, `12h`, `7d`; `UserError` for one that is too short or too long."""
    seconds = float(text[:-1]) * _SECONDS[text[-1]]
    if not least.total_seconds() <= seconds <= LONGEST.total_seconds():
        words = "short" if seconds < least.total_seconds() else "long"
        raise UserError(
            f"{text if len(text) <= 20 else f'{text[:17]}…'} is too {words}",
            where=document.where(key),
            fix=f"give {_spelled(least)} or more, and {_spelled(LONGEST)} at most",
        )
    return timedelta(seconds=seconds)


def _spelled(length: timedelta) -> str:
    """As files spell it."""
    seconds = int(length.total_seconds())
    unit = next((each for each in "dhm" if seconds and seconds % _SECONDS[each] == 0), "s")
    return f"{seconds // _SECONDS[unit]}{unit}"


def _policy(given: Mapping[str, Any]) -> CheckPolicy:
    settings = dict(given)
    blocking = settings.get("blocking", ())
    if isinstance(blocking, bool):
        settings["blocking"] = CHECKS if blocking else ()
    return CheckPolicy(**settings)


def _freshness(front: Document) -> Freshness | None:
    given = front.content.get("freshness")
    if given is None:
        return None
    key: Key = ("freshness",)
    if isinstance(given, str):
        return Freshness(fail_after=duration(front, key, given, SHORTEST))
    if "cron" in given:
        return _deadline(front, key, given)
    fail = duration(front, (*key, "fail_after"), given["fail_after"], SHORTEST)
    warn = None
    if "warn_after" in given:
        warn = duration(front, (*key, "warn_after"), given["warn_after"], SHORTEST)
    if warn is not None and warn >= fail:
        raise UserError(
            f"warn_after ({given['warn_after']}) is not before fail_after ({given['fail_after']})",
            where=front.where((*key, "warn_after")),
            fix="warn earlier",
        )
    return Freshness(fail_after=fail, warn_after=warn)


def _deadline(front: Document, key: Key, given: Mapping[str, Any]) -> Freshness:
    cron, place = given["cron"], (*key, "lookback")
    _check_cron(front, (*key, "cron"), cron)
    _check_zone(front, (*key, "timezone"), given)
    lookback = duration(front, place, given["lookback"], SHORTEST)
    gap = shortest_gap(cron)
    if gap is not None and lookback > gap:
        raise UserError(
            f"a lookback of {given['lookback']} reaches beyond the deadline before",
            where=front.where(place),
            fix=f"give {_spelled(gap)} at most, the shortest time between two deadlines of {cron}",
        )
    return Freshness(cron=cron, lookback=lookback, timezone=given.get("timezone", "UTC"))


def _automation(front: Document) -> Automation | None:
    given = front.content.get("automation")
    if given is None or isinstance(given, str):
        return Automation("eager") if given else None
    _check_cron(front, ("automation", "on_cron"), given["on_cron"])
    _check_zone(front, ("automation", "timezone"), given)
    return Automation("on_cron", given["on_cron"], given.get("timezone", "UTC"))


def _check_cron(document: Document, key: Key, text: str) -> None:
    if not is_cron(text):
        raise UserError(
            f"{text!r} is no time table",
            where=document.where(key),
            fix="give minute, hour, day, month and day of the week, such as 0 2 * * *",
        )
    if shortest_gap(text) is None:
        raise UserError(
            f"{text!r} is no time table: these days never come",
            where=document.where(key),
            fix="give a day that the month has",
        )


def _check_zone(document: Document, key: Key, given: Mapping[str, Any]) -> None:
    zone = given.get("timezone", "UTC")
    try:
        ZoneInfo(zone)
    except (KeyError, OSError, ValueError) as error:
        raise UserError(
            f"there is no time zone {zone!r}",
            where=document.where(key),
            fix="give one such as Europe/Lisbon",
        ) from error


def _check_spark(document: Document, given: dict[str, Any]) -> None:
    ways = [key for key in ("master", "remote", "connect") if key in given]
    if len(ways) > 1:
        raise UserError(
            f"{' and '.join(ways)} say where Spark is, each in its own way",
            where=document.where(("spark", ways[1])),
            fix="keep one of them",
        )
