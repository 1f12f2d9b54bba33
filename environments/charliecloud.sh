#!/usr/bin/env bash
# Make a Charliecloud image (a folder) for the runs of a study. Needs root, debootstrap, and Debian's archive.
#   charliecloud.sh IMAGE           Debian, Python and Scalestudy, for CPUs, under /opt/scalestudy
#   HOROVOD=1 charliecloud.sh IMAGE the same with Horovod, for Gloo
#   VERSION=0.2.0 …                 Scalestudy's version in the image; default: from .venv's setuptools-scm, else 0.0
#   charliecloud.sh --bare IMAGE    only Debian and Python; a virtual environment of the cluster is bound into it
# Make it on a machine where you are root, and copy it to the cluster as a folder or, after
# `ch-convert IMAGE IMAGE.sqfs`, as a file. Name it in the site profile:
#   container = { image = "IMAGE", runtime = "charliecloud" }
# For GPUs the image needs the driver's libraries of the nodes: run `ch-fromhost --nvidia IMAGE` there.
# ch-run binds only onto existing folders of an image: MOUNTS="DIR …" creates these instead of the usual ones.
set -euo pipefail
suite=bookworm
mirror=${MIRROR:-http://deb.debian.org/debian}
mounts=${MOUNTS:-/home /root /work /scratch /project /projects /data /lustre /gpfs /beegfs /fs /software /rwthfs /sw}
here=$(cd "$(dirname "$0")" && pwd)
# The image contains no git history, so the version must be passed.
version=${VERSION:-$(cd "$here/.." && .venv/bin/python -m setuptools_scm 2>/dev/null || echo 0.0)}
say() { echo "charliecloud: $*" >&2; }

bare=0
if [ "${1:-}" = --bare ]; then bare=1; shift; fi
[ $# = 1 ] || { sed -n 's/^# \{0,1\}//p; /^set -e/q' "$0" >&2; exit 2; }
image=$(realpath -sm "$1")
[ ! -e "$image" ] || { say "expected a new folder; received $image, which exists. Remove it or name another."; exit 2; }
[ "$(id -u)" = 0 ] || { say "expected root, whom debootstrap needs. Make the image on a machine of your own."; exit 1; }
command -v debootstrap >/dev/null || { say "expected debootstrap; received none. apt-get install debootstrap"; exit 1; }

packages=python3,python3-venv,ca-certificates
if [ "$bare" = 0 ] && [ "${HOROVOD:-0}" = 1 ]; then packages+=,g++,cmake,make,python3-dev; fi

# The image gets its name only when it is complete.
mkdir -p "$(dirname "$image")"
work=$(mktemp -d -p "$(dirname "$image")" ".$(basename "$image").XXXXXX")
trap 'umount "$work/dev" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
log=$work.log
say "Debian $suite (about a minute)"
debootstrap --variant=minbase --include="$packages" "$suite" "$work" "$mirror" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
rm -rf "$work"/var/cache/apt/archives/*.deb "$work"/var/lib/apt/lists/*
chmod 755 "$work"
# Charliecloud binds the host's files over these.
touch "$work/etc/hosts" "$work/etc/resolv.conf"
for folder in $mounts /run/user /ch; do mkdir -p "$work$folder"; done

if [ "$bare" = 0 ]; then
  say "Scalestudy and TensorFlow (some minutes)"
  mkdir -p "$work/opt/scalestudy/project"
  for part in src pyproject.toml README.md LICENSE environments; do
    cp -r "$here/../$part" "$work/opt/scalestudy/project"
  done
  cp /etc/resolv.conf "$work/etc/resolv.conf"
  mount --bind /dev "$work/dev"
  inside() { chroot "$work" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp "$@"; }
  inside python3 -m venv /opt/scalestudy >>"$log" 2>&1
  inside SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SCALESTUDY="$version" /opt/scalestudy/bin/pip install --no-cache-dir "/opt/scalestudy/project[cpu]" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
  if [ "${HOROVOD:-0}" = 1 ]; then
    inside /opt/scalestudy/project/environments/build-horovod.sh /opt/scalestudy >>"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
  fi
  umount "$work/dev"
  rm -rf "$work/opt/scalestudy/project" "$work"/tmp/* "$work"/tmp/.cache
fi
trap - EXIT
mv "$work" "$image"
rm -f "$log"
say "made $image"
