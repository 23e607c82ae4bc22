/*
 * Attacks on a sandbox, one per subcommand. Each runs outside as well, where
 * it must work. Exit status: 0 the attack worked, 1 it was refused (the name of
 * the error is printed), 2 it could not be tried.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RACES 4000
#define RACES_IN_A_ROW 64
#define X32_BIT 0x40000000
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static void cannot_try(const char *what)
{
	fprintf(stderr, "cannot try: %s: %m\n", what);
	exit(2);
}

static long number(const char *text)
{
	return (long)strtoull(text, NULL, 0);
}

static int must(int value, const char *what)
{
	if (value < 0)
		cannot_try(what);
	return value;
}

/* ---- network ---- */

static socklen_t internet(struct sockaddr_storage *address, char *ip, char *port)
{
	struct sockaddr_in *four = (void *)address;
	struct sockaddr_in6 *six = (void *)address;

	memset(address, 0, sizeof(*address));
	if (strchr(ip, ':')) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(number(port));
		inet_pton(AF_INET6, ip, &six->sin6_addr);
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_port = htons(number(port));
	inet_pton(AF_INET, ip, &four->sin_addr);
	return sizeof(*four);
}

/* tcp IP PORT: connects and sends a line */
static int tcp(char **args)
{
	struct sockaddr_storage to;
	socklen_t size = internet(&to, args[0], args[1]);
	int fd = socket(to.ss_family, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (void *)&to, size) < 0)
		return -1;
	return write(fd, "out\n", 4) == 4 ? 0 : -1;
}

/* fast-open IP PORT: connects without connect(2) */
static int fast_open(char **args)
{
	struct sockaddr_storage to;
	socklen_t size = internet(&to, args[0], args[1]);
	int fd = socket(to.ss_family, SOCK_STREAM, 0);

	if (fd < 0)
		return -1;
	return sendto(fd, "out\n", 4, MSG_FASTOPEN, (void *)&to, size) == 4 ? 0 : -1;
}

/* udp IP PORT: sends a datagram */
static int udp(char **args)
{
	struct sockaddr_storage to;
	socklen_t size = internet(&to, args[0], args[1]);
	int fd = socket(to.ss_family, SOCK_DGRAM, 0);

	if (fd < 0)
		return -1;
	return sendto(fd, "out\n", 4, 0, (void *)&to, size) == 4 ? 0 : -1;
}

/* socket FAMILY TYPE PROTOCOL: makes a socket */
static int make_socket(char **args)
{
	return syscall(SYS_socket, number(args[0]), number(args[1]), number(args[2])) < 0 ? -1 : 0;
}

/* A leading @ stands for the NUL of an abstract name. */
static socklen_t unix_name(struct sockaddr_un *address, const char *name)
{
	size_t length = strlen(name);

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, name, length);
	if (name[0] == '@')
		address->sun_path[0] = 0;
	else
		length++;
	return offsetof(struct sockaddr_un, sun_path) + length;
}

/* unix-connect NAME [TYPE]: connects to a Unix socket and sends a line */
static int unix_connect(char **args)
{
	struct sockaddr_un to;
	socklen_t size = unix_name(&to, args[0]);
	int fd = socket(AF_UNIX, args[1] ? number(args[1]) : SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (void *)&to, size) < 0)
		return -1;
	return write(fd, "out\n", 4) == 4 ? 0 : -1;
}

/* unix-send NAME: sends a datagram to a Unix socket without connecting */
static int unix_send(char **args)
{
	struct sockaddr_un to;
	socklen_t size = unix_name(&to, args[0]);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0)
		return -1;
	return sendto(fd, "out\n", 4, 0, (void *)&to, size) == 4 ? 0 : -1;
}

