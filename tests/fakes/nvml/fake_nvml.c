/* A libnvidia-ml.so.1 for machines without a GPU, so that code using the real
 * nvidia-ml-py binding runs end to end. Every call reads the text file named by
 * FAKE_NVML_FILE anew, so a test changes values, adds GPUs or injects errors by
 * replacing that file: one `KEY VALUE` a line, the first match counts, # begins a comment.
 *
 *   count                          number of GPUs (1)
 *   gpu.N.name .uuid .pci_bus      identity
 *   gpu.N.util .mem_util           per cent
 *   gpu.N.mem_total .mem_used .mem_reserved     bytes
 *   gpu.N.power_mw .power_limit_mw .energy_mj .temp .throttle    absent: not supported
 *   gpu.N.cpus .numa               CPU list and memory node list, such as 0-3,8
 *   gpu.N.proc.K                   pid sm mem enc dec bytes, K from 0
 *   gpu.N.mig_mode, gpu.N.mig.K.mem_total .mem_used .uuid
 *   gpu.N.nvlink.L                 what link L leads to: the index of a GPU, switch, or down; L from 0
 *   topo.A.B                       common ancestor, A < B: 0, 10, 20, 30, 40, 50 (50)
 *   error.nvmlInit, error.FUNCTION, gpu.N.error, gpu.N.error.FUNCTION    fails with this code
 *   delay_ms, gpu.N.delay_ms       calls block so long
 *
 * Codes: 1 uninitialised, 3 not supported, 4 no permission, 6 not found, 9 driver not loaded, 10 timeout,
 * 15 GPU is lost, 16 reset required, 999 unknown.
 *
 * Build: cc -O2 -Wall -shared -fPIC -o DIR/libnvidia-ml.so.1 fake_nvml.c
 * Use:   LD_LIBRARY_PATH=DIR FAKE_NVML_FILE=state.txt python ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef void *dev_t_; /* index * 16 + MIG slot + 0x1000; slot 0 is the GPU itself */
enum { OK = 0, UNINIT = 1, BAD_ARG = 2, NO_SUPPORT = 3, NOT_FOUND = 6, TOO_SMALL = 7, VERSION = 25, MAX_GPU = 64 };
typedef unsigned long long u64;
static int refs;

/* First value of `key` in the state file, or def. Returns 1 when found. */
static int look(const char *key, const char *def, char *out, size_t size) {
    char line[512];
    size_t n = strlen(key);
    const char *path = getenv("FAKE_NVML_FILE");
    FILE *f = path ? fopen(path, "r") : NULL;
    int found = 0;
    snprintf(out, size, "%s", def);
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!strncmp(line, key, n) && (line[n] == ' ' || line[n] == '=')) {
            snprintf(out, size, "%s", line + n + 1);
            found = 1;
        }
    }
    if (f) fclose(f);
    return found;
}
static u64 num(const char *key, u64 def) {
    char v[64];
    return look(key, "", v, sizeof v) && *v ? strtoull(v, NULL, 0) : def;
}
static int gpus(void) { return (int)num("count", 1); }
static int index_of(dev_t_ d) { return (int)(((size_t)d - 0x1000) / 16); }
static int slot_of(dev_t_ d) { return (int)(((size_t)d - 0x1000) % 16); }
static dev_t_ handle(int i, int slot) { return (dev_t_)(size_t)(0x1000 + i * 16 + slot); }
static char *key_for(dev_t_ d, const char *name, char *buf) {
    if (slot_of(d)) sprintf(buf, "gpu.%d.mig.%d.%s", index_of(d), slot_of(d) - 1, name);
    else sprintf(buf, "gpu.%d.%s", index_of(d), name);
    return buf;
}
static int text(dev_t_ d, const char *name, const char *def, char *out, unsigned size) {
    char k[96], v[256];
    look(key_for(d, name, k), def, v, sizeof v);
    if (strlen(v) + 1 > size) return TOO_SMALL;
    strcpy(out, v);
    return OK;
}
static u64 val(dev_t_ d, const char *name, u64 def) { char k[96]; return num(key_for(d, name, k), def); }
static int has(dev_t_ d, const char *name) { char k[96], v[64]; return look(key_for(d, name, k), "", v, sizeof v); }

