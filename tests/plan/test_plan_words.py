"""Answers in sentences, as data, and as pictures."""

import importlib.util
import json
import math

import pytest

from autoscaler.plan.answer import answer
from autoscaler.plan.conflict import conflict_of
from autoscaler.plan.curve import curve_of
from autoscaler.plan.one_by_one import Impatient, OneByOne
from autoscaler.plan.plain import answer_as_plain
from autoscaler.plan.pools import answer_pools, merged_question
from autoscaler.plan.question import Band, Question, WaitBound
from autoscaler.plan.together import Batches
from autoscaler.plan.words import alternatives, conflict, duration, percent, recommendation
from autoscaler.queueing.batch_line import BatchLine
from autoscaler.queueing.impatience import FixedPatience


def asked(rate: float = 1.0, **more) -> Question:
    return Question(rate, OneByOne(10.0), **{"price": 2.5, "currency": "$", **more})


@pytest.mark.parametrize(
    "found, sentence",
    [
        (
            asked(),
            "15 servers: the wait objective binds. p99 wait 4.6 s, within 5 s; with one fewer 7.1 s. "
            "66.7 % busy, inside the band of 60–75 %.",
        ),
        (
            asked(wait=WaitBound(60.0, 0.999)),
            "14 servers: the utilization band binds. 71.4 % busy, inside the band of 60–75 %; "
            "one fewer would be 76.9 % busy. p99.9 wait 12.9 s, within 60 s.",
        ),
        (
            asked(replicas_max=9),
            "9 servers: no more are allowed; 15 are needed to keep the wait and not be too busy. "
            "More comes than they can serve: the queue grows.",
        ),
        (
            asked(replicas_min=18),
            "18 servers: no fewer are allowed; 15 would keep the wait and not be too busy. "
            "p99 wait 582 ms, within 5 s. 55.6 % busy, below the band of 60–75 %.",
        ),
    ],
)
def test_the_recommendation_names_what_binds(found, sentence):
    assert recommendation(answer(found)) == sentence


def test_alternatives_say_what_they_cost_and_what_they_miss():
    assert alternatives(answer(asked())) == [
        "14 servers: $2.50 an hour (7 %) less, 71.4 % busy, p99 wait 7.1 s: misses the wait objective",
        "16 servers: $2.50 an hour (7 %) more, 62.5 % busy, p99 wait 2.9 s",
    ]


def test_a_conflict_comes_with_numbers_and_four_remedies():
    question = asked(0.3)
    problem, pool, batch, fill, accept = conflict(conflict_of(answer(question)), question)
    assert problem == (
        "Band and wait exclude one another: p99 within 5 s takes 7 servers, which are 42.9 % busy; "
        "for 60 %, there could be no more than 5."
    )
    assert pool == "Pool: 3 such pools as one need 14 servers instead of 21, and keep both."
    assert batch.startswith("Batch: ")
    assert fill == "Fill: 1.2 slots kept busy with work that can wait (17 % of the fleet) bring it to 60 %."
    assert accept == (
        "Accept: 42.9 % busy, which costs $5.00 an hour more than 5 servers, the most that are busy enough; "
        "or a p99 wait of 15.8 s with those."
    )


def test_batching_is_no_remedy_for_what_is_batched():
    question = Question(30.0, Batches(BatchLine(0.010, 0.001), 16), WaitBound(0.1))
    remedies = conflict(conflict_of(answer(question)), question)
    assert not any(remedy.startswith("Batch") for remedy in remedies)


def test_those_who_give_up_are_told():
    found = answer(Question(1.0, Impatient(10.0, FixedPatience(5.0)), replicas_max=10))
    assert "give up" in recommendation(found)


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.0, "0"),
        (0.0001, "0.1 ms"),
        (0.00164, "1.6 ms"),
        (0.228, "228 ms"),
        (4.64, "4.6 s"),
        (600, "10 min"),
        (math.inf, "no end"),
    ],
)
def test_waits_are_said_as_people_do(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    "fraction, words",
    [(0.0, "0 %"), (1e-9, "~0 %"), (0.004, "0.4 %"), (0.67, "67 %"), (0.997, "99.7 %"), (1.0, "100 %")],
)
def test_fractions_are_finer_near_their_ends(fraction, words):
    assert percent(fraction) == words


