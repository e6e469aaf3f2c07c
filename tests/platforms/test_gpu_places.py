"""GPUs of a replica that are close to each other, and cores that are close to its GPUs."""

import os
from itertools import combinations
from pathlib import Path

import psutil
import pytest

from autoscaler.platforms.local_process import platform as local_platform
from autoscaler.platforms.local_process.gpu_places import cores_of, grouped, held_on
from autoscaler.platforms.local_process.options import LocalOptions
from autoscaler.topology.machine import Gpu, Link, Machine, MemoryNode, PciPath
from autoscaler.topology.read_machine import Found

MINE = frozenset(os.sched_getaffinity(0))
FIRST_CORE = frozenset({min(MINE)})
REST = MINE - FIRST_CORE or FIRST_CORE


def a_machine(cores=(FIRST_CORE, REST)):
    """Four GPUs; NVLink joins 0 with 2 and 1 with 3, each pair on its own memory node."""
    links = {pair: Link(PciPath.SYSTEM) for pair in combinations(range(4), 2)}
    links |= {(0, 2): Link(PciPath.NODE, 4), (1, 3): Link(PciPath.NODE, 4)}
    gpus = tuple(Gpu(index, uuid=f"GPU-{index}", node=index % 2, cpus=cores[index % 2]) for index in range(4))
    return Machine((MemoryNode(0, MINE, 0),), gpus=gpus, gpu_links=links)


def options(**given):
    plain = {"gpus": ("0", "1", "2", "3"), "env": {"CUDA_VISIBLE_DEVICES": "{gpu}"}}
    return LocalOptions(("server", "--port", "{port}"), Path("state"), **plain | given)


def test_gpus_that_nvlink_joins_work_on_one_replica():
    placed = grouped(options(gpus_per_replica=2), a_machine())
    assert placed.gpus == ("0,2", "1,3")
    assert [placed.gpu_of(place) for place in range(3)] == ["0,2", "1,3", "0,2"]
    assert placed.places == options(gpus_per_replica=2).places == 2


def test_gpus_may_be_named_by_their_identifiers():
    names = ("GPU-3", "GPU-2", "GPU-1", "GPU-0")
    assert grouped(options(gpus=names, gpus_per_replica=2), a_machine()).gpus == (
        "GPU-2,GPU-0",
        "GPU-3,GPU-1",
    )


def test_what_the_driver_does_not_know_is_put_together_as_listed():
    assert grouped(options(gpus_per_replica=2), Machine(())).gpus == ("0,1", "2,3")


def test_single_gpus_stay_as_they_are():
    assert grouped(options(), a_machine()) == options()


def test_gpus_that_do_not_come_out_even_are_refused():
    with pytest.raises(ValueError, match="gpus lists 4, which gpus_per_replica 3 does not divide"):
        options(gpus_per_replica=3)


several_cores = pytest.mark.skipif(len(MINE) < 2, reason="needs two cores")


@several_cores
def test_a_replica_is_held_on_the_cores_next_to_its_gpus():
    placed = grouped(options(gpus_per_replica=2), a_machine())
    assert cores_of(placed, a_machine()) == {"0,2": FIRST_CORE, "1,3": REST}


@several_cores
def test_only_cores_that_this_program_may_use_count():
    elsewhere = frozenset({max(MINE) + 1, max(MINE) + 2})
    assert cores_of(options(), a_machine((FIRST_CORE | elsewhere, elsewhere))) == {
        "0": FIRST_CORE,
        "2": FIRST_CORE,
    }


def test_where_any_core_will_do_none_is_chosen():
    assert cores_of(options(), a_machine((MINE, MINE))) == {}
    assert cores_of(options(), a_machine((frozenset(), frozenset()))) == {}
    assert cores_of(options(pin=False), a_machine()) == {}


def test_without_cores_the_command_stays_as_it_is():
    assert held_on(frozenset(), ["server", "--port", "1"]) == ["server", "--port", "1"]


@several_cores
async def test_a_real_replica_runs_on_the_cores_next_to_its_gpu(local, monkeypatch):
    monkeypatch.setattr(local_platform, "read_machine", lambda tag: Found(a_machine()))
    platform, listener = await local.start(gpus=("0", "1"), env={"CUDA_VISIBLE_DEVICES": "{gpu}"})
    await platform.scale_to(2)
    await listener.until(lambda: len(listener.ready) == 2)
    by_gpu = {view.gpu: set(psutil.Process(view.pid).cpu_affinity()) for view in platform.replicas()}
    assert by_gpu == {"0": FIRST_CORE, "1": REST}
