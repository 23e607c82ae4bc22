# Where ringfence is started from: a control group, with or without others in
# it, and a user. Each place has `prepare_PLACE`, run once as root, and
# `at_PLACE`, which says its group (none means to stay), its user, what starts
# it there, what the group's path must look like where systemd makes it, what
# holds limits there if not a group of ours, and what has to be stated for a
# group to be made.
top=/sys/fs/cgroup

# A process that is nobody's, in the group $1.
crowd() {
  sh -c 'echo 0 >"$1/cgroup.procs"; exec sleep 100000' - "$1" </dev/null >/dev/null 2>&1 &
  until grep -q . "$1/cgroup.procs"; do :; done
}

# Gives the group $1 to the ordinary user, as systemd does with `Delegate=`.
delegate() {
  mkdir -p "$1"
  chown 1000:1000 "$1" "$1/cgroup.procs" "$1/cgroup.subtree_control" "$1/cgroup.threads"
}

# The topmost group, with nothing enabled below it.
prepare_root_top() { :; }
at_root_top() { group=$top user=root like=/; }

# Another process in the own group, and controllers to be had above it.
prepare_root_crowd() {
  echo "+cpu +memory +pids" >$top/cgroup.subtree_control
  mkdir $top/busy
  crowd $top/busy
}
at_root_crowd() { group=$top/busy user=root; }

# A group above the own one that is empty, with nothing enabled below it.
prepare_root_below() {
  mkdir -p $top/jobs/shell
  crowd $top/jobs/shell
}
at_root_below() { group=$top/jobs/shell user=root; }

# A group of its own.
prepare_root_alone() { mkdir $top/alone; }
at_root_alone() { group=$top/alone user=root; }

# An ordinary user with a subtree and a crowded group in it.
prepare_user_delegated() {
  delegate $top/people
  delegate $top/people/shell
  crowd $top/people/shell
}
at_user_delegated() { group=$top/people/shell user=someone; }

# An ordinary user with a group of its own.
prepare_user_alone() { delegate $top/scope; }
at_user_alone() { group=$top/scope user=someone; }

# An ordinary user whose subtree has no CPU controller.
prepare_user_partial() {
  mkdir $top/partial
  echo "+memory +pids" >$top/partial/cgroup.subtree_control
  delegate $top/partial/someone
  delegate $top/partial/someone/shell
  crowd $top/partial/someone/shell
}
at_user_partial() { group=$top/partial/someone/shell user=someone; }

# An ordinary user in a group of root's.
prepare_user_plain() {
  mkdir $top/plain
  crowd $top/plain
}
at_user_plain() { group=$top/plain user=someone; }

# Below systemd, as root: its own service, with this script in it.
prepare_systemd_service() { :; }
at_systemd_service() { group= user=root like="/system.slice/guest.service"; }

# A delegated scope of the ordinary user's own service manager.
prepare_systemd_scope() { :; }
at_systemd_scope() { group= user=someone through="$scope" like="/user@1000.service/.*\.scope"; }

# The same with a shell in it.
prepare_systemd_shell() { :; }
at_systemd_shell() { group= user=someone through="$scope sh /guest/shell.sh" like="/user@1000.service/.*\.scope"; }

# A login session of the ordinary user, of which nothing is delegated: the
# service manager is asked for a scope.
prepare_systemd_session() { :; }
at_systemd_session() { group= user=root owner=someone rung=systemd-scope stated="--pids 100" through="sh /guest/login.sh" like="/user-1000.slice/session-.*\.scope"; }

scope="env XDG_RUNTIME_DIR=/run/user/1000 systemd-run --user --scope --quiet -p Delegate=yes"
