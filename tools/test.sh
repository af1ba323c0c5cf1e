#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test that this machine can run. Says what it skipped, and why.
set -euo pipefail
source "$(dirname "$0")/setup.sh"
cd "$root"
mkdir -p build
setup
tools/fetch_frontend.sh build/frontend || say "cudnn-frontend's headers could not be had: its clients are skipped"
wheels=wheels8 fetch_wheels $cudnn8_wheels || say "cuDNN 8 could not be had: its test is skipped"
allocators="libjemalloc2 libtcmalloc-minimal4"   # preloaded beside the library in one test
dpkg -s $allocators >/dev/null 2>&1 || apt-get install -y -qq --no-install-recommends $allocators >/dev/null 2>&1 ||
  say "skipped: the test beside other allocators ($allocators are not installed)"
command -v chromium chromium-browser google-chrome chrome >/dev/null || apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 ||
  say "skipped: the report's page in a browser (chromium is not installed)"

jobs=$(nproc)
configure ci
cmake --build build/release --parallel "$jobs"
# The core as a plain program under the sanitizers; a preloaded library can't carry them into its host.
configure asan
cmake --build build/asan --parallel "$jobs" --target convpin_unit_tests

status=0
ASAN_OPTIONS=detect_leaks=1 build/asan/convpin_unit_tests --gtest_brief=1 || status=1
ctest --test-dir build/release --output-on-failure --parallel "$jobs" || status=1

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
  say "skipped: tests/gpu (no NVIDIA GPU here)"
elif ! python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  say "skipped: tests/gpu (no PyTorch with CUDA in this Python)"
else
  CONVPIN_LIBRARY=$root/build/release/libconvpin.so tests/gpu/run.sh build/gpu || status=1
fi
exit $status
