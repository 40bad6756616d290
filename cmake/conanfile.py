"""wanamaker for Conan 2.

`conan install cmake` brings what the library stands on, `conan create cmake` packages it.
"""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy


class Wanamaker(ConanFile):
    name = "wanamaker"
    version = "0.1.0"
    description = "Finds out which half of a transformer's MLP nonlinearity is wasted"
    license = "MIT"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    requires = (
        "eigen/[>=3.4 <4]",
        "nlohmann_json/[>=3.11 <4]",
        "openblas/[>=0.3.20 <1]",
        "pcre2/[>=10.40 <11]",
        "utf8proc/[>=2.6 <3]",
        "xtensor/[>=0.24 <0.26]",
        "zlib/[>=1.2.11 <2]",
        "zstd/[>=1.5 <2]",
    )
    # The study program, the tests and the benchmarks.
    test_requires = (
        "benchmark/[>=1.7 <2]",
        "cli11/[>=2.1 <3]",
        "doctest/[>=2.4 <3]",
    )

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"WANAMAKER_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # The installed CMake package is used as it is.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "wanamaker")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
