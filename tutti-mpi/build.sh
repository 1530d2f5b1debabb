#!/bin/sh
# Makes libtutti_mpi.so for one MPI: its compiler, the static library of this crate, the result.
# usage: build.sh MPICC libtutti_mpi_group.a OUT.so
set -eu
sources="$(dirname "$0")/c"
exec "$1" -std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror \
    "$sources"/*.c "$2" -o "$3" -Wl,--exclude-libs,ALL -Wl,--gc-sections -lpthread -ldl -lm
