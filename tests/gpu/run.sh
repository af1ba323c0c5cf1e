#!/usr/bin/env bash
# Everything that needs a GPU and a PyTorch with CUDA: tests/gpu/run.sh [FOLDER] [STEP...]. The results are tables in FOLDER
# (build/gpu); results.md holds them all. Without steps all of them run. CONVPIN_LIBRARY: the library under test
# (build/release/libconvpin.so).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../build/gpu}
[[ $# -gt 0 ]] && shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
export CONVPIN_LIBRARY=${CONVPIN_LIBRARY:-$(cd "$here/../.." && pwd)/build/release/libconvpin.so}
steps=(cases matrix legacy_graph callers errors per_layer convtests repin resnet50 overhead)
wanted=" ${*:-${steps[*]}} "
for step in $wanted; do
  [[ " ${steps[*]} " == *" $step "* ]] || { echo "there is no step $step; steps: ${steps[*]}" >&2; exit 2; }
done
status=0
cd "$here" || exit 1
for step in "${steps[@]}"; do
  [[ $wanted == *" $step "* ]] || continue
  case $step in
    cases | matrix) script=pytorch_$step.py ;;
    *) script=$step.py ;;
  esac
  arguments=(--out "$folder/$step.md")
  [[ $step == cases ]] && arguments=()
  rm -f "$folder/$step.md"
  begin=$SECONDS
  if python3 "$script" "${arguments[@]}" >"$folder/$step.txt" 2>&1; then word=ok; else word="FAILED, see $folder/$step.txt"; status=1; fi
  echo "$step: $word ($((SECONDS - begin)) s)"
done
{
  echo "# Results of tests/gpu/run.sh"
  for step in "${steps[@]}"; do
    printf '\n## %s\n\n' "$step"
    if [[ $step == cases && -f $folder/cases.txt ]]; then
      echo '```'
      grep -E "^test_|^Ran|^OK|^FAILED|skipped" "$folder/cases.txt"
      echo '```'
    elif [[ -f $folder/$step.md ]]; then
      cat "$folder/$step.md"
    else
      echo "not run"
    fi
  done
} >"$folder/results.md"
exit $status
