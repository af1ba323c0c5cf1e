"""The real cuDNN, without a GPU: what is pinned is what the plan holds when it is read back.

Would fail when: the substitution does not survive the real library (configurations that do not finalize, a plan of another
engine); a pin that is impossible on the described GPU leaves the program without a plan.
"""
import children
from children import PROBLEM

DEVICE = ("--device-json", children.STANDIN + "/h200-deviceprop.json")


class RealLibrary(children.Case):
    def plan(self, request, *options, same=False):
        child = self.preloaded("convclient", *DEVICE, *options, PROBLEM, standin=False, same=same, CONV_FWD_ALGO=request)
        self.assertIn("convpin: forward algorithm requested: " + request, child.stderr)
        return child

    def setUp(self):
        super().setUp()
        self.own = self.bare("convclient", *DEVICE, PROBLEM, standin=False)
        self.assertEqual(self.own.status, 0, self.own.stderr)

    def test_the_plan_is_the_pins(self):
        for request, engine in (("eng28", "eng28"), ("eng38", "eng38"), ("0", "eng28"), ("2", "eng2"), ("3", "eng0")):
            with self.subTest(request):
                child = self.plan(request)
                self.assertEqual(child.fields()["ran"].split("_")[0], engine, child.stderr)
                self.assertNotIn(engine, self.own.fields()["ran"].split("_"))  # the negative control
        self.assertIn(self.plan("1").fields()["ran"].split("_")[0], ("eng70", "eng38", "eng35", "eng67", "eng1"))

    def test_exact_knobs(self):
        tag = self.own.fields()["ran"].replace("_k18=0", "_k18=1")
        self.assertEqual(self.plan(tag).fields()["ran"], tag)

    def test_impossible_here(self):
        for request in ("6", "4", "eng71", "eng999", "eng38_k2=12345"):
            with self.subTest(request):
                self.plan(request, same=True)

    def test_filtered(self):
        self.plan("eng38", "--deny-note", "tensor_core", same=True)
        self.plan("2", "--max-workspace", "1000", same=True)
        self.assertNotIn("tf32", self.plan("1", "--deny-note", "tensor_core").fields().get("notes", ""))

    def test_nothing_asked(self):
        child = self.preloaded("convclient", *DEVICE, PROBLEM, standin=False, log=None)
        self.assertEqual(child.stderr, "")

    def test_a_program_that_runs_nothing_is_not_told_that_something_ran(self):
        child = self.plan("eng28")
        self.assertNotIn("is set", child.stderr)
        self.assertEqual((child.choices(), child.log[-1]["calls"]), ([], 0))


if __name__ == "__main__":
    children.main()
