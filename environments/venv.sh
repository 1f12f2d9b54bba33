#!/usr/bin/env bash
#SBATCH --job-name=scalestudy-venv
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
# Build a virtual environment for a cluster, on the hardware that it will run on. From the project's folder:
#   sbatch --partition=gpu --gres=gpu:1 --cpus-per-task=8 environments/venv.sh ~/venvs/scalestudy
#   SITE=rwth sbatch … environments/venv.sh     modules, folder and proxies (in `env`) of that site profile
#   environments/venv.sh FOLDER                 the same without a queue, on this machine
# Pass partition, account and GPUs to sbatch; its options override those above. The node needs network access,
# directly or by proxies: at sites without, run this on the login node with DEVICE=gpu (or gpu-volta).
# CUDA, NCCL and the compiler of Horovod's GPU code come with the packages: no CUDA module is needed.
#   DEVICE=cpu|gpu|gpu-volta   TensorFlow for this device (gpu-volta: cuDNN for V100); default: detected
#   DEVICE=torch-cpu|torch-gpu PyTorch instead: on GPUs the two need separate environments
#   HOROVOD=nccl|gloo|0   how Horovod combines gradients, or no Horovod; default: nccl on GPUs, gloo on CPUs
#   MPI=1                 Horovod with MPI as well (an MPI with mpicxx)
#   MODULES="GCC/12 Python/3.11 CMake"      modules to load, in this order, after unloading all others
#   NCCL_HOME=FOLDER      this NCCL instead of the one that TensorFlow installs
#   HOROVOD_CUDA_HOME=FOLDER   nvcc of this CUDA 12 instead of the packages' compiler
#   PYTHON=python3.12     Python interpreter
#   PIP_CACHE_DIR, XDG_CACHE_HOME           caches, if home has a quota
set -euo pipefail
say() { echo "venv: $*" >&2; }

# A job runs a copy of this script; the project is the folder of submission.
project=${SCALESTUDY_PROJECT:-}
for candidate in "${SLURM_SUBMIT_DIR:-}" "$(dirname "$0")/.." .; do
  if [ -z "$project" ] && [ -n "$candidate" ] && [ -x "$candidate/environments/setup.sh" ]; then project=$candidate; fi
done
if [ -z "$project" ]; then
  say "expected the project's folder; received none. Submit from it, or name it: SCALESTUDY_PROJECT=FOLDER"
  exit 1
fi
project=$(realpath "$project")

find_python() { # of a version that reads TOML
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    if [ -n "$candidate" ] && "$candidate" -c 'import tomllib' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

site_folder=
if [ -n "${SITE:-}" ]; then
  profile=$SITE
  [ -f "$profile" ] || profile=${XDG_CONFIG_HOME:-$HOME/.config}/scalestudy/sites/$SITE.toml
  if ! [ -f "$profile" ]; then
    say "expected the site profile $SITE; received no such file, and no $profile. Write one: scalestudy site init"
    exit 1
  fi
  reader=$(find_python) || {
    say "expected Python 3.11 or newer to read $profile; received none. Name the modules instead: MODULES=\"…\""
    exit 1
  }
  assignments=$("$reader" - "$profile" <<'PY'
import os, shlex, sys, tomllib
site = tomllib.load(open(sys.argv[1], "rb"))
modules = " ".join(site.get("modules", []))
folder = os.path.expanduser(os.path.expandvars(site.get("environment", "")))
print(f"MODULES=${{MODULES:-{shlex.quote(modules)}}}; site_folder={shlex.quote(folder)}")
for name, value in site.get("env", {}).items():
    if name.lower().endswith("_proxy"):
        print(f"export {name}={shlex.quote(value)}")
PY
  )
  eval "$assignments"
fi

if [ -n "${MODULES:-}" ]; then
  # Batch shells are not login shells; these files of Lmod and Environment Modules define `module`.
  for file in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash; do
    # shellcheck disable=SC1090
    if ! command -v module >/dev/null && [ -r "$file" ]; then set +u; . "$file"; set -u; fi
  done
  if ! command -v module >/dev/null; then
    say "expected the command module for MODULES=\"$MODULES\"; received none. Load them before, and leave MODULES out."
    exit 1
  fi
  set +u # modules' own scripts use variables that are not set
  module purge
  for name in $MODULES; do module load "$name"; done
  set -u
  say "modules: ${LOADEDMODULES:-}"
fi

target=${1:-${site_folder:-}}
target=$(realpath -sm "${target:-$project/.venv}")
device=${DEVICE:-$("$project/environments/device.sh")}
case $device in torch-*) horovod=0 ;; cpu) horovod=gloo ;; *) horovod=nccl ;; esac
horovod=${HOROVOD:-$horovod}
case $device:$horovod in
  torch-cpu:0 | torch-gpu:0) ;;
  cpu:gloo | cpu:0 | gpu:nccl | gpu:gloo | gpu:0 | gpu-volta:nccl | gpu-volta:gloo | gpu-volta:0) ;;
  *)
    say "expected DEVICE=cpu|gpu|gpu-volta and HOROVOD=nccl|gloo|0 (nccl with GPUs), or DEVICE=torch-cpu|torch-gpu and no HOROVOD; received DEVICE=$device HOROVOD=$horovod. Correct them."
    exit 1
    ;;
esac

# Check all build tools before anything is downloaded.
missing=()
if [ "$horovod" != 0 ]; then
  for tool in g++ cmake make; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  if [ "${MPI:-0}" = 1 ]; then command -v mpicxx >/dev/null || missing+=("mpicxx (an MPI module)"); fi
fi
cuda=${HOROVOD_CUDA_HOME:-}
if [ "$horovod" = nccl ] && [ -n "$cuda" ] && ! [ -x "$cuda/bin/nvcc" ]; then missing+=("nvcc (in HOROVOD_CUDA_HOME=$cuda)"); fi
if [ ${#missing[@]} != 0 ]; then
  list=$(printf '%s, ' "${missing[@]}")
  say "expected what Horovod is built with; received none of ${list%, }. Load modules with them (MODULES=\"…\"), or build without: HOROVOD=0"
  exit 1
fi

say "on $HOSTNAME: $target for $device, Horovod: $horovod"
mkdir -p "$(dirname "$target")"
DEVICE=$device HOROVOD=0 VENV=$target "$project/environments/setup.sh"

[ "$horovod" != nccl ] || export HOROVOD_GPU_OPERATIONS=NCCL
if [ "$horovod" != 0 ]; then
  [ "${MPI:-0}" = 0 ] || say "MPI: $(command -v mpicxx)"
  "$project/environments/build-horovod.sh" "$target"
fi
"$target/bin/scalestudy" check --strategies
