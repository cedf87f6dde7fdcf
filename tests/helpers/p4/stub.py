"""P4Runtime's generated gRPC stub, over the messages of `switch/p4rt/bindings.py`."""

import importlib

from switch.p4rt import bindings

assert bindings.p4runtime_pb2 is not None  # made before the stub's module asks for them
P4RuntimeStub = importlib.import_module("p4.v1.p4runtime_pb2_grpc").P4RuntimeStub
