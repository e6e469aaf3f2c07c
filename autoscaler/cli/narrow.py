"""Tables on a narrow terminal: columns are left out whole, so that none is cut until it says nothing."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

_WIDE = 1000
"""Columns in which every table has room."""


def fitting(
    out: Console, table_without: Callable[[Sequence[str]], Table], dispensable: Sequence[str]
) -> Table:
    """Return a table with as many columns as there is room for.

    Parameters
    ----------
    table_without : callable
        Makes the table without the columns of these headings.
    dispensable : sequence of str
        Headings in the order in which they are left out. The other columns always stay.
    """
    for number in range(len(dispensable) + 1):
        shown = table_without(dispensable[:number])
        if out.measure(shown, options=out.options.update(width=_WIDE)).maximum <= out.width:
            break
    return shown
