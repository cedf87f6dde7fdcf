"""Static tables from the plan, and the P4Runtime client that installs and checks them."""

from controller.client import Address
from controller.pipelines import PipelineConfig, Pipelines, compiled_pipelines, read_pipelines
from controller.provisioning import ProvisionError, check, provision
from controller.push import Difference, Report, push, reconverge, verify

__all__ = [
    "Address",
    "Difference",
    "PipelineConfig",
    "Pipelines",
    "ProvisionError",
    "Report",
    "check",
    "compiled_pipelines",
    "provision",
    "push",
    "read_pipelines",
    "reconverge",
    "verify",
]
