"""The number of replicas, posted to a receiver that may be slow, away, or of another opinion."""

import asyncio
import itertools
import json
from datetime import datetime
from random import Random

import pytest

from autoscaler.clock import VirtualClock
from autoscaler.errors import PlatformUnavailable, UsageError
from autoscaler.platforms.webhook import Webhook, WebhookOptions
from autoscaler.platforms.webhook.outbox import EVENTS_MAX, Outbox
from autoscaler.platforms.webhook.signature import read_secrets, signature_headers
from autoscaler.remote_fleet import RemoteFleetOptions
from tests.fakes.listed_servers import ScriptedServers
from tests.fakes.replica_listener import FakeReplicaListener
from tests.fakes.webhook_receiver import FakeReceiver

A, B = "http://127.0.0.1:9001", "http://127.0.0.1:9002"
SECRET = "correct horse battery staple"


def fleet_options(tmp_path, **given):
    given = {"urls": (A, B), "probe_interval": 0.001, **given}
    return RemoteFleetOptions(state_dir=tmp_path / "state", **given)


def webhook(tmp_path, receiver, listed=None, up=(A,), **given):
    given = {"retry_initial": 0.001, "retry_max": 0.002, "timeout": 5.0, **given}
    options = WebhookOptions(pool="chat", url=receiver.url, fleet=listed or fleet_options(tmp_path), **given)
    return Webhook(options, ScriptedServers(*up), VirtualClock(wall_time=1.75e9), Random(1))


@pytest.fixture
async def running():
    """Starts platforms, and stops them at the end of the test."""
    started = []

    async def start(platform, listener=None):
        started.append(platform)
        await platform.start(listener or FakeReplicaListener())
        return platform

    yield start
    for platform in started:
        await platform.stop()


async def test_a_change_is_a_signed_cloud_event(tmp_path, running):
    (tmp_path / "secret").write_text(SECRET + "\n")
    listener = FakeReplicaListener()
    listener.busy = {A: 3, B: 0}
    async with FakeReceiver(SECRET.encode()) as receiver:
        platform = await running(webhook(tmp_path, receiver, secret_file=tmp_path / "secret"), listener)
        await platform.scale_to(4)
        await receiver.until(lambda: receiver.applied == [4])
    (event,) = receiver.attempts
    assert receiver.headers[0]["Content-Type"].startswith("application/cloudevents+json")
    assert (event["specversion"], event["source"]) == ("1.0", "/inference-autoscaler/pools/chat")
    assert (event["type"], event["subject"]) == ("inference-autoscaler.desired-replicas.v1", "chat")
    assert event["data"] == {"pool": "chat", "desired": 4, "previous": None, "busy": {A: 3}}
    assert datetime.fromisoformat(event["time"]).timestamp() == 1.75e9
    assert event["id"] == receiver.headers[0]["Webhook-Id"]


async def test_the_same_wish_again_is_no_event_and_another_one_is(tmp_path, running):
    async with FakeReceiver() as receiver:
        platform = await running(webhook(tmp_path, receiver))
        for wish in (2, 2, 3, 3, 3, 2):
            await platform.scale_to(wish)
        await receiver.until(lambda: len(receiver.applied) == 3)
    assert receiver.applied == [2, 3, 2]
    assert [event["data"]["previous"] for event in receiver.attempts] == [None, 2, 3]
    assert [int(event["sequence"]) for event in receiver.attempts] == [1, 2, 3]


async def test_changes_during_an_outage_are_delivered_in_order_once_and_never_two_at_once(tmp_path, running):
    async with FakeReceiver() as receiver:
        receiver.answers = [503, 500, 429, 502, "cut", 503, 404]
        platform = await running(webhook(tmp_path, receiver))
        for wish in (2, 5, 3, 8):
            await platform.scale_to(wish)
        await receiver.until(lambda: len(receiver.applied) == 4)
        await receiver.until(lambda: len(receiver.attempts) == 4 + 7)
    assert receiver.applied == [2, 5, 3, 8]
    assert receiver.at_once_max == 1
    by_event = [
        list(group) for _, group in itertools.groupby(receiver.attempts, key=lambda event: event["id"])
    ]
    assert [attempts[0]["data"]["desired"] for attempts in by_event] == [2, 5, 3, 8]
    assert all(attempt == attempts[0] for attempts in by_event for attempt in attempts)


async def test_a_receiver_that_hangs_is_asked_again_with_the_same_event(tmp_path, running):
    async with FakeReceiver() as receiver:
        receiver.answers = ["hang"]
        platform = await running(webhook(tmp_path, receiver, timeout=0.05))
        await platform.scale_to(2)
        await receiver.until(lambda: receiver.applied == [2])
    assert len({event["id"] for event in receiver.attempts}) == 1
    assert len(receiver.attempts) == 2


