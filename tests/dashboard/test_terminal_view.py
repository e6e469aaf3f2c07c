"""The terminal view says the essential facts at any size, with and without colour."""

import io
import math
import re
from itertools import pairwise

import pytest
from rich.console import Console
from rich.screen import Screen

from autoscaler.dashboard.past import TimeAxis
from autoscaler.dashboard.pool_words import replicas_in_words
from autoscaler.dashboard.terminal import plain_lines, view
from autoscaler.domain import Outcome
from autoscaler.telemetry.status import (
    DisagreementStatus,
    ForecastStatus,
    GpuStatus,
    ObjectiveStatus,
    OccupancyStatus,
    OrdersStatus,
    ReplicasStatus,
    SignalStatus,
    SlotsStatus,
    SubstitutionStatus,
    TokensStatus,
    TroubleStatus,
    WaitsStatus,
)
from tests.telemetry.status_examples import WALL_TIME, a_pool, a_status


def page(history, width=80, height=24, *, colour=False, **options):
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor" if colour else None,
    )
    console.print(Screen(view(history, **options)), end="")
    return console.file.getvalue()


def minutes_of(*pools, seconds=120, **changes):
    return [a_status(*pools, wall_time=WALL_TIME + second, **changes) for second in range(seconds)]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (120, 40), (200, 60)])
def test_the_essential_facts_are_on_the_page_at_any_size(width, height):
    text = page(minutes_of(), width, height)
    lines = text.splitlines()
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)
    for fact in [
        "chat",
        "8.25/s",
        "9.5/s in 20 s",
        "7–12/s",
        "4 of 6 ready, 2 starting, 1 draining",
        "69 % busy, band 60–75 %, 11/16 now",
        "2.4 s of 5 s  p50 20 ms  p95 800 ms",
        "99 % start within 5 s: 99.75 % did, of the last 1200 requests",
        "3 waiting, the first for 400 ms",
        "5123 completed, 2 rejected",
        "Scale up from 4 to 6 replicas: demand rises;",
        "63% busy expected.",
    ]:
        assert fact in re.sub(r"\s*│\s*\n\s*│\s*", " ", text), fact


def test_a_tall_terminal_shows_the_fleet_over_time_as_well():
    assert "replicas ready" not in page(minutes_of(), 80, 24)
    tall = page(minutes_of(), 120, 40)
    assert "replicas ready" in tall
    assert "100 %" in tall


def test_colour_adds_nothing_that_shapes_do_not_say():
    plain, coloured = page(minutes_of()), page(minutes_of(), colour=True)
    assert "\x1b[38;2" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == re.sub(r"\x1b\[[0-9;]*m", "", plain)


def test_of_what_is_not_known_the_page_says_nothing_wrong():
    fresh = a_pool(
        arrival_rate=math.nan,
        forecast=ForecastStatus(),
        replicas=ReplicasStatus(1, 1, 0, 0),
        slots=SlotsStatus(0, 0, 0),
        occupancy=OccupancyStatus(),
        queue_depth=0,
        oldest_wait=0.0,
        waits=WaitsStatus(),
        last_decision=None,
        requests={},
        acts=True,
    )
    text = page([a_status(fresh)])
    assert "nan" not in text
    assert "arrivals –" in text
    assert "– busy" in text
    assert "nobody came lately" in text
    assert "no decision yet" in text
    assert "nobody waits" in text


def test_a_program_that_decides_nothing_says_who_does():
    beside = a_status(a_pool(last_decision=None, acts=None))
    assert "decides nothing itself; ask its controller" in page([beside])
    assert plain_lines(beside)[0].endswith("decides nothing itself; ask its controller")


def test_failures_and_leaked_slots_are_told():
    text = page([a_status(a_pool(requests={Outcome.COMPLETED: 9, Outcome.FAILED: 1}, slots_leaked=2))])
    assert "9 completed, 1 failed, 2 slots leaked" in text


def test_tokens_and_servers_that_disagree_have_a_line_where_there_are_some():
    plain = page([a_status()])
    assert "tokens" not in plain
    tokens = TokensStatus(
        rate_in=340.0, rate_out=1200.0, estimated=0.0, first_token_p95=0.25, per_token_p50=0.018
    )
    found = DisagreementStatus("http://a:1", "foreign_load", 2, "holds 2 or more")
    pool = a_pool(tokens=tokens, disagreements=(found, found), replicas=ReplicasStatus(1, 0, 1, 0, asleep=2))
    text = page([a_status(pool)], width=120, height=30)
    assert "tokens     1200/s out, 340/s in; the first after 250 ms (p95), then each 18 ms" in text
    assert "ledger     foreign_load: http://a:1 holds 2 or more, and 1 more server" in text
    assert "1 of 1 ready, 2 asleep" in text
    assert "2 servers disagree" in plain_lines(a_status(pool))[0]


def test_who_stands_in_for_whom_is_told_while_it_does():
    idle = SubstitutionStatus("chat", "chat-l40s", 0.0, 7)
    assert "stands in" not in page([a_status(a_pool(substitutions=(idle,)))], width=120, height=30)
    by_other = SubstitutionStatus("chat", "chat-l40s", 0.67, 7)
    of_other = SubstitutionStatus("chat-h100", "chat", 0.43, 7)
    pool = a_pool(name="chat", substitutions=(by_other, of_other))
    text = page([a_status(pool)], width=120, height=30)
    assert "chat-l40s stands in for 67 % of the demand" in text
    assert "substitutes for chat-h100: 43 % of its demand" in text
    assert "substitutes for chat-h100" in plain_lines(a_status(pool))[0]


