/* providers/cuda/device.c: NVIDIA GPUs: what there is, memory, streams, events, captured graphs.
 *
 * Built as a module that libortc loads like a stranger's plugin, with the CUDA runtime linked in statically:
 * a machine without a driver loads it all the same and says what is missing. The current device is a thread's
 * own affair in CUDA, so every entry that may run on any thread sets it.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "providers/cuda/cuda.h"

const char *ortc_cuda_error(int error) { return cudaGetErrorString((cudaError_t)error); }

/* An error that is given back here is not to be found by the next launch, too: a stream that refuses to be
 * captured, memory that is short. */
static ortc_status status_of(cudaError_t e)
{
    if (e != cudaSuccess) cudaGetLastError();
    switch (e) {
    case cudaSuccess: return ORTC_OK;
    case cudaErrorMemoryAllocation: return ORTC_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return ORTC_NOT_FOUND;
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorECCUncorrectable:
    case cudaErrorAssert: return ORTC_DEVICE_LOST; /* the process's context is gone: every later call fails */
    default: return ORTC_DEVICE_ERROR;
    }
}

/* ---- What there is ------------------------------------------------------------------------------------- */

static ortc_status count_devices(int *n, ortc_why *why)
{
    int driver = 0, runtime = 0;
    cudaError_t e = cudaGetDeviceCount(n);
    if (e == cudaSuccess && *n > 0) return ORTC_OK;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaGetLastError();
    if (!driver)
        ortc_no(why, "no NVIDIA driver is installed");
    else if (e == cudaErrorInsufficientDriver)
        ortc_no(why, "the driver supports CUDA %d.%d, this module needs %d.%d: update the driver",
                driver / 1000, driver % 100 / 10, runtime / 1000, runtime % 100 / 10);
    else if (e == cudaErrorNoDevice || e == cudaSuccess)
        ortc_no(why, "there is no NVIDIA GPU, or none is visible (CUDA_VISIBLE_DEVICES)");
    else
        ortc_no(why, "the GPUs cannot be listed: %s", cudaGetErrorString(e));
    return e == cudaSuccess || !driver ? ORTC_NOT_FOUND : status_of(e);
}

/* "sm_80 sm_90a" of the build, and whether one of them runs on this device as machine code. */
static int is_native(const struct cudaDeviceProp *p)
{
    char sm[16];
    for (const char *at = ORTC_CUDA_ARCHITECTURES; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        int n = atoi(at);
        snprintf(sm, sizeof sm, "%.*s", (int)strcspn(at, " "), at);
        if (n / 10 != p->major) continue;
        if (strpbrk(sm, "af") ? n % 10 == p->minor : n % 10 <= p->minor) return 1;
    }
    return 0;
}

static ortc_status devices(const ortc_host *host, ortc_device_info *infos, uint32_t *inout_n, ortc_why *why)
{
    int n = 0, driver = 0;
    (void)host;
    ortc_status s = count_devices(&n, why);
    if (s != ORTC_OK) return s;
    cudaDriverGetVersion(&driver);
    for (int i = 0; i < n && (uint32_t)i < *inout_n; i++) {
        struct cudaDeviceProp p;
        size_t available = 0, total = 0;
        ortc_device_info *d = &infos[i];
        cudaError_t e = cudaGetDeviceProperties(&p, i);
        if (e != cudaSuccess) return ortc_no(why, "device %d: %s", i, cudaGetErrorString(e)), status_of(e);
        if (cudaSetDevice(i) != cudaSuccess || cudaMemGetInfo(&available, &total) != cudaSuccess)
            cudaGetLastError();
        memset(d, 0, sizeof *d);
        d->size = sizeof *d;
        d->memory_kind = ORTC_MEMORY_DEVICE;
        d->memory_bytes = p.totalGlobalMem;
        d->memory_free = available;
        snprintf(d->name, sizeof d->name, "%.80s, sm_%d%d, %d multiprocessors", p.name, p.major, p.minor,
                 p.multiProcessorCount);
        snprintf(d->notes, sizeof d->notes, "driver for CUDA %d.%d; kernels for %s%s", driver / 1000,
                 driver % 100 / 10, ORTC_CUDA_ARCHITECTURES,
                 is_native(&p) ? "" : ", none native here: the driver compiles them at the first use");
    }
    *inout_n = (uint32_t)n;
    return ORTC_OK;
}

static ortc_cuda_device *of(ortc_device *d) { return (ortc_cuda_device *)(void *)d; }

static int attribute(enum cudaDeviceAttr a, int ordinal)
{
    int v = 0;
    cudaDeviceGetAttribute(&v, a, ordinal);
    return v;
}

static ortc_status open_device(const ortc_host *host, uint32_t ordinal, const ortc_options *options,
                               ortc_device **out, ortc_why *why)
{
    (void)host;
    if (options->count) return ortc_no(why, "it has no option '%s'", options->keys[0]), ORTC_INVALID_ARGUMENT;
    cudaError_t e = cudaSetDevice((int)ordinal);
    if (e == cudaSuccess) e = cudaFree(NULL); /* makes the context, where a full GPU refuses */
    if (e != cudaSuccess) {
        ortc_no(why, "device %u: %s", ordinal, cudaGetErrorString(e));
        return status_of(e);
    }
    ortc_cuda_device *d = calloc(1, sizeof *d);
    if (!d) return ORTC_OUT_OF_MEMORY;
    d->ordinal = (int)ordinal;
    d->major = attribute(cudaDevAttrComputeCapabilityMajor, d->ordinal);
    d->minor = attribute(cudaDevAttrComputeCapabilityMinor, d->ordinal);
    d->processors = attribute(cudaDevAttrMultiProcessorCount, d->ordinal);
    d->shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, d->ordinal);
    d->l2_bytes = attribute(cudaDevAttrL2CacheSize, d->ordinal);
    *out = (ortc_device *)(void *)d;
    return ORTC_OK;
}

