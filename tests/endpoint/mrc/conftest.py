from types import ModuleType

import pytest

from tests.helpers.transport import native_codec


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    found = native_codec.load(tmp_path_factory.mktemp("codec"))
    if found is None:
        pytest.skip("needs a C compiler and Python.h")
    return found
