"""How long a server takes for so many at a time, learned while it serves: s(n) = alpha + beta n.

Model: n is the size of a batch, or the number of requests in service together. Measured times are kept by
size, each size (large ones: a range of a quarter of an octave) with a mean that follows its last `REMEMBERED`
times, and the line is fitted through these means. So a load that stays at one size for hours does not wash
out what is known of the others, as it would in sums over all times. Means fade with their age, but not to
nothing: the newest say how high the line lies, and its slope is that of the old ones as long as no other is
measured. Beyond `AGE_MAX` they are forgotten.

*Outliers.* A time that lies far beyond what its size usually takes counts as far as that and no farther: one
pause of the server moves nothing. `CHANGED_AFTER` in a row that lie beyond it on one side are no outliers:
the server has changed, so everything known before is forgotten, and the line begins anew with these.

*Guards.* A size counts once it was seen `SEEN_MIN` times. There is no line before `OBSERVATIONS_MIN` times of
sizes that count and are apart by `SPREAD_MIN`. It is never trusted beyond twice the largest size that counts:
what comes after (memory is full, another kernel is chosen) nobody has measured. Until there is a line, the
largest size that was quick enough may be doubled, but no farther than on a straight line to a larger one that
was too slow. Either way a limit that starts from 1 grows by doubling.

Errors are taken as relative ones: a server that is uneven by 5 % is so in small batches and in large ones.
"""

from dataclasses import dataclass, field
from math import exp, floor, inf, isfinite, log2
from statistics import fmean, median

from autoscaler.queueing.batch_line import BatchLine

REMEMBERED = 32
"""The mean of a size follows about so many of its last times, unless it is told otherwise [1]."""
FADES_OVER = 300.0
"""A mean that was not renewed for this long weighs 1/e [s]."""
FADED = 1e-3
"""It never weighs less than this share [1]."""
AGE_MAX = 6 * 3600.0
"""It is forgotten when the newest time of any size is so much younger [s]."""
OBSERVATIONS_MIN = 20
"""So many times, of sizes that were seen often enough, make a line [1]."""
SEEN_MIN = 3
"""A size counts when it was seen so often [1]: a single time may be an outlier."""
SPREAD_MIN = 1.5
"""The largest size that counts is so many times the smallest [1]; from less, a slope is noise."""
CHANGED_AFTER = 6
"""So many times in a row far beyond the usual, on one side, are a change of the server [1] …"""
USUAL_AFTER = 16
"""… of a size that was seen so often before that it is known what is usual [1]."""
GROWTH_MAX = 2
"""A line is trusted up to so many times the largest size that counts [1]."""

_FIRST = 5  # times of a size that are kept one by one, because a mean of few is spoilt by one outlier
_FAR = 5.0  # mean absolute deviations beyond which a time is far; 1 in 60 of an exponential law
_FAR_RATIO = 0.1  # and never less than this share of the mean: a steady server may waver
_RANGES = 4  # to an octave, for sizes above 8
_ROUNDING = 1e-9  # a size that needs exactly the time given fits


@dataclass(slots=True)
class _Mean:
    """What is known of one size, from its last times."""

    remembered: int
    size: float = 0.0
    size_max: int = 0
    seconds: float = 0.0
    deviation: float = 0.0
    count: int = 0
    seen_at: float = 0.0
    far: list[float] = field(default_factory=list)
    """The last times, as far as they lay beyond the usual in a row on one side [s]."""
    first: list[float] = field(default_factory=list)

    def observe(self, size: int, seconds: float, now: float) -> bool:
        """Take in a time; return whether the server seems to have changed."""
        self.count = count = min(self.count + 1, self.remembered)
        self.size += (size - self.size) / count
        self.size_max = max(self.size_max, size)
        self.seen_at = now
        if count <= _FIRST:
            self.first.append(seconds)
            self.seconds, self.deviation = _without_outliers(self.first)
            return False
        away, limit = seconds - self.seconds, _limit(self.seconds, self.deviation)
        self._follow(seconds if abs(away) > limit else None)
        self.seconds += max(-limit, min(limit, away)) / count
        self.deviation += (min(abs(away), limit) - self.deviation) / count
        return len(self.far) >= CHANGED_AFTER and count >= USUAL_AFTER + CHANGED_AFTER

    def _follow(self, far: float | None) -> None:
        """Note a time far beyond the usual; one that is not, or lies on the other side, ends the row."""
        if far is None or (self.far and (far > self.seconds) is not (self.far[-1] > self.seconds)):
            self.far.clear()
        if far is not None:
            self.far = [*self.far[1 - CHANGED_AFTER :], far]

    def weight(self, now: float) -> float:
        """How much it says at `now` [s]: more if it is of many times, and of new ones."""
        return self.count * max(FADED, exp((self.seen_at - now) / FADES_OVER))


