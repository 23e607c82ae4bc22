/*
 * Calls to be seen, one way of making them per subcommand. Exit status: 0 all
 * of them were made, 1 one was refused (the name of the error is printed), 2 it
 * could not be tried.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 256

extern char **environ;

static void cannot_try(const char *what)
{
	fprintf(stderr, "cannot try: %s: %m\n", what);
	exit(2);
}

static long number(const char *text)
{
	return strtol(text, NULL, 0);
}

static char marks[MOST][32];

static char **words_of(long n)
{
	static __thread char *words[3];

	snprintf(marks[n], sizeof(marks[n]), "mark-%ld", n);
	words[0] = "true";
	words[1] = marks[n];
	return words;
}

static int ended_well(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		cannot_try("a child");
	return status == 0 ? 0 : -1;
}

/* The child of fork(2) and of vfork(2), and posix_spawn(3). */
static int by_fork(long n)
{
	char **words = words_of(n);
	pid_t child = fork();

	if (child == 0) {
		execve("/bin/true", words, environ);
		_exit(9);
	}
	return ended_well(child);
}

static int by_vfork(long n)
{
	char **words = words_of(n);
	pid_t child = vfork();

	if (child == 0) {
		execve("/bin/true", words, environ);
		_exit(9);
	}
	return ended_well(child);
}

static int by_spawn(long n)
{
	pid_t child;
	int error = posix_spawn(&child, "/bin/true", NULL, NULL, words_of(n), environ);

	return error ? -1 : ended_well(child);
}

static int by_descriptor(long n)
{
	char **words = words_of(n);
	int fd = open("/bin/true", O_PATH | O_CLOEXEC);
	pid_t child = fork();

	if (child == 0) {
		syscall(SYS_execveat, fd, "", words, environ, AT_EMPTY_PATH);
		_exit(9);
	}
	close(fd);
	return ended_well(child);
}

static int (*way)(long n);

static void *in_thread(void *n)
{
	return (void *)(long)way((long)n);
}

static int in_threads(long count)
{
	pthread_t threads[MOST];
	void *result;
	int failed = 0;

	for (long n = 0; n < count; n++)
		if (pthread_create(&threads[n], NULL, in_thread, (void *)n))
			cannot_try("pthread_create");
	for (long n = 0; n < count; n++) {
		pthread_join(threads[n], &result);
		failed |= result != NULL;
	}
	return failed ? -1 : 0;
}

static const char *folder;

static int make_one(long n)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/mark-%ld", folder, n);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	return fd < 0 ? -1 : close(fd);
}

static int choose(const char *name)
{
	way = !strcmp(name, "fork")	    ? by_fork
	    : !strcmp(name, "vfork")	    ? by_vfork
	    : !strcmp(name, "spawn")	    ? by_spawn
	    : !strcmp(name, "descriptor") ? by_descriptor
	    : !strcmp(name, "make")	    ? make_one
					    : NULL;
	return way ? 0 : -1;
}

/* one-by-one WAY COUNT [FOLDER] */
static int one_by_one(char **args)
{
	folder = args[2];
	if (choose(args[0]) < 0)
		cannot_try(args[0]);
	for (long n = 0; n < number(args[1]) && n < MOST; n++)
		if (way(n) < 0)
			return -1;
	return 0;
}

/* threads WAY COUNT [FOLDER]: all at once */
static int all_at_once(char **args)
{
	folder = args[2];
	if (choose(args[0]) < 0 || number(args[1]) > MOST)
		cannot_try(args[0]);
	return in_threads(number(args[1]));
}

/* signalled COUNT FOLDER: makes files while signals interrupt it, each call
 * again when it was */
static void take_note(int signal)
{
	(void)signal;
}

static int signalled(char **args)
{
	struct sigaction action = { .sa_handler = take_note, .sa_flags = SA_RESTART };
	pid_t parent = getpid();

	sigaction(SIGUSR1, &action, NULL);
	folder = args[1];
	pid_t child = fork();

	if (child == 0)
		for (;;)
			if (kill(parent, SIGUSR1) < 0 || getppid() != parent)
				_exit(0);
	for (long n = 0; n < number(args[0]) && n < MOST; n++)
		if (make_one(n) < 0)
			return -1;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}

/* names FOLDER: each way of changing a name, once */
static int names(char **args)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd;

	if (chdir(args[0]) < 0)
		cannot_try("chdir");
	if (mkdir("made", 0755) < 0 || (fd = creat("written", 0644)) < 0 || close(fd) < 0 ||
	    rename("written", "renamed") < 0 || link("renamed", "linked") < 0 ||
	    symlink("renamed", "pointer") < 0 || chmod("renamed", 0600) < 0 ||
	    truncate("renamed", 10) < 0 || unlink("linked") < 0 || rmdir("made") < 0)
		return -1;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	here.sin_port = htons(4321);
	if (fd < 0 || bind(fd, (void *)&here, sizeof(here)) < 0)
		return -1;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	here.sin_port = htons(1234);
	/* Nobody listens there. */
	return connect(fd, (void *)&here, sizeof(here)) < 0 && errno == ECONNREFUSED ? 0 : -1;
}

