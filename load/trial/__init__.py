"""A whole fleet, its troubles, and whether its size stays right: every part a process of its own.

    load ─▶ sidecar + model server ─▶ Prometheus ─▶ two controllers ─▶ web hook ─▶ pairs start and end

`python -m load trial` runs sidecars beside emulated model servers, a real Prometheus that scrapes them, and
two controllers of which one leads. The load rises and falls; in between the leader is killed, a sidecar is
killed, and Prometheus is stopped, and is away while the load falls. What the fleet is asked to be is held
against what the load needs, which the trial knows and the program must find out.
"""
