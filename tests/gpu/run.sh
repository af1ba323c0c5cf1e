#!/usr/bin/env bash
# Everything that needs a GPU and a PyTorch with CUDA: tests/gpu/run.sh [FOLDER]. The results are tables in FOLDER
# (build/gpu); results.md holds them all. CONVPIN_LIBRARY: the library under test (build/release/libconvpin.so).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../build/gpu}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
export CONVPIN_LIBRARY=${CONVPIN_LIBRARY:-$(cd "$here/../.." && pwd)/build/release/libconvpin.so}
status=0
cd "$here" || exit 1
step() {  # step NAME COMMAND...: its output in NAME.txt
  local name=$1
  shift
  if "$@" >"$folder/$name.txt" 2>&1; then echo "$name: ok"; else echo "$name: FAILED, see $folder/$name.txt"; status=1; fi
}
step cases python3 pytorch_cases.py
step matrix python3 pytorch_matrix.py --out "$folder/matrix.md"
step resnet50 python3 resnet50.py --out "$folder/resnet50.md"
step overhead python3 overhead.py --out "$folder/overhead.md"
{
  echo "# Results of tests/gpu/run.sh"
  for table in matrix resnet50 overhead; do
    printf '\n## %s\n\n' "$table"
    cat "$folder/$table.md"
  done
  printf '\n## cases\n\n```\n'
  grep -E "^test_|^Ran|^OK|^FAILED|skipped" "$folder/cases.txt"
  echo '```'
} >"$folder/results.md"
exit $status
