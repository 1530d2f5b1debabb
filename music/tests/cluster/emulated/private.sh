# become NAME FOLDER KEEP...: gives this host its name, and /tmp and /dev/shm of its own, where
# of /tmp only the folders KEEP are those of the machine.
become() {
    echo "$1" >/proc/sys/kernel/hostname
    mount --bind "$2/hosts" /etc/hosts
    shift 2
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /mnt
    kept=0
    for path; do
        mkdir /mnt/$kept
        mount --bind "$path" /mnt/$kept
        kept=$((kept + 1))
    done
    mount -t tmpfs tmpfs /tmp
    chmod 1777 /tmp /dev/shm
    kept=0
    for path; do
        mkdir -p "$path"
        mount --move /mnt/$kept "$path"
        kept=$((kept + 1))
    done
    umount /mnt
}
