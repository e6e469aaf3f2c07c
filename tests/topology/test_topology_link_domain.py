from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.topology import link_domain
from autoscaler.topology.link_domain import closest_gpus, link_domains
from autoscaler.topology.machine import Gpu, Link, Machine, MemoryNode, PciPath

NODE = MemoryNode(0, frozenset(range(8)), 0)


def a_machine(number, links):
    return Machine((NODE,), gpus=tuple(map(Gpu, range(number))), gpu_links=links)


def pairs_by_nvlink():
    """Four GPUs: 0-1 and 2-3 have NVLink, all others go between the sockets."""
    links = {pair: Link(PciPath.SYSTEM) for pair in combinations(range(4), 2)}
    return a_machine(4, links | {(0, 1): Link(PciPath.HOST_BRIDGE, 4), (2, 3): Link(PciPath.HOST_BRIDGE, 4)})


def test_nvlink_makes_the_domains_where_there_is_any():
    assert link_domains(pairs_by_nvlink()) == ({0, 1}, {2, 3})


def test_a_chain_of_nvlinks_is_one_domain():
    chain = {(a, b): Link(PciPath.NODE, 1 if b == a + 1 else 0) for a, b in combinations(range(4), 2)}
    assert link_domains(a_machine(4, chain)) == ({0, 1, 2, 3},)


def test_without_nvlink_a_domain_is_what_does_not_cross_the_sockets():
    links = {(0, 1): Link(PciPath.NODE), (0, 2): Link(PciPath.SYSTEM), (1, 2): Link(PciPath.SYSTEM)}
    assert link_domains(a_machine(3, links)) == ({0, 1}, {2})


def test_gpus_without_nvlink_do_not_join_those_that_have_it_but_each_other():
    links = {pair: Link(PciPath.SWITCH) for pair in combinations(range(4), 2)}
    mixed = a_machine(4, links | {(0, 1): Link(PciPath.SWITCH, 4)})
    assert link_domains(mixed) == ({0, 1}, {2, 3})


def test_what_nobody_knows_separates_nothing():
    assert link_domains(a_machine(2, {})) == ({0, 1},)


def test_the_closest_pair_is_the_one_with_nvlink():
    assert closest_gpus(pairs_by_nvlink(), 2, [1, 2, 3]) == (2, 3)


def test_more_nvlinks_are_closer():
    links = {(0, 1): Link(PciPath.NODE, 2), (0, 2): Link(PciPath.NODE, 4), (1, 2): Link(PciPath.NODE, 2)}
    assert closest_gpus(a_machine(3, links), 2, range(3)) == (0, 2)


def test_among_equals_the_first_are_taken():
    assert closest_gpus(pairs_by_nvlink(), 2, range(4)) == (0, 1)
    assert closest_gpus(pairs_by_nvlink(), 1, [3, 2]) == (2,)


@pytest.mark.parametrize("count", [0, 3])
def test_more_than_there_are_cannot_be_chosen(count):
    with pytest.raises(ValueError, match="need 1 <= count <= 2"):
        closest_gpus(pairs_by_nvlink(), count, [0, 1])


def test_with_too_many_sets_to_compare_domains_are_still_found(monkeypatch):
    monkeypatch.setattr(link_domain, "SETS_MAX", 2)
    assert closest_gpus(pairs_by_nvlink(), 2, [1, 2, 3]) == (2, 3)


@given(
    st.dictionaries(
        st.sampled_from(list(combinations(range(6), 2))),
        st.builds(Link, st.sampled_from([None, *PciPath]), st.integers(0, 4)),
    ),
    st.integers(2, 6),
)
def test_no_other_set_has_a_closer_farthest_pair(links, count):
    machine = a_machine(6, links)
    farthest = [
        max(machine.link(*pair).cost for pair in combinations(chosen, 2))
        for chosen in combinations(range(6), count)
    ]
    chosen = closest_gpus(machine, count, range(6))
    assert max(machine.link(*pair).cost for pair in combinations(chosen, 2)) == min(farthest)


@given(
    st.integers(1, 6),
    st.dictionaries(
        st.sampled_from(list(combinations(range(6), 2))),
        st.builds(Link, st.sampled_from([None, *PciPath]), st.integers(0, 2)),
    ),
)
def test_every_gpu_is_in_exactly_one_domain(number, links):
    domains = link_domains(a_machine(number, links))
    assert sorted(gpu for domain in domains for gpu in domain) == list(range(number))
