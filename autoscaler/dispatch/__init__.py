"""The request path, deciding only: events in, actions out, time passed in."""

from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.dispatcher import Dispatcher

__all__ = ["Dispatcher", "QueueOptions"]
