"""What relations and columns may be called, and the one way to quote an identifier."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ivm_core.model.errors import InvalidName

if TYPE_CHECKING:
    from collections.abc import Iterable

WEIGHT = "_weight"
TICK = "_tick"
INTERNAL_PREFIX = "_tv_"
PLACE = f"{INTERNAL_PREFIX}place"
"""Where a row stands among others, as a column beside its own: none of a user's is called so."""
SHARED_PREFIX = "__shared_"
"""What the nodes that views share are called: no source or view can have such a name."""

_RESERVED_COLUMNS = frozenset(
    {WEIGHT, TICK, "_change_type", "_commit_version", "_commit_timestamp"}
)
_RELATION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_NAME = 128
_UNSTORABLE = {
    " ": "a space",
    ",": "a comma",
    ";": "a semicolon",
    "{": "a brace",
    "}": "a brace",
    "(": "a parenthesis",
    ")": "a parenthesis",
    "\n": "a line break",
    "\r": "a line break",
    "\t": "a tab",
    "=": "an equals sign",
    "`": "a backtick",
    "\0": "a zero byte",
}

_PATHS = (".", "[")
"""Arrow takes a name that begins so for a path to a column."""


def quote(identifier: str) -> str:
    """The identifier in backticks, for Spark SQL and DDL; anything can be quoted."""
    return "`" + identifier.replace("`", "``") + "`"


def did_you_mean(name: object, among: Iterable[str]) -> str:
    """`did you mean totals? ` where a known name is near the given one; else nothing."""
    known = {each.casefold(): each for each in among}
    near = get_close_matches(name.casefold(), known, n=3) if isinstance(name, str) else []
    return f"did you mean {' or '.join(known[each] for each in near)}? " if near else ""


def check_relation_name(name: str, kind: str) -> str:
    """Give back a name that a source or view may have; any other is an `InvalidName`.

    `kind` is the word for the message: "source" or "view".
    """
    where = f"name of the {kind}"
    rule = (
        "use ASCII letters, digits and underscores, starting with a letter or one underscore, "
        f"at most {_LONGEST_NAME} characters"
    )
    if not isinstance(name, str):
        raise InvalidName(f"a {kind} name is text, not {type(name).__name__}", where, rule)
    suggestion = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST_NAME]
    if suggestion[:1].isdigit():
        suggestion = f"{kind[:1]}_{suggestion}"[:_LONGEST_NAME]
    fix = f"{rule}, for example {suggestion}" if suggestion else rule
    if not _RELATION.fullmatch(name):
        raise InvalidName(f"{name!r} can't be the name of a {kind}", where, fix)
    if len(name) > _LONGEST_NAME:
        raise InvalidName(f"a {kind} name of {len(name)} characters is too long", where, fix)
    if name.startswith("__"):
        raise InvalidName(f"{name!r}: names that start with __ are reserved", where, fix)
    return name


def check_column_name(name: str, where: str = "") -> str:
    """Give back a name that a user's column may have; any other is an `InvalidName`."""
    if name.lower() in _RESERVED_COLUMNS or name.lower().startswith(INTERNAL_PREFIX):
        raise InvalidName(
            f"the column name {name!r} is reserved",
            where,
            f"call it something else, for example {name.lstrip('_')} (an alias does in a view)",
        )
    return check_storable(name, where)


def is_storable(name: str) -> bool:
    """Whether Delta can store a column of that name, and Arrow find it."""
    return bool(name) and not name.startswith(_PATHS) and _UNSTORABLE.keys().isdisjoint(name)


def check_storable(name: str, where: str = "") -> str:
    """Give back a column or struct field name that Delta can store; else `InvalidName`."""
    if not name:
        raise InvalidName("a column or field has an empty name", where, "give it a name")
    if name.startswith(_PATHS):
        raise InvalidName(
            f"the column name {name!r} begins with {name[0]}, which Arrow takes for a path",
            where,
            "give it another name (in a view: an alias with AS)",
        )
    for character in name:
        if character in _UNSTORABLE:
            raise InvalidName(
                f"the column name {name!r} has {_UNSTORABLE[character]} in it, "
                "which Delta can't store",
                where,
                "give it another name (in a view: an alias with AS)",
            )
    return name