/* Accepts one connection from a child and reads its line. */
static int talk(int family, const struct sockaddr *address, socklen_t size)
{
	char line[4];
	int status, peer, server = socket(family, SOCK_STREAM, 0);
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	if (server < 0 || bind(server, address, size) < 0 || listen(server, 1) < 0)
		return -1;
	getsockname(server, (void *)&bound, &length);
	pid_t child = must(fork(), "fork");
	if (child == 0) {
		int fd = socket(family, SOCK_STREAM, 0);
		_exit(connect(fd, (void *)&bound, length) < 0 || write(fd, "own\n", 4) != 4);
	}
	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		errno = ECONNREFUSED;
		return -1;
	}
	peer = accept(server, NULL, NULL);
	return peer >= 0 && read(peer, line, 4) == 4 ? 0 : -1;
}

/* unix-serve NAME: a server and its own client */
static int unix_serve(char **args)
{
	struct sockaddr_un at;
	socklen_t size = unix_name(&at, args[0]);

	return talk(AF_UNIX, (void *)&at, size);
}

/* tcp-serve IP: a server and its own client, on a free port */
static int tcp_serve(char **args)
{
	struct sockaddr_storage at;
	socklen_t size = internet(&at, args[0], "0");

	return talk(at.ss_family, (void *)&at, size);
}

/* bind PATH: makes a name by binding a socket */
static int bind_path(char **args)
{
	struct sockaddr_un at;
	socklen_t size = unix_name(&at, args[0]);

	return bind(must(socket(AF_UNIX, SOCK_STREAM, 0), "socket"), (void *)&at, size);
}

/* ---- the kernel ---- */

/* syscall NUMBER [ARGUMENT]...: any call with plain numbers */
static int any_call(char **args)
{
	long a[6] = { 0 };

	for (int i = 0; i < 6 && args[i + 1]; i++)
		a[i] = number(args[i + 1]);
	return syscall(number(args[0]), a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? -1 : 0;
}

/* clone FLAGS: a child in new namespaces */
static int clone_flags(char **args)
{
	long pid = syscall(SYS_clone, number(args[0]) | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : waitpid(pid, NULL, 0) < 0;
}

/* clone3 FLAGS: the same by the newer call */
static int clone3_flags(char **args)
{
	struct { uint64_t flags, pidfd, child, parent, signal, rest[6]; } how = { 0 };

	how.flags = number(args[0]);
	how.signal = SIGCHLD;
	long pid = syscall(SYS_clone3, &how, sizeof(how));
	if (pid == 0)
		_exit(0);
	return pid < 0 ? -1 : waitpid(pid, NULL, 0) < 0;
}

static int leave(char **args)
{
	return unshare(number(args[0]));
}

/* setns PATH: enters the namespace that a file of /proc stands for */
static int enter(char **args)
{
	return setns(must(open(args[0], O_RDONLY), "open"), 0);
}

/* keyctl: asks for the session keyring */
static int keyring(char **args)
{
	(void)args;
	return syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3, 1) < 0 ? -1 : 0;
}

static int handle_faults(char **args)
{
	(void)args;
	return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */) < 0 ? -1 : 0;
}

static int io_uring(char **args)
{
	char parameters[120] = { 0 };

	(void)args;
	return syscall(SYS_io_uring_setup, 1, parameters) < 0 ? -1 : 0;
}

static int make_bpf_map(char **args)
{
	union bpf_attr how = { 0 };

	(void)args;
	how.map_type = BPF_MAP_TYPE_ARRAY;
	how.key_size = how.value_size = 4;
	how.max_entries = 1;
	return syscall(SYS_bpf, BPF_MAP_CREATE, &how, sizeof(how)) < 0 ? -1 : 0;
}

static int perf(char **args)
{
	struct perf_event_attr how = { 0 };

	(void)args;
	how.type = PERF_TYPE_SOFTWARE;
	how.size = sizeof(how);
	how.config = PERF_COUNT_SW_DUMMY;
	how.exclude_kernel = how.exclude_hv = 1;
	return syscall(SYS_perf_event_open, &how, 0, -1, -1, 0) < 0 ? -1 : 0;
}

