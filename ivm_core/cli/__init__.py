"""The command-line tool `tideview`: one file a subcommand, `main.py` puts them together."""
