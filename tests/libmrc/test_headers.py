"""Our headers of the API compile, and declare what OCP's do."""

import os
from pathlib import Path

import pytest

from tests.libmrc.compiled import REQUIREMENTS
from tests.libmrc.declarations import declarations, gcc

INCLUDE = Path(__file__).parents[2] / "libmrc" / "include"
pytestmark = REQUIREMENTS
ALL_WARNINGS = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror")


@pytest.fixture
def ocp() -> Path:
    if "MRCLAB_OCP" not in os.environ:
        pytest.skip("MRCLAB_OCP names no checkout of OCP-Multipath-Reliable-Connection")
    return Path(os.environ["MRCLAB_OCP"])


@pytest.mark.parametrize("version", ["LATEST", "(1,0,0)", "(1,0,1)"])
@pytest.mark.parametrize("header", ["mrc.h", "mrc_ctl.h"])
def test_every_structure_constant_and_signature_is_that_of_ocp(header, version, ocp, tmp_path) -> None:
    kinds = ("MRC_API_VER", "MRC_CTL_API_VER")[: 1 + (header == "mrc_ctl.h")]
    words = tuple(f"-D{kind}_USED={kind}{'_' * version.isalpha()}{version}" for kind in kinds)
    assert declarations(header, INCLUDE, tmp_path, words) == declarations(header, ocp, tmp_path, words)


def test_the_header_declares_the_whole_api(tmp_path: Path) -> None:
    declared = declarations("mrc.h", INCLUDE, tmp_path)
    assert len([name for name in declared if name.startswith("mrc_")]) == 27  # counted by hand in OCP's 1.0.1
    both = declarations("mrc_ctl.h", INCLUDE, tmp_path)
    assert len([name for name in both if name.startswith("mrc_ctl_")]) == 14
    assert declared["mrc_poll_cq"] == "int mrc_poll_cq (struct mrc_cq *, int, struct ibv_wc *)"
    # size and offset: 2 + 4 + 1 bytes, one of padding and another uint64_t stand before it
    assert declared["struct mrc_qp_attr.profile.cc_profile_id: uint64_t"] == "8 16"


def test_an_older_version_has_no_later_function(tmp_path: Path) -> None:
    declared = declarations("mrc.h", INCLUDE, tmp_path, ("-DMRC_API_VER_USED=MRC_API_VER(1,0,0)",))
    assert "mrc_query_device_ex" not in declared
    assert "mrc_query_device" in declared


def test_a_later_version_than_the_headers_is_refused() -> None:
    with pytest.raises(AssertionError, match="must be at most MRC_API_CURRENT_VERSION"):
        gcc(f"-I{INCLUDE}", *ALL_WARNINGS, "-DMRC_API_VER_USED=MRC_API_VER(1,0,2)", text="#include <mrc.h>\n")


def test_the_header_compiles_without_a_warning() -> None:
    gcc(f"-I{INCLUDE}", "-std=gnu99", *ALL_WARNINGS, text="#include <mrc_ctl.h>\n#include <mrc.h>\n")
