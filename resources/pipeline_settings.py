"""What files say, turned into the values of `pipeline_spec`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ivm_core import UserError
from ivm_core.api.datalog_views import derived_relations
from tideview.resources.cron import is_cron
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
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ivm_core.api.datalog_views import Derived, ProgramFile
    from ivm_core.api.declaration import Declaration, DeclaredSource
    from ivm_core.api.documents import Document, Key
    from ivm_core.api.view_file import ViewFile

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
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
            every=duration(sensor.get("every", "5s")), running=sensor.get("running", True)
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
    given = file.front.content
    return ViewSpec(
        name=file.text.name,
        sql=file.text.sql,
        description=file.description,
        require=file.text.require,
        expectations=tuple(
            Expectation(**each, where=file.front.where(("expectations", number)))
            for number, each in enumerate(given.get("expectations", ()))
        ),
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


def duration(text: str) -> timedelta:
    """`30s`, `5m`, `12h`, `7d`."""
    return timedelta(**{_UNITS[text[-1]]: float(text[:-1])})


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
    if isinstance(given, str):
        return Freshness(fail_after=duration(given))
    key: Key = ("freshness",)
    if "cron" in given:
        _check_cron(front, (*key, "cron"), given["cron"])
        _check_zone(front, (*key, "timezone"), given)
        zone = given.get("timezone", "UTC")
        return Freshness(cron=given["cron"], lookback=duration(given["lookback"]), timezone=zone)
    fail = duration(given["fail_after"])
    warn = duration(given["warn_after"]) if "warn_after" in given else None
    if warn is not None and warn >= fail:
        raise UserError(
            f"warn_after ({given['warn_after']}) is not before fail_after ({given['fail_after']})",
            where=front.where((*key, "warn_after")),
            fix="warn earlier",
        )
    return Freshness(fail_after=fail, warn_after=warn)


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
