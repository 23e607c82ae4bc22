#!/bin/busybox sh
# The first program of the kernel: what is needed to go on from the disk.
bb=/bin/busybox
$bb mount -t devtmpfs dev /dev
for module in $($bb cat /modules/order); do
  $bb insmod "/modules/$module" || echo "cannot load $module"
done
$bb mount -t ext4 /dev/vda /disk
next=/guest/main.sh
if [ -L /disk/sbin/init ]; then next=/sbin/init; fi
exec $bb switch_root /disk $next
