"""Files of traffic to be read, and logs as the programs themselves document them."""

import gzip
from pathlib import Path

APACHE = (
    '10.0.0.1 - frank [13/Jul/2025:09:30:{second:02d} -0400] "POST /v1/completions HTTP/1.1" {status} 2326 '
    '"-" "curl/8.5" {duration}'
)

# The examples of Envoy's documentation (configuration/observability/access_log, "Default Format String") and
# of Istio's in its default text format.
ENVOY = (
    '[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" '
    '"nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"'
)
ISTIO = (
    '[2022-10-23T20:38:15.413Z] "GET / HTTP/1.1" {status} {flags} via_upstream - "-" 0 37 {duration} 0 "-" '
    '"curl/7.35.0" "3ce3e159-9dba-4617-9e85-feb1106a682c" "nginx" "" inbound|80|| '
    "outbound_.80_._.nginx.default.svc.cluster.local default"
)

# The example of HAProxy's configuration manual, section 8.2.3.
HAPROXY = (
    "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in "
    'static/srv1 {timers} {status} 2750 - - ---- 1/1/1/1/0 0/0 {{1wt.eu}} {{}} "GET /index.html HTTP/1.1"'
)


def written(path: Path, *lines: str) -> Path:
    """Write lines to a file, packed if its name ends in .gz."""
    text = "\n".join(lines) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def apache(*durations: object, status: int = 200) -> list[str]:
    """Return lines of Apache, a second apart."""
    return [
        APACHE.format(second=number, status=status, duration=duration)
        for number, duration in enumerate(durations)
    ]