def test_replicas_that_were_ordered_and_have_not_come_are_shown():
    assert replicas_in_words(a_pool()).plain == "4 of 6 ready, 2 starting, 1 draining"
    late = a_pool(orders=OrdersStatus(late=3))
    assert replicas_in_words(late).plain == "4 of 6 ready, 2 starting, 3 late, 1 draining"


def test_the_wait_that_the_objective_is_about_comes_first():
    text = page([a_status(a_pool(objective=ObjectiveStatus(1.0, 0.95, 0.6, 0.75)))])
    assert "wait p95" in text
    assert "800 ms of 1 s  p50 20 ms  p99 2.4 s" in text


def test_another_pool_can_be_chosen_and_the_rest_have_a_line_each():
    pools = [a_pool(name=name) for name in ("chat", "embed", "rank")]
    text = page([a_status(*pools)], height=30, pool="embed")
    assert text.splitlines()[0].split()[0] == "embed"
    rest = [line for line in text.splitlines() if "replicas 4+2-1/6" in line]
    assert [line.split()[0] for line in rest] == ["chat", "rank"]


def test_many_pools_are_counted_and_not_all_listed():
    text = page([a_status(*[a_pool(name=f"pool-{n}") for n in range(12)])], height=40)
    assert "and 5 more pools" in text


def test_a_program_without_pools_is_shown_as_such():
    assert "no pools" in page([a_status(pools=())])


def test_a_note_stands_below_the_title():
    assert page([a_status()], note="Service times are emulated.").splitlines()[1].strip() == (
        "Service times are emulated."
    )


def test_arrivals_fill_the_past_and_the_forecast_reaches_into_the_future():
    text = page(minutes_of())
    ground = next(line for line in text.splitlines() if "2 min ago" in line)
    now = ground.index("┴")
    row_above = text.splitlines()[text.splitlines().index(ground) - 1]
    assert row_above[now] == "█"
    assert "█" not in row_above[now + 1 :]
    future = [re.sub(r"[^⠀-⣿░]", "", line[now + 1 :]) for line in text.splitlines()[3:12]]
    assert [set(row) for row in future if row] == [{"░"}, {"⣀"}, {"░"}, {"░"}]


def test_the_time_axis_moves_by_whole_columns():
    history = [a_status(wall_time=WALL_TIME + second) for second in range(100)]
    edges = [TimeAxis.over(history[:n], 20.0, 70).edges for n in (95, 96, 97, 98)]
    steps = {round(later[0] - earlier[0], 6) for earlier, later in pairwise(edges)}
    column = round(edges[0][1] - edges[0][0], 6)
    assert all(
        math.isclose(step % column, 0, abs_tol=1e-5) or math.isclose(step % column, column, abs_tol=1e-5)
        for step in steps
    )


def test_a_plain_line_holds_a_pool_in_short():
    (line,) = plain_lines(a_status())
    assert re.match(r"\d\d:\d\d:\d\d chat  8.25/s \(forecast 9.5/s\)  replicas 4\+2-1/6  busy 69 %", line)
    assert line.endswith("63% busy expected.")


def test_a_signal_that_is_not_trusted_is_told_first_and_by_its_fault():
    signals = (
        SignalStatus("engine.running", 3.0, "good"),
        SignalStatus("gpu.busy", math.nan, "learning"),
        SignalStatus("engine.cache", 87.0, "quarantined", "reads like a percentage; set unit: percent"),
    )
    text = page(minutes_of(a_pool(signals=signals)), 120, 40)
    assert "engine.cache not used: reads like a percentage; set unit: percent  engine.running 3" in text
    assert "1 signal not used" in plain_lines(a_status(a_pool(signals=signals)))[0]


def test_the_words_for_a_gpu_say_that_busy_is_not_full():
    gpus = (
        GpuStatus(0, "GPU", 0.93, 60 * 2**30, 80 * 2**30, 410.0, ("power_cap",)),
        GpuStatus(1, "GPU", math.nan, math.nan, math.nan, math.nan, lost="the GPU is lost"),
    )
    text = page(minutes_of(gpus=gpus), 140, 40)
    assert "0: 93 %, 60 of 80 GiB, power_cap  1: the GPU is lost" in text
    assert "time with any kernel running; how full, occupancy says" in text


REFUSED = TroubleStatus("platform", "https://10.0.0.9/scale cannot be reached: connection refused", 250.0)


def test_what_is_wrong_outside_is_on_the_page_and_in_the_line_with_its_age():
    pool = a_pool(troubles=(REFUSED, TroubleStatus("signals engine", "no answer within 5 s", 20.0)))
    said = "platform, for 4 min: https://10.0.0.9/scale cannot be reached: connection refused, and 1 more"
    assert said in page(minutes_of(pool), width=130)
    assert said in plain_lines(a_status(pool))[0]
    assert "trouble" not in page(minutes_of(), width=130)
