/* A test double of libnvidia-ml.so.1, compiled by the tests and never shipped. It says what it is: its GPU is called
 * "FAKE NVML test device". Faults are chosen by environment variables:
 *   FAKE_NVML_INIT=code          what nvmlInit returns
 *   FAKE_NVML_GPUS=n             number of GPUs (1)
 *   FAKE_NVML_UNSUPPORTED=a,b    questions answered with NOT_SUPPORTED: power, utilisation, clock, ... or "all"
 *   FAKE_NVML_LOST_AFTER=n       GPU_IS_LOST for everything after n power readings ...
 *   FAKE_NVML_LOST_GPU=i         ... of this GPU alone
 *   FAKE_NVML_LINKS=n            number of NVLink links (2)
 *   FAKE_NVML_CRASH_AFTER=n      a segmentation fault after n power readings
 *   FAKE_NVML_SLOW_MS=n          a power reading takes n milliseconds
 *   FAKE_NVML_NO_GPM=1           a GPU before Hopper
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, GPU_IS_LOST = 15 };
typedef int Return;
typedef struct { unsigned index; } *Device;

static unsigned indices[16];
static int power_readings;

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static Return may_answer(Device d, const char *question) {
    const char *unsupported = getenv("FAKE_NVML_UNSUPPORTED");
    unsigned lost = number("FAKE_NVML_LOST_GPU", d->index);
    if (d->index == lost && power_readings > number("FAKE_NVML_LOST_AFTER", 1 << 30)) return GPU_IS_LOST;
    if (unsupported && (!strcmp(unsupported, "all") || strstr(unsupported, question))) return NOT_SUPPORTED;
    return SUCCESS;
}

#define ANSWER(question, statement)              \
    Return code = may_answer(d, question);       \
    if (code == SUCCESS) { statement; }          \
    return code;

Return nvmlInitWithFlags(unsigned flags) { return number("FAKE_NVML_INIT", 0); }
Return nvmlSystemGetDriverVersion(char *text, unsigned length) { snprintf(text, length, "580.00.fake"); return SUCCESS; }
Return nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return SUCCESS; }
Return nvmlDeviceGetCount_v2(unsigned *count) { *count = number("FAKE_NVML_GPUS", 1); return SUCCESS; }

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    if ((int)index >= number("FAKE_NVML_GPUS", 1)) return INVALID_ARGUMENT;
    indices[index] = index;
    *device = (Device)&indices[index];
    return SUCCESS;
}

Return nvmlDeviceGetHandleByUUID(const char *uuid, Device *device) {
    unsigned index;
    if (sscanf(uuid, "GPU-%u-fake", &index) != 1) return NOT_FOUND;
    return nvmlDeviceGetHandleByIndex_v2(index, device) ? NOT_FOUND : SUCCESS;
}

Return nvmlDeviceGetName(Device d, char *text, unsigned length) {
    ANSWER("name", snprintf(text, length, "FAKE NVML test device"))
}
Return nvmlDeviceGetUUID(Device d, char *text, unsigned length) { ANSWER("uuid", snprintf(text, length, "GPU-%u-fake", d->index)) }
Return nvmlDeviceGetCudaComputeCapability(Device d, int *major, int *minor) { ANSWER("capability", *major = 9; *minor = 0) }
Return nvmlDeviceGetMemoryBusWidth(Device d, unsigned *bits) { ANSWER("width", *bits = 6016) }
Return nvmlDeviceGetEnforcedPowerLimit(Device d, unsigned *milliwatts) { ANSWER("limit", *milliwatts = 700000) }
Return nvmlDeviceGetMaxClockInfo(Device d, int which, unsigned *mhz) { ANSWER("maximum", *mhz = which == 2 ? 3201 : 1980) }
Return nvmlDeviceGetClockInfo(Device d, int which, unsigned *mhz) { ANSWER("clock", *mhz = which == 2 ? 3200 : 1755) }
Return nvmlDeviceGetTemperature(Device d, int sensor, unsigned *celsius) { ANSWER("temperature", *celsius = 41) }
Return nvmlDeviceGetCurrentClocksEventReasons(Device d, unsigned long long *mask) { ANSWER("throttle", *mask = 0x4) }

Return nvmlDeviceGetPowerUsage(Device d, unsigned *milliwatts) {
    int slow = number("FAKE_NVML_SLOW_MS", 0);
    struct timespec pause = {slow / 1000, slow % 1000 * 1000000L};
    nanosleep(&pause, NULL);
    if (++power_readings > number("FAKE_NVML_CRASH_AFTER", 1 << 30)) raise(SIGSEGV);
    ANSWER("power", *milliwatts = 123456 + 1000 * d->index)
}

Return nvmlDeviceGetTotalEnergyConsumption(Device d, unsigned long long *millijoules) {
    ANSWER("energy", *millijoules = 1000000000ull + 50000ull * power_readings)
}

typedef struct { unsigned gpu, memory; } Utilisation;
Return nvmlDeviceGetUtilizationRates(Device d, Utilisation *u) { ANSWER("utilisation", u->gpu = 42; u->memory = 7) }

typedef struct { unsigned long long total, available, used; } Memory;
Return nvmlDeviceGetMemoryInfo(Device d, Memory *m) { ANSWER("memory", m->total = 1ull << 37; m->used = 1ull << 30) }

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type;
    Return code;
    unsigned long long value;
} Field;

static void tell(Field *field) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    field->code = SUCCESS;
    switch (field->field) {
        case 91: field->value = number("FAKE_NVML_LINKS", 2); break;
        case 164: field->value = 25000; break; /* MB/s of one link */
        case 138: case 139: field->value = now.tv_sec * 1000000ll + now.tv_nsec / 1000; break; /* one KiB each microsecond */
        default: field->code = NOT_SUPPORTED;
    }
}

Return nvmlDeviceGetFieldValues(Device d, int count, Field *fields) {
    ANSWER("fields", for (int i = 0; i < count; i++) tell(&fields[i]))
}
Return nvmlDeviceGetMaxPcieLinkGeneration(Device d, unsigned *generation) { ANSWER("pcie", *generation = 5) }
Return nvmlDeviceGetMaxPcieLinkWidth(Device d, unsigned *lanes) { ANSWER("pcie", *lanes = 16) }

typedef struct { unsigned version, supported; } Support;
Return nvmlGpmQueryDeviceSupport(Device d, Support *s) { ANSWER("gpm", s->supported = !number("FAKE_NVML_NO_GPM", 0)) }
Return nvmlGpmSampleAlloc(void **sample) { *sample = calloc(1, sizeof(struct timespec)); return SUCCESS; }
Return nvmlGpmSampleGet(Device d, void *sample) { ANSWER("gpm", clock_gettime(CLOCK_MONOTONIC, sample)) }

typedef struct { unsigned id; Return code; double value; char *words[3]; } Metric;
typedef struct { unsigned version, count; struct timespec *older, *newer; Metric metrics[1]; } Request;

Return nvmlGpmMetricsGet(Request *request) {
    double window = request->newer->tv_sec - request->older->tv_sec + 1e-9 * (request->newer->tv_nsec - request->older->tv_nsec);
    /* the real one answers nonsense for a sample that was never taken or a window that is too short */
    if (request->version != 1 || !request->older->tv_sec || window < 0.1) return INVALID_ARGUMENT;
    for (unsigned i = 0; i < request->count; i++) {
        Metric *metric = &request->metrics[i];
        metric->code = metric->id == 12 ? NOT_SUPPORTED : SUCCESS; /* FP32: one metric that this "GPU" lacks */
        metric->value = 10.0 * metric->id;
    }
    return SUCCESS;
}
