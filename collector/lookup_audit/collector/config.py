"""What a user sets for the collector, in one frozen model.

Everything is checked when the model is made, so that a wrong setting stops the start and not the
first request. ``collector/README.md`` shows every field; a test compares it with this model.
"""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from lookup_audit.collector.redaction import RedactionConfig
from lookup_audit.collector.settings import MEBIBYTE, mistakes, split_commas
from lookup_audit.schemas.errors import ConfigError
from lookup_audit.schemas.timeliness import DEFAULT_RETENTION_DAYS

_SHA256 = re.compile(r"[0-9a-f]{64}")

# What the publisher itself decides: the promise to callers rests on these.
OWN_KAFKA_OPTIONS = frozenset(
    {
        "acks",
        "bootstrap_servers",
        "compression_type",
        "delivery_timeout_ms",
        "enable_idempotence",
        "kafka_client",
        "max_block_ms",
        "max_request_size",
        "request_timeout_ms",
        "retries",
    }
)


class CollectorConfig(BaseModel):
    """Settings of the collector; the defaults suit one machine and a broker beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="address to listen on; loopback unless tokens exist")
    port: int = Field(4318, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    bootstrap_servers: Annotated[tuple[str, ...], BeforeValidator(split_commas)] = Field(
        ("127.0.0.1:9092",), description="Kafka brokers to start from, host:port"
    )
    kafka_options: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,
        description="further kafka-python options, such as security_protocol and sasl_*",
    )
    token_hashes: tuple[str, ...] = Field(
        (), repr=False, description="SHA-256 (hex) of each accepted bearer token; empty: no tokens"
    )
    max_body_bytes: int = Field(
        64 * MEBIBYTE, ge=1024, description="largest body, as sent and also after decompression"
    )
    max_event_bytes: int = Field(
        1_000_000, ge=1024, description="largest single event; keep it under the broker's limit"
    )
    max_events: int = Field(10_000, ge=1, description="most events in one request")
    max_in_flight_bytes: int = Field(
        256 * MEBIBYTE, ge=1024, description="bytes held for all requests together; beyond: 429"
    )
    max_in_flight_events: int = Field(
        50_000, ge=1, description="events sent and not yet confirmed; beyond: 429"
    )
    publish_timeout_seconds: float = Field(
        5.0, ge=0.5, le=60, description="longest wait for the broker's confirmation; beyond: 503"
    )
    body_timeout_seconds: float = Field(
        30.0, gt=0, description="longest time a caller may take to send a body; beyond: 408"
    )
    shutdown_seconds: float = Field(
        10.0, gt=0, description="time for requests in flight when the service stops"
    )
    otlp_join_seconds: float = Field(
        7.0, ge=0, le=60, description="how long spans wait for their parents, given a spool"
    )
    otlp_join_bytes: int = Field(
        64 * MEBIBYTE, ge=0, description="bytes of spans that may wait; beyond: nothing waits"
    )
    otlp_spool_dir: Path | None = Field(
        None, description="where waiting spans are kept; without it none waits"
    )
    retention_days: int = Field(
        DEFAULT_RETENTION_DAYS, ge=1, description="events older than this are refused as expired"
    )
    redaction: RedactionConfig | None = Field(
        None, description="what is hashed, dropped or replaced before anything is written"
    )

    @classmethod
    def load(cls, **values: Any) -> "CollectorConfig":
        """Make a config from outside values.

        Raises:
            ConfigError: Naming every mistake at once.
        """
        try:
            return cls(**values)
        except ValidationError as error:
            raise ConfigError(mistakes(error)) from error

    @field_validator("bootstrap_servers")
    @classmethod
    def _check_servers(cls, servers: tuple[str, ...]) -> tuple[str, ...]:
        if not servers:
            raise ValueError("name at least one broker, such as 127.0.0.1:9092")
        for server in servers:
            host, _, port = server.rpartition(":")
            if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
                raise ValueError(f"{server!r} has no port; write host:port, such as kafka:9092")
        return servers

    @field_validator("token_hashes")
    @classmethod
    def _check_hashes(cls, hashes: tuple[str, ...]) -> tuple[str, ...]:
        # The value is left out of the message: it may be a token put here by mistake.
        if not all(_SHA256.fullmatch(value) for value in hashes):
            raise ValueError(
                "each is the SHA-256 of a token as 64 lower-case hex digits; "
                "make one with lookup_audit.collector.auth.hash_token"
            )
        return hashes

    @field_validator("kafka_options")
    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        own = sorted(OWN_KAFKA_OPTIONS & options.keys())
        if own:
            raise ValueError(f"{', '.join(own)}: set by the collector itself; leave it out")
        return options

    @model_validator(mode="after")
    def _check_together(self) -> "CollectorConfig":
        problems = []
        unsafe = unsafe_bind(self.host, self.token_hashes)
        if unsafe:
            problems.append(unsafe)
        if self.redaction is not None and self.otlp_spool_dir is not None:
            problems.append(
                "otlp_spool_dir keeps spans as they came, before redaction; leave it out, so that "
                "no span waits for its parents"
            )
        if self.max_event_bytes > self.max_body_bytes:
            problems.append("max_event_bytes is above max_body_bytes; raise max_body_bytes")
        if self.max_in_flight_bytes < self.max_body_bytes:
            problems.append(
                "max_in_flight_bytes is below max_body_bytes, so a full body could never be "
                "taken; raise max_in_flight_bytes"
            )
        if self.max_in_flight_events < self.max_events:
            problems.append(
                "max_in_flight_events is below max_events, so a full request could never be "
                "published; raise max_in_flight_events"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self


def unsafe_bind(host: str, token_hashes: tuple[str, ...]) -> str:
    """Say what is wrong with listening on ``host`` with these tokens, or ``""``.

    >>> unsafe_bind("127.0.0.1", ())
    ''
    >>> unsafe_bind("0.0.0.0", ()).split(";")[0]
    'host 0.0.0.0 can be reached from other machines and no token is configured'
    """
    if token_hashes or is_loopback(host):
        return ""
    return (
        f"host {host} can be reached from other machines and no token is configured; "
        "set token_hashes, or listen on 127.0.0.1"
    )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only; other names count as not."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
