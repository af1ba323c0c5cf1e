"""The library as a file, and what merely loading it does.

Would fail when: a hooked function or one of the C API is not exported, or anything else is; the library needs cuDNN, CUDA or a C++ runtime
(a preloaded library with a missing dependency kills every process); it needs a newer glibc than the machine that built
it has; it gets an executable stack or a RUNPATH; a static object of ours is initialised before main; a process without
cuDNN opens a file because of us.
"""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import children

SOURCE = pathlib.Path(os.environ["CONVPIN_SOURCE_DIR"])
ALLOWED = re.compile(r"(libm|libc|libpthread|libdl)\.so\.\d+|ld-linux-.*\.so\.\d+")


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, children.LIBRARY], env=os.environ | {"LC_ALL": "C"}, check=True,
                          capture_output=True, text=True).stdout


def symbols():
    """(name with its version, whether it is defined) of the dynamic symbol table."""
    for line in readelf("--dyn-syms").splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[0].rstrip(":").isdigit():
            yield columns[7], columns[6] != "UND"


def hooks():
    return re.findall(r"^CONVPIN_HOOK\((\w+),", (SOURCE / "shim/hooks/functions.def").read_text(), re.M)


def api():
    return re.findall(r"^CONVPIN_API .*?\b(\w+)\(", (SOURCE / "shim/api/convpin.h").read_text(), re.M)


class Elf(unittest.TestCase):
    def test_exports_exactly_the_hooks_and_the_api(self):
        self.assertGreater(len(hooks()), 10)
        self.assertIn("convpin_set_algo", api())
        self.assertEqual(sorted(name for name, defined in symbols() if defined), sorted(hooks() + api() + ["dlsym"]))

    def test_needs_only_libc(self):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d"))
        self.assertIn("libc.so.6", needed)
        self.assertEqual([name for name in needed if not ALLOWED.fullmatch(name)], [])

    def test_undefined_symbols_are_libcs(self):
        strays = [name for name, defined in symbols() if not defined and re.match(r"cu[A-Z]|cuda|cudnn|nvml|_ZNK?St|_ZT", name)]
        self.assertEqual(strays, [])

    def test_glibc_version(self):
        needs = readelf("-V")
        self.assertNotRegex(needs, r"GLIBCXX|CXXABI|GCC_")
        versions = {tuple(map(int, text.split("."))) for text in re.findall(r"GLIBC_(\d+\.\d+)", needs)}
        here = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
        print("highest glibc version needed:", ".".join(map(str, max(versions))))
        self.assertLessEqual(max(versions), here)

    def test_harmless_headers(self):
        dynamic, segments = readelf("-d"), readelf("-l")
        self.assertNotRegex(dynamic, r"RPATH|RUNPATH|TEXTREL")
        self.assertRegex(segments, r"GNU_STACK.*RW +0x")

    def test_no_static_object_of_ours_is_initialised(self):
        every = subprocess.run(["nm", children.LIBRARY], capture_output=True, text=True).stdout
        if " t " not in every:
            self.skipTest("the library is stripped")
        ours = [line for line in every.splitlines() if "_GLOBAL__sub_I" in line and "convpin" in line]
        self.assertEqual(ours, [])


class Loading(children.Case):
    ASKING = {"CONV_FWD_ALGO": "1", "CONVPIN_CONFIG": "pins.toml", "CONVPIN_PROFILE": "engines", "CONVPIN_STRICT": "1"}

    def test_a_process_without_cudnn_says_and_changes_nothing(self):
        self.write("pins.toml", "nonsense")
        for status, *arguments in [(0, "/bin/true"), (1, "/bin/false"), (3, "/bin/sh", "-c", "echo out; echo err >&2; exit 3"),
                                   (0, "/bin/sh", "-c", "/bin/true | /bin/cat")]:
            with self.subTest(arguments):
                child = self.preloaded(*arguments, log=None, status=status, **self.ASKING)
                self.assertEqual(child.stderr, self.bare(*arguments).stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["pins.toml"])

    def opened(self, env):
        trace = self.folder / "strace.txt"
        done = subprocess.run(["strace", "-f", "-o", str(trace), "-e", "trace=open,openat,readlink,getcwd,socket",
                               "-E", "LD_PRELOAD=" + env.pop("LD_PRELOAD", ""), "/bin/true"], env=env)
        if done.returncode != 0:
            self.skipTest("strace can't trace here")
        return re.findall(r'"([^"]*)"', trace.read_text())

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_a_process_without_cudnn_opens_nothing_because_of_us(self):
        bare = set(self.opened(children.environment()))
        fresh = [path for path in self.opened(children.environment(LD_PRELOAD=children.LIBRARY, **self.ASKING))
                 if path not in bare]
        self.assertIn(children.LIBRARY, fresh)  # the negative control: strace sees what we do
        # The working directory is noted when we are loaded: relative paths are meant from there.
        others = [path for path in fresh if path not in (children.LIBRARY, os.getcwd())
                  and not ALLOWED.fullmatch(os.path.basename(path))]
        self.assertEqual(others, [])


if __name__ == "__main__":
    children.main()
