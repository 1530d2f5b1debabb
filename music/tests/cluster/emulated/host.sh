# host.sh NAME FOLDER KEEP...: the first process of a host; ends with everything in it.
set -e
folder=$2
. "$folder/private.sh"
become "$@"
echo "$1" >"$folder/up"
exec >/dev/null </dev/null
# A shell that waits takes in orphans, as a first process has to.
sleep infinity &
wait
