#!/usr/bin/env python3
"""The Debian packages on this machine: installed, used, and removed without a trace.

debian_test.py FOLDER [arguments of unittest]: FOLDER has the three .deb files. Root and dpkg are needed; a machine that has
one of the packages already is left as it is.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import program_checks as checks

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
PACKAGES = ("ashlar", "libashlar1", "libashlar-dev")
# Of lintian's errors and warnings: what is meant, or CPack's.
EXPECTED_TAGS = {
    "initial-upload-closes-no-bugs",
    "library-not-linked-against-libc",  # the two shims have no code: a name is found in the library that they depend on
    "maintscript-calls-ldconfig",  # as CPack writes it
    "pkg-config-unavailable-for-cross-compilation",  # the libraries lie in /usr/lib, as of one architecture
}


def is_installed(package):
    return subprocess.run(["dpkg", "-s", package], capture_output=True, text=True).stdout.find("ok installed") >= 0


def why_not():
    if not shutil.which("dpkg"):
        return "no dpkg: this is no Debian"
    if os.getuid() != 0:
        return "only root installs packages"
    return next((f"{package} is installed already" for package in PACKAGES if is_installed(package)), "")


def files_of(package):
    lines = checks.run("dpkg", "-L", package).splitlines()
    return [path for path in lines if pathlib.Path(path).is_file()]


@unittest.skipIf(why_not(), why_not())
class DebianTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ashlar_debian_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        (cls.debs) = [next(FOLDER.glob(f"{package}_*.deb")) for package in PACKAGES]
        cls.addClassCleanup(checks.run, "dpkg", "--purge", *PACKAGES)
        checks.run("dpkg", "--install", *cls.debs)

    def test_program(self):
        checks.check_version("ashlar")
        checks.check_explain("ashlar")
        checks.check_dry_run("ashlar", "/usr/bin/python3", self.folder)

    def test_man_page_and_completions(self):
        for path in ("man/man1/ashlar.1.gz", "bash-completion/completions/ashlar", "zsh/vendor-completions/_ashlar",
                     "fish/vendor_completions.d/ashlar.fish", "doc/ashlar/copyright", "doc/libashlar1/copyright"):
            self.assertTrue(pathlib.Path("/usr/share", path).is_file(), path)

    def test_c_program_by_pkg_config(self):
        if not (shutil.which("cc") and shutil.which("pkg-config")):
            self.skipTest("no C compiler, or no pkg-config")
        flags = checks.run("pkg-config", "--cflags", "--libs", "ashlar").split()
        checks.run("cc", "-Wall", "-Werror", checks.HERE / "client.c", *flags, "-o", self.folder / "client")
        self.assertRegex(checks.run(self.folder / "client"), rf"^{re.escape(checks.VERSION)}: out of memory")

    def test_cpp_program_by_cmake(self):
        if not shutil.which("c++"):
            self.skipTest("no C++ compiler")
        source, build = checks.ROOT / "docs/examples/allocate", self.folder / "allocate"
        checks.run("cmake", "-S", source, "-B", build)
        checks.run("cmake", "--build", build)
        self.assertIn("200 requests took 2 device calls", checks.run(build / "allocate"))

    def test_each_file_is_in_one_package(self):
        files = [path for package in PACKAGES for path in files_of(package)]
        self.assertEqual(sorted(set(files)), sorted(files))
        self.assertIn("/usr/lib/libashlar.so.1", files_of("libashlar1"))
        self.assertNotIn("/usr/lib/libashlar.so.1", files_of("libashlar-dev"))

    def test_dependencies(self):
        depends = {path.name.split("_")[0]: checks.run("dpkg", "--field", path, "Depends") for path in self.debs}
        self.assertIn("libc6 (>= ", depends["ashlar"])
        self.assertIn("libc6 (>= ", depends["libashlar1"])
        self.assertIn("libashlar1 (= ", depends["libashlar-dev"])

    def test_lintian(self):
        if not shutil.which("lintian"):
            self.skipTest("no lintian")
        ended = subprocess.run(["lintian", "--tag-display-limit", "0", "--fail-on", "none", *map(str, self.debs)],
                               capture_output=True, text=True)
        tags = [line for line in ended.stdout.splitlines() if re.match(r"[EW]:", line)]
        self.assertEqual([line for line in tags if line.split()[2] not in EXPECTED_TAGS], [])

    def test_purge_leaves_nothing(self):
        checks.run("dpkg", "--purge", *PACKAGES)
        self.assertFalse([path for path in pathlib.Path("/usr").glob("lib/*ashlar*")])
        self.assertIsNone(shutil.which("ashlar", path="/usr/bin"))
        checks.run("dpkg", "--install", *self.debs)


if __name__ == "__main__":
    unittest.main()
