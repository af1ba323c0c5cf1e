"""`convpin doctor`: whether a program can be pinned.

Would fail when: a program that can be pinned is said not to be, or the other way round; which cuDNN a program is linked to,
or how it finds it, is told wrongly; the program is started.
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import command


class Doctor(command.Case):
    def findings(self, *program, status=0, **variables):
        """By what they are about and their verdict, the last of each; and all."""
        rows = json.loads(self.convpin("doctor", "--json", "--", *program, status=status, **variables).stdout)
        return {(row["what"], row["verdict"]): row for row in rows}, rows

    def test_a_linked_program(self):
        client = str(command.children.CLIENTS / "convclient")
        found, rows = self.findings(client)
        self.assertEqual(found["program", "ok"]["finding"], client)
        self.assertIn("libcudnn.so.9 => " + command.children.STANDIN, found["cuDNN", "ok"]["finding"])
        self.assertIn(("libconvpin.so", "ok"), found)

    def test_a_linked_program_whose_cudnn_is_not_found(self):
        if self.system_has_cudnn():
            self.skipTest("the loader finds a cuDNN of the system's here")
        lost, _ = self.findings(str(command.children.CLIENTS / "convclient"), status=1, LD_LIBRARY_PATH="/nowhere")
        self.assertIn("LD_LIBRARY_PATH", lost["cuDNN", "no"]["advice"])

    def system_has_cudnn(self):
        return "libcudnn.so.9 " in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout

    def test_a_program_that_looks_it_up(self):
        _, rows = self.findings(str(command.children.CLIENTS / "dlopened"))
        self.assertFalse([row for row in rows if row["verdict"] == "no"])

    def test_python(self):
        found, rows = self.findings(os.path.realpath(sys.executable))
        self.assertIn(("program", "ok"), found)
        script = self.write("train.py", f"#!{os.path.realpath(sys.executable)}\nopen('started', 'w')\n")
        os.chmod(self.folder / script, 0o755)
        found, rows = self.findings("./train.py")
        self.assertIn(os.path.realpath(sys.executable), found["program", "ok"]["finding"])
        self.assertFalse((self.folder / "started").exists())

    def test_python_behind_an_environment_managers_script(self):
        os.chmod(self.folder / self.write("python3", f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} "$@"\n'), 0o755)
        found, rows = self.findings("./python3")
        self.assertEqual(found["program", "ok"]["finding"], os.path.realpath(sys.executable), rows)

    @unittest.skipUnless(shutil.which("gcc"), "no compiler here")
    def test_two_copies_have_their_own_versions(self):
        """As cuDNN's: a dispatcher, and the part that knows the version, under the same names in both copies."""
        for name, version in (("first", 91400), ("second", 91900)):
            folder = self.folder / name / "nvidia/cudnn/lib"
            folder.mkdir(parents=True)
            for library, code, more in (("libcudnn_graph.so.9", f"unsigned long version(void) {{ return {version}; }}", []),
                                        ("libcudnn.so.9", "unsigned long version(void); unsigned long cudnnGetVersion(void) { return version(); }",
                                         [folder / "libcudnn_graph.so.9", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"])):
                source = self.write("part.c", code)
                subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname," + library, source, *more, "-o", folder / library],
                               cwd=self.folder, check=True)
        _, rows = self.findings(os.path.realpath(sys.executable), PYTHONPATH=f"{self.folder}/first:{self.folder}/second")
        for name, version in (("first", "9.14.0"), ("second", "9.19.0")):
            self.assertIn(f"{self.folder.resolve()}/{name}/nvidia/cudnn/lib/libcudnn.so.9, {version}", [row["finding"] for row in rows])

    @unittest.skipUnless(shutil.which("gcc"), "no compiler here")
    def test_a_static_program(self):
        self.write("main.c", "int main(void) { return 0; }")
        if subprocess.run(["gcc", "-static", "main.c", "-o", "static"], cwd=self.folder, capture_output=True).returncode:
            self.skipTest("no static C library here")
        found, _ = self.findings("./static", status=1)
        self.assertIn("statically", found["program", "no"]["advice"])
        os.chmod(self.folder / "static", 0o4755)
        self.assertIn("setuid", self.findings("./static", status=1)[0]["program", "no"]["advice"])

    def test_what_is_no_program(self):
        self.convpin("doctor", "no-such-program", status=2)


if __name__ == "__main__":
    command.main()
