#!/usr/bin/env bash
# Set up .venv: a virtual environment with pinned dependencies, this package and, where possible, Horovod.
#   setup.sh          on Debian as root, missing tools are installed from the distribution
#   DEVICE=cpu|gpu|gpu-volta   TensorFlow for this device (gpu-volta: cuDNN for V100); default: detected
#   DEVICE=torch-cpu|torch-gpu PyTorch without TensorFlow
#   TORCH=1           PyTorch beside TensorFlow; on GPUs in an environment of its own, VENV-torch (TORCH=auto: on CPUs)
#   PYTHON=python3.12 Python interpreter
#   VENV=FOLDER       another folder than .venv (environments/venv.sh builds one for a cluster)
#   HOROVOD=0         leave Horovod out
set -euo pipefail
venv=$(realpath -sm "${VENV:-"$(dirname "$0")/../.venv"}")
cd -P "$(dirname "$0")/.."
say() { echo "setup: $*" >&2; }

device=${DEVICE:-$(environments/device.sh)}
lock=requirements/$device.txt
if ! [[ $device =~ ^(cpu|gpu|gpu-volta|torch-cpu|torch-gpu)$ ]]; then
  say "expected DEVICE=cpu|gpu|gpu-volta|torch-cpu|torch-gpu; received DEVICE=$device. Correct it."
  exit 1
fi
# Packages of CUDA 13 (for PyTorch) and of CUDA 12 (for TensorFlow) contain files of the same names.
case $device in gpu*) alone=torch ;; torch-gpu) alone=tensorflow ;; *) alone= ;; esac
installed() { compgen -G "$venv/lib/python*/site-packages/$1/__init__.py" >/dev/null; }
torch=${TORCH:-0}
if [ "$torch" = auto ] && [ "$alone" = torch ]; then
  say "PyTorch is left out: on GPUs it needs an environment of its own (TORCH=1)"
  torch=0
fi
if [ "$torch" != 0 ] && [ "$device" = gpu-volta ]; then
  say "expected GPUs of compute capability 7.5 or higher for TORCH=1; received DEVICE=$device, for which PyTorch's CUDA 13 has no code. Leave TORCH out."
  exit 1
fi
if [ -n "$alone" ] && installed "$alone"; then
  say "expected TensorFlow and PyTorch in an environment each on GPUs, since packages of CUDA 12 and 13 share files; received DEVICE=$device for $venv beside the other. Set up two: DEVICE=gpu VENV=~/venvs/tensorflow, and DEVICE=torch-gpu VENV=~/venvs/torch. [launch] environments in a study file names them."
  exit 1
fi
if [ "${device%%-*}" = gpu ] && [ "$(uname -m)" != x86_64 ]; then
  say "expected x86_64 for DEVICE=$device; received $(uname -m), for which TensorFlow's package has no CUDA. Take DEVICE=cpu, or a TensorFlow 2.21 built with CUDA on this machine."
  exit 1
fi

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  say "expected Python 3.11, 3.12 or 3.13; received $(python3 --version 2>&1 || true). Install one and name it: PYTHON=python3.12 make"
  exit 1
}

# Packages of the distribution: installed if possible, otherwise reported.
need() { # command package...
  local command=$1
  shift
  if eval "$command" >/dev/null 2>&1; then return 0; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing $* (Debian)"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; } \
      </dev/null >>"${TMPDIR:-/tmp}/scalestudy-apt.log" 2>&1 || true
    eval "$command" >/dev/null 2>&1 && return 0
  fi
  return 1
}

# An environment works only where it was made, because its programs name their Python by its full path.
place=$venv/.place
recorded() { sed -n "s/^$1=//p" "$place" 2>/dev/null || true; } # environment, project or tensorflow
made=$(recorded environment)
[ -n "$made" ] || made=$(sed -n 's/^command = .* //p' "$venv/pyvenv.cfg" 2>/dev/null || true)
clear=()
if [ -n "$made" ] && [ "$(realpath -m "$made")" != "$(realpath -m "$venv")" ]; then
  if [ -n "${VENV:-}" ]; then
    say "expected an environment that was made at $venv; received one from $made, whose programs do not start here. Remove it, or name another folder: VENV=FOLDER"
    exit 1
  fi
  say "the environment was made at $made and does not work here: making it anew"
  clear=(--clear)
