"""The drift watcher: closed minutes from ClickHouse in, alarms that can be believed out."""
