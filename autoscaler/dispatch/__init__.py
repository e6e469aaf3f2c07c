"""The request path, deciding only: events in, actions out, time passed in."""

from autoscaler.dispatch.admission import QueueOptions
from autoscaler.dispatch.dispatcher import Dispatcher
from autoscaler.dispatch.options import DispatchOptions
from autoscaler.dispatch.priority_class import DEFAULT_CLASSES, PriorityClass

__all__ = ["DEFAULT_CLASSES", "DispatchOptions", "Dispatcher", "PriorityClass", "QueueOptions"]
