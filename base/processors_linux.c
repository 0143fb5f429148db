/* base/processors_linux.c: the processors that the process may use: its affinity, the quotas of its control
 * groups, which of them share a core, which are slower than others, and whose memory is near.
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

/* The next range of a list like "0-3,64"; false: it is at its end. */
static bool next_range(const char **at, long *first, long *last)
{
    char *end;
    if (**at < '0' || **at > '9') return false;
    *first = *last = strtol(*at, &end, 10);
    if (*end == '-') *last = strtol(end + 1, &end, 10);
    *at = *end == ',' ? end + 1 : end;
    return true;
}

static bool list_has(const char *list, uint32_t cpu)
{
    long first, last;
    while (next_range(&list, &first, &last))
        if (first <= (long)cpu && (long)cpu <= last) return true;
    return false;
}

/* Whether a list has a processor below `cpu` that is allowed. */
static bool has_lower(const char *list, const bool *allowed, uint32_t cpu)
{
    long first, last;
    while (next_range(&list, &first, &last))
        for (long i = first; i <= last && i < (long)cpu; i++)
            if (allowed[i]) return true;
    return false;
}

/* The list of what is allowed; its length. */
static uint32_t list_allowed(const bool *allowed, int count, ortc_processor **out)
{
    uint32_t n = 0;
    for (int i = 0; i < count; i++) n += allowed[i];
    if (!n || !(*out = calloc(n, sizeof **out))) return 0;
    n = 0;
    for (int i = 0; i < count; i++)
        if (allowed[i]) (*out)[n++] = (ortc_processor){.number = (uint32_t)i, .capacity = 1024};
    return n;
}

static void find_siblings(ortc_processors *n, const char *sys, const bool *allowed)
{
    char path[300], text[1024];
    snprintf(path, sizeof path, "%s/devices/system/cpu/smt/active", sys);
    if (read_text(path, text, sizeof text) && *text == '0') return; /* one file tells all */
    for (uint32_t i = 0; i < n->count; i++) {
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%u/topology/thread_siblings_list", sys,
                 n->list[i].number);
        n->list[i].sibling = read_text(path, text, sizeof text) &&
                             has_lower(text, allowed, n->list[i].number);
    }
}

/* Intel's kernels name performance cores; others, Arm's above all, give every processor a capacity. */
static void find_capacities(ortc_processors *n, const char *sys)
{
    char path[300], text[1024];
    snprintf(path, sizeof path, "%s/devices/cpu_core/cpus", sys);
    const bool named = read_text(path, text, sizeof text);
    for (uint32_t i = 0; i < n->count; i++) {
        ortc_processor *p = &n->list[i];
        if (named) {
            p->capacity = list_has(text, p->number) ? 1024 : 512;
            continue;
        }
        snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%u/cpu_capacity", sys, p->number);
        if (!read_text(path, text, sizeof text)) return; /* of none, then */
        const long capacity = strtol(text, NULL, 10);
        p->capacity = capacity < 1 ? 1 : capacity > UINT16_MAX ? UINT16_MAX : (uint16_t)capacity;
    }
}

static void find_nodes(ortc_processors *n, const char *sys)
{
    char path[300], online[1024], text[4096];
    const char *at = online;
    long first, last;
    snprintf(path, sizeof path, "%s/devices/system/node/online", sys);
    if (read_text(path, online, sizeof online) && strpbrk(online, "-,")) /* one has them all */
        while (next_range(&at, &first, &last))
            for (long node = first; node <= last && n->n_nodes < ORTC_MAX_NODES; node++) {
                bool ours = false;
                snprintf(path, sizeof path, "%s/devices/system/node/node%ld/cpulist", sys, node);
                if (!read_text(path, text, sizeof text)) continue;
                for (uint32_t i = 0; i < n->count; i++)
                    if (list_has(text, n->list[i].number)) {
                        n->list[i].node = (uint16_t)n->n_nodes;
                        ours = true;
                    }
                n->n_nodes += ours;
            }
    if (!n->n_nodes) n->n_nodes = 1;
}

static void count_cores(ortc_processors *n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].capacity > most) most = n->list[i].capacity;
    for (uint32_t i = 0; i < n->count; i++) {
        n->list[i].slow = 2u * n->list[i].capacity <= most;
        n->cores += !n->list[i].sibling;
        n->usual += !n->list[i].sibling && !n->list[i].slow;
    }
    n->threads = n->count;
}

ortc_processors ortc_platform_count(const char *sys, const char *list)
{
    ortc_processors n = {0};
    int count = 1024;
    bool *allowed = list ? calloc((size_t)count, 1) : allowed_processors(&count);
    for (int i = 0; list && allowed && i < count; i++) allowed[i] = list_has(list, (uint32_t)i);
    if (allowed) n.count = list_allowed(allowed, count, &n.list);
    if (n.count) {
        find_siblings(&n, sys, allowed);
        find_capacities(&n, sys);
        find_nodes(&n, sys);
        count_cores(&n);
    } else {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        n.usual = n.cores = n.threads = online > 0 ? (uint32_t)online : 1;
        n.n_nodes = 1;
    }
    free(allowed);
    return n;
}

static int by_number(const void *number, const void *p)
{
    const uint32_t a = *(const uint32_t *)number, b = ((const ortc_processor *)p)->number;
    return a < b ? -1 : a > b;
}

uint32_t ortc_platform_node(const ortc_processors *n)
{
    const int cpu = n->n_nodes > 1 ? sched_getcpu() : -1;
    const uint32_t number = (uint32_t)cpu;
    const ortc_processor *p = cpu < 0 ? NULL
                                      : bsearch(&number, n->list, n->count, sizeof *n->list, by_number);
    return p ? p->node : 0;
}

void ortc_platform_stay(const ortc_processors *n, uint32_t node, bool also_slow)
{
    const uint32_t most = n->count ? n->list[n->count - 1].number + 1 : 1;
    cpu_set_t *set = CPU_ALLOC(most);
    const size_t bytes = CPU_ALLOC_SIZE(most);
    uint32_t stays = 0;
    if (!set) return;
    CPU_ZERO_S(bytes, set);
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].node == node && (also_slow || !n->list[i].slow)) {
            CPU_SET_S(n->list[i].number, bytes, set);
            stays++;
        }
    if (stays && stays < n->count) sched_setaffinity(0, bytes, set); /* a wish */
    CPU_FREE(set);
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
    if (*text == '-') return UINT32_MAX; /* there is none */
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
    if (strcmp(path, "/") == 0) *path = 0; /* it is the root */
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
    ortc_processors n = ortc_platform_count("/sys", NULL);
    const uint32_t quota = cgroup_threads();
    if (n.usual > quota) n.usual = quota;
    if (n.cores > quota) n.cores = quota;
    if (n.threads > quota) n.threads = quota;
    return n;
}