/* Injected delay, then injected error, then the checks the real library makes. */
static int enter(const char *fn, dev_t_ d, int with_dev) {
    char k[160];
    u64 e, ms = num("delay_ms", 0);
    if (with_dev) ms += val(d, "delay_ms", 0);
    if (ms) usleep(ms * 1000);
    snprintf(k, sizeof k, "error.%s", fn);
    if ((e = num(k, num("error", 0)))) return (int)e;
    if (!refs) return UNINIT;
    if (!with_dev) return OK;
    if ((size_t)d < 0x1000 || index_of(d) >= gpus()) return BAD_ARG;
    if ((e = val(handle(index_of(d), 0), "error", 0))) return (int)e; /* e.g. 15, GPU is lost */
    snprintf(k, sizeof k, "error.%s", fn);
    return (int)val(d, k, 0);
}
#define ENTER() do { int r_ = enter(__func__, 0, 0); if (r_) return r_; } while (0)
#define ENTER_DEV(d) do { int r_ = enter(__func__, d, 1); if (r_) return r_; } while (0)
#define API __attribute__((visibility("default")))

API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int e = (int)num("error.nvmlInit", 0);
    if (!e) refs++;
    return e;
}
API int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API int nvmlShutdown(void) { if (!refs) return UNINIT; refs--; return OK; }
API const char *nvmlErrorString(int r) {
    static const char *const s[] = {"Success", "Uninitialized", "Invalid Argument", "Not Supported",
        "Insufficient Permissions", "Already Initialized", "Not Found", "Insufficient Size",
        "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
        "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires restart"};
    return r >= 0 && r < (int)(sizeof s / sizeof *s) ? s[r] : "Unknown Error";
}
API int nvmlSystemGetDriverVersion(char *v, unsigned n) { ENTER(); look("driver", "000.00.fake", v, n); return OK; }
API int nvmlSystemGetNVMLVersion(char *v, unsigned n) { ENTER(); look("nvml", "00.fake", v, n); return OK; }
API int nvmlDeviceGetCount_v2(unsigned *n) { ENTER(); *n = gpus(); return OK; }
API int nvmlDeviceGetHandleByIndex_v2(unsigned i, dev_t_ *d) {
    ENTER();
    if ((int)i >= gpus() || i >= MAX_GPU) return BAD_ARG;
    *d = handle(i, 0);
    return enter(__func__, *d, 1);
}
static int by_text(const char *name, const char *want, dev_t_ *d);
API int nvmlDeviceGetName(dev_t_ d, char *s, unsigned n) { ENTER_DEV(d); return text(d, "name", "Fake GPU", s, n); }
API int nvmlDeviceGetUUID(dev_t_ d, char *s, unsigned n) {
    char def[64];
    ENTER_DEV(d);
    sprintf(def, "%s-00000000-0000-0000-%04d-%012d", slot_of(d) ? "MIG" : "GPU", slot_of(d), index_of(d));
    return text(d, "uuid", def, s, n);
}
API int nvmlDeviceGetHandleByUUID(const char *u, dev_t_ *d) { ENTER(); return by_text("uuid", u, d); }
API int nvmlDeviceGetIndex(dev_t_ d, unsigned *i) { ENTER_DEV(d); *i = slot_of(d) ? slot_of(d) - 1 : index_of(d); return OK; }
API int nvmlDeviceGetMinorNumber(dev_t_ d, unsigned *i) { ENTER_DEV(d); *i = index_of(d); return OK; }

