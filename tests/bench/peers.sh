#!/bin/sh
# The other sandboxes that `make bench` compares with.
#
#   peers.sh install        install them from Debian, by package name
#   peers.sh serve FOLDER   what docker and podman need, as long as standard input stays open
#
# serve makes an image of `true`, `sleep`, Debian's python3 and their libraries from this machine's own files (nothing
# is downloaded), and starts a dockerd of its own: data, socket, pid file and logs in FOLDER, its mounts in a mount
# namespace of its own, no bridge, no firewall rule, no use of a dockerd that may run already. It prints the names of
# what is usable, then "ready". At the end of its input, or at a signal, it ends that dockerd, by its process id, and
# removes its cgroups and what it put into FOLDER.
set -eu

packages="bubblewrap runc crun firejail runsc podman docker.io"
policy=/usr/sbin/policy-rc.d

install_peers() {
    missing=
    for package in $packages; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing="$missing $package"
    done
    if [ -z "$missing" ]; then
        echo "bench: all peers are installed: $packages"
        return
    fi
    echo "bench: installing$missing; no service is started now, but systemd may start docker's and podman's at the"
    echo "bench: next boot (systemctl disable docker docker.socket containerd podman podman.socket)"
    if [ ! -e $policy ]; then
        trap 'rm -f $policy' EXIT
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 0755 $policy
    fi
    apt-get -o DPkg::Lock::Timeout=300 update -qq
    # One at a time: a peer that this release lacks is one row less in the table.
    for package in $missing; do
        DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends \
            "$package" >/dev/null || echo "bench: $package can't be installed; it will be missing in the table" >&2
    done
    echo "yes: installed"
}

# Only what the two commands of the benchmark need: 75 MB, most of it Python's library.
make_image() (
    programs="/usr/bin/true /usr/bin/sleep /usr/bin/python3"
    version=$(basename "$(readlink -f /usr/bin/python3)")
    mkdir "$1"
    cd "$1"
    mkdir dev proc sys etc tmp run
    echo 'root:x:0:0:root:/:/bin/sh' >etc/passwd
    # shellcheck disable=SC2086
    ldd $programs "/usr/lib/$version"/lib-dynload/*.so | grep -o '/[^ :]*\.so[^ :]*' | grep -v lib-dynload | sort -u |
        xargs cp -L --parents -t .
    # shellcheck disable=SC2086
    cp -a --parents $programs "/usr/bin/$version" "/usr/lib/$version" .
)

dockerd_pid=
folder=

stop() {
    trap '' INT TERM HUP
    if [ -n "$dockerd_pid" ]; then
        docker_here rm -f bench >/dev/null 2>&1 || true
        kill "$dockerd_pid" 2>/dev/null || true
        wait "$dockerd_pid" || true
    fi
    umount "$folder/podman/overlay" 2>/dev/null || true
    find /sys/fs/cgroup -maxdepth 3 -type d -name "$(basename "$folder")" 2>/dev/null | while read -r group; do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
    # Never through a mount.
    grep -q " $folder/" /proc/self/mountinfo ||
        (cd "$folder" && rm -rf --one-file-system image image.tar docker podman podman-run)
}

docker_here() {
    /usr/bin/docker --config "$folder/docker" -H "unix://$folder/docker/socket" "$@"
}

start_docker() {
    mkdir -p "$folder/docker"
    # Else it makes /etc/docker.
    echo "{\"deprecated-key-path\": \"$folder/docker/key.json\"}" >"$folder/docker/daemon.json"
    unshare --mount --propagation private /usr/sbin/dockerd --iptables=false --ip6tables=false --bridge=none \
        --host "unix://$folder/docker/socket" --data-root "$folder/docker/data" --exec-root "$folder/docker/run" \
        --pidfile "$folder/docker/pid" --config-file "$folder/docker/daemon.json" \
        --cgroup-parent "/$(basename "$folder")" </dev/null >"$folder/docker/log" 2>&1 &
    dockerd_pid=$!
    for _ in $(seq 100); do
        docker_here version >/dev/null 2>&1 && break
        kill -0 "$dockerd_pid" 2>/dev/null || break
        sleep 0.2
    done
    docker_here import - hutch-bench <"$folder/image.tar" >/dev/null &&
        docker_here run -d --name bench --network none hutch-bench /usr/bin/sleep infinity >/dev/null
}

serve() {
    folder=$(readlink -f "$1")
    trap stop EXIT
    trap 'exit 1' INT TERM HUP
    make_image "$folder/image"
    tar -C "$folder/image" -cf "$folder/image.tar" .
    if [ -x /usr/sbin/dockerd ]; then
        if start_docker; then echo docker; else echo "bench: see $folder/docker/log" >&2; fi
    fi
    if [ -x /usr/bin/podman ]; then
        /usr/bin/podman --root "$folder/podman" --runroot "$folder/podman-run" --cgroup-manager cgroupfs \
            import "$folder/image.tar" hutch-bench >/dev/null 2>&1 && echo podman
    fi
    echo ready
    cat >/dev/null
}

case "${1-} ${2-}" in
"install ") install_peers ;;
"serve "?*) serve "$2" ;;
*)
    sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2
    exit 2
    ;;
esac
