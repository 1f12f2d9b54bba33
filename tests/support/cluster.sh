#!/usr/bin/env bash
# A real Slurm cluster on one machine (Debian's Slurm and munge; root), for tests and experiments.
#
#   cluster.sh up                   start it and wait until all nodes are idle (about 5 s)
#   cluster.sh down                 stop all of it in any state, and remove its files except logs
#   cluster.sh status               the nodes as Slurm sees them
#   cluster.sh env                  variables that a shell needs to use it:  eval "$(cluster.sh env)"
#   cluster.sh kill-node NAME       a power cut: kill the node and all its processes at once
#   cluster.sh start-node NAME      switch it on again
#   cluster.sh stop-controller      suspend slurmctld, which then accepts connections but does not answer
#   cluster.sh start-controller     resume it
#
# Each node (node1, node2, …) is a slurmd with its own network, host name, process tree and /tmp. All nodes share
# the rest of the file system, and CLUSTER_ROOT and CLUSTER_SHARED even in /tmp. Nodes have the CPUs and memory
# set below, not the machine's; GPUs are device files that compute nothing, but Slurm counts and binds them.
# Partitions, of all nodes: debug (the default, no limit), short (one minute), and urgent, whose jobs preempt those
# of the others and of graced, which get half a minute's notice.
#
# Settings (environment); clusters that run at the same time need different values where marked *:
#   CLUSTER_ROOT*     folder of all files of the cluster (/tmp/slurm-cluster)
#   CLUSTER_SHARED    folders in /tmp that all nodes see, separated by colons (none)
#   CLUSTER_NETWORK*  the first three numbers of the nodes' addresses (198.19.0, in the range reserved for tests)
#   CLUSTER_BRIDGE*   the network interface that joins them; at most 12 characters (slurmbr)
#   CLUSTER_PORT*     slurmctld's port; slurmdbd has the next one (17817)
#   CLUSTER_NODES     number of nodes (4)
#   CLUSTER_CPUS, CLUSTER_MEMORY, CLUSTER_GPUS   CPUs, memory in MB and GPUs of each node (4, 8000, 2)
#   CLUSTER_ACCOUNTING   1: slurmdbd with MariaDB; only its account `research` may run jobs;
#                        0: no accounting, and sacct does not answer (1)
set -Eeuo pipefail
trap 'echo "cluster.sh: line $LINENO failed: $BASH_COMMAND" >&2' ERR

root=${CLUSTER_ROOT:-/tmp/slurm-cluster}
network=${CLUSTER_NETWORK:-198.19.0}
bridge=${CLUSTER_BRIDGE:-slurmbr}
port=${CLUSTER_PORT:-17817}
nodes=${CLUSTER_NODES:-4} cpus=${CLUSTER_CPUS:-4} memory=${CLUSTER_MEMORY:-8000} gpus=${CLUSTER_GPUS:-2}
accounting=${CLUSTER_ACCOUNTING:-1}
controller=$(hostname)
export SLURM_CONF=$root/slurm.conf

say() { echo "cluster.sh: $*" >&2; }
die() { say "$@"; exit 1; }

# --- processes: each has a file with its id and start time, so that no other process with that id is signalled

# A process that has ended may stay a zombie for long if nothing reaps it: it counts as ended.
started() { # PID -> its start time; fails if it runs no longer
  local fields
  fields=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) || return 1
  read -ra fields <<<"$fields"
  [ "${#fields[@]}" -gt 19 ] && [ "${fields[0]}" != Z ] && echo "${fields[19]}"
}

alive() { # NAME
  local pid start
  [ -s "$root/pid/$1" ] && read -r pid start <"$root/pid/$1" && [ -n "$start" ] &&
    [ "$(started "$pid")" = "$start" ]
}

spawn() { # NAME COMMAND…: start it apart from this terminal
  local name=$1
  shift
  setsid "$@" >>"$root/log/$name.out" 2>&1 </dev/null &
  echo "$! $(started $!)" >"$root/pid/$name"
}

signal() { # NAME SIGNAL
  local pid
  alive "$1" || return 0
  read -r pid _ <"$root/pid/$1"
  kill -"$2" "$pid" 2>/dev/null || true
}

end() { # NAME
  signal "$1" KILL
  for _ in $(seq 200); do alive "$1" || break; sleep 0.05; done
  rm -f "$root/pid/$1"
}