struct util { unsigned gpu, mem; };
API int nvmlDeviceGetUtilizationRates(dev_t_ d, struct util *u) {
    ENTER_DEV(d);
    if (slot_of(d) || val(d, "mig_mode", 0)) return NO_SUPPORT; /* as on a real MIG GPU */
    u->gpu = (unsigned)val(d, "util", 0), u->mem = (unsigned)val(d, "mem_util", 0);
    return OK;
}
static void memory(dev_t_ d, u64 *total, u64 *reserved, u64 *used) {
    *total = val(d, "mem_total", 80ULL << 30), *used = val(d, "mem_used", 0), *reserved = val(d, "mem_reserved", 0);
}
struct mem1 { u64 total, free, used; };
struct mem2 { unsigned version; u64 total, reserved, free, used; };
API int nvmlDeviceGetMemoryInfo(dev_t_ d, struct mem1 *m) { /* v1 counts reserved memory as used */
    u64 r;
    ENTER_DEV(d);
    memory(d, &m->total, &r, &m->used);
    m->used += r, m->free = m->total - m->used;
    return OK;
}
API int nvmlDeviceGetMemoryInfo_v2(dev_t_ d, struct mem2 *m) {
    ENTER_DEV(d);
    if (m->version != (sizeof *m | 2U << 24)) return VERSION;
    memory(d, &m->total, &m->reserved, &m->used);
    m->free = m->total - m->used - m->reserved;
    return OK;
}
/* "proc.N pid sm mem enc dec bytes", N from 0; newer than `since` by the file's mtime, in us. */
struct sample { unsigned pid; u64 ts; unsigned sm, mem, enc, dec; };
struct proc { unsigned pid; u64 used; unsigned gi, ci; };
static int proc_at(dev_t_ d, int i, struct sample *s, u64 *bytes) {
    char k[96], name[24], v[128];
    struct stat st;
    const char *path = getenv("FAKE_NVML_FILE");
    sprintf(name, "proc.%d", i);
    *bytes = 0;
    if (!look(key_for(d, name, k), "", v, sizeof v)) return 0;
    s->sm = s->mem = s->enc = s->dec = 0;
    s->ts = path && !stat(path, &st) ? (u64)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000 : 0;
    return sscanf(v, "%u %u %u %u %u %llu", &s->pid, &s->sm, &s->mem, &s->enc, &s->dec, bytes) >= 1;
}
API int nvmlDeviceGetProcessUtilization(dev_t_ d, struct sample *out, unsigned *n, u64 since) {
    struct sample s;
    u64 bytes;
    unsigned room = *n, got = 0;
    ENTER_DEV(d);
    if (slot_of(d) || val(d, "mig_mode", 0)) return NO_SUPPORT;
    if (!out) { *n = 100; return TOO_SMALL; } /* the real library names its buffer size */
    for (int i = 0; proc_at(d, i, &s, &bytes); i++)
        if (s.ts > since) { if (got == room) return TOO_SMALL; out[got++] = s; }
    *n = got;
    return got ? OK : NOT_FOUND;
}
API int nvmlDeviceGetComputeRunningProcesses_v3(dev_t_ d, unsigned *n, struct proc *out) {
    struct sample s;
    u64 bytes;
    unsigned room = *n, got = 0;
    ENTER_DEV(d);
    for (int i = 0; proc_at(d, i, &s, &bytes); i++, got++)
        if (out && got < room) out[got] = (struct proc){s.pid, bytes, ~0U, ~0U};
    *n = got;
    return got > (out ? room : 0) ? TOO_SMALL : OK;
}
/* A value that is absent is "not supported", as on cards lacking the sensor. */
#define SENSOR(fn, type, name) API int fn(dev_t_ d, type *v) { \
    ENTER_DEV(d); if (!has(d, name)) return NO_SUPPORT; *v = (type)val(d, name, 0); return OK; }
