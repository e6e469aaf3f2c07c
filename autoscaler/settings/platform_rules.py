"""Rules within a platform: where its replicas are, what its commands must say, what it waits for."""

from autoscaler.settings.rules import each_once, in_order, in_plain_text, no_use, not_both
from autoscaler.settings.written import Rule, Written

_EACH_IS_ONE = "each server is one replica; remove it"


def base(url: str) -> str:
    """Return what is the same of two ways to write a base URL."""
    return url.rstrip("/").lower()


def _a_port_for_each(platform: Written) -> None:
    if not _names(platform, "{port}"):
        fault = "got no {port} in it, so every replica would listen on the same port"
        platform.note("command", fault, "", 'pass it on, as in ["server", "--port", "{port}"]')


def _a_gpu_for_each(platform: Written) -> None:
    gpus, names_gpu = platform["gpus"], _names(platform, "{gpu}")
    if names_gpu and not gpus:
        platform.note("gpus", "missing, and {gpu} is in the command", "", "list them, as in gpus: [0, 1]")
    if gpus and not names_gpu:
        fault = f"got {len(gpus)}, and {{gpu}} is neither in command nor in env: all would use the same one"
        platform.note("gpus", fault, "", 'add env: {CUDA_VISIBLE_DEVICES: "{gpu}"}')


def _names(platform: Written, placeholder: str) -> bool:
    return any(placeholder in word for word in (*platform["command"], *platform["env"].values()))


def _gpus_for_each(platform: Written) -> None:
    gpus, together = len(platform["gpus"]), platform["gpus_per_replica"]
    if gpus % together:
        allowed = f"what divides the {gpus} of gpus"
        platform.note("gpus_per_replica", f"got {together}", allowed, "list more GPUs or fewer")


def _says_how_many(platform: Written) -> None:
    if not any("{replicas}" in word for word in platform["scale"]):
        fault = "got no {replicas} in it, so it would not know how many"
        platform.note("scale", fault, "", 'pass it on, as in ["./scale.sh", "{replicas}"]')


def found_by(told_by: str, remedy: str) -> Rule:
    """Return the rule that `told_by`, urls or dns say where the replicas are; `told_by` may be nothing."""

    def rule(platform: Written) -> None:
        told = platform[told_by] if told_by else None
        if not (told or platform["urls"] or platform["dns"]):
            platform.note((), "nothing says where the replicas are", "", remedy)

    return rule


ONE_EACH = each_once("urls", _EACH_IS_ONE, base)
LOCAL_RULES: tuple[Rule, ...] = (
    _a_port_for_each,
    _a_gpu_for_each,
    _gpus_for_each,
    each_once("gpus", "to share a GPU, raise replicas_per_gpu"),
    in_order("restart_backoff_initial", "restart_backoff_max"),
    in_order("probe_interval", "hang_timeout", strict=True),
    in_order("cold_start_initial", "ready_timeout"),
)
REMOTE_RULES: tuple[Rule, ...] = (
    ONE_EACH,
    not_both("urls", "dns", "both say where the replicas are; give one of them"),
    in_order("cold_start_initial", "start_timeout"),
)
RETRY_IN_ORDER = in_order("retry_initial", "retry_max")
WEBHOOK_RULES: tuple[Rule, ...] = (
    *REMOTE_RULES,
    RETRY_IN_ORDER,
    found_by("status_url", "give status_url, which the receiver answers, or urls, or dns"),
    *no_use(("ca",), in_plain_text("url", "status_url"), "write https: there, or remove it"),
)
EXEC_RULES: tuple[Rule, ...] = (
    *REMOTE_RULES,
    RETRY_IN_ORDER,
    _says_how_many,
    found_by("status", "give a status command, or urls, or dns"),
)
KEDA_RULES: tuple[Rule, ...] = (
    *REMOTE_RULES,
    found_by("", "give dns, the URL of their headless service, or urls"),
)
