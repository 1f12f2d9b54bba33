#!/usr/bin/env bash
# Build Horovod for the TensorFlow that is installed in a virtual environment, and install it there.
#   build-horovod.sh [VENV]                     Gloo, for CPUs: needs a C++17 compiler, cmake and make, no MPI
#   MPI=1 build-horovod.sh [VENV]               Gloo and MPI (an MPI with its headers, mpicxx in PATH)
#   HOROVOD_GPU_OPERATIONS=NCCL build-horovod.sh [VENV]   NCCL for GPUs, from the CUDA 12 packages beside
#                                               TensorFlow (requirements/gpu.txt): no CUDA module, no GPU, no driver
#   NCCL_HOME=DIR …                             another NCCL (module) instead of the package's
#   HOROVOD_CUDA_HOME=DIR …                     nvcc of this CUDA 12 (module) instead of the packages' compiler
#   TARGET=DIR …                                install into this folder, which must be first on PYTHONPATH
# The wheel is cached in the user's cache by the versions that it was built for and with.
set -euo pipefail
version=0.28.1
sha256=92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0
python=$(realpath -s "${1:-.venv}")/bin/python
here=$(cd "$(dirname "$0")" && pwd)
[ -z "${TARGET:-}" ] || TARGET=$(realpath -sm "$TARGET")
export TARGET=${TARGET:-}
say() { echo "build-horovod: $*" >&2; }

tools=(g++ cmake make)
[ "${MPI:-0}" = 0 ] || tools+=(mpicxx)
for tool in "${tools[@]}"; do
  command -v "$tool" >/dev/null || { say "expected $tool; received none. Install it (Debian: apt-get install ${tool/mpicxx/libopenmpi-dev})."; exit 1; }