SENSOR(nvmlDeviceGetPowerUsage, unsigned, "power_mw")
SENSOR(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit_mw")
SENSOR(nvmlDeviceGetTotalEnergyConsumption, u64, "energy_mj")
SENSOR(nvmlDeviceGetNumaNodeId, unsigned, "numa")
SENSOR(nvmlDeviceGetCurrentClocksThrottleReasons, u64, "throttle")
API int nvmlDeviceGetTemperature(dev_t_ d, int sensor, unsigned *t) {
    ENTER_DEV(d);
    if (sensor) return BAD_ARG;
    if (!has(d, "temp")) return NO_SUPPORT;
    *t = (unsigned)val(d, "temp", 0);
    return OK;
}
struct temp1 { unsigned version, sensor; int temp; };
API int nvmlDeviceGetTemperatureV(dev_t_ d, struct temp1 *t) {
    unsigned v;
    ENTER_DEV(d);
    if (t->version != (sizeof *t | 1U << 24)) return VERSION;
    int r = nvmlDeviceGetTemperature(d, (int)t->sensor, &v);
    if (!r) t->temp = (int)v;
    return r;
}
API int nvmlDeviceGetMigMode(dev_t_ d, unsigned *cur, unsigned *pending) {
    ENTER_DEV(d);
    if (!has(d, "mig_mode")) return NO_SUPPORT; /* the card has no MIG */
    *cur = *pending = (unsigned)val(d, "mig_mode", 0);
    return OK;
}
API int nvmlDeviceGetMaxMigDeviceCount(dev_t_ d, unsigned *n) { ENTER_DEV(d); *n = has(d, "mig_mode") ? 7 : 0; return OK; }
API int nvmlDeviceGetMigDeviceHandleByIndex(dev_t_ d, unsigned i, dev_t_ *m) {
    ENTER_DEV(d);
    if (slot_of(d) || i >= 7) return BAD_ARG;
    *m = handle(index_of(d), (int)i + 1);
    return val(d, "mig_mode", 0) && has(*m, "mem_total") ? OK : NOT_FOUND;
}
API int nvmlDeviceIsMigDeviceHandle(dev_t_ d, unsigned *yes) { ENTER_DEV(d); *yes = slot_of(d) > 0; return OK; }
API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(dev_t_ m, dev_t_ *d) {
    ENTER_DEV(m);
    *d = handle(index_of(m), 0);
    return slot_of(m) ? OK : BAD_ARG;
}
/* "0-3,8" as a bit mask of `words` longs */
static int mask(dev_t_ d, const char *name, unsigned words, unsigned long *m) {
    char v[256], *p = v;
    memset(m, 0, words * sizeof *m);
    if (!has(d, name)) return NO_SUPPORT;
    text(d, name, "", v, sizeof v);
    while (*p) {
        unsigned long a = strtoul(p, &p, 10), b = a;
        if (*p == '-') b = strtoul(p + 1, &p, 10);
        for (; a <= b && a / 64 < words; a++) m[a / 64] |= 1UL << a % 64;
        if (*p) p++;
    }
    return OK;
}
API int nvmlDeviceGetCpuAffinity(dev_t_ d, unsigned n, unsigned long *m) { ENTER_DEV(d); return mask(d, "cpus", n, m); }
API int nvmlDeviceGetCpuAffinityWithinScope(dev_t_ d, unsigned n, unsigned long *m, unsigned s) { (void)s; ENTER_DEV(d); return mask(d, "cpus", n, m); }
API int nvmlDeviceGetMemoryAffinity(dev_t_ d, unsigned n, unsigned long *m, unsigned s) { (void)s; ENTER_DEV(d); return mask(d, "numa", n, m); }
/* "topo.A.B LEVEL", A < B: 0 internal, 10 single, 20 multiple, 30 host bridge, 40 node, 50 system */
API int nvmlDeviceGetTopologyCommonAncestor(dev_t_ a, dev_t_ b, unsigned *level) {
    char k[64];
    ENTER_DEV(a);
    ENTER_DEV(b);
    int x = index_of(a), y = index_of(b);
    sprintf(k, "topo.%d.%d", x < y ? x : y, x < y ? y : x);
    *level = x == y ? 0 : (unsigned)num(k, 50);
    return OK;
}
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
static void bus_name(dev_t_ d, char *s) { sprintf(s, "00000000:%02X:00.0", (unsigned)val(handle(index_of(d), 0), "pci_bus", index_of(d) + 1)); }
API int nvmlDeviceGetPciInfo_v3(dev_t_ d, struct pci *p) {
    char b[32];
    ENTER_DEV(d);
    memset(p, 0, sizeof *p);
    bus_name(d, b);
    p->bus = (unsigned)strtoul(b + 9, NULL, 16), p->id = (unsigned)val(d, "pci_id", 0x20B010DE);
    strcpy(p->bus_id, b), strcpy(p->legacy, b + 4);
    return OK;
}
static int by_text(const char *name, const char *want, dev_t_ *d) {
    char s[128];
    for (int i = 0; i < gpus(); i++)
        for (int slot = 0; slot <= 7; slot++) {
            *d = handle(i, slot);
            if (slot && !(val(handle(i, 0), "mig_mode", 0) && has(*d, "mem_total"))) continue;
            if (!strcmp(name, "uuid") ? nvmlDeviceGetUUID(*d, s, sizeof s) == OK : (bus_name(*d, s), !slot))
                if (!strcasecmp(s, want)) return OK;
        }
    return NOT_FOUND;
}
API int nvmlDeviceGetHandleByPciBusId_v2(const char *b, dev_t_ *d) { ENTER(); return by_text("bus", b, d); }
/* What link `link` of a GPU leads to; returns 0 and fills `to`, or an error as the library gives it. */
static int nvlink(dev_t_ d, unsigned link, char *to, unsigned size) {
    char name[24];
    sprintf(name, "nvlink.%u", link);
    if (link > 17) return BAD_ARG;
    return has(d, name) ? text(d, name, "", to, size) : NO_SUPPORT;
}
API int nvmlDeviceGetNvLinkState(dev_t_ d, unsigned link, unsigned *active) {
    char to[32];
    ENTER_DEV(d);
    int r = nvlink(d, link, to, sizeof to);
    *active = !r && strcmp(to, "down") != 0;
    return r;
}
API int nvmlDeviceGetNvLinkRemoteDeviceType(dev_t_ d, unsigned link, unsigned *type) {
    char to[32];
    ENTER_DEV(d);
    int r = nvlink(d, link, to, sizeof to);
    *type = !strcmp(to, "switch") ? 2 : 0;
    return r;
}
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(dev_t_ d, unsigned link, struct pci *p) {
    char to[32];
    ENTER_DEV(d);
    int r = nvlink(d, link, to, sizeof to);
    if (r) return r;
    memset(p, 0, sizeof *p);
    if (strcmp(to, "switch")) bus_name(handle(atoi(to), 0), p->bus_id);
    else strcpy(p->bus_id, "00000000:C0:00.0");
    return OK;
}
