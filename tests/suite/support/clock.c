/* A clock for tests, preloaded into the server: the wall clock moved by an offset, or stopped.
 *
 * The file that SLIDEWIN_TEST_CLOCK names holds two 64-bit integers, which the test writes while
 * the server runs: microseconds to add to the real time, and the time to stop at if it is not 0.
 * A stopped wall clock stops the monotonic one too, for some servers derive the one from the
 * other; timers then never fire. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *control;

__attribute__((constructor)) static void open_control(void) {
    const char *path = getenv("SLIDEWIN_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) control = map;
    close(fd);
}

static int64_t wall_clock(void) {
    struct timespec real;
    if (control && control[1]) return control[1];
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    return (int64_t)real.tv_sec * 1000000 + real.tv_nsec / 1000 + (control ? control[0] : 0);
}

int clock_gettime(clockid_t id, struct timespec *time) {
    static struct timespec stopped[16];
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
        int64_t micros = wall_clock();
        time->tv_sec = micros / 1000000;
        time->tv_nsec = micros % 1000000 * 1000;
        return 0;
    }
    if (!control || !control[1] || id < 0 || id >= 16) return syscall(SYS_clock_gettime, id, time);
    if (!stopped[id].tv_sec) syscall(SYS_clock_gettime, id, &stopped[id]);
    *time = stopped[id];
    return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
    int64_t micros = wall_clock();
    (void)zone;
    time->tv_sec = micros / 1000000;
    time->tv_usec = micros % 1000000;
    return 0;
}

time_t time(time_t *out) {
    time_t seconds = wall_clock() / 1000000;
    if (out) *out = seconds;
    return seconds;
}
