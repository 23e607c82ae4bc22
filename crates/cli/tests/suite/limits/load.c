/*
 * Loads on a sandbox, one per subcommand. Amounts are in MiB unless they are
 * called otherwise. Exit status: 0 all of it was had, 1 something was refused
 * (the name of the error is printed), 2 it could not be tried. A load that ends
 * in `hold` keeps what it has and waits for its end; one that ends in `show`
 * keeps it, and what was refused, until there is a file `seen`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE 4096
#define MOST 65536

static void cannot_try(const char *what)
{
	fprintf(stderr, "cannot try: %s: %m\n", what);
	exit(2);
}

static long number(const char *text)
{
	return strtol(text, NULL, 0);
}

static int refused(void)
{
	puts(strerrorname_np(errno));
	fflush(stdout);
	return 1;
}

/* With `show` as the word, stays until somebody has seen it. */
static void show(const char *word)
{
	while (word && !strcmp(word, "show") && access("seen", F_OK) < 0)
		usleep(5000);
}

static int refused_in_sight(const char *word)
{
	refused();
	show(word);
	return 1;
}

/* With `hold` as the word, says so and stays. */
static int done(const char *word)
{
	show(word);
	if (word && !strcmp(word, "hold")) {
		puts("holding");
		fflush(stdout);
		for (;;)
			pause();
	}
	return 0;
}

/* ---- processes ---- */

static pid_t children[MOST];

/* fork COUNT [show]: children that wait, all at once; prints how many there
 * were and how many were refused with EAGAIN */
