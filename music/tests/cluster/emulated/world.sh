# world.sh FOLDER COUNT SECONDS KEEP...: the front host h0, and from it the switch and the hosts
# h1..hCOUNT.
#
# Runs as the first process of PID, network, host name, IPC and mount namespaces, and lives as long
# as they, SECONDS at most. KEEP are folders that all hosts see.
set -e
folder=$1 count=$2 seconds=$3
shift 3
. "$folder/private.sh"
become h0 "$folder" "$@"
mkfifo "$folder/up"

# The switch: a bridge in a network of its own.
unshare -n -- sh -c 'ip link set lo up && ip link add br0 type bridge && ip link set br0 up &&
    echo sw >"$1" && exec sleep infinity' sh "$folder/up" &
switch=$!
read -r who <"$folder/up"
echo $switch >"$folder/sw.pid"

# plug NUMBER NETWORK ADDRESS: a cable from port vNUMBER of the switch to eth0 of a host.
plug() {
    nsenter -t $switch -n -- ip link add "v$1" type veth peer name eth0 netns "$2"
    nsenter -t $switch -n -- ip link set "v$1" master br0 up
    nsenter -t "$2" -n -- ip link set lo up
    nsenter -t "$2" -n -- ip addr add "$3/24" dev eth0
    nsenter -t "$2" -n -- ip link set eth0 up
}
plug 0 1 10.77.0.254

for number in $(seq "$count"); do
    unshare -n -u -i -m -p -f --kill-child=KILL --mount-proc -- \
        sh "$folder/host.sh" "h$number" "$folder" "$@" &
    parent=$!
    read -r who <"$folder/up"
    first=$(cat /proc/$parent/task/$parent/children)
    first=${first% }
    echo "$first" >"$folder/h$number.pid"
    plug "$number" "$first" "10.77.0.$number"
done
echo ready
exec >/dev/null
# Hosts may end before; a shell that waits takes in orphans, as a first process has to.
sleep "$seconds" &
wait $!
