"""The main job on this machine, with nothing to configure: `python -m load demo`.

`scenario` says what is asked and of what servers; `program` runs the product beside it, as a user would;
`watch` looks at it; `report` turns what happened into figures; `run` joins them.
"""
