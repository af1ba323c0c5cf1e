"""Other libraries that are preloaded too: allocators, before us and behind us.

Would fail when: we allocate before the allocator is ready, or call it from within our dlsym at its start (jemalloc and
tcmalloc look functions up while they begin); memory that one malloc gave is given to another's free. Skipped where the
allocators are not installed (Debian: libjemalloc2, libtcmalloc-minimal4).
"""
import glob
import sys

import children
from children import LIBRARY, PROBLEM

ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
PROGRAMS = {
    "linked": ("convclient", "--check", PROBLEM),
    "looked up": ("convclient_lookup", "--check", PROBLEM),
    "threads": ("convclient_lookup", "--check", "--threads", "4", "--repeat", "10", PROBLEM),
    "constructor": ("constructor_lookup",),
    "fork": ("fork_lookup",),
    "python": (sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]).convlib_run(b'python')",
               str(children.CLIENTS / "libconvlib_lookup.so")),
}


class Beside(children.Case):
    def beside(self, name):
        found = glob.glob("/usr/lib/*/" + ALLOCATORS[name]) + glob.glob("/usr/lib*/" + ALLOCATORS[name])
        if not found:
            self.skipTest("no " + ALLOCATORS[name])
        for program, arguments in PROGRAMS.items():
            # Some programs don't bear the allocator: cuDNN after main's end, with jemalloc.
            alone = children.execute(arguments, self.folder, children.environment(LD_PRELOAD=found[0]))
            self.assertNotIn("cannot be preloaded", alone.stderr)
            for order in ((found[0], LIBRARY), (LIBRARY, found[0])):
                with self.subTest(program, order=order):
                    preload = ":".join(order)
                    idle = children.execute(arguments, self.folder, children.environment(LD_PRELOAD=preload))
                    self.assertEqual((idle.status, idle.stdout, idle.stderr), (alone.status, alone.stdout, alone.stderr))
                    env = children.environment(LD_PRELOAD=preload, CONV_FWD_ALGO="2", CONVPIN_LOG="log-%p.jsonl")
                    child = children.execute(arguments, self.folder, env)
                    self.assertEqual(child.status, alone.status, child.stderr)
                    self.assertLessEqual(child.engines(), {"eng2", "algo2"})
                    self.assertIn(" is set", child.stderr)
                    self.assertNotIn("warning", child.stderr)

    def test_jemalloc(self):
        self.beside("jemalloc")

    def test_tcmalloc(self):
        self.beside("tcmalloc")


if __name__ == "__main__":
    children.main()
