/* A command that fails and says when: appends the time of its start, in nanoseconds of the
 * monotonic clock, to the file named in its argument, and exits 1.
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct timespec t;
    char line[32];
    clock_gettime(CLOCK_MONOTONIC, &t);
    int file = argc > 1 ? open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    int length = snprintf(line, sizeof line, "%lld%09ld\n", (long long)t.tv_sec, t.tv_nsec);
    return file >= 0 && write(file, line, length) == length ? 1 : 125;
}
