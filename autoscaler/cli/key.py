"""`autoscaler key new`: a key for a tenant, shown once, and the line for the file of tenants."""

from typing import Annotated

import typer

from autoscaler.proxy.tenants.key import digest_of, new_key

key_commands = typer.Typer(name="key", help="Keys of tenants.", no_args_is_help=True)


@key_commands.callback()
def _keys() -> None:
    """Make keys of tenants."""


@key_commands.command()
def new(
    tenant: Annotated[str, typer.Argument(help="Whose it will be, for the text printed.")] = "NAME",
) -> None:
    """Make a key.

    The key itself is printed on standard output, and kept nowhere: give it to the tenant. What belongs into
    the file of tenants is its digest, printed on standard error.
    """
    key = new_key()
    typer.echo(key)
    typer.echo(
        f"\nThis is shown once. In the file of tenants (tenants.keys_file):\n\n"
        f"tenants:\n  {tenant}:\n    keys: [{digest_of(key)}]",
        err=True,
    )
