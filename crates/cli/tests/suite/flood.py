"""Keeps whoever makes names busy with calls that are as slow as can be: each is
led through many links, each of them with many parts. Appends to `told`, at each
signal, how many calls were served by then; they are counted in `counts`."""
import mmap, os, signal

LINKS, PARTS, CALLERS = 38, 90, 6

os.mkdir("d")
for number in range(LINKS):
    last = "." if number == LINKS - 1 else f"l{number + 1}"
    os.symlink("d/../" * PARTS + last, f"l{number}")
with open("counts", "wb") as file:
    file.truncate(mmap.PAGESIZE)
place = os.open("counts", os.O_RDWR)
counts = memoryview(mmap.mmap(place, mmap.PAGESIZE)).cast("I")
told = os.open("told", os.O_CREAT | os.O_WRONLY | os.O_APPEND)


def tell(*_):
    os.write(told, b"%d\n" % sum(counts[:CALLERS]))


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
for number in SIGNALS:
    signal.signal(number, tell)
for caller in range(CALLERS):
    if os.fork() == 0:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                os.mkfifo("l0/d")
            except FileExistsError:
                counts[caller] += 1
while True:
    signal.pause()
