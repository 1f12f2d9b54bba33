#!/usr/bin/env bash
# Build Horovod for the TensorFlow that is installed in a virtual environment, and install it there.
#   build-horovod.sh [VENV]                     Gloo, for CPUs: needs a C++17 compiler, cmake and make, no MPI
#   MPI=1 build-horovod.sh [VENV]               Gloo and MPI (an MPI with its headers, mpicxx in PATH)
#   HOROVOD_GPU_OPERATIONS=NCCL build-horovod.sh [VENV]   NCCL for GPUs (CUDA and NCCL with their headers)
#   TARGET=DIR …                                into this folder instead: it goes before all others on PYTHONPATH
# The wheel is kept in the user's cache, under the versions it was built for, and used again.
set -euo pipefail
version=0.28.1
sha256=92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0
python=$(realpath -s "${1:-.venv}")/bin/python
here=$(cd "$(dirname "$0")" && pwd)
[ -z "${TARGET:-}" ] || TARGET=$(realpath -sm "$TARGET")
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
key=$version-$key-g++$(g++ -dumpversion)-mpi${MPI:-0}-${HOROVOD_GPU_OPERATIONS:-cpu}-$(sed -n '/^# recipe/,/^# end/p' "$here/build-horovod.sh" | sha256sum | cut -c1-8)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/scalestudy/horovod/$key

install() { # wheel
  local place=()
  [ -z "${TARGET:-}" ] || place=(--target "$TARGET" --upgrade)
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "${place[@]}" "$1"
}
check() {
  local built=gloo
  [ "${MPI:-0}" = 0 ] || built=mpi
  PYTHONPATH=${TARGET:-}${PYTHONPATH:+:$PYTHONPATH} "$python" -c "
import horovod.tensorflow as hvd, sys
sys.exit(not (hvd.${built}_built() and hvd.__file__.startswith('${TARGET:-}')))" 2>/dev/null
}

if compgen -G "$cache/horovod-*.whl" >/dev/null; then
  install "$cache"/horovod-*.whl
  check && { say "installed from the cache: $key"; exit 0; }
  say "the cached wheel does not load; building it anew"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/build.log
say "building Horovod $version (2 to 5 minutes): $key"
# No isolated build environment: it would have no TensorFlow.
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-binary horovod \
  -d "$work" "horovod==$version" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
echo "$sha256  $work/horovod-$version.tar.gz" | sha256sum --check --quiet
tar -xzf "$work/horovod-$version.tar.gz" -C "$work"
# recipe: what the wheel depends on, from here to its end
# Two changes to its source. This file's includes do not resolve with TensorFlow 2.21. It is empty
# without a GPU; with one it holds the XLA kernels, so Horovod inside XLA is off.
list=$work/horovod-$version/horovod/tensorflow/CMakeLists.txt
[ "$(grep -c 'xla_mpi_ops\.cc' "$list")" = 1 ]
sed -i '/xla_mpi_ops\.cc/d' "$list"
# The connections that carry the sums ignored HOROVOD_GLOO_IFACE, and took the address that a node's own
# name has: the loopback on a node with Debian's default hosts file, the slow network on another.
gloo=$work/horovod-$version/horovod/common/gloo/gloo_context.cc
sed -i '/::InitializeForProcessSet(/,/^}/s/iface = gloo_iface_;/iface = global_context.gloo_iface_;/' "$gloo"
[ "$(grep -c 'global_context\.gloo_iface_' "$gloo")" = 1 ]
export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1
if [ "${MPI:-0}" = 1 ]; then export HOROVOD_WITH_MPI=1; else export HOROVOD_WITHOUT_MPI=1 HOROVOD_CPU_OPERATIONS=GLOO; fi
export CMAKE_POLICY_VERSION_MINIMUM=3.5 # its bundled Gloo asks for a cmake older than cmake 4 accepts
export LDFLAGS=${LDFLAGS:--Wl,-s} MAKEFLAGS=${MAKEFLAGS_HOROVOD:--j$(nproc)}
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-cache-dir \
  -w "$work/wheel" "$work/horovod-$version" >"$log" 2>&1 </dev/null || {
  tail -n 40 "$log" >&2
  say "the build failed; its last lines are above."
  exit 1
}
# end of the recipe
mkdir -p "$cache"
wheel=$(basename "$work"/wheel/horovod-*.whl)
cp "$work/wheel/$wheel" "$cache/.$wheel.$$" && mv "$cache/.$wheel.$$" "$cache/$wheel"
install "$cache/$wheel"
check || { say "the built Horovod does not load"; exit 1; }
say "installed: $key"
