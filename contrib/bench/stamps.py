"""What jobs wrote of their starts: a record of 64 bytes each, appended to one file by all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SIZE = 64

SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
/* stamp FILE NAME: append the instant of the start and the name */
int main(int count, char **words) {
    struct timespec at;
    char record[64];
    clock_gettime(CLOCK_REALTIME, &at);
    memset(record, ' ', sizeof record);
    int used = snprintf(record, sizeof record - 1, "%lld%09ld %s",
                        (long long)at.tv_sec, at.tv_nsec, count > 2 ? words[2] : "-");
    record[used < 62 ? used : 62] = ' ';
    record[63] = '\n';
    int file = open(words[1], O_WRONLY | O_APPEND | O_CREAT, 0666);
    return file < 0 || write(file, record, sizeof record) != sizeof record;
}
"""
"""A program in C, for it has to be so small that its own start is not what is measured."""


def parse(data: bytes) -> list[tuple[float, str]]:
    """Return (epoch seconds, name) of each whole record."""
    found = []
    for begin in range(0, len(data) - SIZE + 1, SIZE):
        at, name = data[begin : begin + SIZE].split()
        found.append((int(at) / 10**9, name.decode()))
    return found


def share(values: Iterable[float], part: float) -> float:
    """Return the value that C{part} (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(part * (len(ordered) - 1))))]


def each_second(
    starts: Sequence[tuple[float, str]], jobs: int, first: int, seconds: int
) -> tuple[int, list[float]]:
    """
    Return how many starts are missing and how late the others were, in seconds.

    Each of C{jobs} is due in each of C{seconds} from C{first}; each start serves the oldest
    second of its job that is not served yet.
    """
    late: list[float] = []
    due: dict[str, int] = {}
    for at, name in sorted(starts):
        second = due.get(name, first)
        if at >= second and second < first + seconds:
            late.append(at - second)
            due[name] = second + 1
    return jobs * seconds - len(late), late
