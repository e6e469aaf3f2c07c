"""How logs look: lines for a person on a terminal, JSON lines for everything else; always on stderr.

What libraries log through the standard library (asyncio, aiohttp) goes the same way. Tracebacks name files
and lines and never the values of variables: those are other people's requests and keys.
"""

import logging
import sys

import structlog


def configure_logs(level: str) -> None:
    """Log what is at least as urgent as `level`, from now on."""
    for_person = sys.stderr.isatty()
    without_values = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if for_person else "iso", utc=not for_person),
    ]
    render: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if for_person
        else [structlog.processors.ExceptionRenderer(without_values), structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
