"""The whole product in one process, for trials and tests: broker, engine, collector, processor."""
