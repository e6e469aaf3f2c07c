from itertools import combinations

from autoscaler.topology.machine import Gpu, Link, Machine, MemoryNode, PciPath
from autoscaler.topology.placement import Mistake, ServerProcess, misplaced

FIRST, SECOND = frozenset(range(16)), frozenset(range(16, 32))
NOWHERE_ELSE = {pair: Link(PciPath.SYSTEM) for pair in combinations(range(4), 2)}
NVLINKS = {(0, 1): Link(PciPath.NODE, 4), (2, 3): Link(PciPath.NODE, 4)}
MACHINE = Machine(
    nodes=(MemoryNode(0, FIRST, 0), MemoryNode(1, SECOND, 0)),
    sockets=(FIRST, SECOND),
    gpus=tuple(Gpu(index, node=index // 2, cpus=(FIRST, SECOND)[index // 2]) for index in range(4)),
    gpu_links=NOWHERE_ELSE | NVLINKS,
)
EVERYWHERE = FIRST | SECOND


def a_process(pid=7, gpus=(0,), cpus=EVERYWHERE, memory_nodes=frozenset({0, 1}), replica="a"):
    return ServerProcess(pid, "server", gpus, cpus, memory_nodes, replica)


def test_a_server_held_on_the_other_socket_is_found_with_the_command_that_mends_it():
    (found,) = misplaced(MACHINE, [a_process(gpus=(2,), cpus=frozenset(range(4)))])
    assert found.mistake is Mistake.WRONG_SOCKET
    assert str(found) == (
        "process 7 (server): is held on cores 0-3 (socket 0), but its GPU 2 is next to cores 16-31 "
        "(socket 1); start it with numactl --cpunodebind=1 --preferred=1"
    )


def test_a_server_that_may_run_anywhere_or_partly_near_is_left_to_the_kernel():
    assert misplaced(MACHINE, [a_process(gpus=(2,)), a_process(gpus=(2,), cpus=frozenset({3, 17}))]) == []


def test_a_server_that_is_held_on_the_right_socket_is_right():
    assert misplaced(MACHINE, [a_process(gpus=(3,), cpus=frozenset({17}))]) == []


def test_memory_that_may_only_come_from_the_far_node_is_found():
    (found,) = misplaced(MACHINE, [a_process(gpus=(2,), memory_nodes=frozenset({0}))])
    assert found.mistake is Mistake.FAR_MEMORY
    assert "cpuset.mems" in found.text


def test_what_is_not_known_is_not_wrong():
    dark = Machine(MACHINE.nodes, gpus=(Gpu(0),))
    assert misplaced(dark, [a_process(cpus=frozenset({1}), memory_nodes=frozenset({1}))]) == []
    assert misplaced(MACHINE, [a_process(cpus=frozenset(), memory_nodes=frozenset())]) == []


def test_the_workers_of_one_replica_must_share_a_link_domain():
    workers = [a_process(7, gpus=(1,)), a_process(8, gpus=(2,))]
    (found,) = misplaced(MACHINE, workers)
    assert found.mistake is Mistake.SPLIT_REPLICA
    assert str(found) == (
        "a: its GPUs 1-2 do not share a link domain: between 1 and 2 the path is SYS; "
        "give it 0-1 or 2-3 instead"
    )


def test_two_replicas_may_be_far_apart():
    assert misplaced(MACHINE, [a_process(7, (1,), replica="a"), a_process(8, (2,), replica="b")]) == []


def test_where_no_domain_is_large_enough_nothing_better_is_promised():
    (found,) = misplaced(MACHINE, [a_process(gpus=(0, 1, 2))])
    assert "no domain of this machine has 3 GPUs" in found.text