/* changing COUNT: starts programs whose words another process changes all the
 * while */
static int changing(char **args)
{
	char *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *words[] = { "true", word, NULL };
	pid_t changer = fork();

	if (word == MAP_FAILED)
		cannot_try("mmap");
	if (changer == 0)
		for (unsigned turn = 0;; turn++) {
			memset(word, turn % 2 ? 'a' : 'b', 64 + turn % 64);
			word[turn % 128] = 0;
		}
	for (long n = 0; n < number(args[0]); n++) {
		pid_t child = fork();

		if (child == 0) {
			execve("/bin/true", words, environ);
			_exit(9);
		}
		if (ended_well(child) < 0)
			return -1;
	}
	kill(changer, SIGKILL);
	waitpid(changer, NULL, 0);
	return 0;
}

/* hostile: starts a program with words and a path that are no memory, and one
 * with words without end */
static int hostile(char **args)
{
	static char *endless[70000];
	char *odd[] = { "true", (char *)-1, NULL };
	char *bytes[] = { "true", "\033[31m\n\"\\\xff\xfe", "", NULL };
	int status;

	(void)args;
	if (syscall(SYS_execve, 1L, odd, environ) == 0 || errno != EFAULT)
		return -1;
	if (syscall(SYS_execve, "/bin/true", odd, environ) == 0 || errno != EFAULT)
		return -1;
	if (syscall(SYS_execve, "/bin/true", 8L, environ) == 0 || errno != EFAULT)
		return -1;
	for (size_t i = 0; i < sizeof(endless) / sizeof(endless[0]) - 1; i++)
		endless[i] = "word";
	pid_t child = fork();

	if (child == 0) {
		execve("/bin/true", endless, environ);
		_exit(9);
	}
	waitpid(child, &status, 0);
	execve("/bin/true", bytes, environ);
	return -1;
}

/* flood COUNT PATH: tries to make the file that often; prints how often it was
 * refused */
static int flood(char **args)
{
	long count = number(args[0]), failed = 0;

	for (long n = 0; n < count; n++)
		failed += open(args[1], O_CREAT | O_WRONLY, 0644) < 0;
	printf("%ld\n", failed);
	return 0;
}

/* exec-in-thread PROGRAM: a thread that is not the first becomes the program */
static void *become(void *program)
{
	execl(program, "true", "of-a-thread", NULL);
	return NULL;
}

static int exec_in_thread(char **args)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, become, args[0]))
		cannot_try("pthread_create");
	pthread_join(thread, NULL);
	return -1;
}

/* begin-again COUNT WAY: makes the first call of programs that often, as it is
 * or, with the way "changed", with other random bytes each time */
static int begin_again(char **args)
{
	int is_changed = !strcmp(args[1], "changed");
	char *bytes = (char *)getauxval(AT_RANDOM);

	for (long n = 0; n < number(args[0]); n++) {
		if (is_changed)
			memcpy(bytes, &n, sizeof(n));
#ifdef __x86_64__
		unsigned long base;

		if (syscall(SYS_arch_prctl, 0x1003, &base) || syscall(SYS_arch_prctl, 0x1002, base))
			return -1;
#else
		syscall(SYS_set_tid_address, NULL);
#endif
	}
	return 0;
}

/* nothing COUNT: a call that does nothing, that often */
static int nothing(char **args)
{
	for (long n = 0; n < number(args[0]); n++)
		syscall(SYS_getppid);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char **args);
	int arguments;
} probes[] = {
	{ "one-by-one", one_by_one, 2 }, { "threads", all_at_once, 2 },
	{ "signalled", signalled, 2 }, { "names", names, 1 },
	{ "changing", changing, 1 }, { "hostile", hostile, 0 },
	{ "flood", flood, 2 }, { "nothing", nothing, 1 },
	{ "exec-in-thread", exec_in_thread, 1 }, { "begin-again", begin_again, 2 },
};

int main(int count, char **words)
{
	for (size_t i = 0; count > 1 && i < sizeof(probes) / sizeof(probes[0]); i++) {
		if (strcmp(words[1], probes[i].name))
			continue;
		if (count - 2 < probes[i].arguments)
			break;
		if (probes[i].run(words + 2) == 0)
			return 0;
		puts(strerrorname_np(errno));
		return 1;
	}
	fprintf(stderr, "no such probe, or too few arguments\n");
	return 2;
}