static int forks(char **args)
{
	long count = number(args[0]), made = 0, again = 0, other = 0;

	for (long i = 0; i < count && i < MOST; i++) {
		pid_t child = fork();

		if (child == 0)
			for (;;)
				pause();
		if (child > 0)
			children[made++] = child;
		else if (errno == EAGAIN)
			again++;
		else
			other++;
	}
	show(args[1]);
	for (long i = 0; i < made; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	printf("%ld %ld %ld\n", made, again, other);
	return 0;
}

static void *wait_forever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* threads COUNT [show]: the same with threads */
static int threads(char **args)
{
	long count = number(args[0]), made = 0, again = 0, other = 0;

	for (long i = 0; i < count; i++) {
		pthread_t thread;
		pthread_attr_t small;

		pthread_attr_init(&small);
		pthread_attr_setstacksize(&small, 64 * 1024);
		int error = pthread_create(&thread, &small, wait_forever, NULL);

		if (error == 0)
			made++;
		else if (error == EAGAIN)
			again++;
		else
			other++;
	}
	show(args[1]);
	printf("%ld %ld %ld\n", made, again, other);
	return 0;
}

/* bomb: forks without end, in every child too */
static int bomb(char **args)
{
	(void)args;
	for (;;)
		fork();
	return 0;
}

/* short COUNT: that many children, one after the other */
static int short_lived(char **args)
{
	for (long i = 0; i < number(args[0]); i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		if (child < 0)
			return refused();
		waitpid(child, NULL, 0);
	}
	return 0;
}

/* family MARK FILE: stays as a child, as a session of its own, and as a
 * grandchild without parents, none of which minds TERM; FILE gets a letter for
 * each, and MARK is in the arguments of all */
static void stay(const char *file)
{
	int fd = open(file, O_CREAT | O_WRONLY | O_APPEND, 0644);

	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	if (fd < 0 || write(fd, "x", 1) != 1)
		cannot_try("write");
	close(fd);
	for (;;)
		pause();
}

static int family(char **args)
{
	if (fork() == 0)
		stay(args[1]);
	if (fork() == 0) {
		setsid();
		stay(args[1]);
	}
	if (fork() == 0) {
		setsid();
		if (fork() == 0)
			stay(args[1]);
		_exit(0);
	}
	stay(args[1]);
	return 0;
}

/* ---- memory ---- */

static char *take(size_t mib)
{
	char *place = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		return NULL;
	for (size_t at = 0; at < mib * MIB; at += PAGE)
		place[at] = 1;
	return place;
}

/* memory MIB [hold] */
static int memory(char **args)
{
	return take(number(args[0])) ? done(args[1]) : refused();
}

/* burst MIB: gives it back at once */
static int burst(char **args)
{
	char *place = take(number(args[0]));

	return place && munmap(place, number(args[0]) * MIB) == 0 ? 0 : refused();
}

/* reserve MIB: address space that is not used */
static int reserve(char **args)
{
	void *place = mmap(NULL, number(args[0]) * MIB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return place == MAP_FAILED ? refused() : 0;
}

/* crowd COUNT MIB: that many processes with that much each, all at once */
static int crowd(char **args)
{
	for (long i = 0; i < number(args[0]); i++) {
		pid_t child = fork();

		if (child == 0) {
			if (!take(number(args[1])))
				_exit(1);
			for (;;)
				pause();
		}
		if (child < 0)
			return refused();
	}
	return done("hold");
}

/* shared COUNT MIB: that many processes that use the same memory */
static int shared(char **args)
{
	size_t size = number(args[1]) * MIB;
	char *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		return refused();
	memset(place, 1, size);
	*(int *)(place + 8) = 0;
	for (long i = 0; i < number(args[0]); i++) {
		pid_t child = fork();

		if (child < 0)
			return refused();
		if (child > 0)
			continue;
		for (size_t at = 0; at < size; at += PAGE)
			((volatile char *)place)[at] += 1;
		/* Until all of them have it. */
		__atomic_add_fetch((int *)(place + 8), 1, __ATOMIC_SEQ_CST);
		while (__atomic_load_n((int *)(place + 8), __ATOMIC_SEQ_CST) < number(args[0]))
			usleep(1000);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* ---- time ---- */

/* spin COUNT: that many processes that do nothing but count */
static int spin(char **args)
{
	for (long i = 1; i < number(args[0]); i++)
		if (fork() == 0)
			break;
	for (volatile unsigned long count = 0;; count++)
		;
	return 0;
}

/* orphans: spins in short-lived grandchildren that nobody waits for */
static int orphans(char **args)
{
	(void)args;
	for (;;) {
		pid_t child = fork();

		if (child == 0) {
			if (fork() == 0)
				for (volatile unsigned long count = 0; count < 20000000; count++)
					;
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

/* ---- files ---- */

static char block[MIB];

static int fill(int fd, long mib)
{
	memset(block, 'x', sizeof(block));
	for (long i = 0; i < mib; i++)
		for (size_t at = 0; at < MIB;) {
			ssize_t written = write(fd, block + at, MIB - at);

			if (written <= 0)
				return -1;
			at += written;
		}
	return 0;
}

static int made(const char *path, int flags)
{
	return open(path, O_CREAT | O_RDWR | flags, 0644);
}

/* write FILE MIB [hold] */
static int write_file(char **args)
{
	int fd = made(args[0], O_TRUNC);

	return fd < 0 || fill(fd, number(args[1])) < 0 ? refused() : done(args[2]);
}

/* append FILE MIB [hold] */
static int append(char **args)
{
	int fd = open(args[0], O_WRONLY | O_APPEND);

	return fd < 0 || fill(fd, number(args[1])) < 0 ? refused() : done(args[2]);
}

/* many FOLDER COUNT KIB [hold]: that many files; prints how many there are */
static int many(char **args)
{
	char path[PAGE];
	size_t size = number(args[2]) * 1024;
	long count = 0;

	memset(block, 'x', sizeof(block));
	for (; count < number(args[1]); count++) {
		snprintf(path, sizeof(path), "%s/%ld", args[0], count);
		int fd = made(path, O_EXCL);

		if (fd < 0 || write(fd, block, size) != (ssize_t)size)
			break;
		close(fd);
	}
	int error = errno;

	printf("%ld\n", count);
	errno = error;
	return count < number(args[1]) ? refused() : done(args[3]);
}

/* links FOLDER COUNT: folders, symbolic and hard links, a third each */
static int links(char **args)
{
	char path[PAGE], first[PAGE];
	long count = 0;

	snprintf(first, sizeof(first), "%s/first", args[0]);
	close(made(first, 0));
	for (; count < number(args[1]); count++) {
		snprintf(path, sizeof(path), "%s/%ld", args[0], count);
		int error = count % 3 == 0 ? mkdir(path, 0755)
			  : count % 3 == 1 ? symlink("nowhere", path)
					   : link(first, path);

		if (error < 0)
			break;
	}
	int error = errno;

	printf("%ld\n", count);
	errno = error;
	return count < number(args[1]) ? refused() : 0;
}

/* churn FOLDER COUNT KIB: makes and removes that many files, one by one */
static int churn(char **args)
{
	char path[PAGE];
	size_t size = number(args[2]) * 1024;

	for (long i = 0; i < number(args[1]); i++) {
		snprintf(path, sizeof(path), "%s/churn-%ld", args[0], i);
		int fd = made(path, O_EXCL);

		if (fd < 0 || write(fd, block, size) != (ssize_t)size || close(fd) < 0 ||
		    unlink(path) < 0)
			return refused();
	}
	return 0;
}

/* rewrite FILE MIB TIMES: cuts the file and writes it again, closed or not */
static int rewrite(char **args)
{
	for (long i = 0; i < number(args[2]); i++) {
		int fd = made(args[0], O_TRUNC);

		if (fd < 0 || fill(fd, number(args[1])) < 0 || ftruncate(fd, 0) < 0 ||
		    lseek(fd, 0, SEEK_SET) < 0 || fill(fd, number(args[1])) < 0)
			return refused();
		close(fd);
	}
	return 0;
}

/* overwrite FILE MIB TIMES: writes over what is there, without cutting */
static int overwrite(char **args)
{
	for (long i = 0; i < number(args[2]); i++) {
		int fd = made(args[0], 0);

		if (fd < 0 || fill(fd, number(args[1])) < 0)
			return refused();
		close(fd);
	}
	return 0;
}

/* deleted FILE MIB [hold|show]: writes to a file that has lost its name */
static int deleted(char **args)
{
	int fd = made(args[0], O_EXCL);

	if (fd < 0 || unlink(args[0]) < 0)
		return refused();
	return fill(fd, number(args[1])) < 0 ? refused_in_sight(args[2]) : done(args[2]);
}

/* nameless FOLDER MIB [hold|show]: writes to a file that never had a name */
static int nameless(char **args)
{
	int fd = open(args[0], O_TMPFILE | O_RDWR, 0644);

	return fd < 0 || fill(fd, number(args[1])) < 0 ? refused_in_sight(args[2]) : done(args[2]);
}

/* sparse FILE MIB: a hole of that size */
static int sparse(char **args)
{
	int fd = made(args[0], O_TRUNC);

	return fd < 0 || ftruncate(fd, number(args[1]) * MIB) < 0 ? refused() : 0;
}

/* reserved FILE MIB [hold]: space that is taken and not written */
static int reserved(char **args)
{
	int fd = made(args[0], O_TRUNC);

	return fd < 0 || fallocate(fd, 0, 0, number(args[1]) * MIB) < 0 ? refused() : done(args[2]);
}

/* mapped FILE MIB [hold]: writes through memory, with the file closed */
static int mapped(char **args)
{
	size_t size = number(args[1]) * MIB;
	int fd = made(args[0], O_TRUNC);

	if (fd < 0 || ftruncate(fd, size) < 0)
		return refused();
	char *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (place == MAP_FAILED)
		return refused();
	for (size_t at = 0; at < size; at += PAGE)
		place[at] = 1;
	msync(place, size, MS_SYNC);
	return done(args[2]);
}

/* reads FILE MIB: reads all of a file through memory, a few times */
static int reads(char **args)
{
	size_t size = number(args[1]) * MIB;
	int fd = open(args[0], O_RDONLY);
	char *place = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (fd < 0 || place == MAP_FAILED)
		return refused();
	for (volatile long sum = 0, turn = 0; turn < 20; turn++)
		for (size_t at = 0; at < size; at += 64)
			sum += place[at];
	return 0;
}

/* open COUNT: opens that many files at once; prints how many it could */
static int open_many(char **args)
{
	long count = 0;

	while (count < number(args[0]) && open("/dev/null", O_RDONLY) >= 0)
		count++;
	int error = errno;

	printf("%ld\n", count);
	errno = error;
	return count < number(args[0]) ? refused() : 0;
}

static const struct {
	const char *name;
	int (*run)(char **args);
	int arguments;
} loads[] = {
	{ "fork", forks, 1 }, { "threads", threads, 1 }, { "bomb", bomb, 0 },
	{ "short", short_lived, 1 }, { "family", family, 2 },
	{ "memory", memory, 1 }, { "burst", burst, 1 },
	{ "reserve", reserve, 1 }, { "crowd", crowd, 2 },
	{ "shared", shared, 2 }, { "spin", spin, 1 }, { "orphans", orphans, 0 },
	{ "write", write_file, 2 }, { "append", append, 2 }, { "many", many, 3 },
	{ "links", links, 2 }, { "churn", churn, 3 }, { "rewrite", rewrite, 3 },
	{ "overwrite", overwrite, 3 }, { "deleted", deleted, 2 },
	{ "nameless", nameless, 2 }, { "sparse", sparse, 2 },
	{ "reserved", reserved, 2 }, { "mapped", mapped, 2 },
	{ "reads", reads, 2 },
	{ "open", open_many, 1 },
};

int main(int count, char **words)
{
	for (size_t i = 0; count > 1 && i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (strcmp(words[1], loads[i].name))
			continue;
		if (count - 2 < loads[i].arguments)
			break;
		return loads[i].run(words + 2);
	}
	fprintf(stderr, "no such load, or too few arguments\n");
	return 2;
}
