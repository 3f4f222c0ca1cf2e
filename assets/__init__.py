"""Assets: what Dagster shows of a flow, one asset a source or view, and their checks."""

from tideview.assets.folder_definitions import tideview_definitions

__all__ = ["tideview_definitions"]
