/* providers/sim/queue.c: queues that run late, on a thread of their own, and events (sim.h). */
#include "sim.h"

#include <time.h>

struct sim_queue {
    sim_device *device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    sim_task *first, *last;
    int running, stop;
    unsigned random;
    struct recording *recording; /* being made: what is pushed goes there */
    ortc_status failed;          /* the first failure that nobody was told of */
};

/* What was pushed while capturing: it runs again and again, with the addresses of that time. */
typedef struct recording {
    sim_task *first, *last;
} recording;

typedef struct sim_event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned asked, done; /* signals */
    sim_queue *queue;
} sim_event;

static void *work(void *arg)
{
    sim_queue *q = (sim_queue *)arg;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first && !q->stop) pthread_cond_wait(&q->work, &q->lock);
        if (!q->first) break;
        sim_task *t = q->first;
        q->first = t->next;
        q->last = q->first ? q->last : NULL;
        q->running = 1;
        q->random = q->random * 1664525u + 1013904223u;
        unsigned pause = q->device->delay ? (q->random >> 8) % (q->device->delay + 1) : 0;
        pthread_mutex_unlock(&q->lock);
        if (pause) {
            struct timespec time = {0, (long)pause * 1000};
            nanosleep(&time, NULL);
        }
        t->run(t);
        pthread_mutex_lock(&q->lock);
        if (t->status != ORTC_OK && q->failed == ORTC_OK) q->failed = t->status;
        free(t);
        q->running = 0;
        pthread_cond_broadcast(&q->idle);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

ortc_status sim_queue_create(ortc_device *device, void *native, void **out)
{
    static unsigned seed = 1;
    *out = native; /* a caller's queue is one of ours */
    if (native) return ORTC_OK;
    sim_queue *q = (sim_queue *)calloc(1, sizeof *q);
    if (!q) return ORTC_OUT_OF_MEMORY;
    q->device = (sim_device *)device;
    q->random = __atomic_add_fetch(&seed, 1, __ATOMIC_RELAXED);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->idle, NULL);
    if (pthread_create(&q->thread, NULL, work, q)) {
        free(q);
        return ORTC_DEVICE_ERROR;
    }
    *out = q;
    return ORTC_OK;
}

static void end_queue(sim_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stop = 1;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->work);
    pthread_cond_destroy(&q->idle);
    free(q);
}

void sim_queue_destroy(ortc_device *device, void *queue, int32_t native)
{
    sim_queue *q = (sim_queue *)queue;
    (void)device;
    if (native)
        sim_drain(q); /* the caller ends it */
    else
        end_queue(q);
}

void sim_push(sim_queue *q, sim_task *t)
{
    t->next = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->recording) {
        *(q->recording->last ? &q->recording->last->next : &q->recording->first) = t;
        q->recording->last = t;
        pthread_mutex_unlock(&q->lock);
        return;
    }
    *(q->last ? &q->last->next : &q->first) = t;
    q->last = t;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

static ortc_status take_failure(sim_queue *q)
{
    ortc_status s = q->failed;
    q->failed = ORTC_OK;
    return s;
}

ortc_status sim_drain(sim_queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->first || q->running) pthread_cond_wait(&q->idle, &q->lock);
    ortc_status s = take_failure(q);
    pthread_mutex_unlock(&q->lock);
    return s;
}

/* ---- Copies -------------------------------------------------------------------------------------------- */

typedef struct copy_task {
    sim_task task;
    void *to;
    const void *from;
    int to_device, from_device;
    size_t bytes;
} copy_task;

static void run_copy(sim_task *t)
{
    copy_task *c = (copy_task *)(void *)t;
    void *to = c->to_device ? sim_real(c->to) : c->to;
    const void *from = c->from_device ? sim_real(c->from) : c->from;
    if (to && from)
        memcpy(to, from, c->bytes);
    else
        t->status = ORTC_DEVICE_ERROR; /* an address that is not on the device */
}

ortc_status sim_copy(void *queue, ortc_memory dst, void *to, ortc_memory src, const void *from, size_t bytes)
{
    copy_task *c = (copy_task *)calloc(1, sizeof *c);
    if (!c) return ORTC_OUT_OF_MEMORY;
    c->task.run = run_copy;
    c->to = to;
    c->from = from;
    c->to_device = dst.device != 0;
    c->from_device = src.device != 0;
    c->bytes = bytes;
    sim_push((sim_queue *)queue, &c->task);
    return ORTC_OK;
}

/* ---- Events -------------------------------------------------------------------------------------------- */

typedef struct event_task {
    sim_task task;
    sim_event *event;
    unsigned number;
} event_task;