await() { # SECONDS WHAT COMMAND…: until the command succeeds
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -gt "$deadline" ]; then
      tail -v -n 5 "$root"/log/*.out >&2
      die "waited in vain for $what"
    fi
    sleep 0.1
  done
}

# --- configuration

write_slurm_conf() {
  {
    cat <<END
ClusterName=test
SlurmctldHost=$controller($network.254)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$root/munge/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=$((memory / cpus))
GresTypes=gpu
SlurmdParameters=config_overrides
SlurmctldParameters=node_reg_mem_percent=1
LaunchParameters=enable_nss_slurm
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
InactiveLimit=0
KillWait=3
MinJobAge=3600
BatchStartTimeout=60
MessageTimeout=60
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0,default_queue_depth=1000
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
EnforcePartLimits=ALL
StateSaveLocation=$root/state
SlurmdSpoolDir=$root/spool/%n
TmpFS=$root/tmp/%n
SlurmctldPidFile=$root/spool/slurmctld.pid
SlurmdPidFile=$root/spool/%n.pid
SlurmctldLogFile=$root/log/slurmctld.log
SlurmdLogFile=$root/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
JobCompType=jobcomp/filetxt
JobCompLoc=$root/log/jobcomp.txt
END
    if [ "$accounting" = 1 ]; then
      cat <<END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$((port + 1))
AccountingStoragePass=$root/munge/socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
END
    else
      echo "AccountingStorageType=accounting_storage/none"
    fi
    for number in $(seq "$nodes"); do
      echo "NodeName=node$number NodeAddr=$network.$number Port=16818 CPUs=$cpus RealMemory=$memory" \
        "$([ "$gpus" = 0 ] || echo "Gres=gpu:h100:$gpus") State=UNKNOWN"
    done
    echo "PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10:00 State=UP"
    echo "PartitionName=short Nodes=ALL MaxTime=1 State=UP"
    echo "PartitionName=graced Nodes=ALL MaxTime=INFINITE DefaultTime=10:00 GraceTime=30 State=UP"
    echo "PartitionName=urgent Nodes=ALL MaxTime=INFINITE DefaultTime=10:00 PriorityTier=10 PreemptMode=OFF State=UP"
  } >"$SLURM_CONF"
}

write_gres_conf() {
  : >"$root/gres.conf"
  [ "$gpus" != 0 ] || return 0
  for number in $(seq 0 $((gpus - 1))); do mknod "$root/dev/gpu$number" c 1 3; done
  printf 'AutoDetect=off\nName=gpu Type=h100 File=%s\n' "$root/dev/gpu[0-$((gpus - 1))]" >"$root/gres.conf"
}

write_hosts() {
  {
    echo "127.0.0.1 localhost"
    echo "$network.254 $controller"
    for number in $(seq "$nodes"); do echo "$network.$number node$number"; done
  } >"$root/hosts"
}

write_slurmdbd_conf() {
  (umask 077; cat >"$root/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$root/munge/socket
DbdHost=localhost
DbdPort=$((port + 1))
SlurmUser=root
LogFile=$root/log/slurmdbd.log
PidFile=$root/spool/slurmdbd.pid
DebugLevel=info
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
END
  )
}

# --- services

start_munge() {
  (umask 077; head -c 128 /dev/urandom >"$root/munge/key")
  spawn munged munged --foreground --socket="$root/munge/socket" --key-file="$root/munge/key" \
    --log-file="$root/log/munged.log" --pid-file="$root/munge/pid" --seed-file="$root/munge/seed" --num-threads=10
  await 300 munged munge --socket="$root/munge/socket" --no-input
}

database() { mariadb --no-defaults --socket="$root/mysql/socket" "$@"; }

install_database() {
  rm -rf "$root/mysql/data"
  mariadb-install-db --no-defaults --user=root --datadir="$root/mysql/data" --skip-test-db \
    --auth-root-authentication-method=socket >"$root/log/mariadb-install.out" 2>&1
}

start_slurmdbd() { MYSQL_UNIX_PORT=$root/mysql/socket spawn slurmdbd slurmdbd -D; }

# On a busy machine slurmdbd can end at its start because a first query has no answer ("We should have gotten a
# result"). Services are started again then, and so is this one. Adding the cluster again fails if a slow request has
# succeeded, so check that it exists.
has_cluster() {
  alive slurmdbd || start_slurmdbd
  timeout 30 sacctmgr --immediate add cluster test
  timeout 30 sacctmgr -n list cluster test | grep -q test
}

has_account() {
  timeout 30 sacctmgr --immediate add account research description=research organization=research
  timeout 30 sacctmgr --immediate add user root account=research
  timeout 30 sacctmgr -n list association user=root account=research format=account | grep -q research
}

start_accounting() {
  await 300 "the tables of MariaDB" install_database
  spawn mariadbd mariadbd --no-defaults --user=root --datadir="$root/mysql/data" --socket="$root/mysql/socket" \
    --pid-file="$root/mysql/pid" --skip-networking --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \
    --innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=0
  await 300 mariadbd database -e "SELECT 1"
  database -e "CREATE DATABASE slurm_acct_db; CREATE USER slurm@localhost IDENTIFIED BY 'slurm';
    GRANT ALL ON slurm_acct_db.* TO slurm@localhost"
  write_slurmdbd_conf
  start_slurmdbd
  await 300 slurmdbd has_cluster
  await 300 "the account research" has_account
}

start_controller() {
  spawn slurmctld slurmctld -D -f "$SLURM_CONF"
  await 300 slurmctld timeout 30 scontrol ping
}

start_network() {
  ip link add "$bridge" type bridge
  ip address add "$network.254/24" dev "$bridge"
  ip link set "$bridge" up
}

# The first process of a node. It waits until the node has its network interface.
# shellcheck disable=SC2016 # expanded by that process
init='
set -e
name=$1 address=$2 root=$3 shared=$4
read -r _ <"$root/pid/go-$name"
hostname "$name"
mount --bind "$root/hosts" /etc/hosts
own=$root/tmp/$name
IFS=: read -ra folders <<<"$root:$shared"
for folder in "${folders[@]}"; do
  [[ $folder == /tmp/* ]] || continue
  mkdir -p "$own/${folder#/tmp/}"
  mount --rbind "$folder" "$own/${folder#/tmp/}"
done
mount --rbind "$own" /tmp
ip link set lo up
ip address add "$address/24" dev eth0
ip link set eth0 up
slurmd -D -f "$root/slurm.conf" -N "$name" &
wait $!'

start_node() { # NAME
  local name=$1 number=${1#node} pid
  [[ $name =~ ^node[0-9]+$ && $number -ge 1 && $number -le $nodes ]] || die "expected node1 to node$nodes; received $name"
  ! alive "$name" || return 0
  mkdir -p "$root/spool/$name" "$root/tmp/$name"
  chmod 1777 "$root/tmp/$name"
  rm -f "$root/pid/go-$name"
  mkfifo "$root/pid/go-$name"
  ip link delete "$bridge.$number" 2>/dev/null || true
  spawn "$name" unshare --net --uts --mount --pid --fork --kill-child=KILL --mount-proc --propagation private \
    bash -c "$init" init "$name" "$network.$number" "$root" "${CLUSTER_SHARED:-}"
  read -r pid _ <"$root/pid/$name"
  # setsid execs unshare, which creates the namespaces some time after its start.
  await 300 "the namespaces of $name" has_own_network "$pid"
  ip link add "$bridge.$number" type veth peer name eth0 netns "$pid"
  ip link set "$bridge.$number" master "$bridge" up
  echo go >"$root/pid/go-$name"
}

has_own_network() { # PID
  [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

all_idle() {
  [ "$(timeout 30 sinfo -h -N -p debug -o %T | grep -c '^idle$')" = "$nodes" ]
}

# --- commands

up() {
  [ "$(id -u)" = 0 ] || die "needs root"
  [ "${#bridge}" -le 12 ] || die "CLUSTER_BRIDGE is longer than 12 characters: $bridge"
  down
  for number in "$port" $((port + 1)); do
    [ -z "$(ss -Hltn "sport = :$number")" ] || die "port $number is in use; see CLUSTER_PORT"
  done
  [ -z "$(ip -4 address show to "$network.0/24")" ] || die "network $network is in use; see CLUSTER_NETWORK"
  mkdir -p "$root"/{dev,log,munge,mysql,pid,spool,state,tmp}
  chmod 755 "$root" "$root/munge"
  write_slurm_conf
  write_gres_conf
  write_hosts
  : >"$root/cgroup.conf"
  start_munge
  start_network
  if [ "$accounting" = 1 ]; then start_accounting; fi
  start_controller
  for number in $(seq "$nodes"); do start_node "node$number"; done
  await 300 "all $nodes nodes to be idle" all_idle
}

down() {
  local file
  for file in "$root"/pid/node*; do
    [ ! -f "$file" ] || end "$(basename "$file")"
  done
  for file in slurmctld slurmdbd mariadbd munged; do end "$file"; done
  ip link delete "$bridge" 2>/dev/null || true
  rm -rf --one-file-system "${root:?}"/{dev,munge,mysql,pid,spool,state,tmp}
  rm -f "$root"/{slurm,gres,cgroup,slurmdbd}.conf "$root/hosts"
}

case "${1:-}" in
  up | down) "$1" ;;
  status) sinfo -N -o '%N %T %C %m %G' ;;
  env) printf 'export SLURM_CONF=%q\n' "$SLURM_CONF" ;;
  kill-node) end "${2:?NAME of a node}" ;;
  start-node) start_node "${2:?NAME of a node}" ;;
  stop-controller) signal slurmctld STOP ;;
  start-controller) signal slurmctld CONT ;;
  *) sed -n 's/^# \{0,1\}//p; /^set -e/q' "$0" >&2; exit 2 ;;
esac
