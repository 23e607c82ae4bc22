#!/bin/busybox sh
# Runs the cases named in /guest/list, one `place case` per line, and says
# `CASE place/case ok` or `CASE place/case FAIL why` of each. It is the first
# process, or a service of systemd's.
export PATH=/bin:/usr/bin:/sbin:/usr/sbin

be_first() {
  # The disk may have been made by an ordinary user.
  /bin/busybox chown -R 0:0 /
  /bin/busybox --install -s /bin
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  mount -t devtmpfs dev /dev
  mkdir -p /dev/pts /dev/shm
  mount -t devpts devpts /dev/pts
  for at in /dev/shm /tmp /run; do mount -t tmpfs -o mode=1777 tmpfs $at; done
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  ip link set lo up
}

# The ordinary user gets a service manager without logging in.
be_service() {
  exec >/dev/ttyS0 2>&1
  loginctl enable-linger someone
  tries=0
  until [ -S /run/user/1000/bus ] || [ $tries -gt 600 ]; do
    tries=$((tries + 1))
    busybox usleep 100000
  done
}

if [ $$ = 1 ]; then be_first; else be_service; fi
# The kernel's words would come in the middle of a line.
busybox dmesg -n 1
chown -R 1000:1000 /home/someone
. /guest/places.sh

echo "GUEST $(uname -r)"
ringfence doctor
last=
while read -r place name; do
  if [ "$place" != "$last" ]; then
    "prepare_$place" || echo "cannot prepare $place"
    last=$place
  fi
  busybox timeout -s KILL 90 sh /guest/cases.sh "$place" "$name" </dev/null ||
    echo "CASE $place/$name FAIL ended with $?"
done </guest/list
echo "GUEST end"
busybox poweroff -f
