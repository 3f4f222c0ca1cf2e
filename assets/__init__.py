"""Assets: what Dagster shows of a flow, one asset a source or view, and their checks.

`tideview_definitions` is the one call that makes all of it; `TideviewPipelines` is the same as a
component.
"""

from tideview.assets.component import TideviewPipelines
from tideview.assets.folder_definitions import tideview_definitions
from tideview.assets.resource_keys import ResourceKeys

__all__ = ["ResourceKeys", "TideviewPipelines", "tideview_definitions"]