done
export TF_CPP_MIN_LOG_LEVEL=3
key=$("$python" - <<'PY'
import platform, sys
from importlib import metadata
found = {name.replace("_", "-").lower() for name in (d.metadata["Name"] for d in metadata.distributions()) if name}
names = sorted(found & {"tensorflow", "tensorflow-cpu"})
if not names:
    sys.exit("expected TensorFlow in this environment; received none. Install it first.")
print(f"tf{metadata.version(names[0])}-py{sys.version_info[0]}{sys.version_info[1]}-{platform.machine()}-{platform.libc_ver()[1]}")
PY
)
run_path=
with=${HOROVOD_GPU_OPERATIONS:-cpu}
if [ "$with" = NCCL ]; then
  cuda_version='' nccl_version='' cuda_includes='' cuda_runtime='' nccl_include='' nccl_library=''
  assignments=$("$python" "$here/horovod/packages.py")
  eval "$assignments"
  if [ -n "${HOROVOD_CUDA_HOME:-}" ]; then
    release=$("$HOROVOD_CUDA_HOME/bin/nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p') || true
    if [ "${release%%.*}" != "${cuda_version%%.*}" ]; then
      say "expected nvcc of CUDA ${cuda_version%%.*}, TensorFlow's, in HOROVOD_CUDA_HOME; received ${release:-none} in $HOROVOD_CUDA_HOME. Name another, or none: the packages have a compiler."
      exit 1
    fi
    cuda_version=nvcc$release
    export HOROVOD_BUILD_CUDA_CC_LIST=${HOROVOD_BUILD_CUDA_CC_LIST:-60,70,80,90} PATH=$HOROVOD_CUDA_HOME/bin:$PATH
  fi
  with=nccl$nccl_version-cuda$cuda_version${HOROVOD_BUILD_CUDA_CC_LIST:+-${HOROVOD_BUILD_CUDA_CC_LIST//,/_}}-path$(sha256sum <<<"$run_path" | cut -c1-8)
fi
recipe=$({ sed -n '/^# recipe/,/^# end/p' "$here/build-horovod.sh"; cat "$here"/horovod/{packages,patch,kernels}.py "$here/horovod/launch.cc"; } | sha256sum | cut -c1-8)
key=$version-$key-g++$(g++ -dumpversion)-mpi${MPI:-0}-$with-$recipe
cache=${XDG_CACHE_HOME:-$HOME/.cache}/scalestudy/horovod/$key

install() { # wheel
  local place=()
  [ -z "$TARGET" ] || place=(--target "$TARGET" --upgrade)
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "${place[@]}" "$1"
}
check() { # lacks no symbol, loads, and has what was asked for; says what is wrong
  local wanted=(gloo) said library tensorflow
  [ "${MPI:-0}" = 0 ] || wanted=(mpi)
  [ "${with%%[0-9]*}" != nccl ] || wanted+=(nccl)
  export PYTHONPATH=$TARGET${PYTHONPATH:+:$PYTHONPATH}
  library=$(find "${TARGET:-"$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')"}/horovod" -name 'mpi_lib*.so')
  tensorflow=$("$python" -c 'import importlib.util as i; print(i.find_spec("tensorflow").submodule_search_locations[0])')
  # ldd resolves all symbols without running anything, so a build for GPUs is checked on a machine without one.
  said=$(LD_LIBRARY_PATH=$tensorflow${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ldd -r "$library" 2>&1 |
    grep -E 'not found|undefined symbol: .*mpi_lib') && {
    say "$library lacks: $said"
    return 1
  }
  said=$("$python" "$here/horovod/loads.py" "${wanted[@]}" 2>&1) || {
    say "$said"
    return 1
  }
}

if compgen -G "$cache/horovod-*.whl" >/dev/null; then
  install "$cache"/horovod-*.whl
  (check) && { say "installed from the cache: $key"; exit 0; }
  say "the cached wheel does not load; building it anew"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/build.log
say "building Horovod $version (2 to 5 minutes): $key"
# No isolated build environment, because it would not contain TensorFlow.
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-binary horovod \
  -d "$work" "horovod==$version" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
echo "$sha256  $work/horovod-$version.tar.gz" | sha256sum --check --quiet
tar -xzf "$work/horovod-$version.tar.gz" -C "$work"
# recipe: what the wheel depends on, from here to its end, and most of horovod/
source=$work/horovod-$version
if [ "${with%%[0-9]*}" = nccl ]; then
  mkdir "$work/nccl"
  ln -s "$nccl_library" "$work/nccl/libnccl.so" # the linker's name, which the package does not hold
  export HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_NCCL_LINK=SHARED HOROVOD_NCCL_LIB=$work/nccl HOROVOD_NCCL_INCLUDE=$nccl_include
fi
if [ "${with%%[0-9]*}" = nccl ] && [ -z "${HOROVOD_CUDA_HOME:-}" ]; then
  "$python" "$here/horovod/patch.py" "$source" packages
  kernels=$source/horovod/common/ops/cuda
  cp "$here/horovod/launch.cc" "$kernels"
  "$python" "$here/horovod/kernels.py" "$kernels" "$kernels/kernel_images.h"
  export HOROVOD_CUDA_INCLUDES=$cuda_includes HOROVOD_CUDA_RUNTIME=$cuda_runtime HOROVOD_WITHOUT_NVTX=1
else
  "$python" "$here/horovod/patch.py" "$source"
fi
# TensorFlow is beside it, or is loaded before it.
export HOROVOD_RUN_PATH="\$ORIGIN/../../tensorflow${run_path:+:$run_path}"
export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1
if [ "${MPI:-0}" = 1 ]; then export HOROVOD_WITH_MPI=1; else export HOROVOD_WITHOUT_MPI=1 HOROVOD_CPU_OPERATIONS=GLOO; fi
export CMAKE_POLICY_VERSION_MINIMUM=3.5 # its bundled Gloo asks for a cmake older than cmake 4 accepts
export LDFLAGS=${LDFLAGS:--Wl,-s} MAKEFLAGS=${MAKEFLAGS_HOROVOD:--j$(nproc)}
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-cache-dir \
  -w "$work/wheel" "$source" >"$log" 2>&1 </dev/null || {
  tail -n 40 "$log" >&2
  say "the build failed; its last lines are above."
  exit 1
}
# end of the recipe
wheel=$(basename "$work"/wheel/horovod-*.whl)
install "$work/wheel/$wheel"
(check) || { say "the built Horovod cannot be used: the lines above say why"; exit 1; }
mkdir -p "$cache"
cp "$work/wheel/$wheel" "$cache/.$wheel.$$" && mv "$cache/.$wheel.$$" "$cache/$wheel"
install "$cache/$wheel" # again: its record names the wheel that it came from
say "installed: $key"
