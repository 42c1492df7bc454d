"""The precision of ball arithmetic belongs to one thread at a time, and is checked where a double
stands for a ball."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from flint import arb, ctx
from places import EXAMPLES

from accounting import NegativeBinomial, Undecided
from accounting.base.balls import ball, double, precision
from accounting.model.configuration import Proposal
from accounting.notary.dropouts.thinned import ThinnedCentral
from paramsearch.certification.audit import Audit, audit
from paramsearch.parameters.claim import Claim

EXAMPLE = json.loads((EXAMPLES / "sum_to_2.json").read_text())


@pytest.fixture(autouse=True)
def _hasty_threads() -> Iterator[None]:
    """Threads switch as often as possible, and the precision is restored in the end."""
    interval, before = sys.getswitchinterval(), ctx.prec
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    assert ctx.prec == before


def at_once(*tasks: Callable[[], object]) -> list[object]:
    """The results of the tasks, each in its own thread, started together."""
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], object]) -> object:
        start.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def test_two_threads_that_audit_at_once_get_what_each_gets_alone() -> None:
    """One needs few bits and rounds masses to doubles, the other needs many."""
    proposal = Proposal.of(EXAMPLE)

    def few() -> Audit:
        return audit(proposal, Claim.of(proposal, honest=0.5, delta=1e-3), gap=1e-2, explain=False)

    def many() -> Audit:
        return audit(proposal, Claim.of(proposal, eps=3.0, delta=1e-40), gap=1e-2, explain=False)

    alone = [few(), many()]
    together = at_once(few, many, few, many)
    assert [found.proof for found in alone * 2] == [found.proof for found in together]  # type: ignore[attr-defined]  # audits


def test_masses_and_precisions_at_once() -> None:
    noise = NegativeBinomial(3.7, 0.81)

    def masses() -> list[float]:
        return [noise.pmf(k) for k in range(60)]

    def kept() -> bool:
        for bits in range(64, 264):
            with precision(bits):
                for _ in range(5):
                    time.sleep(0)
                    if ctx.prec != bits:
                        return False
        return True

    alone = masses()
    assert at_once(masses, kept, masses, kept) == [alone, True, alone, True]


def test_a_forked_process_does_not_wait_for_a_thread_it_does_not_have() -> None:
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with precision(99):
            holding.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert holding.wait(60)
        child = os.fork()
        if child == 0:
            with precision(80):
                os._exit(0 if ctx.prec == 80 else 1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()


def test_a_double_stands_for_a_ball_only_if_the_ball_is_small() -> None:
    with precision(128):
        assert double(ball(0.1)) == 0.1
        assert double(arb(0)) == 0.0
        assert double(arb(3, 2.0**-80)) == 3.0
        assert double(arb(0, 1e-320)) == 0.0
        for wide in (arb(3, 2.0**-40), arb(0, 1e-200), arb(1, 2), arb("nan"), arb("inf")):
            with pytest.raises(Undecided, match="60 bits"):
                double(wide)


@pytest.mark.parametrize("bits", [24, 40, 53, 60])
def test_too_little_precision_for_the_table_is_noticed(bits: int) -> None:
    """Masses that are known to few bits only, as concurrent threads could cause, are refused."""
    with precision(128):
        share, loss = ball(0.5), ball(0.45)
    with precision(bits), pytest.raises(Undecided, match="too little precision"):
        ThinnedCentral(share, loss, None, 1e-9, 4)
    with precision(128):
        found = ThinnedCentral(share, loss, None, 1e-9, 4)
    with precision(bits), pytest.raises(Undecided, match="too little precision"):
        found.groups(1, 0, ball(0.1) / 3, clip=1e-9, lowest=-100, log_mass=np.zeros(1))