/* attach PID: traces a process */
static int attach(char **args)
{
	pid_t pid = number(args[0]);

	if (ptrace(PTRACE_ATTACH, pid, 0, 0) < 0)
		return -1;
	waitpid(pid, NULL, 0);
	return ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* trace-child: traces a process of its own, as debuggers do */
static int trace_child(char **args)
{
	char *attach_args[2] = { 0 };
	char text[16];
	int result;

	(void)args;
	pid_t child = must(fork(), "fork");
	if (child == 0)
		for (;;)
			pause();
	snprintf(text, sizeof(text), "%d", child);
	attach_args[0] = text;
	result = attach(attach_args);
	kill(child, SIGKILL);
	return result;
}

/* peek PID ADDRESS: reads another process's memory */
static int peek(char **args)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)number(args[1]), 1 };

	return process_vm_readv(number(args[0]), &here, 1, &there, 1, 0) < 0 ? -1 : 0;
}

/* signal PID NUMBER */
static int send_signal(char **args)
{
	return kill(number(args[0]), number(args[1]));
}

/* int80: getpid by the 32-bit entry */
static int int80(char **args)
{
	(void)args;
#ifdef __x86_64__
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
	if (result != getpid()) {
		errno = ENOSYS;
		return -1;
	}
	return 0;
#else
	errno = ENOSYS;
	return -1;
#endif
}

/* x32 NUMBER [ARGUMENT]...: the same call with the bit of the x32 table */
static int x32(char **args)
{
	char text[24];
	char *call[8] = { text };

	for (int i = 1; i < 7 && args[i]; i++)
		call[i] = args[i];
	snprintf(text, sizeof(text), "%ld", number(args[0]) | X32_BIT);
	return any_call(call);
}

/* mount FOLDER: an empty file system on a folder, taken off again */
static int mount_tmpfs(char **args)
{
	if (mount("none", args[0], "tmpfs", 0, NULL) < 0)
		return -1;
	return umount(args[0]);
}

/* bind-mount FROM TO */
static int mount_bind(char **args)
{
	if (mount(args[0], args[1], NULL, MS_BIND, NULL) < 0)
		return -1;
	return umount(args[1]);
}

/* remount PLACE: makes a read-only mount writable */
static int remount(char **args)
{
	return mount(NULL, args[0], NULL, MS_REMOUNT | MS_BIND, NULL);
}

/* umount PLACE: uncovers what a mount hides */
static int take_off(char **args)
{
	return umount2(args[0], MNT_DETACH);
}

/* open-tree PLACE: a detached copy of a mount */
static int copy_tree(char **args)
{
	return syscall(SYS_open_tree, AT_FDCWD, args[0], 1 /* OPEN_TREE_CLONE */) < 0 ? -1 : 0;
}

/* pivot FOLDER */
static int pivot(char **args)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(args[0], args[0], NULL, MS_BIND, NULL) < 0 || chdir(args[0]) < 0)
		return -1;
	return syscall(SYS_pivot_root, ".", ".");
}

static int change_root(char **args)
{
	return chroot(args[0]);
}

/* device PATH: a second node for /dev/zero */
static int device(char **args)
{
	if (mknod(args[0], S_IFCHR | 0666, makedev(1, 5)) < 0)
		return -1;
	return unlink(args[0]);
}

/* handle PATH: opens a file by its handle */
static int by_handle(char **args)
{
	struct { struct file_handle head; char room[128]; } handle;
	int mount_id, folder = must(open(".", O_RDONLY), "open");

	handle.head.handle_bytes = sizeof(handle.room);
	if (name_to_handle_at(AT_FDCWD, args[0], &handle.head, &mount_id, 0) < 0)
		return -1;
	return open_by_handle_at(folder, &handle.head, O_RDONLY) < 0 ? -1 : 0;
}

/* by-number-handle: the call itself, with a handle that need not be right */
static int bare_handle(char **args)
{
	struct { struct file_handle head; char room[8]; } handle = { 0 };

	(void)args;
	handle.head.handle_bytes = sizeof(handle.room);
	handle.head.handle_type = 1;
	return open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY) < 0 ? -1 : 0;
}

