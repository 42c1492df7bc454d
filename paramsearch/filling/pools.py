"""Pools of workers that run jobs: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from importlib import metadata
from multiprocessing import connection
from typing import Any, Protocol, TypeVar

from accounting.base.errors import InvalidParameter, Undecided
from accounting.base.threads import cores

Item = TypeVar("Item")
Result = TypeVar("Result")
_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that limit the threads of linear algebra."""
_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?(\[[0-9a-fA-F:]+\]|[^\s/:]+):\d{1,5}")
GONE = "the scheduler is gone; what is finished is kept, run the command again to continue"
_PATIENCE = 15
"""Seconds within which a scheduler must answer."""


class Pool(Protocol):
    """Workers; a future raises BrokenExecutor if one died, and ``renew`` then restarts them."""

    def slots(self) -> int:
        """Number of jobs that keep the pool busy."""

    def submit(self, work: Callable[[Item], Result], item: Item) -> Future[Result]: ...

    def renew(self) -> None: ...

    def trouble(self) -> str | None:
        """Why no job ends, if that is known."""

    def close(self) -> None:
        """End the pool and all jobs that are running."""


class LocalPool:
    """Processes that use one core each; they end when this process ends for whatever reason."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = cores() if workers is None else workers
        self.environment = {name: os.environ.get(name) for name in _BLAS}
        os.environ.update(dict.fromkeys(_BLAS, "1"))  # inherited by the workers
        self.others = set(multiprocessing.active_children())
        self.pool: Executor = self._pool()

    def _pool(self) -> Executor:
        return ProcessPoolExecutor(
            self.workers, multiprocessing.get_context("spawn"), initializer=_begin
        )

    def slots(self) -> int:
        return self.workers

    def submit(self, work: Callable[[Item], Result], item: Item) -> Future[Result]:
        # this may start a process, which must not receive an interrupt while it imports
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self.pool.submit(work, item)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def renew(self) -> None:
        self._end()
        self.pool = self._pool()

    def trouble(self) -> str | None:
        return None

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


def _begin() -> None:
    """Make a new worker process end when its parent does."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class DaskPool:
    """The workers of a Dask cluster; each needs this package and nothing else.

    If a worker dies, the scheduler gives its jobs to others.
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
            return self.pool.submit(work, item)
        except (OSError, RuntimeError, TimeoutError) as error:
            raise Undecided(GONE) from error

    def renew(self) -> None:
        pass

    def trouble(self) -> str | None:
        if self._workers():
            return None
        return f"no worker yet; start some with: dask worker {self.address} --nthreads 1"

    def close(self) -> None:
        self.pool.shutdown(wait=False)
        self.client.close()


def _version() -> Any:
    return metadata.version("paramsearch")
