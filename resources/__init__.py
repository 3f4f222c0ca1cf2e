"""Resources: what assets are given at run time, such as Spark and the flow."""
