"""The OTLP receiver: spans and evaluation events of any instrumented application in, events out."""

from lookup_audit.collector.otlp.receiver import OtlpReceiver

__all__ = ["OtlpReceiver"]
