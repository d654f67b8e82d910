/* Runs commands side by side and says what each cost.
 *
 *   measure [-p] ROUNDS NAME COMMAND [ARG]... [:: NAME COMMAND [ARG]...]...
 *
 * Each round runs every command once, in an order that moves on by one each round, so that
 * no command always follows the same other. Standard input and output are /dev/null; with -p, standard
 * input is a pipe that stays open and empty. For each command it prints the medians of wall time and of CPU time (user + system, of all
 * processes that were waited for), the greatest resident set of any of them, how often it
 * gave up the CPU by itself, and the medians over the rounds of both times' ratio to those
 * of the first command in the same round.
 *
 * Link it statically: the resident set of a child counts what it was before exec.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16 };

static const char *names[MOST];
static char **commands[MOST];
static int count;

static void fail(const char *what) {
    fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
    exit(125);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static double micros(struct timeval t) { return t.tv_sec * 1e6 + t.tv_usec; }

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    double *sorted = malloc(n * sizeof *sorted);
    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare);
    double middle = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    free(sorted);
    return middle;
}

int main(int argc, char **argv) {
    int use_pipe = argc > 1 && strcmp(argv[1], "-p") == 0;
    argc -= use_pipe;
    argv += use_pipe;
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 2; i < argc && count < MOST; i++) {
        names[count] = argv[i++];
        commands[count++] = argv + i;
        while (i < argc && strcmp(argv[i], "::") != 0) i++;
        argv[i] = NULL;
    }
    if (rounds < 1 || count == 0) {
        fprintf(stderr, "usage: measure [-p] ROUNDS NAME COMMAND [ARG]... [:: NAME COMMAND [ARG]...]...\n");
        return 125;
    }
    double *wall[MOST], *cpu[MOST];
    long resident[MOST] = {0}, switches[MOST] = {0};
    for (int i = 0; i < count; i++) {
        wall[i] = malloc(rounds * sizeof(double));
        cpu[i] = malloc(rounds * sizeof(double));
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), ends[2] = {null, -1};
    if (use_pipe && pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    posix_spawn_file_actions_adddup2(&actions, null, 1);
    /* Two rounds more, not counted, warm the caches. */
    for (int round = -2; round < rounds; round++) {
        for (int turn = 0; turn < count; turn++) {
            int i = (turn + round + 2) % count, status;
            struct rusage used;
            pid_t pid;
            double start = now();
            errno = posix_spawnp(&pid, commands[i][0], &actions, NULL, commands[i], environ);
            if (errno) fail(commands[i][0]);
            if (wait4(pid, &status, 0, &used) != pid) fail("wait4");
            double end = now();
            if (round < 0) continue;
            wall[i][round] = end - start;
            cpu[i][round] = micros(used.ru_utime) + micros(used.ru_stime);
            if (used.ru_maxrss > resident[i]) resident[i] = used.ru_maxrss;
            switches[i] += used.ru_nvcsw;
        }
    }
    printf("%-34s %9s %9s %8s %9s %7s %7s\n", "", "wall ms", "cpu ms", "RSS KiB", "switches", "wall", "cpu");
    for (int i = 0; i < count; i++) {
        double *walls = malloc(rounds * sizeof(double)), *cpus = malloc(rounds * sizeof(double));
        for (int round = 0; round < rounds; round++) {
            walls[round] = wall[i][round] / wall[0][round];
            cpus[round] = cpu[i][round] / cpu[0][round];
        }
        printf("%-34s %9.3f %9.3f %8ld %9ld %7.3f %7.3f\n", names[i], median(wall[i], rounds) / 1e3,
               median(cpu[i], rounds) / 1e3, resident[i], switches[i] / rounds, median(walls, rounds),
               median(cpus, rounds));
    }
    return 0;
}
