#!/usr/bin/env bash
# What tests of the report and of clusters need besides Python: a browser, LaTeX, Slurm, Open MPI,
# containers, shellcheck.
# On Debian as root they are installed; elsewhere the tests that need them are skipped, and say so.
set -euo pipefail
say() { echo "setup: $*" >&2; }

declare -A package=(
  [chromium]="chromium fonts-dejavu-core" [shellcheck]=shellcheck [mpirun]=openmpi-bin [mpicxx]=libopenmpi-dev
  [sbatch]=slurm-client [slurmctld]=slurmctld [slurmd]=slurmd [slurmdbd]="slurmdbd slurm-wlm-mysql-plugin"
  [mariadbd]=mariadb-server [munged]=munge [ip]=iproute2 [ch-run]=charliecloud [debootstrap]=debootstrap
  [pdflatex]="texlive-latex-base texlive-latex-recommended" [pdftotext]=poppler-utils
)
wanted=()
for tool in "${!package[@]}"; do
  if command -v "$tool" >/dev/null; then continue; fi
  read -ra names <<<"${package[$tool]}"
  wanted+=("${names[@]}")
done
[ ${#wanted[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  say "without ${wanted[*]} some tests are skipped"
  exit 0
fi
say "installing for the tests (Debian): ${wanted[*]}"
log=${TMPDIR:-/tmp}/scalestudy-apt.log
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -q && apt-get install -y -q --no-install-recommends "${wanted[@]}"; } </dev/null >>"$log" 2>&1 ||
  say "some could not be installed; their tests will be skipped ($log says why)"
