"""What was asked for and has not come."""

from autoscaler.cold_starts import ColdStarts
from autoscaler.remote_fleet import Orders


def orders(patience=600.0):
    starts = ColdStarts(60.0)
    return Orders(starts, patience), starts


def test_what_lacks_is_starting_until_it_comes_and_its_start_is_measured():
    open_orders, starts = orders()
    open_orders.settle(desired=3, ready=1, now=100.0)
    assert open_orders.starting(100.0) == 2
    open_orders.came(now=140.0)
    open_orders.settle(desired=3, ready=2, now=140.0)
    assert open_orders.starting(140.0) == 1
    assert starts.mean == 40.0


def test_the_oldest_order_is_met_first():
    open_orders, starts = orders()
    open_orders.settle(desired=1, ready=0, now=0.0)
    open_orders.settle(desired=2, ready=0, now=50.0)
    open_orders.came(now=60.0)
    open_orders.came(now=60.0)
    assert (starts.mean, starts.p90) == (35.0, 60.0)


def test_the_newest_orders_are_called_off_first():
    open_orders, starts = orders()
    open_orders.settle(desired=1, ready=0, now=0.0)
    open_orders.settle(desired=3, ready=0, now=50.0)
    open_orders.settle(desired=1, ready=0, now=55.0)
    open_orders.came(now=60.0)
    assert starts.mean == 60.0


def test_an_order_that_does_not_come_is_not_counted_on_and_not_placed_twice():
    open_orders, _ = orders(patience=100.0)
    open_orders.settle(desired=2, ready=0, now=0.0)
    assert (open_orders.starting(99.0), open_orders.overdue(99.0)) == (2, 0)
    open_orders.settle(desired=2, ready=0, now=100.0)
    assert (open_orders.starting(100.0), open_orders.overdue(100.0)) == (0, 2)


def test_an_order_that_is_overdue_has_waited_for_supply_and_measures_no_start():
    open_orders, starts = orders(patience=100.0)
    open_orders.settle(desired=2, ready=0, now=0.0)
    open_orders.came(now=3000.0)
    assert not starts.is_measured
    assert open_orders.overdue(3000.0) == 1


def test_a_replica_that_nobody_ordered_measures_nothing():
    open_orders, starts = orders()
    open_orders.came(now=10.0)
    assert starts.mean == 60.0


def test_what_was_let_go_is_leaving_until_it_is_gone_and_what_others_add_is_not():
    open_orders, _ = orders(patience=100.0)
    open_orders.let_go(2, now=0.0)
    open_orders.settle(desired=3, ready=5, now=0.0)
    assert open_orders.leaving(0.0) == 2
    open_orders.settle(desired=3, ready=4, now=5.0)
    open_orders.settle(desired=3, ready=6, now=6.0)  # somebody scaled by hand
    assert open_orders.leaving(6.0) == 1
    assert open_orders.leaving(100.0) == 0  # nobody takes it away
