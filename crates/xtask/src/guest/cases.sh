# One case in one place: sh cases.sh PLACE CASE
. /guest/places.sh
place=$1 name=$2 owner= through= like= rung=cgroup-v2 stated=
"at_$place"
owner=${owner:-$user}
case $owner in
  root) work=/srv/work ;;
  *) work=/home/$owner/work ;;
esac
report=$work/report.json out=/run/out err=/run/err

# Becomes a program in the place, its only process if nobody else is there.
become() {
  set -- $through "$@"
  exec sh -c '[ -z "$1" ] || echo 0 >"$1/cgroup.procs" || exit 99; cd "$2"; user=$3; shift 3
    exec busybox su -s /bin/sh -c '\''exec "$0" "$@"'\'' -- "$user" "$@"' - "$group" "$work" "$user" "$@"
}

run() {
  rm -f "$report"
  (become ringfence run --report "$report" "$@") >$out 2>$err </dev/null
  code=$?
}

fail() {
  echo "--- stdout"; head -c 2000 $out
  echo "--- stderr"; head -c 4000 $err
  echo "--- report"; head -c 6000 "$report" 2>/dev/null; echo
  echo "--- groups"; leftovers
  tidy
  echo "CASE $place/$name FAIL $*"
  exit 0
}

ended_with() { [ "$code" = "$1" ] || fail "exit code $code, not $1"; }
said() { grep -q -e "$1" $err || fail "stderr does not say: $1"; }

# The object of the list $1 whose limit is $2, without white space.
entry() { tr -d ' \n' <"$report" | grep -o "\"$1\":\[[^]]*\]" | grep -o "{\"limit\":\"$2\"[^}]*}"; }
held_by() { entry limits "$1" | grep -q "\"mechanism\":\"$2\"" || fail "$1 is not held by $2"; }
hit() { entry limits_hit "$1" | grep -q "$2" || fail "no hit of $1 with $2"; }
peak() { entry limits "$1" | grep -o '"peak":[0-9]*' | cut -d: -f2; }
between() { [ -n "$2" ] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || fail "$1 is ${2:-unknown}, not $3 to $4"; }
leftovers() { find $top -depth -type d -name 'ringfence-*'; }
nothing_left() { [ -z "$(leftovers)" ] || fail "groups are left behind"; }
# So that a case starts from nothing, whatever became of the one before.
tidy() {
  leftovers | while read -r left; do
    echo 1 >"$left/cgroup.kill"
    tries=0
    until rmdir "$left" 2>/dev/null || [ $tries -gt 50 ]; do tries=$((tries + 1)); busybox usleep 50000; done
  done
}
# Waits for a condition, about half a minute at most.
until_true() {
  tries=0
  until eval "$1"; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "never: $1"
    busybox usleep 100000
  done
}

case_works() {
  where=$( (become cat /proc/self/cgroup) 2>$err )
  expr "$where" : "0::.*${like:-${group#$top}}\$" >/dev/null || fail "started in $where"
  run -- sh -c 'echo inside >made && cat made'
  ended_with 0
  [ "$(cat $out)" = inside ] || fail "no output"
  [ "$(stat -c %U "$work/made")" = "$owner" ] || fail "the file is not $owner's"
}

case_required() {
  run --require-limits --memory 64MiB --pids 50 --cpu 0.5 --cpu-time 20s -- true
  ended_with 0
  for limit in memory pids cpu cpuTime; do held_by $limit $rung; done
}

case_memory() {
  rm -f "$work/survived"
  run --memory 64MiB -- sh -c 'dd if=/dev/zero of=/dev/null bs=128M count=1; touch survived; sleep 5'
  ended_with 137
  held_by memory $rung
  hit memory '"evidence":"oom_kill[1-9][0-9]*","ended":true'
  said 'limits_hit: memory'
  [ ! -e "$work/survived" ] || fail "the rest of the command outlived the lack of memory"
}

case_memory_peak() {
  run --memory 256MiB -- dd if=/dev/zero of=/dev/null bs=64M count=1
  ended_with 0
  between "the peak of memory" "$(peak memory)" 67108864 268435456
}

case_pids() {
  run --pids 20 -- sh -c 'for i in $(seq 40); do sleep 1 & done; wait'
  held_by pids $rung
  hit pids '"evidence":"pids.eventsmax[1-9][0-9]*","ended":false'
}

