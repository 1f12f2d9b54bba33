#!/usr/bin/env bash
# Install what tests of pages and clusters need besides Python: a browser, axe-core, Slurm, Open MPI, sshd,
# and linters. Needs Debian and root; elsewhere the tests that need them are skipped with a reason.
set -euo pipefail
cd "$(dirname "$0")"
say() { echo "setup: $*" >&2; }

packages() {
  local tool names wanted=() log=${TMPDIR:-/tmp}/scalestudy-apt.log
  declare -A package=(
    [chromium]="chromium fonts-dejavu-core" [shellcheck]=shellcheck [mpirun]=openmpi-bin [mpicxx]=libopenmpi-dev
    [sbatch]=slurm-client [slurmctld]=slurmctld [slurmd]=slurmd [slurmdbd]="slurmdbd slurm-wlm-mysql-plugin"
    [mariadbd]=mariadb-server [munged]=munge [ip]=iproute2 [npm]=npm
    [pdftotext]=poppler-utils [sshd]=openssh-server
  )
  for tool in "${!package[@]}"; do
    if command -v "$tool" >/dev/null; then continue; fi
    read -ra names <<<"${package[$tool]}"
    wanted+=("${names[@]}")
  done
  [ ${#wanted[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "without ${wanted[*]} some tests are skipped"
    return 0
  fi
  say "installing for the tests (Debian): ${wanted[*]}"
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -q && apt-get install -y -q --no-install-recommends "${wanted[@]}"; } </dev/null >>"$log" 2>&1 ||
    say "some could not be installed; their tests will be skipped ($log says why)"
}

# axe-core checks pages for accessibility: one npm package in the user's cache (used by tests/support/chromium.py).
axe() {
  local into=${XDG_CACHE_HOME:-$HOME/.cache}/scalestudy/axe
  if cmp -s axe/package-lock.json "$into/node_modules/.installed"; then return 0; fi
  if ! command -v npm >/dev/null; then
    say "without npm, pages are not checked for accessibility"
    return 0
  fi
  mkdir -p "$into"
  cp axe/package.json axe/package-lock.json "$into/"
  if (cd "$into" && npm ci --ignore-scripts --no-audit --no-fund) >"$into/npm.log" 2>&1; then
    cp axe/package-lock.json "$into/node_modules/.installed"
  else
    say "axe-core could not be installed, so pages are not checked for accessibility ($into/npm.log says why)"
  fi
}

packages
axe
