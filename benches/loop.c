/* The floor under a retry loop: starts a command N times, one after the other, waits for
 * each, and sleeps DELAY microseconds in between. Everything as cheap as it gets.
 *
 *   loop N DELAY COMMAND [ARG]...
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int status = 0;
    if (argc < 4) return 125;
    long micros = atol(argv[2]);
    struct timespec delay = {micros / 1000000, micros % 1000000 * 1000};
    for (int n = atoi(argv[1]); n > 0; n--) {
        pid_t pid;
        if (posix_spawnp(&pid, argv[3], NULL, NULL, argv + 3, environ) != 0) return 126;
        if (waitpid(pid, &status, 0) != pid) return 125;
        if (micros > 0 && n > 1) nanosleep(&delay, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
