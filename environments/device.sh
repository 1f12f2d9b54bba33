#!/usr/bin/env bash
# Print the lock file (requirements/DEVICE.txt) for this node: cpu, gpu, or gpu-volta for GPUs before Turing (V100,
# P100), which cuDNN 9.11 and later do not support. nvidia-smi reports the compute capability. A login node has no
# GPU: set DEVICE=… for setup.sh or venv.sh there.
set -euo pipefail

capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null) || capabilities=
if ! [[ $capabilities =~ [0-9] ]]; then
  # A driver too old to report the capability still lists its GPUs.
  if nvidia-smi -L >/dev/null 2>&1; then echo gpu; else echo cpu; fi
elif [ "$(uname -m)" != x86_64 ]; then
  echo "device: TensorFlow's package for $(uname -m) has no CUDA, so the GPUs here (GH200 and the like) are left out: an environment for CPUs. TensorFlow 2.21 built with CUDA on this machine would use them." >&2
  echo cpu
elif [[ $(sort -V <<<"$capabilities" | sed -n 1p) =~ ^([0-6]\.|7\.[0-4]) ]]; then
  echo gpu-volta
else
  echo gpu
fi
