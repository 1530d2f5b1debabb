#!/bin/sh
# ssh-like [-x] HOST COMMAND...: as ssh, a clean environment, the home folder, and the words joined
# for a shell over there. Works on h0, which sees the first process of every host.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
[ "$1" = "-x" ] && shift
exec env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin HOME=/root USER=root \
    LOGNAME=root SHELL=/bin/sh \
    nsenter -t "$(cat "$(dirname "$0")/$host.pid")" -n -u -i -m -p -- sh -c "cd /root; $*"
