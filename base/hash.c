/* base/hash.c: a 64-bit hash of bytes, and a map from strings to pointers.
 *
 * The hash mixes eight bytes a step by a 64 x 64 -> 128 bit multiplication; it is the same on every run, so
 * that keys made from it may be compared between processes of one machine. The map adds a per-process seed,
 * so that the names in a hostile file cannot be chosen to collide.
 */
#include "base.h"

struct ortc_map_cell {
    const char *key; /* NULL: free */
    void *value;
    uint64_t hash;
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t ortc_hash(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ UINT64_C(0x9e3779b97f4a7c15), word;
    size_t left = bytes;

    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = mix(h ^ word, UINT64_C(0xd6e8feb86659fd93)) + UINT64_C(0xa0761d6478bd642f);
    }
    word = 0;
    if (left) memcpy(&word, p, left);
    h = mix(h ^ word, UINT64_C(0xe7037ed1a0b428db));
    return mix(h ^ bytes, UINT64_C(0x8ebc6af09c88c6e3));
}

/* Where the system put this library: differs from process to process. */
static uint64_t process_seed(void)
{
    static const char anchor;
    return (uint64_t)(uintptr_t)&anchor;
}

/* The cell of a key, or the free one where it would go. */
static struct ortc_map_cell *find(struct ortc_map_cell *cells, size_t capacity, const char *key,
                                  uint64_t hash)
{
    size_t i = (size_t)hash & (capacity - 1);
    while (cells[i].key && (cells[i].hash != hash || strcmp(cells[i].key, key) != 0))
        i = (i + 1) & (capacity - 1);
    return &cells[i];
}

void *ortc_map_get(const ortc_map *map, const char *key)
{
    struct ortc_map_cell *cell;
    if (map->count == 0) return NULL;
    cell = find(map->cells, map->capacity, key, ortc_hash(key, strlen(key), process_seed()));
    return cell->key ? cell->value : NULL;
}

static bool grow(ortc_map *map)
{
    size_t capacity = map->capacity ? 2 * map->capacity : 16;
    struct ortc_map_cell *cells = calloc(capacity, sizeof *cells);

    if (!cells) return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->cells[i].key) *find(cells, capacity, map->cells[i].key, map->cells[i].hash) = map->cells[i];
    free(map->cells);
    map->cells = cells;
    map->capacity = capacity;
    return true;
}

bool ortc_map_set(ortc_map *map, const char *key, void *value)
{
    uint64_t hash = ortc_hash(key, strlen(key), process_seed());
    struct ortc_map_cell *cell;

    /* At most five eighths full. */
    if (map->count >= map->capacity / 8 * 5 && !grow(map)) return false;
    cell = find(map->cells, map->capacity, key, hash);
    if (!cell->key) {
        cell->key = key;
        cell->hash = hash;
        map->count++;
    }
    cell->value = value;
    return true;
}

void ortc_map_deinit(ortc_map *map)
{
    free(map->cells);
    map->cells = NULL;
    map->count = map->capacity = 0;
}
