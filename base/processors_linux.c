/* base/processors_linux.c: how many processors the process may use: its affinity, the quotas of its control
 * groups, and how many of them share a core.
 */
#include "base.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static bool read_text(const char *path, char *buffer, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buffer, capacity - 1);
    if (fd >= 0) close(fd);
    buffer[n > 0 ? n : 0] = 0;
    return n > 0;
}

/* Processors that the process may run on, one flag each; NULL: the system does not say. Owner: the caller. */
static bool *allowed_processors(int *out_count)
{
    for (int cpus = 1024; cpus <= 1 << 16; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        bool *allowed = calloc((size_t)cpus, 1);
        const size_t bytes = CPU_ALLOC_SIZE(cpus);
        const bool known = set && allowed && sched_getaffinity(0, bytes, set) == 0;
        for (int i = 0; known && i < cpus; i++) allowed[i] = CPU_ISSET_S(i, bytes, set);
        if (set) CPU_FREE(set);
        *out_count = cpus;
        if (known) return allowed;
        free(allowed);
    }
    return NULL;
}

/* Whether a list like "0-3,64" has a processor below `cpu` that is allowed. */
static bool has_lower(const char *list, const bool *allowed, int cpu)
{
    char *end;
    for (const char *p = list; *p >= '0' && *p <= '9'; p = *end == ',' ? end + 1 : end) {
        const long first = strtol(p, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long i = first; i <= last && i < cpu; i++)
            if (allowed[i]) return true;
    }
    return false;
}

ortc_processors ortc_platform_count(const char *sys)
{
    ortc_processors n = {0, 0};
    int count = 0;
    bool *allowed = allowed_processors(&count);
    char active[300], text[8];
    snprintf(active, sizeof active, "%s/devices/system/cpu/smt/active", sys);
    const bool shared = !read_text(active, text, sizeof text) || *text != '0'; /* else one file tells all */
    for (int i = 0; allowed && i < count; i++) {
        char path[300], list[1024];
        if (!allowed[i]) continue;
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list", sys, i);
        n.threads++;
        n.cores += !shared || !read_text(path, list, sizeof list) || !has_lower(list, allowed, i);
    }
    free(allowed);
    if (n.threads) return n;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    n.cores = n.threads = online > 0 ? (uint32_t)online : 1;
    return n;
}

/* Processors' worth of time per period, rounded up; UINT32_MAX: no quota. */
static uint32_t quota_threads(long long quota, long long period)
{
    long long n;
    if (quota <= 0 || period <= 0) return UINT32_MAX;
    n = quota / period + (quota % period != 0);
    return n < 1 ? 1 : n > 65536 ? UINT32_MAX : (uint32_t)n;
}

/* The quota of one group. */
static uint32_t group_quota(const char *root, const char *path, bool v2)
{
    char file[1200], text[64], period_text[64];
    long long quota = 0, period = 0;

    snprintf(file, sizeof file, "%s%s/%s", root, path, v2 ? "cpu.max" : "cpu.cfs_quota_us");
    if (!read_text(file, text, sizeof text)) return UINT32_MAX;
    if (v2) /* "max 100000" does not parse: no quota */
        return sscanf(text, "%lld %lld", &quota, &period) == 2 ? quota_threads(quota, period) : UINT32_MAX;
    snprintf(file, sizeof file, "%s%s/cpu.cfs_period_us", root, path);
    if (!read_text(file, period_text, sizeof period_text) || sscanf(text, "%lld", &quota) != 1 ||
        sscanf(period_text, "%lld", &period) != 1)
        return UINT32_MAX;
    return quota_threads(quota, period);
}

/* The tightest quota from the process's group up to the root. Inside a container the path may not be visible;
 * its root is the container's own group then. */
static uint32_t walk_quota(const char *root, char *path, bool v2)
{
    uint32_t least = UINT32_MAX, here;
    for (;;) {
        char *slash = strrchr(path, '/');
        here = group_quota(root, path, v2);
        if (here < least) least = here;
        if (!slash) return least;
        *slash = 0;
    }
}

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
        if (strncmp(p, word, length) == 0 && (p[length] == ',' || p[length] == 0)) return true;
    return false;
}

static uint32_t cgroup_threads(void)
{
    char text[4096], *line, *rest, root[300];
    uint32_t least = UINT32_MAX, here;

    if (!read_text("/proc/self/cgroup", text, sizeof text)) return UINT32_MAX;
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || strlen(path) > 800) continue;
        *controllers++ = 0;
        *path++ = 0;
        if (*controllers == 0) {
            here = walk_quota("/sys/fs/cgroup", path, true);
        } else if (has_word(controllers, "cpu") && strlen(controllers) < 200) {
            snprintf(root, sizeof root, "/sys/fs/cgroup/%s", controllers);
            if (access(root, F_OK) != 0) snprintf(root, sizeof root, "/sys/fs/cgroup/cpu");
            here = walk_quota(root, path, false);
        } else {
            continue;
        }
        if (here < least) least = here;
    }
    return least;
}

ortc_processors ortc_platform_processors(void)
{
    ortc_processors n = ortc_platform_count("/sys");
    const uint32_t quota = cgroup_threads();
    if (n.cores > quota) n.cores = quota;
    if (n.threads > quota) n.threads = quota;
    return n;
}
