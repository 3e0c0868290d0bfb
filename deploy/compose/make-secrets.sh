#!/bin/sh
# Make the secrets that are missing; those that are there stay as they are.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

make() {
  [ -s "secrets/$1" ] && return
  # Letters and digits only: one of them becomes part of an address.
  printf '%s%s\n' "$2" "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" >"secrets/$1"
  # Containers read them as users of their own.
  chmod 644 "secrets/$1"
  echo "made secrets/$1"
}

make clickhouse_password ""
make clickhouse_grafana_password ""
make grafana_admin_password ""
make collector_tokens la_
