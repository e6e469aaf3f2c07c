"""The platform `webhook`: each change of the wish is posted to somebody who acts."""

from autoscaler.platforms.webhook.options import WebhookOptions
from autoscaler.platforms.webhook.platform import Webhook

__all__ = ["Webhook", "WebhookOptions"]
