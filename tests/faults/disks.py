"""Servers whose PostgreSQL stores its data and its write-ahead log on small disks, which a test can fill.

A disk is a tmpfs, or an ext4 image on a tmpfs. If the tmpfs below an image is full, the file system in the image still accepts
writes, and fails when it flushes them.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from config.launcher import postgres
from tests.faults.world import World

_ROOM = "512m"
_IMAGE_BYTES = 384 * 1024 * 1024
# The server recycles segments of the write-ahead log early, so that the write-ahead log fits on the small disk.
_SETTINGS = ("max_wal_size=64MB", "min_wal_size=32MB")


class Disk:
    """A tmpfs. It uses only as much memory as the files on it need."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={_ROOM},mode=0711", "tmpfs", str(path))

    def fill(self) -> None:
        """Use up all free space."""
        self._resize(str(shutil.disk_usage(self.path).used))

    def repair(self) -> None:
        """Free the space."""
        self._resize(_ROOM)

    def unmount(self) -> None:
        _run("umount", str(self.path))

    def _resize(self, size: str) -> None:
        _run("mount", "-o", f"remount,size={size}", str(self.path))


class ImageDisk:
    """An ext4 file system in a file on a tmpfs, mounted with a loop device."""

    def __init__(self, path: Path, below: Path) -> None:
        self.path, self._below = path, Disk(below)
        path.mkdir()
        self._image = below / "image"
        with self._image.open("wb") as file:
            file.truncate(_IMAGE_BYTES)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()
        path.chmod(0o711)

    def fill(self) -> None:
        """Use up the free space of the tmpfs below the image. The file system in the image notices this only at the next flush."""
        self._below.fill()

    def repair(self) -> None:
        """Free the space, and check the file system, as a restart of the machine does."""
        _run("umount", str(self.path))
        self._below.repair()
        # Status 1 means that errors were corrected.
        subprocess.run(["e2fsck", "-f", "-y", str(self._image)], check=False, capture_output=True)
        self._mount()

    def unmount(self) -> None:
        _run("umount", str(self.path))
        self._below.unmount()

    def _mount(self) -> None:
        _run("mount", "-o", "loop,errors=continue", str(self._image), str(self.path))


class DiskWorld(World):
    """The servers of the fault tests, with PostgreSQL on two small disks."""

    data: Disk | ImageDisk
    log: Disk

    def _start_database(self) -> None:
        self.data, self.log = self._data_disk(), Disk(self.directory / "log-disk")
        postgres.prepare(self.directory, durable=True)
        _move(self.directory / "postgres" / "pg_wal", self.log.path)
        _move(self.directory / "postgres", self.data.path)
        # The copied files must be on the disk before the test fills it: PostgreSQL flushes only the files that it changes.
        _run("sync", "--file-system", str(self.data.path), str(self.log.path))
        super()._start_database()

    def _data_disk(self) -> Disk | ImageDisk:
        return Disk(self.directory / "data-disk")

    def start_postgres(self, environment: object = None, settings: object = ()) -> None:
        super().start_postgres(settings=_SETTINGS)

    def close(self) -> None:
        self.redis.stop()
        self.postgres.stop()
        self.data.unmount()
        self.log.unmount()
        shutil.rmtree(self.directory, ignore_errors=True)


class ImageWorld(DiskWorld):
    """The servers of the fault tests, with the data of PostgreSQL in an ext4 image."""

    def _data_disk(self) -> ImageDisk:
        return ImageDisk(self.directory / "data-disk", self.directory / "below")


@functools.cache
def obstacle(kind: type[Disk] | type[ImageDisk]) -> str:
    """Return why this machine cannot create a disk of this kind, or an empty string."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        try:
            disk = Disk(place / "disk") if kind is Disk else ImageDisk(place / "disk", place / "below")
        except (OSError, subprocess.CalledProcessError) as error:
            subprocess.run(["umount", "-q", str(place / "below")], check=False, capture_output=True)
            return f"this machine cannot mount a {'tmpfs' if kind is Disk else 'loop device with ext4'}: {type(error).__name__}"
        disk.unmount()
    return ""


def _move(path: Path, disk: Path) -> None:
    _run("mv", str(path), str(disk))
    path.symlink_to(disk / path.name)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