# --- as data


def test_the_data_has_the_keys_that_programs_rely_on():
    plain = json.loads(json.dumps(answer_as_plain(answer(asked())), allow_nan=False))
    assert (plain["recommended"], plain["binding"]) == (15, "wait")
    keys = {
        "servers",
        "utilization",
        "probability_of_wait",
        "wait_mean",
        "wait_p95",
        "wait_p99",
        "in_band",
        "cost_per_hour",
    }
    assert all(keys <= row.keys() for row in plain["rows"])
    assert next(row["cost_per_hour"] for row in plain["rows"] if row["servers"] == 15) == 37.5


def test_a_wait_without_end_is_null():
    plain = json.loads(json.dumps(answer_as_plain(answer(asked(replicas_max=9))), allow_nan=False))
    assert plain["rows"][0]["wait_mean"] is None


# --- several pools


def test_one_pool_for_all_shares_spare_servers():
    pools = answer_pools({"a": asked(0.5), "b": asked(0.5)})
    assert pools.replicas == 2 * answer(asked(0.5)).recommended.replicas
    assert pools.merged.recommended.replicas == answer(asked(1.0)).recommended.replicas < pools.replicas
    assert pools.cost_per_hour == pools.replicas * 2.5


def test_short_requests_may_wait_longer_among_long_ones():
    short = Question(5.0, OneByOne(1.0), WaitBound(5.0))
    pools = answer_pools({"short": short, "long": Question(0.2, OneByOne(10.0), WaitBound(5.0))})
    assert "short" in pools.hurt


@pytest.mark.parametrize(
    "other",
    [
        Question(1.0, Batches(BatchLine(0.01, 0.001), 4)),
        Question(1.0, OneByOne(10.0, slots_per_replica=2)),
        Question(1.0, OneByOne(10.0), WaitBound(1.0, None)),
        Question(1.0, OneByOne(10.0), band=Band(0.8, 0.9)),
        Question(1000.0, OneByOne(0.001)),  # its services and those of 10 s together vary too much
    ],
)
def test_pools_that_cannot_be_mixed_are_not(other):
    assert merged_question([Question(1.0, OneByOne(10.0)), other]) is None


# --- as pictures


def test_a_curve_reaches_from_the_first_size_that_can_do_the_work_to_beyond_the_band():
    curve = curve_of(answer(asked()))
    assert curve.servers[0] == 11
    assert curve.servers[-1] >= 17
    assert curve.recommended.servers in curve.servers
    assert curve.band == pytest.approx((10 / 0.75, 10 / 0.60))
    assert curve.mark == "15 servers · p99 4.6 s · $37.50 an hour"
    assert 5.0 < curve.wait_top < 42.0
    assert curve.objective_in_sight


IN_BATCHES = Question(15_000.0, Batches(BatchLine(0.005, 0.0005), 64))


def test_an_objective_far_above_all_waits_does_not_flatten_them():
    curve = curve_of(answer(IN_BATCHES))
    assert curve.wait_top < 0.1
    assert not curve.objective_in_sight


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("question", [asked(0.1), asked(), asked(5000.0), asked(replicas_max=9), IN_BATCHES])
@pytest.mark.parametrize("form", ["png", "html"])
def test_every_answer_can_be_drawn(question, form, tmp_path):
    pytest.importorskip({"png": "matplotlib", "html": "plotly"}[form])
    write = {
        "png": ("picture_png", "write_png", b"\x89PNG"),
        "html": ("picture_html", "write_html", b"<!doctype html>"),
    }[form]
    module = importlib.import_module(f"autoscaler.plan.{write[0]}")
    path = tmp_path / f"plan.{form}"
    getattr(module, write[1])(curve_of(answer(question)), path)
    assert path.read_bytes().startswith(write[2])
