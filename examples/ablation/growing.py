"""A grid of learning rates that grows where its best rate is an end."""

from collections.abc import Callable, Sequence


def grown(
    rates: Sequence[str], first_rates: Sequence[str], best_of: Callable[[Sequence[str]], str | None]
) -> tuple[str, ...]:
    """Return the rates to run with, from low to high: the first rates, and the next one while the best of them is an end.

    Args:
        rates: All rates from low to high.
        first_rates: Neighbours among them.
        best_of: Returns the best of some rates, or None as long as one of them was not run.
    """
    low, high = (rates.index(first_rates[end]) for end in (0, -1))
    while best := best_of(rates[low : high + 1]):
        if best == rates[low] and low > 0:
            low -= 1
        elif best == rates[high] and high < len(rates) - 1:
            high += 1
        else:
            break
    return tuple(rates[low : high + 1])
