"""Every kind of program that reaches cuDNN's convolutions: is it reached, is it pinned, do the pinned engines' kernels run.

    python3 callers.py [--only NAME...] [--out callers.md]

All are pinned alike, to engines that no caller takes by itself: forward algorithm 0 (engine 28), backward data 0 (25),
backward filter 0 (20). Reached and pinned is what convpin's log says (read back from the executed plan). The kernels are
counted by CUPTI for the whole process (kernel_names.cpp): each pinned operation's must be launched once a call at least,
and no other convolution kernel so often. Programs that are not at hand are said to be so. In CONVPIN_CALLERS
(build/callers) stands what callers_fetch.sh brings: cudnn-frontend's Python package, dlib's client, jemalloc.
"""
import argparse
import concurrent.futures
import dataclasses
import glob
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import runs
from caller_programs import CALLS

HERE = pathlib.Path(__file__).resolve().parent
EXTRAS = pathlib.Path(os.environ.get("CONVPIN_CALLERS", runs.ROOT / "build/callers"))
PINS = {"CONV_FWD_ALGO": "0", "CONV_BWD_DATA_ALGO": "0", "CONV_BWD_FILTER_ALGO": "0", "CONVPIN_PROFILE": "off"}
KERNELS = {"forward": r"implicit_convolve|convolve_common_engine", "backward_data": r"dgrad_(float_)?engine",
           "backward_filter": r"wgrad_alg0_engine|wgrad(Nd)?_engine"}
# Other convolution kernels. (Backward data of algorithm 0 is no "alg1".)
RIVALS = r"fprop|dgrad|wgrad|winograd|fft\dd|implicit_gemm|precomputed_convolve|grouped_direct"
ALL = tuple(KERNELS)


@dataclasses.dataclass
class Caller:
    name: str
    how: str                        # how it comes to cuDNN
    argv: list
    operations: tuple = ALL
    env: dict = dataclasses.field(default_factory=dict)
    preload: tuple = ()             # beside the library
    absent: str = ""                # why it is not run here
    reached: bool = True            # False: it can't be, and the library has to say so
    pinned: bool = True             # False: it may stay with its own choice, where the log says so
    count: bool = True              # kernels by CUPTI; else by the program's own output, or not at all
    kernels: bool = True


def nvidia_folders(kind):
    """The folders lib or include of NVIDIA's wheels, which the framework uses, and of the toolkit."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [p for root in (spec.submodule_search_locations if spec else []) for p in sorted(glob.glob(f"{root}/*/{kind}"))]
    toolkit = "/usr/local/cuda"
    return wheels + [f"{toolkit}/extras/CUPTI/{kind}64", f"{toolkit}/extras/CUPTI/{kind}", f"{toolkit}/{kind}64", f"{toolkit}/{kind}"]


def build_kernel_names(folder):
    """The library that counts kernels, built for this machine's CUPTI; or why there is none."""
    library = pathlib.Path(folder) / "libkernel_names.so"
    compiler = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    cupti = next((p for f in nvidia_folders("lib") for p in sorted(glob.glob(f"{f}/libcupti.so*"))), None)
    headers = [f for f in nvidia_folders("include") if os.path.isdir(f)]
    if not compiler or not cupti:
        return None, "no compiler" if cupti else "no libcupti"
    done = subprocess.run([compiler, "-std=c++17", "-O1", "-shared", "-fPIC", str(HERE / "kernel_names.cpp"), "-o", str(library),
                           *(f"-I{f}" for f in headers), cupti, f"-Wl,-rpath,{os.path.dirname(cupti)}"], capture_output=True, text=True)
    return (None, done.stderr[-1000:]) if done.returncode else (library, "")


def built(name):
    """A program or library of the build tree."""
    return next((str(p) for p in sorted(runs.LIBRARY.parent.rglob(name)) if p.is_file()), None)


def have(module):
    return importlib.util.find_spec(module) is not None


def python(program):
    return [sys.executable, str(HERE / "caller_programs.py"), program]


