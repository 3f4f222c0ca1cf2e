"""The only home of Delta: tick log, traces, and a user's table read as deltas."""

import os

# `deltalake` has an allocator of its own, which asks once, when the library is loaded. With an
# arena for each of its many threads a flow that lives long holds ever more that nobody uses.
os.environ.setdefault("_RJEM_MALLOC_CONF", "narenas:2")