async def test_a_restart_delivers_what_was_left_before_what_is_new(tmp_path, running):
    async with FakeReceiver() as receiver:
        receiver.answers = [503] * 1000
        first = await running(webhook(tmp_path, receiver))
        await first.scale_to(7)
        await first.scale_to(9)
        await receiver.until(lambda: receiver.attempts)
        await first.stop()
        left = receiver.attempts[-1]["id"]
        receiver.answers = []
        second = await running(webhook(tmp_path, receiver))
        await second.scale_to(4)
        await receiver.until(lambda: receiver.applied == [7, 9, 4])
    assert left in {event["id"] for event in receiver.attempts}
    assert len({event["id"] for event in receiver.attempts}) == 3


async def test_the_first_wish_after_a_restart_is_told_even_if_it_is_the_old_one(tmp_path, running):
    async with FakeReceiver() as receiver:
        first = await running(webhook(tmp_path, receiver))
        await first.scale_to(3)
        await receiver.until(lambda: not len(first._outbox))
        await first.stop()
        second = await running(webhook(tmp_path, receiver))
        await second.scale_to(3)
        await receiver.until(lambda: receiver.applied == [3, 3])


async def test_an_event_that_is_declined_is_given_up_and_the_next_wish_is_told_anew(tmp_path, running):
    async with FakeReceiver() as receiver:
        receiver.answers = [422]
        platform = await running(webhook(tmp_path, receiver))
        await platform.scale_to(3)
        await receiver.until(lambda: platform.last_error)
        assert "answered 422 as the test wants" in platform.last_error
        await platform.scale_to(3)
        await receiver.until(lambda: receiver.applied == [3])
    assert len({event["id"] for event in receiver.attempts}) == 2


async def test_a_redirect_is_not_followed(tmp_path, running):
    async with FakeReceiver() as receiver:
        receiver.answers = [307]
        platform = await running(webhook(tmp_path, receiver))
        await platform.scale_to(3)
        await receiver.until(lambda: platform.last_error)
    assert "answered 307" in platform.last_error
    assert len(receiver.headers) == 1


async def test_a_renewed_secret_is_used_at_once_and_two_sign_together(tmp_path, running):
    file = tmp_path / "secret"
    file.write_text("an old secret, long enough\n")
    async with FakeReceiver(SECRET.encode()) as receiver:
        platform = await running(webhook(tmp_path, receiver, secret_file=file))
        await platform.scale_to(2)
        await receiver.until(lambda: len(receiver.headers) >= 2)
        assert receiver.applied == []
        file.write_text(f"an old secret, long enough\n{SECRET}\n")
        await receiver.until(lambda: receiver.applied == [2])
    assert len(receiver.headers[-1]["Webhook-Signature"].split()) == 2


async def test_the_fleet_is_what_the_receiver_tells_and_the_probes_confirm(tmp_path, running):
    listener = FakeReplicaListener()
    async with FakeReceiver() as receiver:
        receiver.fleet = {"ready": [A, B], "starting": 2, "draining": []}
        listed = fleet_options(tmp_path, urls=())
        platform = await running(
            webhook(tmp_path, receiver, listed, status_url=receiver.status_url, status_interval=0.001),
            listener,
        )
        fleet = await platform.fleet()
        assert (fleet.ready, fleet.starting) == (1, 3)
        receiver.fleet = {"ready": [], "starting": 0}
        await listener.until(lambda: ("lost", A) in listener.calls)


async def test_who_looks_anew_is_told_what_there_is_now_or_that_nobody_tells(tmp_path, running):
    async with FakeReceiver() as receiver:
        receiver.fleet = {"ready": [A], "starting": 0}
        told = {"status_url": receiver.status_url, "status_interval": 3600.0}
        platform = await running(webhook(tmp_path, receiver, fleet_options(tmp_path, urls=()), **told))
        receiver.fleet = {"ready": [A], "starting": 5}  # another has asked for six
        assert (await platform.fleet()).ordered == 1
        await platform.look_anew()
        assert (await platform.fleet()).ordered == 6
        receiver.fleet = None
        with pytest.raises(PlatformUnavailable, match="answered 503"):
            await platform.look_anew()


async def test_an_answer_to_an_event_tells_the_fleet_too(tmp_path, running):
    async with FakeReceiver() as receiver:
        receiver.fleet = {"ready": [A], "starting": 0}
        listed = fleet_options(tmp_path, urls=())
        platform = await running(
            webhook(tmp_path, receiver, listed, status_url=receiver.status_url, status_interval=3600.0)
        )
        receiver.fleet = {"ready": [A], "starting": 5}
        await platform.scale_to(6)
        await receiver.until(lambda: receiver.applied)
        async with asyncio.timeout(10):
            while (await platform.fleet()).starting != 5:
                await asyncio.sleep(0)


async def test_nobody_can_tell_the_fleet_until_the_receiver_did_and_after_it_was_silent(tmp_path, running):
    async with FakeReceiver() as receiver:
        listed = fleet_options(tmp_path, urls=())
        platform = await running(
            webhook(tmp_path, receiver, listed, status_url=receiver.status_url, status_interval=0.001)
        )
        with pytest.raises(PlatformUnavailable, match="answered 503"):
            await platform.fleet()
        receiver.fleet = {"ready": [A]}
        await receiver.until(lambda: not platform._inquiry._unanswered)
        assert (await platform.fleet()).ready + (await platform.fleet()).starting <= 1
        receiver.fleet = None
        await receiver.until(lambda: platform._inquiry._unanswered >= 3)
        with pytest.raises(PlatformUnavailable):
            await platform.fleet()


