"""Receivers that answer what no receiver should, and events that nobody wants any more."""

import asyncio
import json
from random import Random

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.errors import PlatformUnavailable
from autoscaler.platforms.webhook import Webhook, WebhookOptions
from autoscaler.platforms.webhook.receiver import Accepted, Declined, Failed, Receiver
from autoscaler.remote_fleet import RemoteFleetOptions
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener
from tests.fakes.webhook_receiver import FakeReceiver

A = "http://127.0.0.1:9001"


def options(receiver, folder, **given):
    fleet = RemoteFleetOptions(state_dir=folder, urls=(A,), probe_interval=0.001)
    given = {"retry_initial": 0.001, "retry_max": 0.002, "timeout": 5.0, **given}
    return WebhookOptions(pool="chat", url=receiver.url, fleet=fleet, **given)


@pytest.fixture
async def start(tmp_path):
    """Starts a platform on a folder that later ones share; each ends before the next one begins."""
    running = []

    async def stop():
        while running:
            await running.pop().stop()

    async def started(receiver, **given):
        await stop()
        chosen = options(receiver, tmp_path, **given)
        platform = Webhook(chosen, ScriptedServers(A), VirtualClock(wall_time=1.75e9), Random(1))
        running.append(platform)
        await platform.start(FakeReplicaListener())
        return platform

    yield started
    await stop()


@pytest.fixture
async def answered(tmp_path):
    """What comes of one event, by the answer that it gets."""

    async def post(answer=202, said=None, **given):
        async with FakeReceiver() as fake:
            fake.answers, fake.said = [answer], said
            receiver = Receiver(options(fake, tmp_path, **given))
            try:
                return await receiver.post(json.dumps({"id": "1", "data": {"desired": 1}}).encode(), {})
            finally:
                await receiver.close()

    return post


@pytest.mark.parametrize("status", [401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504, 599])
async def test_what_may_pass_is_sent_again(answered, status):
    assert isinstance(await answered(status), Failed)


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308, 400, 405, 410, 413, 415, 422])
async def test_what_will_not_pass_gives_the_event_up(answered, status):
    assert isinstance(await answered(status), Declined)


@pytest.mark.parametrize("status", [401, 403])
async def test_who_is_not_believed_is_told_where_to_look(answered, tmp_path, status):
    signed = await answered(status, secret_file=tmp_path / "secret")
    assert f"answered {status} as the test wants" in signed.why
    assert f"; is its secret one of those in {tmp_path}/secret, with whsec_" in signed.why
    unsigned = await answered(status)
    assert unsigned.why.endswith("; events are not signed: name the receiver's secret in secret_file")


async def test_a_question_that_is_not_let_in_says_that_it_is_not_signed(tmp_path):
    async with FakeReceiver() as fake:
        fake.fleet_status = 401
        receiver = Receiver(options(fake, tmp_path, status_url=fake.status_url))
        with pytest.raises(PlatformUnavailable, match="answered 401; this question is not signed"):
            await receiver.status()
        await receiver.close()


DATE = "Sun, 15 Jun 2025 15:06:40 GMT"
SOON = "Sun, 15 Jun 2025 15:08:10 GMT"


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry-After": "90"}, 90.0),
        ({"Retry-After": SOON, "Date": DATE}, 90.0),
        ({"Retry-After": DATE, "Date": SOON}, 0.0),
        ({"Retry-After": "999999999"}, 3600.0),
        ({"Retry-After": "9" * 400}, 3600.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "soon"}, 0.0),
        ({"Retry-After": SOON, "Date": "today"}, 0.0),
        ({"Retry-After": f"Nov {'9' * 20} 1994 08.49.37 GMT 06", "Date": DATE}, 0.0),
        ({}, 0.0),
    ],
)
async def test_patience_is_had_for_seconds_or_until_a_date_by_the_clock_of_the_receiver(
    answered, headers, pause
):
    assert (await answered((429, headers))).retry_after == pause


@pytest.mark.parametrize("said", [b"", b"<html>ok</html>", b"\xff\xfe", b'{"ready": 7}', b"x" * 6_000_000])
async def test_any_answer_that_says_yes_is_a_yes(answered, said):
    assert await answered(said=said) == Accepted(None)


async def test_an_answer_that_does_not_end_is_none(answered):
    outcome = await answered("drip", timeout=0.1)
    assert isinstance(outcome, Failed)
    assert "gave no answer within 0.1 s" in outcome.why