def client(name, *arguments):
    path = built(name)
    return dict(argv=[path or name, *arguments], absent="" if path else f"{name} is not built")


def beside(*names):
    """A library to preload beside ours."""
    folders = [str(EXTRAS), "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"]
    found = next((p for f in folders for n in names for p in sorted(glob.glob(f"{f}/{n}"))), None)
    return dict(preload=(found,) if found else (), absent="" if found else f"{names[0]} is not here")


def callers():
    problems = [f"{operation} x=[8,32,28,28] w=[32,32,3,3] float nchw pad=1,1" for operation in ALL]
    repeat = ("--repeat", str(CALLS))
    one = ("forward",)
    libraries = {"LD_LIBRARY_PATH": ":".join(f for f in nvidia_folders("lib") if os.path.isdir(f))}
    torch_absent = "" if have("torch") else "no PyTorch"
    torch = dict(absent=torch_absent)
    jax = dict(absent="" if have("jax") else "no JAX", env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    sanitizer = shutil.which("compute-sanitizer") or next(iter(glob.glob("/usr/local/cuda/bin/compute-sanitizer")), None)
    frontend = EXTRAS / "frontend"
    yield Caller("PyTorch eager", "linked, graph API", python("eager"), **torch)
    yield Caller("PyTorch eager, cudnn.benchmark", "linked, graph API", python("benchmark"), **torch)
    yield Caller("PyTorch eager, fp16 channels_last", "linked, graph API", python("half"), **torch)
    yield Caller("PyTorch eager, TORCH_CUDNN_V8_API_DISABLED=1", "linked, legacy API", python("eager"), env={"TORCH_CUDNN_V8_API_DISABLED": "1"}, **torch)
    yield Caller("torch.compile (inductor), channels_last", "linked, graph API", python("compiled"), **torch)
    yield Caller("torch.cuda.graph, captured and replayed", "linked, graph API", python("captured"), **torch)
    yield Caller("torch.cuda.make_graphed_callables", "linked, graph API", python("graphed"), **torch)
    yield Caller("PyTorch, four threads with a stream each", "linked, graph API", python("threads"), **torch)
    yield Caller("PyTorch, DataLoader workers by fork", "linked, graph API", python("fork"), **torch)
    yield Caller("PyTorch, DataLoader workers by spawn", "linked, graph API", python("spawn"), **torch)
    yield Caller("PyTorch under torch.profiler", "linked, graph API", python("profiled"), count=False, **torch)
    yield Caller("PyTorch, jemalloc preloaded too", "linked, graph API", python("eager"), **beside("libjemalloc.so.2"))
    yield Caller("PyTorch, tcmalloc preloaded too", "linked, graph API", python("eager"), **beside("libtcmalloc_minimal.so.4"))
    yield Caller("JAX, fp32", "dlopen + dlsym, graph API", python("jax_float"), **jax)
    yield Caller("JAX, bf16", "dlopen + dlsym, graph API", python("jax_bfloat16"), **jax)
    ort = "" if have("onnxruntime") and gpu_onnxruntime() else "no ONNX Runtime with CUDA"
    yield Caller("ONNX Runtime", "linked or dlsym, by version", python("onnxruntime"), operations=one, absent=ort, env=libraries)
    yield Caller("cudnn-frontend's Python package", "dlopen + dlsym, graph API", python("frontend_python"), env={"PYTHONPATH": str(frontend)},
                 absent=torch_absent or ("" if frontend.is_dir() else f"no {frontend}"))
    yield Caller("C++ client", "linked, graph API", env=libraries, **client("convclient", *problems, *repeat))
    yield Caller("C++ client, benchmark", "linked, graph API", env=libraries, **client("convclient", *problems, *repeat, "--benchmark"))
    yield Caller("C++ client", "linked, legacy API", env=libraries, **client("convclient", *problems, *repeat, "--api", "legacy"))
    for name, flag in (("its own engine configuration, as XLA", "--own-config"), ("a plan restored from JSON", "--from-json"),
                       ("cudnnBackendPopulateCudaGraph", "--cuda-graph-api")):
        yield Caller(f"C++ client, {name}", "linked, graph API", operations=one, env=libraries, pinned=False, **client("convclient", problems[0], *repeat, flag))
    yield Caller("C++ client, a fixed algorithm", "linked, legacy API", operations=one, env=libraries,
                 **client("convclient", problems[0], *repeat, "--api", "legacy", "--fixed", "1"))
    yield Caller("cudnn-frontend 0.x in C++", "linked, graph API", operations=one, env=libraries, **client("frontend_v0_client", problems[0], *repeat))
    yield Caller("cudnn-frontend 1.x in C++", "linked, graph API", operations=one, env=libraries, **client("frontend_v1_client", problems[0], *repeat))
    library = built("libconvlib.so") or ""
    yield Caller("C++ plug-in, dlopen RTLD_LOCAL", "linked, graph API", operations=one, env=libraries, kernels=False, **client("dlopened", library, "local"))
    yield Caller("C++ plug-in, dlopen RTLD_DEEPBIND", "linked, bypasses any preload", operations=one, env=libraries, reached=False, kernels=False,
                 **client("dlopened", library, "deepbind"))
    dlib = EXTRAS / "dlib_client"
    yield Caller("dlib, a small net trained", "linked, legacy API", [str(dlib), str(CALLS)], env=libraries, absent="" if dlib.exists() else f"no {dlib}")
    small = client("convclient", "x=[1,8,8,8] w=[8,8,3,3] float nchw pad=1,1")
    small["argv"] = [sanitizer or "", "--tool", "memcheck", "--error-exitcode", "9", *small["argv"]]
    small["absent"] = small["absent"] or ("" if sanitizer else "no compute-sanitizer")
    yield Caller("C++ client under compute-sanitizer", "linked, graph API", operations=one, env=libraries, count=False, kernels=False, **small)


def gpu_onnxruntime():
    import onnxruntime
    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


def run(caller, counter, folder):
    """(status, output, error, records of each process's log, {kernel: launches})."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    env = {**PINS, **caller.env, "CONVPIN_LOG": str(folder / "log-%p.jsonl"), "LD_PRELOAD": ":".join([str(runs.LIBRARY), *caller.preload])}
    if caller.count and caller.kernels and counter:
        env |= {"CUDA_INJECTION64_PATH": str(counter), "KERNEL_NAMES": str(folder / "kernels")}
    status, out, err = runs.child(caller.argv, preload=False, env=env, timeout=300)
    logs = [runs.read_log(path) for path in sorted(folder.glob("log-*.jsonl"))]
    kernels = {}
    lines = [line for path in folder.glob("kernels.*") for line in path.read_text().splitlines()]
    lines += [line.removeprefix("kernel ") for line in out.splitlines() if line.startswith("kernel ")]
    for line in lines:
        count, name = line.split(" ", 1)
        kernels[name] = kernels.get(name, 0) + int(count)
    return status, out, err, logs, kernels


def read_back(logs):
    """{operation: {"problems", "calls", "pinned", "engines", "not_set": {reason}}} of all processes."""
    found = {}
    for records in logs:
        choices, calls = {}, {}
        for r in records:
            if r["type"] == "choice":
                choices[r["problem_id"], r["ran"]] = r
            if r["type"] == "count":
                calls[r["problem_id"], r["ran"]] = r["calls"]
        for r in records:
            if r["type"] != "problem":
                continue
            o = found.setdefault(r["problem"].split()[0], dict(problems=0, calls=0, pinned=0, engines=set(), not_set=set()))
            o["problems"] += 1
            for (number, ran), choice in choices.items():
                if number == r["problem_id"]:
                    called = calls.get((number, ran), 0)
                    o["calls"] += called
                    if choice["choice"] == "set":
                        o["pinned"] += called
                        o["engines"].add(re.sub(r"_k\d+=.*", "", ran))
                    else:
                        o["not_set"].add(f"{ran}: {choice['reason']}")
    return found


def judge(caller, status, out, err, logs, kernels, counter):
    """(cells of the row, what is wrong)."""
    wrong, found = [], read_back(logs)
    if status != 0:
        wrong.append(f"it ended with {status}: {err.strip()[-600:]}")
    if not caller.reached:
        if found:
            wrong.append("it was reached")
        if "0 convolutions reached" not in err:
            wrong.append("nothing says that it was not reached")
        return ["not reached, and said so", "", "", "as documented"], wrong
    if len(logs) > 1:
        wrong.append(f"{len(logs)} processes left a log")
    if "0 convolutions reached" in err or err.count("convpin: forward algorithm requested") > 1:
        wrong.append(f"a process without convolutions spoke: {err[-600:]}")
    reached, pinned, launched, other = [], [], [], 0
    rivals = {name: n for name, n in kernels.items() if re.search(RIVALS, name) and not any(re.search(p, name) for p in KERNELS.values())}
    for operation in caller.operations:
        o = found.get(operation)
        if not o:
            wrong.append(f"{operation}: not reached")
            continue
        reached.append(f"{o['problems']}, {o['calls']}")
        pinned.append(f"{'+'.join(sorted(o['engines'])) or 'no'} {o['pinned']}/{o['calls']}")
        if not o["engines"] and not caller.pinned and o["not_set"]:
            return [" · ".join(reached), " · ".join(pinned), "", "reached, not pinned: " + "; ".join(sorted(o["not_set"]))], wrong
        if not o["engines"]:
            wrong.append(f"{operation} is not pinned: {'; '.join(sorted(o['not_set']))}")
        if caller.kernels and (counter or not caller.count):
            n = sum(count for name, count in kernels.items() if re.search(KERNELS[operation], name))
            launched.append(str(n))
            if n < CALLS:
                wrong.append(f"{operation}: the pinned engine's kernels were launched {n} times, in {CALLS} calls or more")
    for name, n in rivals.items():
        other += n
        if n >= CALLS:
            wrong.append(f"{name[:90]} was launched {n} times")
    verdict = "reached and pinned" if not wrong else "FAILED"
    return [" · ".join(reached), " · ".join(pinned), " · ".join(launched) + (f"; {other} of others" if other else ""), verdict], wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="callers whose name contains one of these")
    parser.add_argument("--list", action="store_true", help="name the callers and what is missing, and end")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--out", default="callers.md")
    options = parser.parse_args()
    chosen = [c for c in callers() if not options.only or any(word.lower() in c.name.lower() for word in options.only)]
    if options.list:
        for c in chosen:
            print(f"{c.name} ({c.how}): {c.absent or ' '.join(c.argv)}")
        return 0
    start, failures, rows = time.monotonic(), [], []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        counter, why = build_kernel_names(folder)
        if not counter:
            failures.append(f"kernels can't be counted: {why}")
        done = pool.map(lambda c: None if c.absent else run(c, counter, folder), chosen)
        for caller, result in zip(chosen, done):
            if result is None:
                rows.append([caller.name, caller.how, "not run here", "", "", caller.absent])
                continue
            cells, wrong = judge(caller, *result, counter)
            rows.append([caller.name, caller.how, *cells])
            failures += [f"{caller.name} ({caller.how}): {each}" for each in wrong]
    lines = [f"Measured {runs.versions()}; `tests/gpu/callers.py`. Forward · backward data · backward filter, pinned to algorithm 0 each.", "",
             "| caller | cuDNN | problems, calls | pinned: engine, of calls | launches of its kernels | |", "|" + " --- |" * 6]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines.append(f"\n{len(rows)} callers, {sum(r[2] == 'not run here' for r in rows)} not run here, {len(failures)} failures; {time.monotonic() - start:.0f} s")
    lines += [f"- FAILED {each}".replace("\n", " / ") for each in failures]
    text = "\n".join(lines) + "\n"
    pathlib.Path(options.out).write_text(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