static void close_device(ortc_device *d) { free(d); } /* the process's context stays: others may use it */

/* ---- Memory -------------------------------------------------------------------------------------------- */

static ortc_status slab_alloc(ortc_device *d, uint32_t kind, size_t bytes, void **out)
{
    *out = NULL;
    cudaSetDevice(of(d)->ordinal);
    return status_of(kind == ORTC_MEMORY_PINNED ? cudaMallocHost(out, bytes) : cudaMalloc(out, bytes));
}

static void slab_free(ortc_device *d, uint32_t kind, void *p, size_t bytes)
{
    (void)bytes;
    cudaSetDevice(of(d)->ordinal);
    if (kind == ORTC_MEMORY_PINNED)
        cudaFreeHost(p);
    else
        cudaFree(p); /* waits for the device: nothing that is queued still uses it */
}

/* ---- Queues: a stream, and the device it belongs to ---------------------------------------------------- */

static ortc_status queue_create(ortc_device *d, void *native, void **out)
{
    *out = native;
    if (native) return ORTC_OK;
    cudaSetDevice(of(d)->ordinal);
    return status_of(cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking));
}

static void queue_destroy(ortc_device *d, void *queue, int32_t native)
{
    cudaSetDevice(of(d)->ordinal);
    if (!native) cudaStreamDestroy((cudaStream_t)queue);
}

static ortc_status copy(void *queue, ortc_memory dst, void *to, ortc_memory src, const void *from,
                        size_t bytes)
{
    enum cudaMemcpyKind kind = dst.device ? (src.device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                                          : cudaMemcpyDeviceToHost;
    return status_of(cudaMemcpyAsync(to, from, bytes, kind, (cudaStream_t)queue));
}

static ortc_status signal_queue(void *queue, void **event)
{
    if (!*event) {
        cudaError_t e = cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming);
        if (e != cudaSuccess) return status_of(e);
    }
    return status_of(cudaEventRecord((cudaEvent_t)*event, (cudaStream_t)queue));
}

static ortc_status wait_event(void *queue, void *event)
{
    return status_of(queue ? cudaStreamWaitEvent((cudaStream_t)queue, (cudaEvent_t)event, 0)
                           : cudaEventSynchronize((cudaEvent_t)event));
}

static int32_t query_event(void *event)
{
    cudaError_t e = cudaEventQuery((cudaEvent_t)event);
    if (e == cudaErrorNotReady) cudaGetLastError();
    return e != cudaErrorNotReady;
}

static void destroy_event(ortc_device *d, void *event)
{
    cudaSetDevice(of(d)->ordinal);
    cudaEventDestroy((cudaEvent_t)event);
}

/* ---- Capture ------------------------------------------------------------------------------------------- */

static ortc_status capture_begin(void *queue)
{
    /* Relaxed: other threads of the program may allocate meanwhile; what kernels do here is launches only. */
    return status_of(cudaStreamBeginCapture((cudaStream_t)queue, cudaStreamCaptureModeRelaxed));
}

static ortc_status capture_end(void *queue, void **exec)
{
    cudaGraph_t graph = NULL;
    *exec = NULL;
    cudaError_t e = cudaStreamEndCapture((cudaStream_t)queue, &graph);
    if (e == cudaSuccess) e = cudaGraphInstantiate((cudaGraphExec_t *)exec, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (e != cudaSuccess) cudaGetLastError();
    return status_of(e);
}

static ortc_status replay(void *queue, void *exec)
{
    return status_of(cudaGraphLaunch((cudaGraphExec_t)exec, (cudaStream_t)queue));
}

static void capture_free(ortc_device *d, void *exec)
{
    cudaSetDevice(of(d)->ordinal);
    cudaGraphExecDestroy((cudaGraphExec_t)exec);
}

/* ---- The module ---------------------------------------------------------------------------------------- */

static const ortc_provider provider = {.size = sizeof provider,
                                       .abi = ORTC_ABI,
                                       .name = "cuda",
                                       .flags = ORTC_PROVIDER_ASYNC | ORTC_PROVIDER_CAPTURE,
                                       .devices = devices,
                                       .open = open_device,
                                       .close = close_device,
                                       .slab_alloc = slab_alloc,
                                       .slab_free = slab_free,
                                       .copy = copy,
                                       .queue_create = queue_create,
                                       .queue_destroy = queue_destroy,
                                       .signal = signal_queue,
                                       .wait = wait_event,
                                       .query = query_event,
                                       .event_destroy = destroy_event,
                                       .capture_begin = capture_begin,
                                       .capture_end = capture_end,
                                       .replay = replay,
                                       .capture_free = capture_free};

static ortc_status init(const ortc_host *host)
{
    ortc_status s = ortc_host_add_provider(host, &provider);
    return s == ORTC_OK ? ortc_host_add_family(host, &ortc_family_cuda) : s;
}

ORTC_PLUGIN("cuda", "1.0", init)
