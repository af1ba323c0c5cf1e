"""The real cuDNN 8 behind the same library, without a GPU: programs linked to libcudnn.so.8, and programs that look it up.

Would fail when: libcudnn.so.8 is not found behind a caller; a number of cuDNN 9 (version, status, function) is taken for one
of cuDNN 8; a function that only cuDNN 9 has is said to exist, or is called. Skipped where cuDNN 8 was not fetched
(tools/test.sh does).
"""
import os
import re
import subprocess
import sys
import unittest

import children
from elf_test import hooks

FOLDER = os.environ["CUDNN8_LIBRARY_DIR"]
WAYS = {"linked": {}, "looked up": {"CLIENT_CUDNN": "libcudnn.so.8"}}


@unittest.skipUnless(os.path.exists(FOLDER + "/libcudnn.so.8"), "no libcudnn.so.8 in " + FOLDER)
class Cudnn8(children.Case):
    def client(self, way, **variables):
        name = "descriptors_8" if way == "linked" else "descriptors_lookup"
        return self.preloaded(name, LD_LIBRARY_PATH=FOLDER, **WAYS[way], **variables)

    def test_it_answers_as_it_does_without_us(self):
        for way in WAYS:
            for asked in ({}, {"CONV_FWD_ALGO": "2"}, {"CONV_FWD_ALGO": "eng28", "CONVPIN_PROFILE": "engines"}):
                with self.subTest(way, asked=asked):
                    child = self.client(way, **asked)
                    answers = dict(line.split(": ") for line in child.stdout.splitlines())
                    self.assertEqual(answers["version"], "8907")
                    # In cuDNN 9 these are 2000 and 1001.
                    self.assertEqual((answers["finalize what is incomplete"], answers["handle without a GPU"]), ("3", "1"))
                    self.assertEqual({record["cudnn"] for record in child.of_type("problem")}, {"8.9.7"})  # the query was seen

    def test_a_call_that_we_fail_has_its_number(self):
        for way in WAYS:
            child = self.client(way, CONV_FWD_ALGO="nonsense", CONVPIN_STRICT="1", log=None)
            self.assertIn("convolutions fail until this is mended", child.stderr)
            self.assertTrue(child.stdout.endswith("query: 3\n"))  # CUDNN_STATUS_BAD_PARAM; 2000 in cuDNN 9

    def test_what_it_lacks(self):
        """Not found by a look-up; a program that gets at our export nevertheless is told so in cuDNN 8's number."""
        symbols = subprocess.run(["nm", "-D", "--defined-only", FOLDER + "/libcudnn.so.8"], capture_output=True, text=True).stdout
        lacking = sorted(set(hooks()) - set(re.findall(r" T (\w+)", symbols)))
        self.assertIn("cudnnGetLastErrorString", lacking)
        self.assertNotIn("cudnnBackendExecute", lacking)
        code = ("import ctypes, sys\n"
                "cudnn = ctypes.CDLL('libcudnn.so.8', ctypes.RTLD_GLOBAL)\n"
                "for name in sys.argv[1:]:\n"
                "    print(name, hasattr(cudnn, name), name.endswith('String') or ctypes.CDLL(None)[name](*[None] * 18))\n")
        env = children.environment(LD_PRELOAD=children.LIBRARY, LD_LIBRARY_PATH=FOLDER, CONV_FWD_ALGO="2")
        child = children.execute((sys.executable, "-c", code, *lacking), self.folder, env)
        self.assertEqual(child.stdout.splitlines(), [f"{name} False {True if name.endswith('String') else 9}" for name in lacking])

    def test_beside_cudnn_9(self):
        """Both in one process, each looked up: each answers for itself."""
        code = ("import ctypes\n"
                "for path in ('libcudnn.so.8', '%s/libcudnn.so.9', 'libcudnn.so.8'):\n"
                "    cudnn = ctypes.CDLL(path)\n"
                "    print(cudnn.cudnnGetVersion(), cudnn.cudnnBackendFinalize(None), cudnn.cudnnBackendExecute(None, None, None))\n"
                % children.CUDNN)
        child = self.preloaded(sys.executable, "-c", code, LD_LIBRARY_PATH=FOLDER, CONV_FWD_ALGO="2", log=None)
        eight, nine, again = (line.split() for line in child.stdout.splitlines())
        self.assertEqual(eight, again)
        self.assertEqual((eight[0], nine[0][0]), ("8907", "9"))
        self.assertLess(int(eight[1]), 20)
        self.assertGreaterEqual(int(nine[1]), 1000)


if __name__ == "__main__":
    children.main()
