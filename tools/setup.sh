# Sourced by demo.sh and test.sh: installs what is missing, and finds cuDNN and CUDA's headers.
# Sets CUDNN_ROOT (include/, lib*/), CUDA_ROOT (include/). Everything that is downloaded goes into build/.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cudnn_wheels="nvidia-cudnn-cu13==9.19.0.56 nvidia-cublas==13.1.0.3"   # cuDNN loads cuBLAS, also without a GPU
cudnn8_wheels="nvidia-cudnn-cu12==8.9.7.29"   # for its test alone: 700 MB, unpacked 1.1 GB
cuda_wheels="nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 nvidia-nvtx==13.0.85"

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# Debian's packages, where one is missing. Without apt or the right to install: says which, and stops.
install_packages() {
  local missing=()
  for package in g++ cmake ninja-build python3 python3-pip binutils nlohmann-json3-dev libtoml11-dev libcli11-dev libgtest-dev libgmock-dev; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  # A compiler, CMake or Python that came another way serves as well.
  local still=()
  for package in "${missing[@]}"; do
    case $package in
      g++) command -v g++ >/dev/null || still+=("$package") ;;
      cmake) command -v cmake >/dev/null || still+=("$package") ;;
      ninja-build) command -v ninja >/dev/null || still+=("$package") ;;
      python3) command -v python3 >/dev/null || still+=("$package") ;;
      python3-pip) python3 -m pip --version >/dev/null 2>&1 || still+=("$package") ;;
      *) still+=("$package") ;;
    esac
  done
  [ ${#still[@]} -eq 0 ] && return
  local become=
  if [ "$(id -u)" -ne 0 ]; then become=sudo; fi
  if ! command -v apt-get >/dev/null || { [ -n "$become" ] && ! command -v sudo >/dev/null; }; then
    say "these packages are missing and can't be installed from here: ${still[*]}"
    return 1
  fi
  say "installing ${still[*]}"
  { $become apt-get update -qq && DEBIAN_FRONTEND=noninteractive $become apt-get install -y -qq --no-install-recommends "${still[@]}"; } >/dev/null
}

# Unpacks wheels from PyPI into build/wheels, or another folder of build/ named in $wheels.
fetch_wheels() {
  local into="$root/build/${wheels:-wheels}"
  mkdir -p "$into"
  for wheel in "$@"; do
    local done="$into/.${wheel%%==*}-${wheel##*==}"
    [ -e "$done" ] && continue
    say "fetching $wheel"
    local folder
    folder=$(mktemp -d)
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$folder" \
      --python-version 3.11 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 "$wheel" &&
      python3 -m zipfile -e "$folder"/*.whl "$into" || { rm -r "$folder"; return 1; }
    rm -r "$folder"
    touch "$done"
  done
}

holds_cudnn() {
  [ -e "$1/include/cudnn_graph.h" ] || return 1
  for lib in lib lib64 lib/x86_64-linux-gnu; do
    [ -e "$1/$lib/libcudnn_graph.so.9" ] && return 0
  done
  return 1
}

# CUDNN_ROOT, the CUDA toolkit, the active Python, else the pinned wheel.
find_cudnn() {
  local of_python
  of_python=$(python3 -c 'import nvidia.cudnn as c; print(list(c.__path__)[0])' 2>/dev/null || true)
  for candidate in "${CUDNN_ROOT:-}" "${CUDA_HOME:-}" /usr/local/cuda "$of_python"; do
    if [ -n "$candidate" ] && holds_cudnn "$candidate"; then
      export CUDNN_ROOT=$candidate
      return
    fi
  done
  fetch_wheels $cudnn_wheels
  export CUDNN_ROOT="$root/build/wheels/nvidia/cudnn"
}

find_cuda_headers() {
  for candidate in "${CUDA_ROOT:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr; do
    if [ -n "$candidate" ] && [ -e "$candidate/include/cuda_runtime_api.h" ]; then
      export CUDA_ROOT=$candidate
      return
    fi
  done
  fetch_wheels $cuda_wheels
  export CUDA_ROOT="$root/build/wheels/nvidia/cu13"
}

setup() {
  install_packages
  find_cudnn
  find_cuda_headers
  say "cuDNN from $CUDNN_ROOT, CUDA headers from $CUDA_ROOT"
}

# configure PRESET [options]: a build tree that was configured for another cuDNN is made anew.
configure() {
  local preset=$1
  shift
  cmake --fresh --preset "$preset" -S "$root" -DCUDNN_ROOT="$CUDNN_ROOT" -DCUDA_ROOT="$CUDA_ROOT" "$@" >"$root/build/configure-$preset.log" 2>&1 ||
    { cat "$root/build/configure-$preset.log" >&2; return 1; }
}
