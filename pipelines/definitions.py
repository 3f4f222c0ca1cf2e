"""The code location: every pipeline whose folder is beside this file."""

from __future__ import annotations

from pathlib import Path

from tideview.assets import tideview_definitions

defs = tideview_definitions(Path(__file__).parent)
