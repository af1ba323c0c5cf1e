#!/usr/bin/env bash
# What callers.py uses beside a stock PyTorch and JAX, into build/callers (or the folder given): on a machine
# with a network; the GPU machine needs none. Debian's packages are unpacked, not installed.
#
#   tests/gpu/callers_fetch.sh [FOLDER]
#
#   frontend/            cudnn-frontend's Python package (for Python 3.12)
#   libjemalloc.so.2, libtcmalloc_minimal.so.4
#   dlib_client          dlib's net, where nvcc is at hand (dlib/CMakeLists.txt; for sm_90)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/../../build/callers}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

wheel() {  # wheel TARGET NAME==VERSION: unpacked into TARGET
  [ -d "$1" ] && return
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
    --platform manylinux_2_27_x86_64 --dest "$work/wheel" "$2"
  python3 -m zipfile -e "$work"/wheel/*.whl "$1"
  rm -r "$work/wheel"
}

library() {  # library FILE PACKAGE: of a Debian package
  [ -e "$folder/$1" ] && return
  command -v apt-get >/dev/null || { echo "no apt-get: without $1" >&2; return; }
  mkdir "$work/deb"
  (cd "$work/deb" && apt-get download -qq "$2" && dpkg -x ./*.deb .)
  cp "$(find "$work/deb" -name "$1" | head -n 1)" "$folder/$1"
  rm -r "$work/deb"
}

wheel "$folder/frontend" nvidia-cudnn-frontend==1.18.0
library libjemalloc.so.2 libjemalloc2
library libtcmalloc_minimal.so.4 libtcmalloc-minimal4

export PATH=$PATH:/usr/local/cuda/bin
if [ ! -e "$folder/dlib_client" ] && command -v nvcc >/dev/null; then
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary dlib --dest "$work" dlib==20.0.1
  tar -xzf "$work"/dlib-20.0.1.tar.gz -C "$work"
  cmake -S "$here/dlib" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=90 -DDLIB_DIR="$work/dlib-20.0.1" >"$work/log"
  ninja -C "$work/build" >>"$work/log" || { tail -n 30 "$work/log" >&2; exit 1; }
  strip "$work/build/dlib_client"
  cp "$work/build/dlib_client" "$folder/"
fi
du -sh "$folder"/*
