#!/usr/bin/env bash
# REALM pre-training under Slurm: torchrun on all nodes but the last one, the refresher on the last one.
#
#   WORKSPACE=/shared/artifacts sbatch examples/cluster/slurm.sh --steps 200000 --batch-size 512
#
# The workspace is on a disk that all nodes share, and holds spans, blocks, retriever and index. The arguments go to `realmctl pretrain`.
# Slurm warns five minutes before the time limit. Then training saves a checkpoint, the job is queued again, and continues.
#SBATCH --job-name=realm
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
set -uo pipefail
export REALMCTL_WORKSPACE=${WORKSPACE:-artifacts}
STOPPED=75 # exit code of a run that was asked to stop and has saved its state

asked=0
child=""
ask_to_stop() {
  asked=1
  [ -z "$child" ] || kill -TERM "$child" 2>/dev/null
}
trap ask_to_stop USR1 TERM

run() { # run COMMAND...: a signal reaches this script meanwhile; the exit code is 75 if one did
  "$@" &
  child=$!
  [ "$asked" = 0 ] || kill -TERM "$child" # it was asked before there was a child
  local code=0
  while :; do # a signal ends `wait` early
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  [ "$asked" = 0 ] && return "$code"
  return "$STOPPED"
}

train() { # on each training node
  local nodes=$((SLURM_NNODES - 1)) processes=${PROCESSES_PER_NODE:-${SLURM_GPUS_ON_NODE:-1}}
  run torchrun --nnodes "$nodes" --node-rank "$SLURM_NODEID" --nproc-per-node "$processes" \
    --master-addr "$MASTER" --master-port "${MASTER_PORT:-29500}" -m realmctl pretrain --refresh-device elsewhere "$@"
}

refresh() { # on the last node, until the run has ended
  local live=""
  until live=$(ls -d "$REALMCTL_WORKSPACE"/model/v*.partial/live 2>/dev/null | tail -n 1) && [ -n "$live" ]; do
    [ "$asked" = 0 ] || return "$STOPPED"
    sleep 2
  done
  run realmctl refresh "$live"
}

if [ "${1:-}" = --on-node ]; then
  shift
  if [ "$SLURM_NODEID" -lt $((SLURM_NNODES - 1)) ]; then train "$@"; else refresh; fi
  exit
fi

MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER
run srun --kill-on-bad-exit=1 bash "$0" --on-node "$@"
code=$?
if [ "$code" -eq "$STOPPED" ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
