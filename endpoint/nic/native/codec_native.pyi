def crc32(data: bytes | bytearray | memoryview, state: int, means: int, /) -> int: ...
def has(frame: bytes | memoryview, at: int, part: bytes, /) -> bool: ...
def place(
    memory: bytearray | memoryview, at: int, frame: bytes | bytearray | memoryview, start: int, size: int, /
) -> None: ...
def sack(
    headers: bytes,
    traffic_class: int,
    destination: int,
    cack: int,
    first: int,
    answer: int,
    ev: int,
    mpr: int,
    start: int,
    bitmap: int,
    stamp: int,
    beyond: int,
    congestion: int,
    /,
) -> bytes: ...
def seal(headers: bytes, traffic_class: int, transport: bytes | bytearray | memoryview, /) -> bytes: ...
def u16(frame: bytes | memoryview, at: int, /) -> int: ...
def u32(frame: bytes | memoryview, at: int, /) -> int: ...
def u64(frame: bytes | memoryview, at: int, /) -> int: ...
def usual(
    frame: bytes | memoryview, address: bytes, addresses: bytes, trimmed: int, port: int, counted: bool, /
) -> bool: ...
def write(
    headers: bytes,
    traffic_class: int,
    opcode: int,
    second: int,
    destination: int,
    psn: int,
    meth: int,
    va: int,
    rkey: int,
    length: int,
    memory: bytearray | memoryview | None,
    start: int,
    size: int,
    immediate: bytes,
    /,
) -> bytes: ...