/* tiocsti HIGH: types a character, with HIGH in the upper half of the request */
static int type_into_terminal(char **args)
{
	int master = must(posix_openpt(O_RDWR), "posix_openpt");
	int slave, status;

	must(grantpt(master), "grantpt");
	must(unlockpt(master), "unlockpt");
	if (must(fork(), "fork") > 0) {
		wait(&status);
		exit(WEXITSTATUS(status));
	}
	must(setsid(), "setsid");
	slave = must(open(ptsname(master), O_RDWR), "open");
	ioctl(slave, TIOCSCTTY, 0);
	return syscall(SYS_ioctl, slave, (number(args[0]) << 32) | TIOCSTI, "x") < 0 ? -1 : 0;
}

/* shm-make: makes a segment that anyone may use, and prints its key */
static int shm_make(char **args)
{
	(void)args;
	for (key_t key = getpid() | 0x40000000;; key++) {
		int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);

		if (id < 0 && errno == EEXIST)
			continue;
		printf("%d\n", key);
		return id < 0 ? -1 : 0;
	}
}

static int shm_find(char **args)
{
	return shmget(number(args[0]), 0, 0) < 0 ? -1 : 0;
}

static int shm_remove(char **args)
{
	return shmctl(must(shmget(number(args[0]), 0, 0), "shmget"), IPC_RMID, NULL);
}

static int queue_make(char **args)
{
	return mq_open(args[0], O_CREAT | O_EXCL | O_RDWR, 0666, NULL) < 0 ? -1 : 0;
}

static int queue_find(char **args)
{
	return mq_open(args[0], O_RDWR) < 0 ? -1 : 0;
}

static int queue_remove(char **args)
{
	return mq_unlink(args[0]);
}

/* ---- files ---- */

static int scribble(int fd)
{
	return fd < 0 || write(fd, "evil\n", 5) != 5 ? -1 : 0;
}

/* open PATH FLAGS [MODE]: opens with exactly these */
static int open_path(char **args)
{
	return syscall(SYS_openat, AT_FDCWD, args[0], number(args[1]),
		       args[2] ? number(args[2]) : 0644) < 0 ? -1 : 0;
}

/* old-open PATH FLAGS [MODE]: by the older call, where there is one */
static int old_open_path(char **args)
{
#ifdef SYS_open
	return syscall(SYS_open, args[0], number(args[1]), args[2] ? number(args[2]) : 0644) < 0
		? -1 : 0;
#else
	return open_path(args);
#endif
}

static int write_file(char **args)
{
	return scribble(open(args[0], O_WRONLY | O_CREAT, 0644));
}

static int create_file(char **args)
{
	return scribble(creat(args[0], 0644));
}

/* openat2 PATH */
static int open_new_way(char **args)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 0644 };

	return scribble(syscall(SYS_openat2, AT_FDCWD, args[0], &how, sizeof(how)));
}

/* openat FOLDER NAME, and so on: relative to an open folder */
static int open_in(char **args)
{
	int folder = must(open(args[0], O_PATH), "open");

	return scribble(openat(folder, args[1], O_CREAT | O_WRONLY, 0644));
}

static int mkdir_in(char **args)
{
	return mkdirat(must(open(args[0], O_PATH), "open"), args[1], 0755);
}

static int rename_in(char **args)
{
	int folder = must(open(args[0], O_PATH), "open");

	return renameat(folder, args[1], folder, args[2]);
}

static int symlink_in(char **args)
{
	return symlinkat(args[2], must(open(args[0], O_PATH), "open"), args[1]);
}

static int exchange(char **args)
{
	return renameat2(AT_FDCWD, args[0], AT_FDCWD, args[1], RENAME_EXCHANGE);
}

/* nameless FOLDER NAME: a file without a name that gets one later */
static int nameless(char **args)
{
	char link[32];
	int fd = open(args[0], O_TMPFILE | O_WRONLY, 0644);

	if (scribble(fd) < 0)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, args[1], AT_SYMLINK_FOLLOW);
}