static void run_signal(sim_task *t)
{
    event_task *e = (event_task *)(void *)t;
    pthread_mutex_lock(&e->event->lock);
    e->event->done = e->number;
    pthread_cond_broadcast(&e->event->changed);
    pthread_mutex_unlock(&e->event->lock);
}

static void wait_for(sim_event *e, unsigned number)
{
    pthread_mutex_lock(&e->lock);
    while ((int)(e->done - number) < 0) pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void run_wait(sim_task *t)
{
    event_task *e = (event_task *)(void *)t;
    wait_for(e->event, e->number);
}

static ortc_status push_event(sim_queue *q, sim_event *e, unsigned number, void (*run)(sim_task *))
{
    event_task *t = (event_task *)calloc(1, sizeof *t);
    if (!t) return ORTC_OUT_OF_MEMORY;
    t->task.run = run;
    t->event = e;
    t->number = number;
    sim_push(q, &t->task);
    return ORTC_OK;
}

ortc_status sim_signal(void *queue, void **event)
{
    sim_event *e = (sim_event *)*event;
    if (!e) {
        if (!(e = (sim_event *)calloc(1, sizeof *e))) return ORTC_OUT_OF_MEMORY;
        pthread_mutex_init(&e->lock, NULL);
        pthread_cond_init(&e->changed, NULL);
        *event = e;
    }
    pthread_mutex_lock(&e->lock);
    unsigned number = ++e->asked;
    e->queue = (sim_queue *)queue;
    pthread_mutex_unlock(&e->lock);
    return push_event((sim_queue *)queue, e, number, run_signal);
}

ortc_status sim_wait(void *queue, void *event)
{
    sim_event *e = (sim_event *)event;
    pthread_mutex_lock(&e->lock);
    unsigned number = e->asked;
    sim_queue *signalled = e->queue;
    pthread_mutex_unlock(&e->lock);
    if (queue) return push_event((sim_queue *)queue, e, number, run_wait);
    wait_for(e, number);
    pthread_mutex_lock(&signalled->lock);
    ortc_status s = take_failure(signalled);
    pthread_mutex_unlock(&signalled->lock);
    return s;
}

int32_t sim_query(void *event)
{
    sim_event *e = (sim_event *)event;
    pthread_mutex_lock(&e->lock);
    int32_t done = e->done == e->asked;
    pthread_mutex_unlock(&e->lock);
    return done;
}

void sim_event_destroy(ortc_device *device, void *event)
{
    sim_event *e = (sim_event *)event;
    (void)device;
    wait_for(e, e->asked); /* its signal may still be queued */
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
    free(e);
}

/* ---- Capture ------------------------------------------------------------------------------------------- */

ortc_status sim_capture_begin(void *queue)
{
    sim_queue *q = (sim_queue *)queue;
    recording *r = (recording *)calloc(1, sizeof *r);
    if (!r) return ORTC_OUT_OF_MEMORY;
    pthread_mutex_lock(&q->lock);
    q->recording = r;
    pthread_mutex_unlock(&q->lock);
    return ORTC_OK;
}

ortc_status sim_capture_end(void *queue, void **exec)
{
    sim_queue *q = (sim_queue *)queue;
    pthread_mutex_lock(&q->lock);
    *exec = q->recording;
    q->recording = NULL;
    pthread_mutex_unlock(&q->lock);
    return ORTC_OK;
}

typedef struct replay_task {
    sim_task task;
    const recording *recorded;
} replay_task;

static void run_replay(sim_task *task)
{
    const recording *r = ((replay_task *)(void *)task)->recorded;
    for (sim_task *t = r->first; t && task->status == ORTC_OK; t = t->next) {
        t->run(t);
        task->status = t->status;
    }
}

ortc_status sim_replay(void *queue, void *exec)
{
    replay_task *t = (replay_task *)calloc(1, sizeof *t);
    if (!t) return ORTC_OUT_OF_MEMORY;
    t->task.run = run_replay;
    t->recorded = (const recording *)exec;
    sim_push((sim_queue *)queue, &t->task);
    return ORTC_OK;
}

void sim_capture_free(ortc_device *device, void *exec)
{
    recording *r = (recording *)exec;
    (void)device;
    for (sim_task *t = r->first, *next; t; t = next) {
        next = t->next;
        free(t);
    }
    free(r);
}

/* ---- A caller's queue: what a program that uses the device by itself would have ------------------------ */

static sim_device callers;

ORTC_ENTRY void *sim_make_native(void);
ORTC_ENTRY void *sim_make_native(void)
{
    void *queue = NULL;
    sim_queue_create((ortc_device *)&callers, NULL, &queue);
    return queue;
}

ORTC_ENTRY void sim_end_native(void *queue);
ORTC_ENTRY void sim_end_native(void *queue)
{
    sim_drain((sim_queue *)queue);
    end_queue((sim_queue *)queue);
}
