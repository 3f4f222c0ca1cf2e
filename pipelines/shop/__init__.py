"""The demo's pipeline: a small shop, declared by its folder, and the trade that changes it."""
