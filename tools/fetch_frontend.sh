#!/bin/sh
# Downloads the pinned cudnn-frontend wheel from PyPI and unpacks its headers: DIR/include/cudnn_frontend.h.
#
#   tools/fetch_frontend.sh DIR
#
# Does nothing where DIR already holds that version. The Python version and the platform are named because the
# project has one wheel for each; the headers are the same in all.
set -eu

version=1.18.0
sha256=382ea063b92cbfd5b442cb75ff8422932d78276aecf139e46713ed1ad3d07af4

[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
dir=$1
[ "$(cat "$dir/version" 2>/dev/null || true)" = "$version" ] && exit 0

mkdir -p "$dir/wheel"
python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.11 --implementation cp \
  --platform manylinux_2_27_x86_64 --dest "$dir/wheel" "nvidia-cudnn-frontend==$version"
wheel=$(echo "$dir"/wheel/nvidia_cudnn_frontend-"$version"-*.whl)
echo "$sha256  $wheel" | sha256sum --check --quiet -

rm -rf "$dir/include"
python3 - "$wheel" "$dir" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith("include/")])
PYTHON
rm -r "$dir/wheel"
echo "$version" > "$dir/version"