fi
if ! [ -x "$venv/bin/python" ] || [ ${#clear[@]} != 0 ]; then
  python=$(find_python)
  need "$python -m ensurepip --version" python3-venv || {
    say "expected Python's venv module; received none. Install it (Debian: python3-venv)."
    exit 1
  }
  "$python" -m venv "${clear[@]}" "$venv"
fi
# The stamp skips the installation if the lock file is unchanged.
stamp=$venv/.installed-$(cat "$lock" pyproject.toml | sha256sum | cut -c1-16)
if ! [ -e "$stamp" ]; then
  say "installing the pinned dependencies of $lock into $venv (some hundred megabytes, once)"
  # The file lists all dependencies, so pip need not resolve any.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$lock"
  rm -f "$venv"/.installed-* "$venv/.commit"
  touch "$stamp"
fi
# PyTorch is pinned by version, not by hash: its builds for CPUs and for CUDA share the version, and an index has
# one or the other. A build with CUDA installs CUDA's packages (gigabytes), and works on CPUs, too.
version=$(sed -n 's/^\(torch==[0-9.]*\).*/\1/p' requirements/torch-gpu.txt)
stamp=$venv/.torch-$(cat requirements/torch-cpu.txt <(echo "$version") pyproject.toml | sha256sum | cut -c1-16)
if { [ "$torch" != 0 ] || [ "$device" = torch-cpu ]; } && [ -z "$alone" ] && ! [ -e "$stamp" ]; then
  say "installing $version into $venv (PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL: where builds for CPUs are, if not on your index)"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/torch-cpu.txt
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$version"
  rm -f "$venv"/.torch-*
  touch "$stamp"
fi
# The version comes from the commit, so the package is installed again after a new commit.
commit=$(git describe --tags --always 2>/dev/null || echo none)
if [ "$(cat "$venv/.commit" 2>/dev/null)" != "$commit" ] || [ "$(recorded project)" != "$PWD" ]; then
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
  echo "$commit" >"$venv/.commit"
fi

case $device in torch-*) HOROVOD=0 ;; esac
tensorflow=$("$venv/bin/python" -c 'from importlib import metadata as m; print(next((d.version for d in m.distributions() if d.name in ("tensorflow", "tensorflow-cpu", "tensorflow_cpu")), ""))')
same_tensorflow() { [ -z "$(recorded tensorflow)" ] || [ "$(recorded tensorflow)" = "$tensorflow" ]; }
horovod_loads() { said=$(env -u PYTHONPATH TF_CPP_MIN_LOG_LEVEL=3 "$venv/bin/python" environments/horovod/loads.py 2>&1); }
without=
if [ "${HOROVOD:-1}" = 1 ] && ! { same_tensorflow && horovod_loads; }; then
  missing=()
  need 'command -v g++' g++ || missing+=("a C++ compiler (g++)")
  need 'command -v cmake' cmake || missing+=("cmake")
  if [ ${#missing[@]} = 0 ]; then
    [ "$device" = cpu ] || export HOROVOD_GPU_OPERATIONS=${HOROVOD_GPU_OPERATIONS-NCCL}
    environments/build-horovod.sh "$venv" || say "Horovod could not be built; everything else works. The log above says why."
    horovod_loads || {
      say "${said##*$'\n'}"
      without=" (without Horovod)"
    }
  else
    without=" (without Horovod)"
    say "Horovod is left out: missing ${missing[*]}. Everything else works; after installing them: environments/build-horovod.sh $venv"
  fi
fi
# Last, so that what is called ready was started.
said=$(env -u PYTHONPATH "$venv/bin/scalestudy" --version 2>&1) || {
  say "expected $venv/bin/scalestudy to start; received: ${said##*$'\n'} Remove $venv, and run this again."
  exit 1
}
source=$(cd / && env -u PYTHONPATH "$venv/bin/python" -c 'import os, scalestudy; print(os.path.realpath(scalestudy.__file__))')
if [ "$source" != "$PWD/src/scalestudy/__init__.py" ]; then
  say "expected $venv to run the source in $PWD; received $source. Remove $venv, and run this again."
  exit 1
fi
printf '%s\n' "environment=$(realpath -m "$venv")" "project=$PWD" "tensorflow=$tensorflow" >"$place"
say "ready$without: $venv/bin/scalestudy"
if [ "$torch" != 0 ] && [ "$alone" = torch ]; then
  TORCH=0 DEVICE=torch-gpu VENV=$venv-torch environments/setup.sh
  say "a study over both engines names it: environments = { torch = \"$venv-torch\" } under [launch]"
fi
