#!/bin/sh
# PID 1 of the machine: what systemd does before it starts a session, as far as a sandbox can tell; then the tests; then
# the machine ends.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin LANG=C.UTF-8
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
mount -t securityfs -o nosuid,nodev,noexec securityfs /sys/kernel/security
mount -t cgroup2 -o nosuid,nodev,noexec,nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
mount -t tmpfs -o nosuid,nodev,mode=0755 tmpfs /run
mkdir -p /dev/pts /dev/shm
mount -t devpts -o nosuid,noexec,gid=5,mode=620,ptmxmode=000 devpts /dev/pts
mount -t tmpfs -o nosuid,nodev tmpfs /dev/shm
mount --make-rshared /
# Nodes of drivers that are loaded when somebody opens them, such as the loop device's.
grep -v '^#' "/lib/modules/$(uname -r)/modules.devname" | tr ':' ' ' | while read -r _ name major minor; do
    mkdir -p "/dev/$(dirname "$name")"
    mknod -m 0600 "/dev/$name" "${major%%[0-9]*}" "${major#?}" "$minor"
done
hostname "$(cat /etc/hostname)"
ip link set lo up
ulimit -Hn 524288

# A session's place; Hutch has to switch on what it needs beside it.
session=/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope
echo '+memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p $session
echo $$ > $session/cgroup.procs

setsid python3 /opt/hutch/tests/vm/inside.py
echo b > /proc/sysrq-trigger