/* link-open FILE NAME: a second name by way of a descriptor; then writes there */
static int link_open(char **args)
{
	char link[32];
	int fd = must(open(args[0], O_RDONLY), "open");

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, link, AT_FDCWD, args[1], AT_SYMLINK_FOLLOW) < 0)
		return -1;
	return scribble(open(args[1], O_WRONLY | O_APPEND));
}

/* link-empty FILE NAME: the same with an empty path */
static int link_empty(char **args)
{
	int fd = must(open(args[0], O_RDONLY), "open");

	if (linkat(fd, "", AT_FDCWD, args[1], AT_EMPTY_PATH) < 0)
		return -1;
	return scribble(open(args[1], O_WRONLY | O_APPEND));
}

/* reopen FILE [O_PATH]: opens for reading, then that descriptor for writing */
static int reopen(char **args)
{
	char link[32];
	int fd = must(open(args[0], args[1] ? O_PATH : O_RDONLY), "open");

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return scribble(open(link, O_WRONLY | O_APPEND));
}

static int cut(char **args)
{
	return truncate(args[0], 0);
}

/* fchmod FILE MODE: by descriptor, with any bits */
static int chmod_open(char **args)
{
	int fd = must(open(args[0], O_RDONLY), "open");

	return syscall(SYS_fchmod, fd, number(args[1])) < 0 ? -1 : 0;
}

/* fchmodat2 FILE MODE */
static int chmod_new_way(char **args)
{
	return syscall(SYS_fchmodat2, AT_FDCWD, args[0], number(args[1]), 0) < 0 ? -1 : 0;
}

/* fchmodat FILE MODE */
static int chmod_path(char **args)
{
	return syscall(SYS_fchmodat, AT_FDCWD, args[0], number(args[1])) < 0 ? -1 : 0;
}

static int mkdir_mode(char **args)
{
	return syscall(SYS_mkdirat, AT_FDCWD, args[0], number(args[1])) < 0 ? -1 : 0;
}

static int mknod_mode(char **args)
{
	return syscall(SYS_mknodat, AT_FDCWD, args[0], number(args[1]), 0) < 0 ? -1 : 0;
}

/* map NAME HOW: writes to the file through a shared mapping, for which nobody
 * takes bits away; opened plainly, by the old call, as if it were to be made, or
 * anew by the link of a descriptor */
static int map_file(char **args)
{
	char link[64];
	int place, fd = -1;

	if (!strcmp(args[1], "plain")) {
		fd = syscall(SYS_openat, AT_FDCWD, args[0], O_RDWR, 0);
#ifdef SYS_open
	} else if (!strcmp(args[1], "old")) {
		fd = syscall(SYS_open, args[0], O_RDWR, 0);
#endif
	} else if (!strcmp(args[1], "made")) {
		fd = syscall(SYS_openat, AT_FDCWD, args[0], O_RDWR | O_CREAT, 0644);
	} else {
		place = must(open(args[0], O_RDONLY), "open");
		snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
		fd = open(link, O_RDWR);
	}
	if (fd < 0)
		return -1;
	char *bytes = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (bytes == MAP_FAILED)
		cannot_try("mmap");
	memcpy(bytes, "evil", 4);
	return msync(bytes, 4, MS_SYNC);
}

static _Atomic uint64_t racing_name;
static _Atomic int racing = 1;
static _Atomic unsigned flips;

static void *flip(void *names)
{
	uint64_t *both = names;

	for (; racing; flips++)
		racing_name = both[flips % 2];
	return NULL;
}

/* race NAME NAME: makes files while another thread changes the path (both
 * names have seven characters, so a change is one store) */
static int race(char **args)
{
	uint64_t names[2];
	pthread_t thread;

	memcpy(&names[0], args[0], 8);
	memcpy(&names[1], args[1], 8);
	racing_name = names[0];
	if (pthread_create(&thread, NULL, flip, names))
		cannot_try("pthread_create");
	while (flips < 2)
		sched_yield();
	for (int i = 0; i < RACES; i++) {
		/* Also where both threads share one processor. */
		if (i % RACES_IN_A_ROW == 0)
			sched_yield();
		int fd = open((char *)&racing_name, O_CREAT | O_WRONLY, 0644);

		if (fd >= 0)
			close(fd);
	}
	racing = 0;
	pthread_join(thread, NULL);
	return access(args[1], F_OK);
}

