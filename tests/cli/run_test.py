"""`convpin run`, `path`, `help` and `completion`.

Would fail when: a program's arguments, exit status or output is not its own; an option of the program is taken for ours;
another preloaded library is lost; a configuration with an error starts the program; the log or the configuration is looked
for where the program went instead of where it was started; a recording profiles unasked, or takes another log's place in
silence; --help lacks its example; the man page lacks a
command or is no good roff; bash does not complete.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import command
from command import COMMAND, PROBLEM

LIBRARY = os.environ["CONVPIN_LIBRARY"]


class Run(command.Case):
    def test_the_program_keeps_its_arguments(self):
        words = ["--config", "x", "-h", "--", "", "[a,b]", "a b", "run", "--help"]
        for begin in (["--"], [], ["--record", "log", "--"], ["--record=log"]):
            with self.subTest(begin):
                done = self.convpin("run", *begin, "printf", "<%s>", *words)
                self.assertEqual(done.stdout, "".join(f"<{word}>" for word in words))

    def test_it_becomes_the_program(self):
        self.assertEqual(self.convpin("run", "sh", "-c", "exit 37", status=37).stderr, "")
        self.convpin("run", "sh", "-c", "kill -TERM $$", status=-signal.SIGTERM)
        with subprocess.Popen([COMMAND, "run", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(int(process.stdout.read()), process.pid)
        self.assertIn("can't be started", self.convpin("run", "no-such-program", status=127).stderr)
        self.write("no-program", "")
        self.assertIn("Permission", self.convpin("run", "./no-program", status=126).stderr)

    def test_what_was_preloaded_stays(self):
        ours = ["run", "sh", "-c", "echo $LD_PRELOAD"]
        self.assertEqual(self.convpin(*ours).stdout, LIBRARY + "\n")
        libraries = ["libm.so.6", "libdl.so.2"]
        for before in (":".join(libraries), " ".join(libraries), ":".join([libraries[0], LIBRARY, libraries[1]])):
            with self.subTest(before):
                self.assertEqual(self.convpin(*ours, LD_PRELOAD=before).stdout, ":".join([LIBRARY, *libraries]) + "\n")

    def test_record(self):
        log = self.record("convclient", PROBLEM)
        self.check_log(log)
        self.assertEqual([record["type"] for record in log], ["header", "problem", "choice", "count", "end"])
        (self.folder / "elsewhere").mkdir()
        self.convpin("run", "--record", "100%%.jsonl", "--", "sh", "-c", 'cd elsewhere && exec "$0" "$1"',
                     command.children.CLIENTS / "convclient", PROBLEM)
        self.check_log(command.children.read_log(self.folder / "100%.jsonl"))

    def test_config(self):
        self.write("pins.toml", "version = 1\n[[rule]]\nalgo = 2\n")
        (self.folder / "elsewhere").mkdir()
        log = self.record("sh", "-c", 'cd elsewhere && exec "$0" "$1"', command.children.CLIENTS / "convclient", PROBLEM,
                          options=["--config", "pins.toml"], CONVPIN_CONFIG="not-there.toml")
        self.assertEqual([(r["choice"], r["engine"]) for r in log if r["type"] == "choice"], [("set", "eng2")])

    def test_a_recording_profiles_only_where_that_is_asked_for(self):
        self.write("level.toml", 'version = 1\n[profile]\nlevel = "algorithms"\n')
        for asked, options, variables in ((False, [], {}), (False, [], {"CONV_FWD_ALGO": "2"}), (True, [], {"CONVPIN_PROFILE": "algorithms"}),
                                          (True, [], {"CONVPIN_PROFILE": "engines", "CONV_FWD_ALGO": "2"}), (True, ["--config", "level.toml"], {}),
                                          (False, ["--config", "level.toml"], {"CONVPIN_PROFILE": "off"})):
            with self.subTest(options=options, variables=variables):
                done = self.convpin("run", "--record", "log.jsonl", *options, *command.children.command(["convclient", PROBLEM]), **variables)
                log = command.children.read_log(self.folder / "log.jsonl")
                (self.folder / "log.jsonl").unlink()
                self.assertEqual(any(r["type"] == "candidate" for r in log), asked)
                self.assertEqual(any(r["type"] == "choice" and r["choice"] == "set" for r in log), "CONV_FWD_ALGO" in variables)
                self.assertEqual(done.stderr.count("the profile is on, as the settings ask"), asked)
                self.assertEqual(done.stderr.count("recorded without a profile"), variables == {"CONV_FWD_ALGO": "2"})
        # Without a recording the setting is as it is without the command.
        self.assertIn("supported forward algorithms", self.convpin("run", *command.children.command(["convclient", PROBLEM]), CONV_FWD_ALGO="2").stderr)

    def test_a_recording_says_which_log_is_not_written(self):
        self.write("log.toml", 'version = 1\n[log]\npath = "theirs.jsonl"\n')
        for options, variables in (([], {"CONVPIN_LOG": "theirs.jsonl"}), (["--config", "log.toml"], {}), ([], {"CONVPIN_CONFIG": "log.toml"})):
            with self.subTest(options=options, variables=variables):
                done = self.convpin("run", "--record", "log.jsonl", *options, *command.children.command(["convclient", PROBLEM]), **variables)
                self.assertRegex(done.stderr, r"convpin: the log goes to '[^']*/log.jsonl' \(--record\) alone, not to '[^']*/theirs.jsonl'\n")
                self.assertFalse((self.folder / "theirs.jsonl").exists())
                self.assertTrue((self.folder / "log.jsonl").exists())
        done = self.convpin("run", "--record", "log.jsonl", "true", CONVPIN_LOG="log.jsonl")
        self.assertEqual(done.stderr.count("alone, not to"), 0)

    def test_a_configuration_with_an_error_starts_nothing(self):
        self.write("pins.toml", 'version = 1\n[[rule]]\nalgo = "WINOGARD"\n')
        for options, variables in ((["--config", "pins.toml"], {}), ([], {"CONVPIN_CONFIG": "pins.toml"}),
                                   (["--config", "no.toml"], {}), ([], {"CONV_FWD_ALGO": "9"}),
                                   (["--record", "%z.jsonl"], {}), (["--record", "l.jsonl"], {"CONVPIN_DISABLE": "1"})):
            with self.subTest(options=options, variables=variables):
                done = self.convpin("run", *options, "touch", "started", status=2, **variables)
                self.assertFalse((self.folder / "started").exists())
                if "pins.toml" in str((options, variables)):
                    self.assertRegex(done.stderr, r"pins\.toml:3|--> pins\.toml")
                    self.assertIn("WINOGARD", done.stderr)

    def test_bad_use(self):
        for arguments in ([], ["run"], ["run", "--"], ["run", "--recrod", "x", "--", "true"], ["rum"], ["help", "rum"], ["path", "x"]):
            with self.subTest(arguments):
                self.assertEqual(self.convpin(*arguments, status=2).stdout, "")
        done = self.convpin("run", "--record", "none/run.jsonl", "--", "echo", "started", status=2)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "--record: nothing can be written in '.*/none'")

    def test_the_library_is_found_where_both_are_installed(self):
        self.assertEqual(self.convpin("path").stdout, LIBRARY + "\n")
        for folder in ("bin", "lib"):
            (self.folder / "prefix" / folder).mkdir(parents=True)
        installed = self.folder / "prefix" / "bin" / "convpin"
        shutil.copy(COMMAND, installed)
        self.assertIn("prefix/lib/libconvpin.so", self.convpin("path", program=installed, status=2).stderr)
        library = self.folder / "prefix" / "lib" / "libconvpin.so"
        shutil.copy(LIBRARY, library)
        self.assertEqual(self.convpin("path", program=installed).stdout, f"{library}\n")
        os.symlink(installed, self.folder / "linked")
        self.assertEqual(self.convpin("path", program=self.folder / "linked").stdout, f"{library}\n")


class Help(command.Case):
    def commands(self):
        return re.findall(r"^  ([a-z]+) ", self.convpin("help").stdout.split("Subcommands:")[1], re.M)

    def test_every_command_has_help_with_an_example(self):
        self.assertIn("run", self.commands())
        for name in self.commands():
            with self.subTest(name):
                text = self.convpin(name, "--help").stdout
                self.assertRegex(text, rf"Example:\n  .*convpin {name}")
                self.assertEqual(self.convpin("help", name).stdout, text)
        self.assertIn("Exit status: 1 where choices differ\n", self.convpin("diff", "--help").stdout)
        self.assertNotIn("Exit status", self.convpin("run", "--help").stdout)

    def test_man_page(self):
        """Every command with its options and examples; and roff finds nothing wrong with it."""
        page = self.convpin("help", "--man").stdout
        self.assertTrue(page.startswith('.TH CONVPIN 1'))
        self.assertEqual(re.findall(r"(?m)^\.SS (.*)$", page), self.commands())
        self.assertIn("\\-\\-record FILE", page)
        self.assertIn("\\-\\-layout", page)  # of an option group
        self.assertIn("Exit status: 1 where choices differ\n", page)
        self.assertIn("convpin tune \\-\\-refresh pins.toml \\-o pins.toml", page)
        if not shutil.which("groff"):
            self.skipTest("no groff to read it with")
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page, capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        self.assertIn("run.jsonl -- python train.py", done.stdout)

    def test_completion(self):
        script = self.write("completion.bash", self.convpin("completion").stdout)

        def completed(*words):
            code = f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _convpin; echo "${{COMPREPLY[*]}}"'
            return subprocess.run(["bash", "-c", code, "bash", *words], cwd=self.folder, capture_output=True, text=True,
                                  check=True).stdout.split()

        self.assertEqual(completed("convpin", "ru"), ["run"])
        self.assertLessEqual(set(self.commands()), set(completed("convpin", "")))
        self.assertEqual(completed("convpin", "run", "--rec"), ["--record"])
        self.assertEqual(completed("convpin", "list", "--dt"), ["--dtype"])
        self.assertEqual(completed("convpin", "help", "pa"), ["path"])
        self.assertEqual(completed("convpin", "run", "--record", ""), [])  # a file: bash's own


class Installed(unittest.TestCase):
    def test_it_needs_nothing_of_cuda(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", COMMAND], capture_output=True, text=True, check=True).stdout)
        self.assertLessEqual({pathlib.Path(name).name.split(".")[0] for name in needed}, {"libc", "libm", "libdl", "ld-linux-x86-64"})


if __name__ == "__main__":
    command.main()
