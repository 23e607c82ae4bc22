/* Makes and removes a file again and again while a timer without SA_RESTART
 * goes off every five milliseconds; prints how many calls it interrupted. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static void noticed(int number) { (void)number; }

int main(int count, char **words)
{
	struct sigaction action = { .sa_handler = noticed };
	struct itimerval every = { { 0, 5000 }, { 0, 5000 } };
	long calls = count > 1 ? atol(words[1]) : 100000, interrupted = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (long call = 0; call < calls; call += 2) {
		int file = open("made", O_CREAT | O_WRONLY, 0600);
		if (file >= 0)
			close(file);
		else if (errno == EINTR)
			interrupted++;
		else
			return perror("open"), 1;
		if (unlink("made") && errno == EINTR)
			interrupted++;
	}
	printf("%ld\n", interrupted);
	return 0;
}
