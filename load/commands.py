"""What `python -m load` can do."""

import typer

from load.demo.command import demo
from load.send import send

app = typer.Typer(
    help="Load for inference servers, and the demo.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(send)
app.command()(demo)


@app.callback()
def _commands() -> None:
    """Load for inference servers, and the demo."""
