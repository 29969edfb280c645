"""The one install of a pod: resolve, install, check, publish; what it reports and why it failed.

A second request with the same content finds the first one's state. The runner sees either nothing or
everything.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sandyard_api import names
from sandyard_api.wire import (
    ErrorCode,
    InstallPhase,
    InstallRequest,
    InstallStatus,
    Package,
    canonical_sha256,
)
from sandyard_runtime.agent.changes import Changes
from sandyard_runtime.agent.gate import RefusedError
from sandyard_runtime.agent.install import staging, uv
from sandyard_runtime.agent.install.diagnosis import Curtain, Reason, diagnose
from sandyard_runtime.agent.install.image import Image, check_requirements
from sandyard_runtime.agent.install.lockfile import (
    Locked,
    LockError,
    lock_sha256,
    preferences,
    read_lock,
)
from sandyard_runtime.agent.install.process import Installer, Plan
from sandyard_runtime.agent.settings import Settings

MEASURE_SECONDS: Final = 0.25  # between looks at the disk an install takes
CACHE_SHARE: Final = 2  # the cache's own copy, metadata and the lock, on top of what is published
SYSTEM_READABLE: Final = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/dev", "/proc", "/sys/fs/cgroup")
log = logging.getLogger(__name__)


class InstallError(Exception):
    """The install ends with this reason."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where one install works."""

    staging: Path
    secret: Path
    site: Path  # published

    @property
    def new_site(self) -> Path:
        return self.staging / "site"

    @property
    def cache(self) -> Path:
        return self.staging / "cache"

    @property
    def stubs(self) -> Path:
        return self.staging / "stubs"

    @property
    def requirements(self) -> Path:
        return self.staging / "requirements.txt"

    @property
    def lock(self) -> Path:
        return self.staging / "pylock.toml"

    @property
    def pins(self) -> Path:
        return self.staging / "pins.txt"


class Install:
    """State of the pod's one install."""

    def __init__(self, settings: Settings, *, changes: Changes, image: Callable[[], Image]) -> None:
        self._settings = settings
        self._changes = changes
        self._image = image
        self._asked = ""
        self._task: asyncio.Task[None] | None = None
        packages = settings.at(names.PACKAGES_DIR)
        self._places = _Places(
            staging=packages / ".staging",
            secret=settings.at(names.AGENT_SECRET_DIR),
            site=settings.at(names.PACKAGES_SITE),
        )
        self.status = InstallStatus(phase=InstallPhase.NONE)

    @property
    def running(self) -> bool:
        """Whether an install is under way."""
        return self.status.phase is InstallPhase.RUNNING

    def start(self, request: InstallRequest) -> InstallStatus:
        """Begin, or find what was begun; raises RefusedError for anything else."""
        asked = canonical_sha256(request.model_dump(mode="json"))
        if self._asked:
            if asked != self._asked:
                raise RefusedError(ErrorCode.CONFLICT, "this pod has had its install")
            return self.status
        _check(request)
        image = self._image()
        self._asked = asked
        self.status = InstallStatus(phase=InstallPhase.RUNNING)
        self._task = asyncio.create_task(self._carry_out(request, image))
        return self.status

    async def wait(self, *, seconds: float) -> InstallStatus:
        """Return the status once no install is running, at the latest after ``seconds``."""
        await self._changes.until(lambda: not self.running, seconds=seconds)
        return self.status

    async def _carry_out(self, request: InstallRequest, image: Image) -> None:
        began = time.monotonic()
        curtain = Curtain(url=request.index.url, netrc=request.index.netrc)
        attempt = _Attempt(self._settings, self._places, request, image)
        try:
            packages = await attempt.run(self._note_installer)
            status = InstallStatus(phase=InstallPhase.SUCCEEDED, packages=packages, lock_sha256=lock_sha256(packages))
        except TimeoutError:
            status = _failed(Reason.INSTALL_TIMEOUT, f"the install took longer than {request.timeout_seconds} s")
        except InstallError as error:
            status = _failed(error.reason, curtain.message(str(error)))
        except OSError as error:
            log.exception("the install failed")
            status = _failed(Reason.INSTALL_FAILED, f"the disk refused: {error.strerror}")
        except Exception:
            log.exception("the install failed")
            status = _failed(Reason.INSTALL_FAILED, "the agent failed; its log says why")
        with suppress(OSError):
            await asyncio.to_thread(shutil.rmtree, self._places.staging)
        self.status = status.model_copy(
            update={
                "stderr": curtain.excerpt(attempt.stderr) if status.reason else "",
                "milliseconds": round((time.monotonic() - began) * 1000),
            }
        )
        self._changes.notify()

    def _note_installer(self, *, gone: bool) -> None:
        self.status = self.status.model_copy(update={"installer_gone": gone})


