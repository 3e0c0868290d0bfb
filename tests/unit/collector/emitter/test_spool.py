import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup_audit.collector.emitter.disk import DiskBacklog
from lookup_audit.collector.emitter.entry import Entry
from lookup_audit.collector.emitter.segment import SUFFIX
from lookup_audit.collector.emitter.spool import Spool, lock_slot, take_slot
from lookup_audit.schemas.names import EventType

KINDS = list(EventType)


def entries(*numbers: int) -> list[Entry]:
    return [Entry(KINDS[n % 3], b'{"n":%d}' % n) for n in numbers]


def open_spool(directory: Path, **options: int) -> Spool:
    slot, lock = take_slot(directory)
    settings: dict[str, Any] = {"max_bytes": 1_000_000, **options}
    return Spool(slot, lock, **settings)


def drain(spool: Spool, limit: int = 7) -> list[Entry]:
    found: list[Entry] = []
    while batch := spool.peek(limit):
        found += batch
        spool.advance(len(batch))
    return found


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"slot-*/*{SUFFIX}"))


def test_events_come_out_in_the_order_they_went_in(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.append(entries(1, 2, 3))
    spool.append(entries(4))
    assert spool.peek(2) == spool.peek(2) == entries(1, 2)
    spool.advance(1)
    assert spool.peek(9) == entries(2, 3, 4)
    assert spool.count == 3
    spool.close()


def test_a_restart_goes_on_where_delivery_stopped(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.append(entries(*range(10)))
    spool.peek(4)
    spool.advance(4)
    spool.close()
    again = open_spool(tmp_path)
    assert again.count == 6
    again.append(entries(10))
    assert drain(again) == entries(*range(4, 11))
    again.close()


def test_delivered_files_are_deleted(tmp_path: Path) -> None:
    spool = open_spool(tmp_path, segment_bytes=200)
    for number in range(50):
        spool.append(entries(number))
    assert len(files(tmp_path)) >= 5
    assert drain(spool) == entries(*range(50))
    assert len(files(tmp_path)) <= 1
    spool.append(entries(99))
    assert drain(spool) == entries(99)
    spool.close()
    assert files(tmp_path) == []


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(1, 400), count=st.integers(1, 12))
def test_a_file_cut_anywhere_gives_its_whole_events_and_takes_new_ones(
    cut: int, count: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("torn")
    spool = open_spool(directory)
    spool.append(entries(*range(count)))
    spool.close()
    (file,) = files(directory)
    os.truncate(file, max(0, file.stat().st_size - cut))
    again = open_spool(directory)
    whole = again.count
    again.append(entries(77))
    assert drain(again) == [*entries(*range(count))[:whole], *entries(77)]
    again.close()


def test_a_flipped_bit_is_seen_and_later_files_are_still_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = open_spool(tmp_path, segment_bytes=1)
    for number in range(3):
        spool.append(entries(number))
    spool.close()
    first = files(tmp_path)[0]
    data = bytearray(first.read_bytes())
    data[-2] ^= 1
    first.write_bytes(data)
    again = open_spool(tmp_path)
    assert drain(again) == entries(1, 2)
    assert "no whole event" in caplog.text
    again.close()


def test_without_a_cursor_everything_is_sent_again(tmp_path: Path) -> None:
    spool = open_spool(tmp_path)
    spool.append(entries(1, 2))
    spool.peek(1)
    spool.advance(1)
    spool.close()
    (tmp_path / "slot-0" / "cursor").write_bytes(b"broken")
    again = open_spool(tmp_path)
    assert drain(again) == entries(1, 2)
    again.close()


def test_a_full_spool_says_so_before_it_is_written(tmp_path: Path) -> None:
    spool = open_spool(tmp_path, max_bytes=100)
    while spool.has_room:
        spool.append(entries(1))
    assert spool.size <= 150
    spool.close()


def test_each_process_takes_a_slot_of_its_own(tmp_path: Path) -> None:
    first, second = take_slot(tmp_path), take_slot(tmp_path)
    assert [first[0].name, second[0].name] == ["slot-0", "slot-1"]
    assert lock_slot(first[0]) is None
    os.close(first[1])
    third = take_slot(tmp_path)
    assert third[0].name == "slot-0"
    for _, lock in (second, third):
        os.close(lock)


def test_only_the_owner_may_read_the_spool(tmp_path: Path) -> None:
    spool = open_spool(tmp_path / "spool")
    spool.append(entries(1))
    modes = [p.stat().st_mode & 0o077 for p in (tmp_path / "spool").rglob("*")]
    assert set(modes) == {0}
    spool.close()


def test_what_a_gone_process_left_is_adopted(tmp_path: Path) -> None:
    keeper = open_spool(tmp_path)
    gone = open_spool(tmp_path)
    gone.append(entries(1, 2))
    gone.close()
    backlog = DiskBacklog(tmp_path, max_bytes=1_000_000, fsync=False)
    orphan_was_taken_first = backlog.recovered
    assert orphan_was_taken_first == 2
    backlog.advance(len(backlog.peek(9)))
    keeper.append(entries(3))
    keeper.close()
    assert backlog.adopt() == 1
    assert backlog.peek(9) == entries(3)
    backlog.advance(1)
    assert backlog.adopt() == 0
    backlog.append(entries(4))
    assert backlog.peek(9) == entries(4)
    assert backlog.close() == 0


def test_a_disk_that_takes_nothing_keeps_the_batch_in_memory_and_recovers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backlog = DiskBacklog(tmp_path, max_bytes=1_000_000, fsync=False)
    slot = tmp_path / "slot-0"
    hidden = tmp_path / "hidden"
    slot.rename(hidden)
    backlog.append(entries(1, 2))
    assert not backlog.has_room
    assert backlog.peek(9) == entries(1, 2)
    assert "stay in memory" in caplog.text
    hidden.rename(slot)
    assert backlog.has_room
    assert backlog.peek(9) == entries(1, 2)
    assert files(tmp_path) != []
    assert backlog.close() == 0


def test_after_a_fork_the_child_leaves_files_and_lock_alone(tmp_path: Path) -> None:
    backlog = DiskBacklog(tmp_path, max_bytes=1_000_000, fsync=False)
    backlog.append(entries(1))
    backlog.forget()
    assert len(files(tmp_path)) == 1
