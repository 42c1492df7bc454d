"""Pools of workers that run jobs: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib import metadata
from multiprocessing import connection
from multiprocessing.synchronize import Event
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from accounting.base.errors import InvalidParameter, Undecided, required
from accounting.base.threads import cores
from paramsearch.filling.worker import stop_searches_when

Item = TypeVar("Item")
Result = TypeVar("Result")
_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit the threads of linear algebra."""
_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?(\[[0-9a-fA-F:]+\]|[^\s/:]+):\d{1,5}")
GONE = "the scheduler is gone; what is finished is kept, run the command again to continue"
_PATIENCE = 15
"""Seconds within which a scheduler must answer."""
_ASK_EVERY = 0.5
"""Seconds after which a search on a worker asks again whether it is to end."""


class Pool(Protocol):
    """A pool of workers; a future raises BrokenExecutor if one died, and ``renew`` then restarts
    them."""

    def slots(self) -> int:
        """Return the number of jobs that keep the pool busy."""

    def submit(self, work: Callable[[Item], Result], item: Item) -> Future[Result]: ...

    def renew(self) -> None: ...

    def trouble(self) -> str | None:
        """Return why no job ends, if that is known."""

    def stop(self) -> bool:
        """Ask the searches that are running to end soon with what they have; return whether they
        can."""

    def close(self) -> None:
        """End the pool and all jobs that are running."""


class LocalPool:
    """A pool of processes that use one core each; they end when this process ends for whatever
    reason.

    Ctrl-C reaches them, too, and they ignore it: this process decides what becomes of their jobs.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = cores() if workers is None else workers
        self.environment = {name: os.environ.get(name) for name in _BLAS}
        os.environ.update(dict.fromkeys(_BLAS, "1"))  # inherited by the workers
        self.others = set(multiprocessing.active_children())
        self.context = multiprocessing.get_context("spawn")
        self.stopping = self.context.Event()
        self.pool: Executor = self._pool()

    def _pool(self) -> Executor:
        return ProcessPoolExecutor(
            self.workers, self.context, initializer=_begin, initargs=(self.stopping,)
        )

    def slots(self) -> int:
        return self.workers

    def submit(self, work: Callable[[Item], Result], item: Item) -> Future[Result]:
        # this may start a process, which must not receive an interrupt while it imports
        with _without_interrupts():
            return self.pool.submit(work, item)

    def renew(self) -> None:
        self._end()
        self.pool = self._pool()

    def trouble(self) -> str | None:
        return None

    def stop(self) -> bool:
        self.stopping.set()
        return True

    def close(self) -> None:
        self._end()
        for name, value in self.environment.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    def _end(self) -> None:
        for child in set(multiprocessing.active_children()) - self.others:
            child.terminate()
        self.pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started now, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(stopping: Event) -> None:
    """Make a new worker process end when its parent does, and its searches when that says so."""
    parent = required(multiprocessing.parent_process(), "the parent of a worker process")
    for name in ("SIGINT", "SIGHUP"):  # of the terminal, to all its processes
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    stop_searches_when(stopping.is_set)

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class DaskPool:
    """A pool of the workers of a Dask cluster; each needs this package and nothing else.

    If a worker dies, the scheduler gives its jobs to others.  An event of the cluster tells the
    searches of this run to end.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InvalidParameter(
                "--scheduler needs Dask; install the extra: pip install 'paramsearch[dask]'"
            ) from None
        if not _ADDRESS.fullmatch(address):
            raise InvalidParameter(
                f"--scheduler {address}: the address of a Dask scheduler looks like tcp://host:8786"
            )
        for name in list(logging.root.manager.loggerDict):
            if name.startswith(("asyncio", "distributed", "tornado")):
                # they log tracebacks for what is reported here in one line
                logging.getLogger(name).setLevel(logging.CRITICAL)
        self.address = address
        try:
            self.client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InvalidParameter(
                f"--scheduler {address}: no Dask scheduler answers there within {_PATIENCE} s "
                f"({type(error).__name__}); start one with `dask scheduler`"
            ) from None
        try:
            self._check_versions()
        except BaseException:
            self.client.close()
            raise
        self.pool: Executor = self.client.get_executor(pure=False)
        self.stopping = f"paramsearch-stop-{uuid4()}"

    def _check_versions(self) -> None:
        own = metadata.version("paramsearch")
        for worker, found in self.client.run(_version, on_error="return").items():
            if found != own:
                raise InvalidParameter(
                    f"worker {worker} has paramsearch {found}, not {own}; install the same there"
                )

    def slots(self) -> int:
        return max(1, self._workers())

    def _workers(self) -> int:
        try:
            return len(self.client.nthreads())
        except (OSError, RuntimeError, TimeoutError) as error:
            raise Undecided(GONE) from error

    def submit(self, work: Callable[[Item], Result], item: Item) -> Future[Result]:
        try:
            return self.pool.submit(_until_told, self.stopping, work, item)
        except (OSError, RuntimeError, TimeoutError) as error:
            raise Undecided(GONE) from error

    def renew(self) -> None:
        pass

    def trouble(self) -> str | None:
        if self._workers():
            return None
        return f"no worker yet; start some with: dask worker {self.address} --nthreads 1"

    def stop(self) -> bool:
        from distributed import Event

        try:
            Event(self.stopping, client=self.client).set()
        except (OSError, RuntimeError, TimeoutError):
            return False  # the scheduler is gone, and the jobs with it
        return True

    def close(self) -> None:
        self.pool.shutdown(wait=False)
        self.client.close()


def _until_told(event: str, work: Callable[[Item], Result], item: Item) -> Result:
    """Do the work on a worker; its search ends soon after the event of this name is set."""
    from distributed import Event

    told, asked = Event(event), -math.inf
    is_told = False

    def stop() -> bool:
        nonlocal asked, is_told
        if not is_told and time.monotonic() > asked + _ASK_EVERY:
            with suppress(Exception):  # without a scheduler, nobody is interrupted either
                is_told = told.is_set()
            asked = time.monotonic()
        return is_told

    stop_searches_when(stop)
    return work(item)


def _version() -> Any:
    return metadata.version("paramsearch")
