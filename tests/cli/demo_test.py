"""What tools/demo.sh builds in an empty tree, and that it stops where it has no library.

Would fail when: a target that demo.sh names doesn't exist, or is not the one that it means (the library and the command have
one name, and Ninja takes a file of a target's name for the target); it shows the program without the library and says nothing.
"""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import command

DEMO = pathlib.Path(os.environ["CONVPIN_SOURCE_DIR"]) / "tools" / "demo.sh"
BUILD = pathlib.Path(os.environ["CONVPIN_CLIENTS_DIR"])


class Demo(command.Case):
    @unittest.skipUnless(shutil.which("ninja") and (BUILD / "build.ninja").exists(), "the build tree is not Ninja's")
    def test_its_targets_are_all_that_it_runs(self):
        targets = re.search(r"--target (.+)", DEMO.read_text())[1].split()
        done = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", *targets], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        built = re.findall(r"-o (\S+)", done.stdout)
        for file in "libconvpin.so", "convpin", "convclient":
            self.assertIn(file, built)
        self.assertTrue([file for file in built if file.startswith("standin/libcudnn.so")], built)

    def test_without_a_library(self):
        done = subprocess.run([DEMO], env={**os.environ, "CONVPIN_LIBRARY": "/nowhere/libconvpin.so"}, capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("there is no library /nowhere/libconvpin.so", done.stderr)


if __name__ == "__main__":
    command.main()
