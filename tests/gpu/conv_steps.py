"""A program that knows nothing of convpin: each convolution of a CSV file forward and backward, in fp16 NHWC and in fp32 NCHW (TF32).

    python3 conv_steps.py data/deepbench_conv_training.csv [--benchmark] [--repeat 4] [--part 0/4]
"""
import argparse
import csv
import sys
import time

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--benchmark", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--sample", type=int, default=1, help="every so many-th line alone")
    parser.add_argument("--part", default="0/1", help="i/n: of these, every n-th from the i-th on")
    o = parser.parse_args()
    torch.backends.cudnn.benchmark = o.benchmark
    torch.backends.cudnn.allow_tf32 = True
    part, parts = map(int, o.part.split("/"))
    lines = {tuple(row.items()): row for row in csv.DictReader(open(o.file))}   # some are there twice
    rows = [{k: int(v) for k, v in row.items() if k != "source"} for row in lines.values()][::o.sample][part::parts]
    began = time.perf_counter()
    for number, r in enumerate(rows):
        for dtype, layout in ((torch.float16, torch.channels_last), (torch.float32, torch.contiguous_format)):
            made = dict(device="cuda", dtype=dtype)
            x = torch.randn(r["N"], r["C"], r["H"], r["W"], **made).to(memory_format=layout).requires_grad_()
            w = torch.randn(r["K"], r["C"], r["R"], r["S"], **made).to(memory_format=layout).requires_grad_()
            for _ in range(o.repeat):
                y = torch.nn.functional.conv2d(x, w, stride=(r["stride_h"], r["stride_w"]), padding=(r["pad_h"], r["pad_w"]))
                torch.autograd.grad(y, (x, w), torch.ones_like(y))
            torch.cuda.synchronize()
        if number % 10 == 9:
            print(f"{number + 1} of {len(rows)}, {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