class LearnedLine:
    """Learns s(n) from the times of all sizes n, as they come.

    Parameters
    ----------
    remembered : int
        The mean of a size follows about so many of its last times [1]. More where times of one size vary.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._means: dict[int, _Mean] = {}
        self._now = -inf
        self._line: BatchLine | None = None
        self._is_old = False

    def observe(self, size: int, seconds: float, now: float) -> None:
        """Take in that `size` >= 1 together took `seconds` >= 0 [s], as known at `now` [s]; O(1)."""
        if size < 1 or not (seconds >= 0 and isfinite(seconds)):
            raise ValueError(f"need size >= 1 and finite seconds >= 0, got {size} and {seconds}")
        self._now, self._is_old = max(self._now, now), True
        key = _range_of(size)
        mean = self._means.get(key)
        if mean is None or self._now - mean.seen_at > AGE_MAX:
            mean = self._means[key] = _Mean(self._remembered)
        if mean.observe(size, seconds, now):
            self._begin_anew(key, mean, now)

    @property
    def line(self) -> BatchLine | None:
        """The line as it is now; None while too little is known. Costs a step for each size known."""
        if self._is_old:
            self._line, self._is_old = self._fit(), False
        return self._line

    @property
    def size_max_seen(self) -> int:
        """The largest size that counts, of those not forgotten; 0 if there is none [1]."""
        return max((mean.size_max for mean in self._counted()), default=0)

    def measured(self, size: int) -> float | None:
        """Return the mean time of `size`, as it was measured [s]; None if it was not seen often enough."""
        mean = self._means.get(_range_of(size))
        return None if mean is None or mean.count < SEEN_MIN else mean.seconds

    def seconds(self, size: int) -> float | None:
        """How long `size` >= 1 together take, by the line [s]; None while there is no line."""
        line = self.line
        return None if line is None else line.alpha + line.beta * size

    def largest_within(self, seconds: float, size_max: int) -> int:
        """Return the largest size up to `size_max` >= 1 that takes at most `seconds` [s]; at least 1.

        Never more than twice the largest size that counts.
        """
        if size_max < 1:
            raise ValueError(f"need size_max >= 1, got {size_max}")
        line = self.line
        if line is None:
            return max(1, min(size_max, self._beyond_what_held(seconds)))
        most = min(size_max, GROWTH_MAX * self.size_max_seen)
        spare = (seconds - line.alpha) * (1.0 + _ROUNDING)
        if spare < 0:
            return 1
        return max(1, most if spare >= line.beta * most else floor(spare / line.beta + _ROUNDING))

    def __repr__(self) -> str:
        line = self.line
        law = "unknown" if line is None else f"{line.alpha:.4g}s+{line.beta:.4g}s*n"
        return f"<LearnedLine {law} sizes={len(self._means)} size_max_seen={self.size_max_seen}>"

    def _beyond_what_held(self, seconds: float) -> int:
        """Return the next size to try: twice the largest that was quick enough, or less by one too slow."""
        counted = self._counted()
        held = max((each for each in counted if each.seconds <= seconds), key=_size_of, default=_Mean(0))
        slower = min((each for each in counted if each.size > held.size), key=_size_of, default=None)
        doubled = GROWTH_MAX * held.size_max
        if slower is None:
            return doubled
        share = (seconds - held.seconds) / (slower.seconds - held.seconds)
        between = floor(held.size + share * (slower.size - held.size) + _ROUNDING)
        return min(max(held.size_max, between), doubled or between)

    def _counted(self) -> list[_Mean]:
        self._forget()
        return [mean for mean in self._means.values() if mean.count >= SEEN_MIN]

    def _forget(self) -> None:
        """Let go of what is too old."""
        old = [key for key, mean in self._means.items() if self._now - mean.seen_at > AGE_MAX]
        for key in old:
            del self._means[key]

    def _begin_anew(self, key: int, changed: _Mean, now: float) -> None:
        """The server has changed: keep only what it did since."""
        renewed = _Mean(self._remembered)
        for seconds in changed.far:
            renewed.observe(round(changed.size), seconds, now)
        renewed.size_max = changed.size_max
        self._means = {key: renewed}

    def _fit(self) -> BatchLine | None:
        """The line through the means that count, in two steps: relative errors are relative to a line."""
        means = self._counted()
        if sum(mean.count for mean in means) < OBSERVATIONS_MIN:
            return None
        if max(mean.size for mean in means) < SPREAD_MIN * min(mean.size for mean in means):
            return None
        weights = [mean.weight(self._now) for mean in means]
        alpha, beta = _least_squares(means, weights)
        if alpha + beta <= 0:
            return None
        squares = [(alpha + beta * mean.size) ** 2 for mean in means]
        alpha, beta = _least_squares(means, [w / s for w, s in zip(weights, squares, strict=True)])
        return BatchLine(alpha, beta) if alpha + beta > 0 else None


def _least_squares(means: list[_Mean], weights: list[float]) -> tuple[float, float]:
    """Return alpha, beta >= 0 [s] of the line that fits best."""
    total = sum(weights)
    size = sum(w * mean.size for w, mean in zip(weights, means, strict=True)) / total
    seconds = sum(w * mean.seconds for w, mean in zip(weights, means, strict=True)) / total
    variance = covariance = 0.0
    for w, mean in zip(weights, means, strict=True):
        away = mean.size - size
        variance += w * away * away / total
        covariance += w * away * (mean.seconds - seconds) / total
    beta = max(0.0, covariance / variance)
    alpha = seconds - beta * size
    if alpha < 0:  # the best line through the origin
        return 0.0, (covariance + size * seconds) / (variance + size * size)
    return alpha, beta


def _range_of(size: int) -> int:
    """Number the ranges of sizes that are taken together: each alone up to 8, then four to an octave."""
    return size if size <= 2 * _RANGES else floor(_RANGES * log2(size) + _ROUNDING) - _RANGES


def _size_of(mean: _Mean) -> float:
    return mean.size


def _limit(seconds: float, deviation: float) -> float:
    """How far from its mean a time may lie and count in full [s]."""
    return _FAR * deviation + _FAR_RATIO * seconds


def _without_outliers(times: list[float]) -> tuple[float, float]:
    """Return mean and mean absolute deviation of a few times, those far from their median drawn in [s]."""
    middle = median(times)
    limit = _limit(middle, median(abs(time - middle) for time in times))
    near = [max(middle - limit, min(middle + limit, time)) for time in times]
    mean = fmean(near)
    return mean, fmean(abs(time - mean) for time in near)