class _Attempt:
    """The steps of the install."""

    def __init__(self, settings: Settings, places: _Places, request: InstallRequest, image: Image) -> None:
        self._settings = settings
        self._places = places
        self._request = request
        self._image = image
        self.stderr = ""

    async def run(self, note_installer: Callable[..., None]) -> tuple[Package, ...]:
        """Install and publish; return everything that was resolved."""
        from_image, missing = self._image.split(self._request.requirements)
        if not missing:
            return from_image
        credentials = self._prepare()
        try:
            installer = await Installer.launch(self._plan(*credentials))
            note_installer(gone=False)
            try:
                self._write_inputs()  # while the installer starts
                async with asyncio.timeout(self._request.timeout_seconds):
                    locked = await self._watched(self._drive(installer))
            finally:
                await asyncio.shield(installer.end())
                self.stderr = installer.stderr
                note_installer(gone=True)
        finally:
            for file in credentials:
                if file is not None:
                    file.unlink()
        return await asyncio.to_thread(self._publish, locked)

    def _prepare(self) -> tuple[Path | None, Path | None]:
        places, index = self._places, self._request.index
        shutil.rmtree(places.staging, ignore_errors=True)
        for directory in (places.staging, places.new_site, places.stubs):
            directory.mkdir()
        return (
            _secret(places.secret / "netrc", index.netrc),
            _secret(places.secret / "authority.pem", index.ca_bundle),
        )

    def _write_inputs(self) -> None:
        places = self._places
        self._image.write_stubs(places.stubs)
        places.lock.write_text(preferences(self._image.packages))
        places.requirements.write_text("\n".join(self._request.requirements) + "\n")

    def _plan(self, netrc: Path | None, authority: Path | None) -> Plan:
        settings, places = self._settings, self._places
        program = Path(settings.uv).resolve()
        python = Path(settings.python).resolve()
        return Plan(
            commands=(
                uv.compile_command(
                    settings.uv,
                    settings.python,
                    requirements=places.requirements,
                    lock=places.lock,
                    stubs=places.stubs,
                ),
                uv.install_command(settings.uv, settings.python, pins=places.pins, site=places.new_site),
            ),
            readable=(
                *SYSTEM_READABLE,
                str(Path(settings.uv).parent),
                str(program.parent),
                str(python.parents[1]),
                str(places.secret),
            ),
            writable=(str(places.staging), "/dev/null"),
            max_file_bytes=self._request.max_bytes,
            environment=uv.environment(
                index=self._request.index.url, directory=places.staging, netrc=netrc, authority=authority
            ),
            directory=places.staging,
        )

    async def _drive(self, installer: Installer) -> tuple[Locked, ...]:
        if await installer.step() != 0:
            raise self._failure(installer)
        try:
            locked = read_lock(self._places.lock.read_text())
        except LockError as error:
            raise InstallError(Reason.INSTALL_FAILED, str(error)) from error
        pins = [each.pin for each in locked if not self._image.has(each.name, each.version)]
        if pins:
            self._places.pins.write_text("\n".join(pins) + "\n")
            if await installer.step() != 0:
                raise self._failure(installer)
        return locked

    def _failure(self, installer: Installer) -> InstallError:
        words = installer.stderr
        return InstallError(diagnose(words), words or "the installer ended without a word")

    async def _watched(self, work: Coroutine[None, None, tuple[Locked, ...]]) -> tuple[Locked, ...]:
        """Let it work while the disk it takes is within bounds."""
        working = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({working}, timeout=MEASURE_SECONDS))[0]:
                used = await asyncio.to_thread(staging.usage, self._places.staging)
                if (
                    used.bytes > self._request.max_bytes * CACHE_SHARE
                    or used.files > self._request.max_files * CACHE_SHARE
                ):
                    raise InstallError(
                        Reason.INSTALL_FAILED,
                        f"the packages are above {self._request.max_bytes} bytes or {self._request.max_files} files",
                    )
            return working.result()
        finally:
            working.cancel()

    def _publish(self, locked: tuple[Locked, ...]) -> tuple[Package, ...]:
        places = self._places
        shutil.rmtree(places.cache, ignore_errors=True)
        try:
            staging.verify(places.new_site, max_bytes=self._request.max_bytes, max_files=self._request.max_files)
        except staging.StagingError as error:
            raise InstallError(Reason.INSTALL_FAILED, str(error)) from error
        staging.strip(places.new_site)
        wheels = staging.wheels(places.new_site)
        try:
            packages = tuple(
                Package(name=each.name, version=each.version)
                if self._image.has(each.name, each.version)
                else each.installed(wheels[each.name])
                for each in locked
            )
        except KeyError as error:
            raise InstallError(Reason.INSTALL_FAILED, f"{error.args[0]} was not installed") from error
        places.new_site.chmod(staging.DIRECTORY_MODE)
        places.new_site.rename(places.site)
        return packages


def _check(request: InstallRequest) -> None:
    address = urlsplit(request.index.url)
    if address.scheme not in {"http", "https"} or not address.hostname or address.username:
        raise RefusedError(ErrorCode.BAD_REQUEST, "the index is an http or https address without credentials")
    if min(request.timeout_seconds, request.max_bytes, request.max_files) <= 0:
        raise RefusedError(ErrorCode.BAD_REQUEST, "an install has a time and a size above zero")
    try:
        check_requirements(request.requirements)
    except ValueError as error:
        raise RefusedError(ErrorCode.BAD_REQUEST, str(error)) from error


def _secret(file: Path, content: str) -> Path | None:
    """Keep a secret in the agent's memory volume, if there is one to keep."""
    if not content:
        return None
    file.touch(mode=0o600)
    file.write_text(content)
    return file


def _failed(reason: Reason, message: str) -> InstallStatus:
    return InstallStatus(phase=InstallPhase.FAILED, reason=reason, message=message)
