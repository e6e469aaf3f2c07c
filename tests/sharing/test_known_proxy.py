"""What a controller knows of one proxy: how long it has been asked in vain."""

from autoscaler.sharing.known_proxy import KnownProxy
from autoscaler.sharing.message import SharesHeld


def test_time_in_which_nobody_asked_is_no_silence():
    proxy = KnownProxy(0.0)
    proxy.said(SharesHeld(), "x-1", confirms=False)
    proxy.said_nothing(400.0, refused=False)  # the first question since, after this controller stood still
    assert proxy.silent_since == 400.0
    proxy.said_nothing(400.5, refused=False)
    assert proxy.silent_since == 400.0


def test_one_that_never_answered_is_silent_since_it_was_listed():
    proxy = KnownProxy(5.0)
    proxy.said_nothing(6.0, refused=False)
    assert (proxy.silent_since, proxy.was_heard) == (5.0, False)
