"""What a service sets for its emitter, in one frozen model.

``collector/README.md`` shows every field; a test compares it with this model.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from lookup_audit.collector.redaction import RedactionConfig, load_redaction
from lookup_audit.collector.settings import MEBIBYTE, mistakes, split_commas
from lookup_audit.schemas.errors import ConfigError

URL_VARIABLE: Final = "LOOKUP_AUDIT_URL"
TOKEN_VARIABLE: Final = "LOOKUP_AUDIT_TOKEN"


class EmitterConfig(BaseModel):
    """Settings of an emitter; the defaults suit one service process and a collector near by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str | None = Field(None, description="base URL of the collector; else LOOKUP_AUDIT_URL")
    token: SecretStr | None = Field(
        None, description="bearer token of the collector; else LOOKUP_AUDIT_TOKEN"
    )
    bootstrap_servers: Annotated[tuple[str, ...], BeforeValidator(split_commas)] = Field(
        (), description="Kafka brokers, host:port, instead of a collector"
    )
    kafka_options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="further kafka-python options"
    )
    tenant: str | None = Field(None, description="tenant of events that name none")
    service: str | None = Field(None, description="service name of lookups that name none")
    service_version: str | None = Field(None, description="its version")
    set_span_attributes: bool = Field(
        True, description="write `lookup_audit.*` attributes on the current span"
    )
    max_queue_events: int = Field(10_000, ge=1, description="most events held in memory")
    max_queue_bytes: int = Field(
        32 * MEBIBYTE, ge=1024, description="most bytes of them; beyond, events are dropped"
    )
    block_seconds: float = Field(
        0.0, ge=0, le=5, description="how long `emit` may wait for room in a full queue"
    )
    max_event_bytes: int = Field(1_000_000, ge=1024, description="larger events are dropped")
    batch_events: int = Field(200, ge=1, le=10_000, description="most events in one request")
    batch_bytes: int = Field(2 * MEBIBYTE, ge=1024, description="most bytes of one request")
    linger_seconds: float = Field(
        0.2, gt=0, le=60, description="how long a lone event waits for others"
    )
    request_timeout_seconds: float = Field(10.0, gt=0, description="patience with one request")
    retry_seconds: float = Field(0.5, gt=0, description="first wait after a failure; it doubles")
    retry_max_seconds: float = Field(30.0, gt=0, description="longest wait between two tries")
    close_seconds: float = Field(
        5.0, ge=0, description="time to deliver what is left when the process ends"
    )
    spool_dir: Path | None = Field(
        None, description="directory that keeps undelivered events over a restart"
    )
    spool_max_bytes: int = Field(
        256 * MEBIBYTE, ge=MEBIBYTE, description="its largest size, for each process"
    )
    spool_fsync: bool = Field(
        False, description="survive a power cut, not only a killed process; slower"
    )
    redaction: RedactionConfig | None = Field(
        None, description="what is hashed, dropped or replaced before anything is written"
    )

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ, **values: Any) -> "EmitterConfig":
        """Make a config from outside values and the environment.

        Raises:
            ConfigError: Naming every mistake at once.
        """
        if not values.get("url") and not values.get("bootstrap_servers"):
            values["url"] = environ.get(URL_VARIABLE)
        if values.get("token") is None:
            values["token"] = environ.get(TOKEN_VARIABLE)
        if values.get("redaction") is None:
            values["redaction"] = load_redaction(None, environ)
        try:
            return cls(**values)
        except ValidationError as error:
            raise ConfigError(mistakes(error)) from error

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write the collector's base URL, such as http://127.0.0.1:4318")
        if parts.username or parts.password:
            raise ValueError("credentials do not belong into the URL; set token")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _check_together(self) -> "EmitterConfig":
        if self.url is not None and self.bootstrap_servers:
            raise ValueError("url and bootstrap_servers exclude each other; set one of them")
        if self.max_queue_bytes < self.max_event_bytes:
            raise ValueError(
                "max_queue_bytes is below max_event_bytes, so a large event could never be taken; "
                "raise max_queue_bytes"
            )
        return self
