"""What `python -m load` can do."""

import typer

from load.demo.command import demo
from load.law.command import law
from load.send import send
from load.soak.command import soak
from load.trial.command import trial

app = typer.Typer(
    help="Load for inference servers, the demo, and long proofs.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(send)
app.command()(demo)
app.command()(law)
app.command()(soak)
app.command()(trial)


@app.callback()
def _commands() -> None:
    """Load for inference servers, the demo, and long proofs."""
