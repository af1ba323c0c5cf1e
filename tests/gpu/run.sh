#!/usr/bin/env bash
# Everything that needs a GPU and a PyTorch with CUDA: tests/gpu/run.sh [FOLDER] [STEP...]. The results are tables in FOLDER
# (build/gpu); results.md holds them all. Without steps all run but those that take long: starts, same_starts, deepbench and energy, which
# keep what they have measured below FOLDER and go on from there. CONVPIN_LIBRARY: the library under test
# (build/release/libconvpin.so); CONVPIN: the command (beside it); CONVPIN_GPUS: how many GPUs the long ones may use (1);
# CONVPIN_BUDGET: seconds that each of them may take (540).
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../build/gpu}
[[ $# -gt 0 ]] && shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
export CONVPIN_LIBRARY=${CONVPIN_LIBRARY:-$(cd "$here/../.." && pwd)/build/release/libconvpin.so}
export CONVPIN=${CONVPIN:-$(dirname "$CONVPIN_LIBRARY")/convpin}
long=(starts same_starts deepbench energy)
short=(cases matrix legacy_graph callers errors per_layer convtests repin resnet50 overhead list)
steps=("${short[@]}" "${long[@]}")
wanted=" ${*:-${short[*]}} "
for step in $wanted; do
  [[ " ${steps[*]} " == *" $step "* ]] || { echo "there is no step $step; steps: ${steps[*]}" >&2; exit 2; }
done
status=0
cd "$here" || exit 1
for step in "${steps[@]}"; do
  [[ $wanted == *" $step "* ]] || continue
  case $step in
    cases | matrix) script=pytorch_$step.py ;;
    list) script=list_agreement.py ;;
    *) script=$step.py ;;
  esac
  arguments=(--out "$folder/$step.md")
  [[ $step == cases ]] && arguments=()
  [[ " ${long[*]} list " == *" $step "* ]] &&
    arguments+=(--folder "$folder/$step" --gpus "${CONVPIN_GPUS:-1}" --budget "${CONVPIN_BUDGET:-540}")
  rm -f "$folder/$step.md"
  [[ $step == list ]] && rm -rf "${folder:?}/list"   # short: made anew
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
