"""Names the platform of the wheel. The program is static: it runs with every C library, and with every Python."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformTag(BuildHookInterface):
    """Sets the tag of the wheel from the architecture that deploy/release builds for."""

    def initialize(self, version, build_data):
        machine = os.environ["PACKAGE_MACHINE"]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