async def test_what_an_earlier_run_left_is_told_to_nobody_until_something_is_asked(start):
    async with FakeReceiver() as receiver:
        receiver.answers = [503] * 1000
        platform = await start(receiver)
        await platform.scale_to(7)
        await receiver.until(lambda: receiver.attempts)
        await start(receiver)  # in recommend mode, or while another leads
        receiver.answers, receiver.attempts = [], []
        await asyncio.sleep(0.05)
        assert receiver.attempts == []
        platform = await start(receiver)
        await platform.scale_to(8)
        await receiver.until(lambda: receiver.applied == [7, 8])


async def test_who_stands_by_tells_nothing_more_and_the_newest_when_it_is_asked_again(start):
    async with FakeReceiver() as receiver:
        receiver.answers = [503] * 1000
        platform = await start(receiver)
        await platform.scale_to(7)
        await receiver.until(lambda: receiver.attempts)
        platform.stand_by()
        await asyncio.sleep(0.02)  # for an attempt that is under way
        receiver.answers, receiver.attempts = [], []
        await asyncio.sleep(0.05)
        assert receiver.attempts == []
        await platform.scale_to(7)
        await receiver.until(lambda: receiver.applied == [7])
        await receiver.until(lambda: len(platform._outbox) == 0)
        platform = await start(receiver)
        assert len(platform._outbox) == 0


async def test_a_fault_that_ends_the_delivery_is_not_silent(start):
    async with FakeReceiver() as receiver:
        platform = await start(receiver)
        platform._attempt = lambda event: 1 / 0
        await platform.scale_to(7)
        with pytest.raises(PlatformUnavailable, match="a fault of this program ended 'web hook chat'"):
            async with asyncio.timeout(20):
                while await platform.fleet():
                    await asyncio.sleep(0)


async def test_who_stands_by_forgets_that_it_was_declined(start):
    async with FakeReceiver() as receiver:
        receiver.answers = [400]
        platform = await start(receiver)
        await platform.scale_to(7)
        async with asyncio.timeout(20):
            while not (await platform.fleet()).overdue:
                await asyncio.sleep(0.002)
        platform.stand_by()
        assert (await platform.fleet()).overdue == 0


async def test_what_is_declined_again_and_again_is_told_once(start, capsys):
    async with FakeReceiver() as receiver:
        receiver.answers = [400] * 3
        platform = await start(receiver)
        for _ in range(3):
            before = len(receiver.attempts)
            await platform.scale_to(2)
            await receiver.until(lambda before=before: len(receiver.attempts) > before)
            await receiver.until(lambda: platform._newest is None)
        assert "answered 400" in platform.last_error
        assert capsys.readouterr().out.count("[error") == 1


async def test_a_redirect_says_that_it_is_not_followed(answered, tmp_path):
    assert (await answered(308)).why.endswith("; redirects are not followed: name where it leads")
    async with FakeReceiver() as fake:
        fake.fleet_status = 301
        receiver = Receiver(options(fake, tmp_path, status_url=fake.status_url))
        with pytest.raises(PlatformUnavailable, match="answered 301; redirects are not followed"):
            await receiver.status()
        await receiver.close()


async def test_whoever_does_not_act_any_more_sends_nothing_even_if_nobody_has_told_it(start):
    acts = [True]
    async with FakeReceiver() as receiver:
        receiver.answers = [503]
        platform = await start(receiver, retry_initial=0.05, retry_max=0.05)
        platform.act_while(lambda: acts[-1])
        await platform.scale_to(7)
        await receiver.until(lambda: receiver.attempts)
        acts.append(False)  # as after the program has stood still, while another came to lead
        await receiver.until(lambda: not len(platform._outbox))
        assert len(receiver.attempts) == 1
        assert platform.last_error is None
        acts.append(True)
        await platform.scale_to(7)
        await receiver.until(lambda: receiver.applied == [7])


async def test_what_comes_of_an_attempt_is_no_trouble_of_who_stands_by(start):
    async with FakeReceiver() as receiver:
        receiver.answers = [503, "hang"]
        platform = await start(receiver, timeout=0.2)
        await platform.scale_to(7)
        await receiver.until(lambda: len(receiver.attempts) == 2)
        assert "answered 503" in platform.last_error
        platform.stand_by()
        assert platform.last_error is None
        await platform.scale_to(8)
        await receiver.until(lambda: receiver.applied == [8])  # so the one that hung has ended
        assert platform.last_error is None
