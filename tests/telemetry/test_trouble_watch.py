"""What is wrong around a pool, and since when."""

from autoscaler.telemetry.trouble_watch import Trouble, TroubleWatch


class Around:
    def __init__(self) -> None:
        self.now = 100.0
        self.wrong: dict[str, str] = {}
        self.watch = TroubleWatch(lambda: self.wrong, lambda: self.now)

    def seen(self, at: float, **wrong: str) -> list[Trouble]:
        self.now, self.wrong = at, wrong
        self.watch.look()
        return list(self.watch.standing)


def test_trouble_stands_from_the_first_look_that_finds_it_to_the_first_that_does_not():
    around = Around()
    assert around.seen(100.0) == []
    assert around.seen(101.0, platform="no answer") == [Trouble("platform", "no answer", 101.0)]
    assert around.seen(109.0, platform="no answer") == [Trouble("platform", "no answer", 101.0)]
    assert around.seen(110.0) == []
    assert around.seen(120.0, platform="no answer") == [Trouble("platform", "no answer", 120.0)]


def test_another_text_is_the_same_trouble():
    around = Around()
    around.seen(100.0, platform="no answer")
    assert around.seen(105.0, platform="answered 503") == [Trouble("platform", "answered 503", 100.0)]


def test_each_place_has_its_own_and_the_oldest_comes_first():
    around = Around()
    around.seen(100.0, door="no answer")
    first, second = around.seen(103.0, platform="refused", door="no answer")
    assert (first.where, first.began_at, second.where, second.began_at) == ("door", 100.0, "platform", 103.0)


def test_what_is_new_is_shown_before_the_next_look():
    around = Around()
    around.now, around.wrong = 104.0, {"platform": "no answer"}
    assert around.watch.standing == (Trouble("platform", "no answer", 104.0),)
