#!/usr/bin/env bash
# The main job, shown: a program's convolutions bare, then with CONV_FWD_ALGO, nothing else changed.
#
# Under PyTorch where there is a GPU and a PyTorch with CUDA, else by the client on the GPU, else by the client on the
# stand-in cuDNN. CONVPIN_LIBRARY names a built libconvpin.so, where nothing can be installed or built.
set -euo pipefail
source "$(dirname "$0")/setup.sh"
cd "$root"
mkdir -p build
has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }
has_torch() { python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; }

if [ -z "${CONVPIN_LIBRARY:-}" ]; then
  setup
  configure release
  cmake --build build/release --parallel "$(nproc)" --target convpin_library convpin_command convclient cudnn_standin
  CONVPIN_LIBRARY=$root/build/release/libconvpin.so
fi
# The loader would go on without it.
[ -f "$CONVPIN_LIBRARY" ] || { say "there is no library $CONVPIN_LIBRARY"; exit 1; }
built=$(dirname "$CONVPIN_LIBRARY")

if has_gpu && has_torch; then
  say "shown under PyTorch $(python3 -c 'import torch; print(torch.__version__, "on", torch.cuda.get_device_name())')"
  program=(python3 tools/demo_pytorch.py)
else
  program=("$built/convclient" --check --repeat 3 --problems tools/demo_problems.txt)
  if has_gpu; then
    say "shown by the client on the GPU (no PyTorch with CUDA in this Python)"
  else
    say "shown by the client on the stand-in cuDNN: there is no GPU here; times are those of a CPU"
    export LD_LIBRARY_PATH=$built/standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  fi
fi

log=build/demo.jsonl
rm -f "$log"
echo "== The program by itself:"
"${program[@]}"
for algorithm in 0 1; do
  echo
  echo "== LD_PRELOAD=libconvpin.so CONV_FWD_ALGO=$algorithm, the same program:"
  LD_PRELOAD=$CONVPIN_LIBRARY CONV_FWD_ALGO=$algorithm CONVPIN_LOG=$log "${program[@]}" 2>&1
done
echo
echo "== What the log says of each problem (from $log):"
python3 - "$log" <<'PYTHON'
import json, sys
names = {}
for record in map(json.loads, open(sys.argv[1])):
    if record["type"] == "header":
        asked = record["settings"].get("CONV_FWD_ALGO")
    if record["type"] == "problem":
        names[record["problem_id"]] = record["problem"]
    if record["type"] == "choice":
        print(f'CONV_FWD_ALGO={asked}  {record["choice"]:12} ran {record["ran"]:40} {names[record["problem_id"]]}')
PYTHON