case_cpu() {
  run --cpu 0.2 -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done'
  ended_with 0
  held_by cpu $rung
  hit cpu '"evidence":"throttledin[1-9]'
}

case_cpu_time() {
  run --cpu-time 1s -- sh -c 'while :; do :; done'
  ended_with 137
  held_by cpuTime $rung
  hit cpuTime '"ended":true'
  between "the CPU time" "$(peak cpuTime)" 1000 5000
}

is_sleeping() { busybox ps -o args | grep -qx 'sleep 4321'; }

# The supervisor; the process that it forks has the same words, and comes later.
supervisor() {
  busybox ps -o pid,args | grep -E '^ *[0-9]+ ([^ ]*/)?ringfence run (-.* )?-- sleep 4321$' | head -n 1 | busybox awk '{print $1}'
}

# The supervisor is killed, and everything ends.
kill_supervisor() {
  become ringfence run $stated -- sleep 4321 >$out 2>$err </dev/null &
  started=$!
  until_true is_sleeping
  [ -n "$(leftovers)" ] || fail "there is no group"
  kill -9 "$(supervisor)" || fail "there is no supervisor"
  wait $started 2>/dev/null
  until_true '! is_sleeping'
}

# The next start tidies up.
case_killed() {
  kill_supervisor
  run -- true
  ended_with 0
}

# The service manager tidies up.
case_killed_scope() {
  kill_supervisor
  until_true '[ -z "$(leftovers)" ]'
  run -- true
  ended_with 0
}

# Where it was alone, its group cannot be entered while controllers are
# enabled below it: whoever gave it the group has to tidy up.
case_killed_alone() {
  kill_supervisor
  leftovers | while read -r left; do
    rmdir "$left" || echo "not empty: $left" >>$err
  done
  nothing_left
  echo "-cpu -memory -pids" >"$group/cgroup.subtree_control"
  run -- true
  ended_with 0
}

# A server outside, reached through the proxy and without it.
case_network() {
  mkdir -p /run/served
  echo served >/run/served/index.html
  busybox httpd -p 127.0.0.1:8080 -h /run/served
  printf 'version: 1\nnetwork: {mode: allowlist, hostPorts: [8080]}\n' >$work/policy.yaml
  url=http://host.ringfence.internal:8080/index.html
  run --policy $work/policy.yaml -- sh -c "wget -qO- $url; env -u http_proxy -u HTTP_PROXY wget -qO- $url"
  busybox killall httpd
  ended_with 0
  [ "$(cat $out)" = "$(printf 'served\nserved')" ] || fail "not served"
}

case_protected_names() {
  run -- sh -c 'echo bad >.bashrc'
  [ "$code" != 0 ] || fail "written"
  [ ! -e "$work/.bashrc" ] || fail "made"
}

case_disk() {
  run --disk 16MiB -- dd if=/dev/zero of=big bs=1M count=48
  [ "$code" != 0 ] || fail "written"
  between "the size" "$(stat -c %s "$work/big")" 0 20971520
  rm -f "$work/big"
  hit disk evidence
}

case_audit() {
  run --audit all -- sh -c 'cat /etc/passwd >copy'
  ended_with 0
  (become ringfence audit verify) >$out 2>$err </dev/null || fail "the log does not verify"
}

# The defaults alone are not worth asking anybody for a group.
case_unstated() {
  run -- true
  ended_with 0
  held_by memory watchdog
  held_by pids rlimit
}

# Without delegation.
case_refused() {
  run --require-limits --memory 64MiB -- true
  ended_with 125
  said limit-unenforceable
}

case_fraction_refused() {
  run --cpu 0.5 -- true
  ended_with 125
  said limit-unenforceable
}

case_whole_cores() {
  run --cpu 1 -- nproc
  ended_with 0
  held_by cpu affinity
  [ "$(cat $out)" = 1 ] || fail "$(cat $out) cores inside"
}

case_watched_memory() {
  run --memory 64MiB -- dd if=/dev/zero of=/dev/null bs=128M count=8
  ended_with 137
  held_by memory watchdog
  hit memory '"ended":true'
}

case_watched_pids() {
  run --pids 20 -- sh -c 'for i in $(seq 40); do sleep 1 & done; wait'
  held_by pids rlimit
}

tidy
"case_$name"
nothing_left
echo "CASE $place/$name ok"