async def test_what_was_ordered_is_starting_where_nobody_tells(tmp_path, running):
    async with FakeReceiver() as receiver:
        platform = await running(webhook(tmp_path, receiver))
        await platform.scale_to(4)
        fleet = await platform.fleet()
    assert (fleet.ready, fleet.starting, fleet.ordered) == (1, 3, 4)


async def test_it_cannot_be_asked_before_start_and_after_stop(tmp_path):
    async with FakeReceiver() as receiver:
        platform = webhook(tmp_path, receiver)
        with pytest.raises(PlatformUnavailable):
            await platform.scale_to(1)
        await platform.start(FakeReplicaListener())
        await platform.stop()
        with pytest.raises(PlatformUnavailable):
            await platform.scale_to(1)


async def test_secrets_that_cannot_be_read_end_the_start(tmp_path):
    async with FakeReceiver() as receiver:
        with pytest.raises(UsageError, match="cannot be read: no such file"):
            await webhook(tmp_path, receiver, secret_file=tmp_path / "absent").start(FakeReplicaListener())


def test_an_outbox_keeps_its_newest_events_when_it_is_full(tmp_path):
    outbox = Outbox(tmp_path / "outbox.json")
    for wish in range(EVENTS_MAX + 2):
        outbox.add(wish, None, {}, 0.0)
    again = Outbox(tmp_path / "outbox.json")
    assert (len(again), again.first.desired) == (EVENTS_MAX, 2)


@pytest.mark.parametrize("content", [b"", b"{", b'{"name": 3}', b"[" * 100_000])
def test_a_damaged_outbox_is_begun_anew_with_other_ids(tmp_path, content):
    path = tmp_path / "outbox.json"
    before = Outbox(path)
    before.add(1, None, {}, 0.0)
    path.write_bytes(content)
    after = Outbox(path)
    after.add(1, None, {}, 0.0)
    assert after.first.id != before.first.id


def test_an_outbox_that_could_not_be_written_begins_no_old_ids_anew(tmp_path):
    path = tmp_path / "outbox.json"
    before = Outbox(path)
    before.add(1, None, {}, 0.0)
    kept = path.read_bytes()
    before.remove(before.first)
    before.add(2, 1, {}, 0.0)
    path.write_bytes(kept)  # as if the disk had taken nothing since
    after = Outbox(path)
    after.remove(after.first)
    after.add(3, None, {}, 0.0)
    assert after.first.id != before.first.id
    assert after.first.sequence == 2  # the count goes on from what is known


# https://github.com/standard-webhooks/standard-webhooks, the example of the specification's own libraries.
def test_the_signature_agrees_with_the_published_example(tmp_path):
    (tmp_path / "secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    secrets = read_secrets(tmp_path / "secret")
    headers = signature_headers(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["Webhook-Signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_without_the_prefix_of_a_library_the_text_is_the_key(tmp_path):
    (tmp_path / "secret").write_text("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
    assert read_secrets(tmp_path / "secret") == (b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "holds no secret"),
        ("short\n", "5 bytes is too short"),
        ("whsec_!!!\n", "not base64"),
        ("whsec_schlüssel\n", "not base64"),
    ],
)
def test_secrets_that_protect_nothing_are_refused(tmp_path, content, complaint):
    (tmp_path / "secret").write_text(content, "utf-8")
    with pytest.raises(UsageError) as refusal:
        read_secrets(tmp_path / "secret")
    assert complaint in str(refusal.value)
    assert str(refusal.value).endswith(": echo whsec_$(openssl rand -base64 32)")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"url": "example.org/hook"}, "'example.org/hook' is no URL"),
        ({"url": "http://a..b/hook"}, "'http://a..b/hook' is no URL"),
        ({"status_url": "http://h:99999/fleet"}, "'http://h:99999/fleet' is no URL"),
        ({"fleet": None}, "nothing says where the replicas are"),
        ({"timeout": 0.0}, "need timeout > 0 s"),
        ({"retry_max": 0.5}, "need retry_max >= retry_initial"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path, given, complaint):
    plain = {"pool": "chat", "url": "http://h/x", "fleet": fleet_options(tmp_path)}
    if "fleet" in given:
        given = {"fleet": fleet_options(tmp_path, urls=())}
    with pytest.raises(ValueError) as refusal:
        WebhookOptions(**{**plain, **given})
    assert complaint in str(refusal.value)


def test_an_event_is_the_same_bytes_each_time(tmp_path):
    outbox = Outbox(tmp_path / "outbox.json")
    outbox.add(3, 2, {A: 1}, 1.75e9)
    again = Outbox(tmp_path / "outbox.json")
    assert again.first.as_cloud_event("chat") == outbox.first.as_cloud_event("chat")
    assert json.loads(again.first.as_cloud_event("chat"))["time"] == "2025-06-15T15:06:40.000Z"
