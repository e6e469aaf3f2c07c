"""How slots are divided between proxies: no replica is overbooked, nobody starves while another idles."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.scaling.divide import Divider, apportion
from autoscaler.scaling.proxy_share import ProxyShare, within_reach

REPLICAS = {"r1": 8, "r2": 8}


def told(proxies: dict[str, ProxyShare], wanted: dict[str, dict[str, int]]) -> dict[str, ProxyShare]:
    """Let everybody hear what it may have now, those that give up slots first."""
    return {
        name: proxy if proxy.is_silent else replace(proxy, share=wanted[name])
        for name, proxy in proxies.items()
    }


def totals(shares: dict[str, dict[str, int]]) -> dict[str, int]:
    return {name: sum(share.values()) for name, share in shares.items()}


class TestApportion:
    @given(
        st.dictionaries(st.text(max_size=3), st.floats(0, 1e6), min_size=1, max_size=9), st.integers(0, 999)
    )
    def test_gives_all_and_each_its_part_to_within_one(self, weights, total):
        given_ = apportion(weights, total)
        assert sum(given_.values()) == total
        whole = sum(weights.values())
        for name, weight in weights.items():
            part = total * weight / whole if whole else total / len(weights)
            assert abs(given_[name] - part) < 1 + 1e-6

    def test_nobody_gets_nothing_divided(self):
        assert apportion({}, 7) == {}


class TestWhatEachGets:
    def test_those_that_are_alike_get_the_same(self):
        shares = Divider(0.5).divide({"a": ProxyShare(), "b": ProxyShare()}, REPLICAS, 0.0)
        assert shares == {"a": {"r1": 4, "r2": 4}, "b": {"r1": 4, "r2": 4}}

    def test_one_alone_gets_all(self):
        assert Divider(0.5).divide({"a": ProxyShare()}, REPLICAS, 0.0) == {"a": REPLICAS}

    def test_what_is_needed_comes_first_and_the_rest_goes_by_the_root_of_the_load(self):
        busy = ProxyShare(busy={"r1": 4, "r2": 5}, share={"r1": 8, "r2": 8})
        shares = Divider(0.5).divide({"a": busy, "b": ProxyShare()}, REPLICAS, 0.0)
        assert totals(shares) == {"a": 9 + 5, "b": 2}  # 7 to spare, by 3 to 1

    def test_where_there_is_not_enough_all_wait_alike(self):
        proxies = {"a": ProxyShare(waiting=30), "b": ProxyShare(waiting=10)}
        assert totals(Divider(0.5).divide(proxies, REPLICAS, 0.0)) == {"a": 12, "b": 4}

    def test_however_long_a_queue_is_another_with_a_request_gets_a_slot(self):
        proxies = {"a": ProxyShare(waiting=500), "b": ProxyShare(waiting=1)}
        assert totals(Divider(0.5).divide(proxies, REPLICAS, 0.0)) == {"a": 15, "b": 1}

    def test_an_idle_slot_is_given_up_before_one_in_use(self):
        replicas = {f"r{number}": 1 for number in range(4)}
        a = ProxyShare(share={"r0": 1, "r1": 1}, busy={"r1": 1})
        b = ProxyShare(share={"r2": 1, "r3": 1}, busy={"r2": 1, "r3": 1}, waiting=3)
        assert Divider(0.5).divide({"a": a, "b": b}, replicas, 0.0)["a"] == {"r1": 1}

    def test_many_short_requests_use_few_slots_in_turn(self):
        proxies = {"a": ProxyShare(waiting=20), "b": ProxyShare(busy={"r1": 2, "r2": 2})}
        long = totals(Divider(0.5).divide(proxies, REPLICAS, 0.0, service_time=10.0))
        short = totals(Divider(0.5).divide(proxies, REPLICAS, 0.0, service_time=0.1))
        assert long == {"a": 13, "b": 3}
        assert short["a"] < 9

    def test_with_fewer_slots_than_proxies_whoever_has_requests_gets_them(self):
        proxies = {"a": ProxyShare(), "b": ProxyShare(waiting=2), "c": ProxyShare()}
        assert totals(Divider(0.5).divide(proxies, {"r": 1}, 0.0))["b"] == 1

    def test_one_that_leaves_gets_what_it_needs_and_nothing_to_spare(self):
        leaving = ProxyShare(waiting=1, busy={"r1": 2}, share={"r1": 4, "r2": 4}, is_leaving=True)
        shares = Divider(0.5).divide({"a": leaving, "b": ProxyShare()}, REPLICAS, 0.0)
        assert totals(shares) == {"a": 3, "b": 13}

    def test_one_that_leaves_gives_up_what_it_does_not_need_though_nobody_needs_it_now(self):
        leaving = ProxyShare(busy={"r1": 2}, share={"r1": 4, "r2": 4}, is_leaving=True)
        shares = Divider(0.5).divide({"a": leaving, "b": ProxyShare(share={"r1": 4, "r2": 4})}, REPLICAS, 0.0)
        assert shares == {"a": {"r1": 2}, "b": {"r1": 6, "r2": 8}}

    @pytest.mark.parametrize("names", [("r1", "r2"), ("r2", "r1")])
    def test_whoever_reaches_few_replicas_gets_its_slots_there(self, names):
        cut_off = ProxyShare(waiting=8, unreachable=frozenset({"r2"}))
        proxies = {"a": cut_off, "b": ProxyShare(waiting=8)}
        shares = Divider(0.5).divide(proxies, dict.fromkeys(names, 8), 0.0)
        assert shares == {"a": {"r1": 8}, "b": {"r2": 8}}

    def test_nobody_has_slots_to_spare_where_another_could_not_have_any_elsewhere(self):
        few, many = frozenset({"r1"}), frozenset()
        proxies = {"a": ProxyShare(3, unreachable=few), "b": ProxyShare(unreachable=many)}
        proxies["c"] = ProxyShare(unreachable=few)
        shares = Divider(0.5).divide(proxies, {"r1": 8, "r2": 4}, 0.0)
        assert shares == {"a": {"r2": 3}, "b": {"r1": 8}, "c": {"r2": 1}}

    def test_what_a_silent_one_holds_stays_with_it(self):
        silent = ProxyShare(share={"r1": 4, "r2": 4}, busy={"r1": 6}, is_silent=True)
        shares = Divider(0.5).divide({"a": silent, "b": ProxyShare(waiting=99)}, REPLICAS, 0.0)
        assert shares == {"b": {"r1": 2, "r2": 4}}

    def test_a_replica_that_one_cannot_reach_goes_to_the_others(self):
        cut_off = ProxyShare(waiting=20, unreachable=frozenset({"r2"}))
        shares = Divider(0.5).divide({"a": cut_off, "b": ProxyShare()}, REPLICAS, 0.0)
        assert shares["b"]["r2"] == 8
        assert "r2" not in shares["a"]

    def test_single_slots_stay_where_they_are(self):
        replicas = {f"r{number}": 1 for number in range(8)}
        mine = {f"r{number}": 1 for number in (1, 4, 5)}
        theirs = {name: 1 for name in replicas if name not in mine}
        a = ProxyShare(share=mine, busy=mine, waiting=1)
        shares = Divider(0.5).divide({"a": a, "b": ProxyShare(share=theirs)}, replicas, 0.0)
        assert all(shares["a"][name] for name in mine)


class TestWhenItIsDividedAnew:
    def test_small_changes_move_nothing(self):
        divider = Divider(0.5)
        proxies = {"a": ProxyShare(busy={"r1": 3}), "b": ProxyShare(busy={"r1": 2, "r2": 2})}
        first = divider.divide(proxies, REPLICAS, 0.0)
        proxies = told(proxies, first)
        proxies["a"] = replace(proxies["a"], busy={"r1": 3, "r2": 1})
        assert divider.divide(proxies, REPLICAS, 0.5) == first

    def test_whoever_would_wait_gets_more_at_once(self):
        divider = Divider(0.5)
        proxies = {"a": ProxyShare(), "b": ProxyShare()}
        proxies = told(proxies, divider.divide(proxies, REPLICAS, 0.0))
        proxies["a"] = replace(proxies["a"], busy={"r1": 4, "r2": 4}, waiting=1)
        assert totals(divider.divide(proxies, REPLICAS, 0.5))["a"] >= 12

    def test_the_slots_of_a_new_replica_are_divided(self):
        divider = Divider(0.5)
        proxies = {"a": ProxyShare(), "b": ProxyShare()}
        proxies = told(proxies, divider.divide(proxies, REPLICAS, 0.0))
        shares = divider.divide(proxies, REPLICAS | {"r3": 8}, 0.5)
        assert shares["a"]["r3"] == shares["b"]["r3"] == 4

    def test_a_replica_that_is_not_there_any_more_is_nobodys(self):
        divider = Divider(0.5)
        proxies = {"a": ProxyShare(share=REPLICAS)}
        assert divider.divide(proxies, {"r1": 8}, 0.0) == {"a": {"r1": 8}}

    def test_load_is_remembered_for_a_while(self):
        divider = Divider(0.5)
        proxies = {"a": ProxyShare(busy={"r1": 8}), "b": ProxyShare()}
        divider.divide(proxies, REPLICAS, 0.0)
        idle = {"a": ProxyShare(), "b": ProxyShare()}
        assert totals(divider.divide(idle, REPLICAS, 1.0))["a"] > 8
        assert totals(divider.divide(idle, REPLICAS, 1000.0))["a"] == 8


def needed(proxy: ProxyShare, replicas: dict[str, int]) -> int:
    """Slots for who waits there, and for who is served where it can have any."""
    reached = {name: count for name, count in replicas.items() if count and proxy.reaches_it(name)}
    wanted = proxy.waiting + sum(count for name, count in proxy.busy.items() if name in reached)
    return min(wanted, sum(reached.values()))


@st.composite
def situations(draw):
    replicas = {f"r{number}": draw(st.integers(0, 9)) for number in range(draw(st.integers(0, 5)))}
    counts = (
        st.dictionaries(st.sampled_from(sorted(replicas)), st.integers(0, 9)) if replicas else st.just({})
    )
    proxies = {
        f"p{number}": ProxyShare(
            waiting=draw(st.integers(0, 40)),
            share=draw(counts),
            busy=draw(counts),
            unreachable=draw(st.sets(st.sampled_from([*sorted(replicas), "x"])).map(frozenset)),
            is_leaving=draw(st.booleans()),
            is_silent=draw(st.booleans()),
        )
        for number in range(draw(st.integers(1, 5)))
    }
    return proxies, replicas


class TestWhatAlwaysHolds:
    @given(situations())
    def test_no_slot_is_given_twice_and_none_is_left_over(self, situation):
        proxies, replicas = situation
        shares = Divider(0.5).divide(proxies, replicas, 0.0)
        assert set(shares) == {name for name, proxy in proxies.items() if not proxy.is_silent}
        for replica, slots in replicas.items():
            reserved = sum(proxy.holds(replica) for proxy in proxies.values() if proxy.is_silent)
            given_ = [share.get(replica, 0) for share in shares.values()]
            reached = any(proxies[n].reaches_it(replica) for n in shares)
            assert min(given_, default=0) >= 0
            assert sum(given_) == (max(0, slots - reserved) if reached else 0)

    @given(situations())
    def test_nobody_gets_slots_of_a_replica_that_it_does_not_reach(self, situation):
        proxies, replicas = situation
        for name, share in Divider(0.5).divide(proxies, replicas, 0.0).items():
            assert all(proxies[name].reaches_it(replica) for replica, count in share.items() if count)

    @given(situations())
    def test_nobody_waits_while_another_has_slots_to_spare(self, situation):
        proxies, replicas = situation
        proxies = {
            name: replace(each, unreachable=frozenset(), is_silent=False) for name, each in proxies.items()
        }
        given_ = totals(Divider(0.5).divide(proxies, replicas, 0.0))

        needs = {name: needed(each, replicas) for name, each in proxies.items()}
        short = [name for name in proxies if given_[name] < needs[name]]
        idle = [name for name in proxies if given_[name] > max(1, needs[name])]
        assert not (short and idle)

    @given(situations())
    def test_nor_where_some_reach_fewer_replicas(self, situation):
        proxies, replicas = situation
        proxies = {name: replace(each, is_silent=False) for name, each in proxies.items()}
        shares = Divider(0.5).divide(proxies, replicas, 0.0)
        given_ = totals(shares)
        needs = {name: needed(each, replicas) for name, each in proxies.items()}
        for short in (name for name in proxies if given_[name] < needs[name]):
            for idle in (name for name in proxies if given_[name] > max(1, needs[name])):
                could = [r for r in replicas if shares[idle].get(r, 0) and proxies[short].reaches_it(r)]
                unused = [r for r in could if shares[idle][r] > proxies[idle].busy.get(r, 0)]
                assert not unused, (short, idle, shares)

    @given(situations())
    def test_what_was_divided_stays_divided(self, situation):
        proxies, replicas = situation
        divider = Divider(0.5)
        shares = divider.divide(proxies, replicas, 0.0)
        assert divider.divide(told(proxies, shares), replicas, 0.0) == shares


@pytest.mark.parametrize("seed", range(20))
def test_however_news_are_lost_no_replica_is_overbooked(seed):
    """Proxies that take requests, hear late or not at all, and leave, under a divider that hears late."""
    rng = Random(seed)
    replicas = {f"r{number}": rng.randint(1, 6) for number in range(4)}
    names = ["a", "b", "c"]
    truth = {name: ProxyShare() for name in names}
    known = dict(truth)
    divider = Divider(0.5)
    given_up = 0
    for step in range(400):
        for name in names:  # requests come and go
            busy = dict(truth[name].busy)
            for replica in replicas:
                room = truth[name].share.get(replica, 0) - busy.get(replica, 0)
                busy[replica] = busy.get(replica, 0) + rng.randint(-busy.get(replica, 0), max(0, room))
            truth[name] = replace(truth[name], busy=busy, waiting=rng.choice([0, 0, rng.randint(0, 20)]))
        for name in names:
            heard = rng.random() < 0.8
            known[name] = (
                replace(truth[name], is_silent=False) if heard else replace(known[name], is_silent=True)
            )
        wanted = divider.divide(known, replicas, step * 0.5)
        for name in sorted(wanted, key=lambda each: sum(wanted[each].values())):
            share = within_reach(wanted[name], name, known, replicas)
            fate = rng.choice(["heard", "heard", "lost", "answer lost"])
            given_up += sum(known[name].share.values()) > sum(share.values())
            if fate != "lost":
                truth[name] = replace(truth[name], share=share)
            if fate == "heard":
                known[name] = replace(truth[name], is_silent=False)
            else:  # nobody knows: it may have either
                either = {r: max(share.get(r, 0), known[name].share.get(r, 0)) for r in replicas}
                known[name] = replace(known[name], share=either, is_silent=True)
        for replica, slots in replicas.items():
            assert sum(proxy.holds(replica) for proxy in truth.values()) <= slots
    assert given_up  # it was no quiet story
