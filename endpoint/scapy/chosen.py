"""The dialect that all layers build and dissect; `use_dialect` sets it."""

from __future__ import annotations

from endpoint.nic.dialect import DEFAULT, Dialect

dialect: Dialect = DEFAULT
