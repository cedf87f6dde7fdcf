"""Prometheus' text exposition format, version 0.0.4."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str | int]


@dataclass
class ExposedMetric:
    """A metric with its samples. The name of a counter ends with `_total`; units are base units (seconds, bytes)."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str | int) -> None:
        """Add a sample; metrics with the same labels must not be added twice."""
        self.samples.append((labels, value))


def text(metrics: Iterable[ExposedMetric]) -> str:
    """All metrics that have samples, as Prometheus reads them."""
    return "".join(f"{line}\n" for metric in metrics if metric.samples for line in _lines(metric))


def _lines(metric: ExposedMetric) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in metric.samples:
        told = ",".join(f'{name}="{_quoted(str(label))}"' for name, label in labels.items())
        yield f"{metric.name}{{{told}}} {value!r}" if told else f"{metric.name} {value!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', '\\"')