/* ---- staying ---- */

/* daemon NAME PIDFILE: leaves its session and parents, then waits under that
 * name after having made the file */
static int become_daemon(char **args)
{
	if (must(fork(), "fork") > 0)
		_exit(0);
	setsid();
	if (must(fork(), "fork") > 0)
		_exit(0);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	close(must(creat(args[1], 0644), "creat"));
	for (;;)
		pause();
}

static const struct {
	const char *name;
	int (*run)(char **args);
	int arguments;
} attacks[] = {
	{ "tcp", tcp, 2 }, { "fast-open", fast_open, 2 }, { "udp", udp, 2 },
	{ "socket", make_socket, 3 }, { "unix-connect", unix_connect, 1 },
	{ "unix-send", unix_send, 1 }, { "unix-serve", unix_serve, 1 },
	{ "tcp-serve", tcp_serve, 1 }, { "bind", bind_path, 1 },
	{ "syscall", any_call, 1 }, { "x32", x32, 1 }, { "int80", int80, 0 },
	{ "clone", clone_flags, 1 }, { "clone3", clone3_flags, 1 },
	{ "unshare", leave, 1 }, { "setns", enter, 1 }, { "keyctl", keyring, 0 },
	{ "userfaultfd", handle_faults, 0 },
	{ "io-uring", io_uring, 0 }, { "bpf", make_bpf_map, 0 }, { "perf", perf, 0 },
	{ "attach", attach, 1 }, { "trace-child", trace_child, 0 }, { "peek", peek, 2 },
	{ "signal", send_signal, 2 }, { "mount", mount_tmpfs, 1 },
	{ "bind-mount", mount_bind, 2 }, { "remount", remount, 1 },
	{ "umount", take_off, 1 }, { "open-tree", copy_tree, 1 }, { "pivot", pivot, 1 },
	{ "chroot", change_root, 1 }, { "device", device, 1 }, { "handle", by_handle, 1 },
	{ "bare-handle", bare_handle, 0 }, { "tiocsti", type_into_terminal, 1 },
	{ "shm-make", shm_make, 0 }, { "shm-find", shm_find, 1 },
	{ "shm-remove", shm_remove, 1 }, { "queue-make", queue_make, 1 },
	{ "queue-find", queue_find, 1 }, { "queue-remove", queue_remove, 1 },
	{ "open", open_path, 2 }, { "old-open", old_open_path, 2 },
	{ "write", write_file, 1 }, { "creat", create_file, 1 },
	{ "openat2", open_new_way, 1 }, { "openat", open_in, 2 },
	{ "mkdirat", mkdir_in, 2 }, { "renameat", rename_in, 3 },
	{ "symlinkat", symlink_in, 3 }, { "exchange", exchange, 2 },
	{ "nameless", nameless, 2 }, { "link-open", link_open, 2 },
	{ "link-empty", link_empty, 2 }, { "reopen", reopen, 1 },
	{ "truncate", cut, 1 }, { "fchmod", chmod_open, 2 },
	{ "fchmodat", chmod_path, 2 }, { "fchmodat2", chmod_new_way, 2 },
	{ "mkdir", mkdir_mode, 2 }, { "mknod", mknod_mode, 2 }, { "race", race, 2 },
	{ "map", map_file, 2 }, { "daemon", become_daemon, 2 },
};

int main(int count, char **words)
{
	for (size_t i = 0; count > 1 && i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(words[1], attacks[i].name))
			continue;
		if (count - 2 < attacks[i].arguments)
			break;
		if (attacks[i].run(words + 2) == 0)
			return 0;
		puts(strerrorname_np(errno));
		return 1;
	}
	fprintf(stderr, "no such attack, or too few arguments\n");
	return 2;
}
