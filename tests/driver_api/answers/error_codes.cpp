// SPDX-License-Identifier: Apache-2.0
// Wrong calls, and right ones between them, with the codes that an H200's driver gave them:
//   PROGRAM LIBCUDA ERROR_CODES.tsv DIFFERENCES.tsv
// A line of either file: group, description, call, code, ...; the same words may come again, and are asked in their order. A
// difference has our code and why as its last columns. What crashed the driver ("-") may give any status here.
// Not asked, by group: module images that are machine code (files of the recording that are not here).
#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <deque>
#include <sys/mman.h>
#include <vector>

using namespace answers;

namespace {

struct Recorded {
    std::string call, code;
};
std::map<std::string, std::deque<Recorded>> recorded;
std::map<std::string, std::deque<std::string>> differences; ///< our codes
int wrong = 0, asked = 0, differing = 0;

std::vector<std::string> columns(const std::string& line) {
    std::vector<std::string> result(1);
    for (char c : line) {
        if (c == '\t')
            result.emplace_back();
        else
            result.back() += c;
    }
    return result;
}

std::ifstream open_file(const char* name) {
    std::ifstream file(name);
    if (!file) std::fprintf(stderr, "cannot read %s\n", name), std::_Exit(2);
    return file;
}

void read(const char* codes, const char* ours) {
    std::string line;
    for (std::ifstream file = open_file(codes); std::getline(file, line);)
        if (const auto c = columns(line); c.size() >= 4 && c[0] != "group") recorded[c[0] + ": " + c[1]].push_back({c[2], c[3]});
    for (std::ifstream file = open_file(ours); std::getline(file, line);)
        if (const auto c = columns(line); c.size() >= 4 && c[0][0] != '#') differences[c[0] + ": " + c[1]].push_back(c[2]);
}

const char* group = "";

/// `code` was given to what the recording calls so.
void ask(const char* description, long long code) {
    const std::string question = std::string(group) + ": " + description;
    auto& rows = recorded[question];
    ++asked;
    if (rows.empty()) {
        std::fprintf(stderr, "%s: not in the recording\n", question.c_str());
        ++wrong;
        return;
    }
    const Recorded row = rows.front();
    rows.pop_front();
    std::string expected = row.code;
    if (auto& other = differences[question]; !other.empty() && row.code != "-") {
        expected = other.front();
        other.pop_front();
        ++differing;
    }
    if (expected == "-" || expected == std::to_string(code)) return;
    std::fprintf(stderr, "%s: %s: %lld, expected %s (recorded %s)\n", question.c_str(), row.call.c_str(), code, expected.c_str(), row.code.c_str());
    ++wrong;
}

constexpr int missing = 801; ///< of entries that are to come: what depends on them is not asked

using U64 = std::uint64_t;
using Size = std::size_t;
constexpr void* none = nullptr;

const char* const kernels = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 g_var;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k_empty() { ret; }
.visible .entry k_vadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) { ret; }
.visible .entry k_dynsm(.param .u64 p)
{ ret; }
.visible .entry k_statsm(.param .u64 p)
{ .shared .align 4 .b8 s[32768]; .reg .b32 r, t; mov.u32 r, s; mov.u32 t, dynamic; st.shared.u32 [r], r; st.shared.u32 [r+32764], t; ret; }
.visible .entry k_lb128(.param .u64 p) .maxntid 128, 1, 1 { ret; }
.visible .entry k_cl2(.param .u64 p) .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }
.visible .entry k_spin(.param .u64 p)
{ .reg .b64 a; .reg .b32 v; .reg .pred q; ld.param.u64 a, [p]; again: ld.volatile.global.u32 v, [a]; setp.eq.u32 q, v, 0; @q bra again; ret; }
.visible .entry k_store(.param .u64 p)
{ .reg .b64 a; .reg .b32 v; ld.param.u64 a, [p]; mov.u32 v, 1; st.global.u32 [a], v; ret; }
)";

void before_initialisation() {
    int x = 0;
    CUdevice d = 0;
    CUcontext cx = nullptr;
    CUdeviceptr p = 0;
    CUmodule m = nullptr;
    CUstream s = nullptr;
    void *t = nullptr, *h = nullptr;
    group = "before cuInit";
    ask("version", call("cuDriverGetVersion", &x));
    ask("devcount", call("cuDeviceGetCount", &x));
    ask("devget", call("cuDeviceGet", &d, 0));
    ask("getcurrent", call("cuCtxGetCurrent", &cx));
    ask("alloc", call("cuMemAlloc_v2", &p, Size{16}));
    ask("modload", call("cuModuleLoadData", &m, "x"));
    ask("stream", call("cuStreamCreate", &s, 0u));
    ask("getproc", call("cuGetProcAddress_v2", "cuMemAlloc", &t, 12000, U64{0}, none));
    ask("hostalloc", call("cuMemHostAlloc", &h, Size{16}, 0u));
    ask("init flags=1", call("cuInit", 1u));
    ask("init flags=0", call("cuInit", 0u));
    ask("init twice", call("cuInit", 0u));
}

void without_context() {
    int x = 0, d = 0;
    CUcontext cx = nullptr;
    CUdeviceptr p = 0;
    Size sz = 0;
    CUmodule m = nullptr;
    CUstream s = nullptr;
    CUevent e = nullptr;
    CUlibrary l = nullptr;
    CUkernel k = nullptr;
    CUfunction f = nullptr;
    void* h = nullptr;
    group = "no current context";
    ask("getcurrent", call("cuCtxGetCurrent", &cx));
    ask("getdevice", call("cuCtxGetDevice", &d));
    ask("alloc", call("cuMemAlloc_v2", &p, Size{16}));
    ask("free 0", call("cuMemFree_v2", U64{0}));
    ask("sync", call("cuCtxSynchronize"));
    ask("meminfo", call("cuMemGetInfo_v2", &sz, &sz));
    ask("stream", call("cuStreamCreate", &s, 0u));
    ask("event", call("cuEventCreate", &e, 0u));
    ask("modload", call("cuModuleLoadData", &m, kernels));
    ask("libload (context-free)", call("cuLibraryLoadData", &l, kernels, none, none, 0u, none, none, 0u));
    ask("libgetkernel", call("cuLibraryGetKernel", &k, l, "k_empty"));
    ask("kernelgetfunction", call("cuKernelGetFunction", &f, k));
    ask("kernelgetattr", call("cuKernelGetAttribute", &x, 4, k, 0));
    ask("launch CUkernel", call("cuLaunchKernel", k, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none, none, none));
    ask("libgetglobal", call("cuLibraryGetGlobal", &p, &sz, l, "g_var"));
    ask("libgetmodule", call("cuLibraryGetModule", &m, l));
    ask("hostalloc", call("cuMemHostAlloc", &h, Size{16}, 0u));
    ask("managed", call("cuMemAllocManaged", &p, Size{16}, 1u));
    ask("ptrattr", call("cuPointerGetAttribute", &x, 2, &x));
    ask("limit", call("cuCtxGetLimit", &sz, 0));
    ask("popcurrent", call("cuCtxPopCurrent_v2", &cx));
    ask("destroy null", call("cuCtxDestroy_v2", none));
    ask("primary release without retain", call("cuDevicePrimaryCtxRelease_v2", 0));
    ask("setcurrent null", call("cuCtxSetCurrent", none));
    ask("memcpy size0", call("cuMemcpyHtoD_v2", U64{0}, none, Size{0}));
    ask("streamsync 0", call("cuStreamSynchronize", none));
    ask("streamquery 0", call("cuStreamQuery", none));
    ask("defpool", call("cuDeviceGetDefaultMemPool", &h, 0));
    ask("primary retain", call("cuDevicePrimaryCtxRetain", &cx, 0));
    ask("alloc with retained but not current", call("cuMemAlloc_v2", &p, Size{16}));
    ask("setcurrent", call("cuCtxSetCurrent", cx));
    ask("alloc", call("cuMemAlloc_v2", &p, Size{16}));
    ask("primary release", call("cuDevicePrimaryCtxRelease_v2", 0));
    ask("alloc after full release, still current", call("cuMemAlloc_v2", &p, Size{16}));
    ask("getcurrent after release", call("cuCtxGetCurrent", &cx));
    ask("current is null?", cx == nullptr);
    ask("ctxsync after release", call("cuCtxSynchronize"));
    ask("primary retain again", call("cuDevicePrimaryCtxRetain", &cx, 0));
    ask("alloc after re-retain (no new setcurrent)", call("cuMemAlloc_v2", &p, Size{16}));
}

void devices() {
    int x = 0;
    Size sz = 0;
    char b[64] = {};
    CUcontext cx = nullptr, current = nullptr;
    group = "device";
    ask("ordinal 1", call("cuDeviceGet", &x, 1));
    ask("ordinal -1", call("cuDeviceGet", &x, -1));
    ask("null", call("cuDeviceGet", none, 0));
    ask("count null", call("cuDeviceGetCount", none));
    ask("name len 4", call("cuDeviceGetName", b, 4, 0));
    ask("name dev 7", call("cuDeviceGetName", b, 64, 7));
    ask("attr 0", call("cuDeviceGetAttribute", &x, 0, 0));
    ask("attr 9999", call("cuDeviceGetAttribute", &x, 9999, 0));
    ask("attr null", call("cuDeviceGetAttribute", none, 10, 0));
    ask("attr dev 7", call("cuDeviceGetAttribute", &x, 10, 7));
    ask("totalmem dev 7", call("cuDeviceTotalMem_v2", &sz, 7));
    ask("totalmem null", call("cuDeviceTotalMem_v2", none, 0));
    ask("uuid null", call("cuDeviceGetUuid_v2", none, 0));
    ask("pci len 5", call("cuDeviceGetPCIBusId", b, 5, 0));
    ask("bypci garbage", call("cuDeviceGetByPCIBusId", &x, "zz"));
    ask("bypci absent", call("cuDeviceGetByPCIBusId", &x, "ffff:ff:1f.0"));
    ask("retain dev 7", call("cuDevicePrimaryCtxRetain", &cx, 7));
    ask("setflags invalid 0xff00", call("cuDevicePrimaryCtxSetFlags_v2", 0, 0xff00u));
    ask("setflags while active same", call("cuDevicePrimaryCtxSetFlags_v2", 0, 0u));
    ask("setflags while active blocking", call("cuDevicePrimaryCtxSetFlags_v2", 0, 4u));
    ask("canaccesspeer self", call("cuDeviceCanAccessPeer", &x, 0, 0));
    must("cuCtxGetCurrent", &current);
    ask("enable peer self", call("cuCtxEnablePeerAccess", current, 0u));
    ask("disable peer not enabled", call("cuCtxDisablePeerAccess", current));
    ask("limit id 99", call("cuCtxGetLimit", &sz, 99));
    ask("setcacheconfig 99", call("cuCtxSetCacheConfig", 99));
    ask("init flag", call("cuInit", 5u));
    ask("ctxdestroy null", call("cuCtxDestroy_v2", none));
    ask("getdevice null", call("cuCtxGetDevice", none));
    ask("getdevicename NULL", call("cuDeviceGetName", none, 10, 0));
    ask("name len 0", call("cuDeviceGetName", b, 0, 0));
}

void entries() {
    void* t = nullptr;
    const void* tb = nullptr;
    const char* es = nullptr;
    int status = 0;
    const auto find = [&](const char* name, int version, U64 flags = 0) { return call("cuGetProcAddress_v2", name, &t, version, flags, &status); };
    group = "entry";
    ask("unknown symbol", find("cuNope", 12000));
    ask("unknown symbol status NULL", call("cuGetProcAddress_v2", "cuNope", &t, 12000, U64{0}, none));
    ask("version too low", find("cuLibraryLoadData", 11000));
    ask("empty name version 0", find("", 0));
    ask("version 99000 status", find("cuInit", 99000));
    ask("cuInit version 0", find("cuInit", 0));
    ask("cuInit version 1000", find("cuInit", 1000));
    ask("cuInit version 1999", find("cuInit", 1999));
    ask("cuInit version 2000", find("cuInit", 2000));
    ask("cuInit version 13000", find("cuInit", 13000));
    ask("cuInit version 13010", find("cuInit", 13010));
    ask("cuInit version 13099", find("cuInit", 13099));
    ask("cuInit version 13100", find("cuInit", 13100));
    ask("cuInit version 14000", find("cuInit", 14000));
    ask("ptds flag on non-stream fn", find("cuInit", 12000, 2));
    ask("symbol with _ptsz suffix", find("cuLaunchKernel_ptsz", 12000));
    ask("flags 3", call("cuGetProcAddress_v2", "cuMemcpy", &t, 12000, U64{3}, none));
    ask("flags 99", call("cuGetProcAddress_v2", "cuMemcpy", &t, 12000, U64{99}, none));
    ask("version 99000", call("cuGetProcAddress_v2", "cuInit", &t, 99000, U64{0}, none));
    ask("suffixed name cuMemAlloc_v2", find("cuMemAlloc_v2", 12000));
    const unsigned char bogus[16] = {1, 2, 3};
    ask("unknown export table", call("cuGetExportTable", &tb, bogus));
    ask("export null", call("cuGetExportTable", none, bogus));
    ask("export null uuid", call("cuGetExportTable", &tb, none));
    ask("errname 12345", call("cuGetErrorName", 12345, &es));
    ask("null symbol", call("cuGetProcAddress_v2", none, &t, 12000, U64{0}, none));
    ask("null pfn", call("cuGetProcAddress_v2", "cuInit", none, 12000, U64{0}, none));
    ask("errname null out", call("cuGetErrorName", 0, none));
}

/// The four ways to load an image, as the recording asked them.
void load(const char* name, const char* image, const char* kernel) {
    CUmodule m = nullptr;
    CUlibrary l = nullptr;
    CUkernel k = nullptr;
    ask(name, call("cuModuleLoadData", &m, image));
    const int loaded = call("cuLibraryLoadData", &l, image, none, none, 0u, none, none, 0u);
    ask(name, loaded);
    ask(name, loaded ? loaded : call("cuLibraryGetKernel", &k, l, kernel));
    ask(name, call("cuModuleLoadFatBinary", &m, image));
}

CUmodule module_of_all = nullptr;
CUfunction function(const char* name) {
    CUfunction f = nullptr;
    must("cuModuleGetFunction", &f, module_of_all, name);
    return f;
}

void modules() {
    CUmodule m2 = nullptr;
    CUlibrary L = nullptr;
    CUkernel k = nullptr;
    CUfunction f = nullptr;
    CUdeviceptr p = 0;
    Size sz = 0;
    group = "module";
    ask("null image", call("cuModuleLoadData", &m2, none));
    ask("null module ptr", call("cuModuleLoadData", none, "x"));
    ask("empty string", call("cuModuleLoadData", &m2, ""));
    ask("text garbage", call("cuModuleLoadData", &m2, ".version 8.0 hello"));
    load("ptx/ok75.ptx", ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n", "k");
    load("ptx/newisa.ptx", ".version 99.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n", "k");
    load("ptx/sm_200.ptx", ".version 8.0\n.target sm_200\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n", "k");
    load("ptx/syntax.ptx", ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n add.s32 x y;\n}\n", "k");
    load("ptx/unresolved.ptx", ".version 8.0\n.target sm_75\n.address_size 64\n.extern .func missing();\n.visible .entry k()\n{\n call missing, ();\n ret;\n}\n", "k");
    load("ptx/noversion.ptx", ".target sm_75\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n", "k");
    load("ptx/sm90a.ptx", ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n", "k");
    load("ptx/noentry.ptx", ".version 8.0\n.target sm_75\n.address_size 64\n.func f()\n{\n ret;\n}\n", "k");
    load("k100.ptx", ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n", "k");
    ask("file missing", call("cuModuleLoad", &m2, "/nonexistent.cubin"));
    ask("libfile missing", call("cuLibraryLoadFromFile", &L, "/nonexistent.cubin", none, none, 0u, none, none, 0u));
    must("cuModuleLoadData", &module_of_all, kernels);
    ask("getfunction missing", call("cuModuleGetFunction", &f, module_of_all, "nope"));
    ask("getfunction null name", call("cuModuleGetFunction", &f, module_of_all, none));
    ask("getfunction empty name", call("cuModuleGetFunction", &f, module_of_all, ""));
    ask("getfunction null module", call("cuModuleGetFunction", &f, none, "k_empty"));
    ask("getglobal missing", call("cuModuleGetGlobal_v2", &p, &sz, module_of_all, "nope"));
    ask("getglobal both null", call("cuModuleGetGlobal_v2", none, none, module_of_all, "g_var"));
    ask("getglobal ok", call("cuModuleGetGlobal_v2", &p, &sz, module_of_all, "g_var"));
    ask("unload null", call("cuModuleUnload", none));
    ask("lib load", call("cuLibraryLoadData", &L, kernels, none, none, 0u, none, none, 0u));
    ask("lib kernel missing", call("cuLibraryGetKernel", &k, L, "nope"));
    ask("lib global missing", call("cuLibraryGetGlobal", &p, &sz, L, "nope"));
    ask("lib managed on non-managed", call("cuLibraryGetManaged", &p, &sz, L, "g_var"));
    ask("lib unload null", call("cuLibraryUnload", none));
    unsigned option = 999;
    void* value = nullptr;
    ask("jit option 999", call("cuLibraryLoadData", &L, kernels, &option, &value, 1u, none, none, 0u));
    ask("mod jit option 999", call("cuModuleLoadDataEx", &m2, kernels, 1u, &option, &value));
    option = 7; // CU_JIT_OPTIMIZATION_LEVEL
    value = reinterpret_cast<void*>(9);
    ask("opt level 9", call("cuModuleLoadDataEx", &m2, kernels, 1u, &option, &value));
}

int launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared = 0, void* parameters = nullptr, void* extra = nullptr, CUstream s = nullptr) {
    return call("cuLaunchKernel", f, gx, gy, gz, bx, by, bz, shared, s, parameters, extra);
}

/// One attribute of two numbers.
int launch_with(CUfunction f, unsigned grid, unsigned block, unsigned id, unsigned a, unsigned b, void* parameters = nullptr) {
    CUlaunchAttribute attribute;
    std::memset(&attribute, 0, sizeof attribute);
    attribute.id = id;
    const unsigned values[3] = {a, b, 1};
    std::memcpy(&attribute.value, values, sizeof values);
    CUlaunchConfig config;
    std::memset(&config, 0, sizeof config);
    config.gridDimX = grid, config.gridDimY = config.gridDimZ = 1, config.blockDimX = block, config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return call("cuLaunchKernelEx", &config, f, parameters, none);
}

void launches() {
    int x = 0;
    CUdeviceptr memory = 0;
    must("cuMemAlloc_v2", &memory, Size{4096});
    void* a1[1] = {&memory};
    const CUfunction ke = function("k_empty"), kd = function("k_dynsm"), ks = function("k_statsm"), cluster = function("k_cl2");
    constexpr unsigned dimension = 4, cooperative = 2;
    constexpr int largest_shared = 8, registers = 4, carveout = 9, non_portable = 14;
    group = "launch";
    ask("block 1025", launch(ke, 1, 1, 1, 1025, 1, 1));
    ask("block 0", launch(ke, 1, 1, 1, 0, 1, 1));
    ask("grid 0", launch(ke, 0, 1, 1, 1, 1, 1));
    ask("gridY 65536", launch(ke, 1, 65536, 1, 1, 1, 1));
    ask("gridZ 65536", launch(ke, 1, 1, 65536, 1, 1, 1));
    ask("gridX 2^31", launch(ke, 1u << 31, 1, 1, 1, 1, 1));
    ask("blockY 1025", launch(ke, 1, 1, 1, 1, 1025, 1));
    ask("blockZ 65", launch(ke, 1, 1, 1, 1, 1, 65));
    ask("block 64x64", launch(ke, 1, 1, 1, 64, 64, 1));
    ask("null function", launch(nullptr, 1, 1, 1, 1, 1, 1));
    ask("dyn smem 49152", launch(kd, 1, 1, 1, 32, 1, 1, 49152, a1));
    ask("dyn smem 49153", launch(kd, 1, 1, 1, 32, 1, 1, 49153, a1));
    ask("dyn smem 300000", launch(kd, 1, 1, 1, 32, 1, 1, 300000, a1));
    ask("static32K+dyn 20000", launch(ks, 1, 1, 1, 32, 1, 1, 20000, a1));
    ask("set max dyn 232449", call("cuFuncSetAttribute", kd, largest_shared, 232449));
    ask("set max dyn -1", call("cuFuncSetAttribute", kd, largest_shared, -1));
    ask("set max dyn 232448", call("cuFuncSetAttribute", kd, largest_shared, 232448));
    ask("launch dyn 232448", launch(kd, 1, 1, 1, 32, 1, 1, 232448, a1));
    ask("launch dyn 232449", launch(kd, 1, 1, 1, 32, 1, 1, 232449, a1));
    ask("static: set max dyn 232448", call("cuFuncSetAttribute", ks, largest_shared, 232448));
    ask("static: set max dyn 232448-32768", call("cuFuncSetAttribute", ks, largest_shared, 232448 - 32768));
    ask("set readonly attr NUM_REGS", call("cuFuncSetAttribute", ke, registers, 10));
    ask("set attr 99", call("cuFuncSetAttribute", ke, 99, 10));
    ask("set carveout 101", call("cuFuncSetAttribute", ke, carveout, 101));
    ask("get attr 99", call("cuFuncGetAttribute", &x, 99, ke));
    ask("get attr null fn", call("cuFuncGetAttribute", &x, registers, none));
    ask("launch_bounds 128 with 129 threads", launch(function("k_lb128"), 1, 1, 1, 129, 1, 1, 0, a1));
    Size size = 8;
    void* ex[] = {reinterpret_cast<void*>(1), &memory, reinterpret_cast<void*>(2), &size, nullptr};
    void* exb[] = {reinterpret_cast<void*>(99), &memory, nullptr};
    Size four = 4;
    void* ex4[] = {reinterpret_cast<void*>(1), &memory, reinterpret_cast<void*>(2), &four, nullptr};
    ask("extra ok", launch(kd, 1, 1, 1, 32, 1, 1, 1024, nullptr, ex));
    ask("both params and extra", launch(kd, 1, 1, 1, 32, 1, 1, 1024, a1, ex));
    ask("extra bad token", launch(kd, 1, 1, 1, 32, 1, 1, 1024, nullptr, exb));
    ask("extra size 4 of 8", launch(kd, 1, 1, 1, 32, 1, 1, 1024, nullptr, ex4));
    ask("cluster 4 grid 8", launch_with(kd, 8, 32, dimension, 4, 1, a1));
    ask("cluster 3 grid 8", launch_with(kd, 8, 32, dimension, 3, 1, a1));
    ask("cluster 3 grid 9", launch_with(kd, 9, 32, dimension, 3, 1, a1));
    ask("cluster 0", launch_with(kd, 8, 32, dimension, 0, 1, a1));
    ask("cluster 16 grid 16 (not allowed)", launch_with(kd, 16, 32, dimension, 16, 1, a1));
    ask("cluster 8x2 on grid y=1", launch_with(kd, 16, 32, dimension, 8, 2, a1));
    ask("nonportable on", call("cuFuncSetAttribute", kd, non_portable, 1));
    ask("cluster 16 grid 16 (allowed)", launch_with(kd, 16, 32, dimension, 16, 1, a1));
    ask("cluster 32", launch_with(kd, 32, 32, dimension, 32, 1, a1));
    ask("compile-time cluster 2 kernel: grid 4", launch(cluster, 4, 1, 1, 32, 1, 1, 0, a1));
    ask("compile-time cluster 2 kernel: grid 3", launch(cluster, 3, 1, 1, 32, 1, 1, 0, a1));
    ask("compile-time cluster 2 kernel: launch attr 4", launch_with(cluster, 8, 32, dimension, 4, 1, a1));
    ask("compile-time cluster 2 kernel: launch attr 2", launch_with(cluster, 8, 32, dimension, 2, 1, a1));
    ask("unknown attr id 77", launch_with(kd, 8, 32, 77, 1, 1, a1));
    ask("cooperative 100000 blocks", launch_with(ke, 100000, 1024, cooperative, 1, 1));
    ask("cuLaunchCooperativeKernel 100000", call("cuLaunchCooperativeKernel", ke, 100000u, 1u, 1u, 1024u, 1u, 1u, 0u, none, none));
    ask("launchEx null config", call("cuLaunchKernelEx", none, ke, none, none));
    const auto occupancy = [&](CUfunction f, int block, Size shared) { return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &x, f, block, shared); };
    ask("occupancy block 0", occupancy(ke, 0, 0));
    ask("occupancy block 1025", occupancy(ke, 1025, 0));
    ask("occupancy null fn", occupancy(nullptr, 32, 0));
    ask("occupancy smem huge", occupancy(ke, 32, 1 << 20));
    ask("value", x);
}

void memory() {
    CUdeviceptr p = 0, q = 0;
    void* h = nullptr;
    int x = 0;
    unsigned fl = 0;
    Size sz = 0;
    std::vector<unsigned char> storage(1 << 17);
    unsigned char* hb = storage.data() + (4096 - reinterpret_cast<std::uintptr_t>(storage.data()) % 4096);
    const auto address = [](void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); };
    group = "memory";
    ask("alloc 0", call("cuMemAlloc_v2", &p, Size{0}));
    ask("alloc null", call("cuMemAlloc_v2", none, Size{16}));
    ask("alloc 2^50", call("cuMemAlloc_v2", &p, Size{1} << 50));
    ask("alloc 2^63", call("cuMemAlloc_v2", &p, Size{1} << 63));
    ask("free 0", call("cuMemFree_v2", U64{0}));
    ask("free 0x1234", call("cuMemFree_v2", U64{0x1234}));
    must("cuMemAlloc_v2", &p, Size{4096});
    ask("free interior", call("cuMemFree_v2", p + 256));
    ask("free", call("cuMemFree_v2", p));
    ask("double free", call("cuMemFree_v2", p));
    ask("HtoD to freed", call("cuMemcpyHtoD_v2", p, hb, Size{16}));
    must("cuMemAlloc_v2", &q, Size{4096});
    ask("HtoD null dst", call("cuMemcpyHtoD_v2", U64{0}, hb, Size{16}));
    ask("HtoD null src", call("cuMemcpyHtoD_v2", q, none, Size{16}));
    ask("HtoD past end of 4096-byte alloc (4097)", call("cuMemcpyHtoD_v2", q, hb, Size{4097}));
    ask("DtoH null dst", call("cuMemcpyDtoH_v2", none, q, Size{16}));
    ask("DtoH bogus src", call("cuMemcpyDtoH_v2", hb, U64{0x1234}, Size{16}));
    ask("DtoD bogus", call("cuMemcpyDtoD_v2", q, U64{0x1234}, Size{16}));
    ask("HtoD size0 nulls", call("cuMemcpyHtoD_v2", U64{0}, none, Size{0}));
    ask("cuMemcpy host-host", call("cuMemcpy", address(hb), address(hb + 100), Size{16}));
    ask("HtoD with device src", call("cuMemcpyHtoD_v2", q, reinterpret_cast<void*>(q + 64), Size{16}));
    ask("DtoH with host src", call("cuMemcpyDtoH_v2", hb, address(hb + 64), Size{16}));
    ask("DtoD with host ptrs", call("cuMemcpyDtoD_v2", address(hb), address(hb + 64), Size{16}));
    ask("memsetD32 misaligned", call("cuMemsetD32_v2", q + 1, 0u, Size{1}));
    ask("memsetD16 misaligned", call("cuMemsetD16_v2", q + 1, 0u, Size{1}));
    ask("memsetD8 null", call("cuMemsetD8_v2", U64{0}, 0u, Size{1}));
    ask("memsetD8 null count0", call("cuMemsetD8_v2", U64{0}, 0u, Size{0}));
    ask("memsetD8 past end", call("cuMemsetD8_v2", q, 0u, Size{4097}));
    ask("memsetD8 host ptr", call("cuMemsetD8_v2", address(hb), 0u, Size{16}));
    ask("memset2D pitch<width", call("cuMemsetD2D8_v2", q, Size{8}, 0u, Size{16}, Size{2}));
    CUDA_MEMCPY2D c2;
    std::memset(&c2, 0, sizeof c2);
    c2.srcMemoryType = 1, c2.srcHost = hb, c2.srcPitch = 8, c2.dstMemoryType = 2, c2.dstDevice = q, c2.dstPitch = 64, c2.WidthInBytes = 16, c2.Height = 2;
    ask("memcpy2D pitch<width", call("cuMemcpy2D_v2", &c2));
    c2.srcPitch = 64;
    ask("memcpy2D ok", call("cuMemcpy2D_v2", &c2));
    c2.srcMemoryType = 9;
    ask("memcpy2D bad memtype", call("cuMemcpy2D_v2", &c2));
    ask("memcpy2D null", call("cuMemcpy2D_v2", none));
    ask("hostreg null", call("cuMemHostRegister_v2", none, Size{16}, 0u));
    ask("hostreg size0", call("cuMemHostRegister_v2", hb, Size{0}, 0u));
    ask("hostreg", call("cuMemHostRegister_v2", hb, Size{1} << 16, 0u));
    ask("hostreg twice", call("cuMemHostRegister_v2", hb, Size{1} << 16, 0u));
    ask("hostunreg", call("cuMemHostUnregister", hb));
    ask("hostunreg twice", call("cuMemHostUnregister", hb));
    ask("freehost not allocated", call("cuMemFreeHost", hb));
    ask("freehost null", call("cuMemFreeHost", none));
    ask("hostdevptr unregistered", call("cuMemHostGetDevicePointer_v2", &p, hb, 0u));
    ask("hostflags unregistered", call("cuMemHostGetFlags", &fl, hb));
    ask("hostalloc 0", call("cuMemHostAlloc", &h, Size{0}, 0u));
    ask("hostalloc bad flags", call("cuMemHostAlloc", &h, Size{16}, 0x100u));
    ask("managed 0", call("cuMemAllocManaged", &p, Size{0}, 1u));
    ask("managed flags 0", call("cuMemAllocManaged", &p, Size{16}, 0u));
    ask("managed flags 9", call("cuMemAllocManaged", &p, Size{16}, 9u));
    ask("addressrange bogus", call("cuMemGetAddressRange_v2", &p, &sz, U64{0x1234}));
    ask("addressrange host", call("cuMemGetAddressRange_v2", &p, &sz, address(hb)));
    ask("ptrattr type unregistered host", call("cuPointerGetAttribute", &x, 2, address(hb)));
    ask("ptrattr bad attr", call("cuPointerGetAttribute", &x, 99, q));
    ask("allocasync 0", call("cuMemAllocAsync", &p, Size{0}, none));
    ask("allocasync", call("cuMemAllocAsync", &p, Size{4096}, none));
    ask("freeasync", call("cuMemFreeAsync", p, none));
    ask("freeasync twice", call("cuMemFreeAsync", p, none));
    ask("freeasync of cuMemAlloc ptr", call("cuMemFreeAsync", q, none));
    ask("use after freeasync of cuMemAlloc ptr", call("cuMemsetD8_v2", q, 0u, Size{16}));
    ask("freeasync 0", call("cuMemFreeAsync", U64{0}, none));
    must("cuMemAlloc_v2", &q, Size{4096});
    if (const int code = call("cuIpcGetMemHandle", none, q); code != missing) ask("ipc handle null", code);
    if (const int code = call("cuMemAddressReserve", &p, Size{1000}, Size{0}, U64{0}, U64{0}); code != missing) {
        ask("addrreserve unaligned", code);
        ask("addrreserve", call("cuMemAddressReserve", &p, Size{2} << 20, Size{0}, U64{0}, U64{0}));
        ask("memset on reserved unmapped VA", call("cuMemsetD8_v2", p, 0u, Size{16}));
        ask("DtoH from reserved unmapped VA", call("cuMemcpyDtoH_v2", hb, p, Size{16}));
    }
    ask("sync", call("cuCtxSynchronize"));
    ask("memset past end 8MB", call("cuMemsetD8_v2", q, 0u, Size{8} << 20));
    ask("sync", call("cuCtxSynchronize"));
}

void streams() {
    CUstream s = nullptr;
    CUevent e = nullptr, e2 = nullptr, e3 = nullptr;
    float ms = 0;
    int priority = 77;
    group = "stream/event";
    ask("stream flags 99", call("cuStreamCreate", &s, 99u));
    ask("stream null", call("cuStreamCreate", none, 0u));
    ask("stream prio 100 (clamped?)", call("cuStreamCreateWithPriority", &s, 1u, 100));
    must("cuStreamGetPriority", s, &priority);
    ask("resulting priority", priority);
    ask("sync legacy 0x1", call("cuStreamSynchronize", U64{1}));
    ask("sync per-thread 0x2", call("cuStreamSynchronize", U64{2}));
    ask("event flags 99", call("cuEventCreate", &e, 99u));
    ask("event interprocess without disabletiming", call("cuEventCreate", &e, 4u));
    must("cuEventCreate", &e, 0u);
    must("cuEventCreate", &e2, 0u);
    must("cuEventCreate", &e3, 2u);
    ask("query unrecorded", call("cuEventQuery", e));
    ask("sync unrecorded", call("cuEventSynchronize", e));
    ask("elapsed unrecorded", call("cuEventElapsedTime_v2", &ms, e, e2));
    ask("record null", call("cuEventRecord", none, none));
    must("cuEventRecord", e, none);
    must("cuEventRecord", e3, none);
    must("cuCtxSynchronize");
    ask("elapsed disable timing", call("cuEventElapsedTime_v2", &ms, e, e3));
    ask("elapsed null", call("cuEventElapsedTime_v2", none, e, e));
    ask("elapsed same", call("cuEventElapsedTime_v2", &ms, e, e));
    void* flag = nullptr;
    must("cuMemHostAlloc", &flag, Size{4096}, 0u);
    *static_cast<volatile unsigned*>(flag) = 0;
    void* a[1] = {&flag};
    ask("spin launch", launch(function("k_spin"), 1, 1, 1, 1, 1, 1, 0, a, nullptr, s));
    ask("stream query busy", call("cuStreamQuery", s));
    must("cuEventRecord", e2, s);
    ask("event query busy", call("cuEventQuery", e2));
    ask("elapsed not ready", call("cuEventElapsedTime_v2", &ms, e, e2));
    ask("stream destroy while busy", call("cuStreamDestroy_v2", s));
    *static_cast<volatile unsigned*>(flag) = 1;
    ask("waitevent null event", call("cuStreamWaitEvent", none, none, 0u));
    ask("waitevent flags 9", call("cuStreamWaitEvent", none, e, 9u));
    ask("destroy stream 0", call("cuStreamDestroy_v2", none));
    ask("destroy legacy 0x1", call("cuStreamDestroy_v2", U64{1}));
    ask("destroy per-thread 0x2", call("cuStreamDestroy_v2", U64{2}));
    must("cuCtxSynchronize");
}

void arrays() {
    struct {
        Size width, height;
        int format;
        unsigned channels;
    } ad = {0, 0, 0x20, 1};
    void* ar = nullptr;
    group = "texture/array";
    ask("array width 0", call("cuArrayCreate_v2", &ar, &ad));
    ad.width = 1 << 20;
    ask("array too wide", call("cuArrayCreate_v2", &ar, &ad));
    ad.width = 64, ad.channels = 3;
    ask("array 3 channels", call("cuArrayCreate_v2", &ar, &ad));
    ad.channels = 1, ad.format = 99;
    ask("array bad format", call("cuArrayCreate_v2", &ar, &ad));
    // CUDA_RESOURCE_DESC of linear memory, CUDA_TEXTURE_DESC.
    struct {
        int type, pad;
        CUdeviceptr pointer;
        int format;
        unsigned channels;
        Size size;
        char rest[112];
    } resource;
    struct {
        int address[3], filter;
        unsigned flags, rest[27];
    } texture;
    std::memset(&resource, 0, sizeof resource);
    std::memset(&texture, 0, sizeof texture);
    U64 to = 0;
    CUdeviceptr memory = 0;
    must("cuMemAlloc_v2", &memory, Size{4096});
    resource.type = 2, resource.pointer = memory + 4, resource.format = 0x20, resource.channels = 1, resource.size = 1024;
    const auto create = [&] { return call("cuTexObjectCreate", &to, &resource, &texture, none); };
    ask("tex null", call("cuTexObjectCreate", none, &resource, &texture, none));
    ask("linear misaligned 4", create());
    resource.pointer = memory;
    ask("linear ok", create());
    resource.channels = 3;
    ask("linear 3 channels", create());
    resource.channels = 1;
    texture.filter = 1;
    ask("linear filter on linear mem", create());
    texture.filter = 0, texture.flags = 2;
    ask("normalized on linear mem", create());
    texture.flags = 0, resource.type = 9;
    ask("restype 9", create());
}

void capture() {
    CUstream cs = nullptr;
    void *g = nullptr, *ge = nullptr;
    CUdeviceptr p = 0, q = 0;
    CUevent e = nullptr;
    char b[16] = {};
    int cst = 0;
    const CUfunction ke = function("k_empty");
    must("cuStreamCreate", &cs, 0u);
    must("cuEventCreate", &e, 0u);
    must("cuMemAlloc_v2", &q, Size{4096});
    group = "capture";
    if (call("cuStreamIsCapturing", cs, &cst) != 0 || call("cuStreamBeginCapture_v2", none, 0) == missing) return;
    ask("endcapture not capturing", call("cuStreamEndCapture", cs, &g));
    ask("begin on legacy stream", call("cuStreamBeginCapture_v2", none, 0));
    ask("begin", call("cuStreamBeginCapture_v2", cs, 0));
    ask("begin twice", call("cuStreamBeginCapture_v2", cs, 0));
    ask("memalloc during global capture", call("cuMemAlloc_v2", &p, Size{16}));
    ask("memcpy sync during capture (legacy)", call("cuMemcpyHtoD_v2", q, b, Size{16}));
    ask("streamsync of capturing", call("cuStreamSynchronize", cs));
    ask("after invalidation: launch", launch(ke, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, cs));
    ask("iscapturing", call("cuStreamIsCapturing", cs, &cst));
    ask("status", cst);
    ask("endcapture of invalidated", call("cuStreamEndCapture", cs, &g));
    ask("graph is null", g == nullptr);
    ask("begin relaxed", call("cuStreamBeginCapture_v2", cs, 2));
    ask("memalloc during relaxed", call("cuMemAlloc_v2", &p, Size{16}));
    ask("ctxsync during capture", call("cuCtxSynchronize"));
    ask("query capturing", call("cuStreamQuery", cs));
    ask("record+query event", call("cuEventRecord", e, cs));
    ask("eventquery captured", call("cuEventQuery", e));
    ask("endcapture", call("cuStreamEndCapture", cs, &g));
    ask("launch on legacy stream while relaxed capture ended", launch(ke, 1, 1, 1, 1, 1, 1));
    ask("begin threadlocal", call("cuStreamBeginCapture_v2", cs, 1));
    ask("legacy-stream launch while capturing blocking stream", launch(ke, 1, 1, 1, 1, 1, 1));
    ask("endcapture", call("cuStreamEndCapture", cs, &g));
    ask("instantiate null", call("cuGraphInstantiateWithFlags", &ge, none, U64{0}));
    ask("launch null", call("cuGraphLaunch", none, none));
    ask("create flags", call("cuGraphCreate", &g, 5u));
}

void bad_handles() {
    const auto bogus = [](std::uintptr_t handle) { return reinterpret_cast<void*>(handle); };
    CUfunction f = nullptr;
    CUmodule m = nullptr;
    CUstream s = nullptr;
    CUevent e = nullptr;
    CUdeviceptr p = 0;
    group = "bad handle";
    CUcontext now = nullptr;
    must("cuCtxGetCurrent", &now);
    ask("ctx setcurrent bogus", call("cuCtxSetCurrent", bogus(0x1234)));
    must("cuCtxSetCurrent", now);
    ask("module getfunction bogus", call("cuModuleGetFunction", &f, bogus(0x1234), "x"));
    ask("stream sync bogus 0x999", call("cuStreamSynchronize", bogus(0x999)));
    must("cuStreamCreate", &s, 0u);
    must("cuStreamDestroy_v2", s);
    ask("stream destroy twice", call("cuStreamDestroy_v2", s));
    ask("stream sync destroyed", call("cuStreamSynchronize", s));
    must("cuEventCreate", &e, 0u);
    must("cuEventDestroy_v2", e);
    ask("event destroy twice", call("cuEventDestroy_v2", e));
    ask("event record destroyed", call("cuEventRecord", e, none));
    must("cuModuleLoadData", &m, kernels);
    must("cuModuleGetFunction", &f, m, "k_empty");
    must("cuModuleUnload", m);
    ask("module unload twice", call("cuModuleUnload", m));
    ask("launch fn of unloaded module", launch(f, 1, 1, 1, 1, 1, 1));
    ask("launch bogus fn", call("cuLaunchKernel", bogus(0x1234), 1u, 1u, 1u, 1u, 1u, 1u, 0u, none, none, none));
    ask("library unload bogus", call("cuLibraryUnload", bogus(0x1234)));
    ask("graph launch bogus", call("cuGraphLaunch", bogus(0x1234), none));
    ask("texobj destroy bogus", call("cuTexObjectDestroy", U64{0x1234}));
    ask("array destroy bogus", call("cuArrayDestroy", bogus(0x1234)));
    void* pp[4] = {};
    ask("kernelParams entries NULL", launch(function("k_vadd"), 1, 1, 1, 1, 1, 1, 0, pp));
    ask("launch with kernelParams=NULL (kernel has params)", launch(function("k_vadd"), 1, 1, 1, 1, 1, 1));
    ask("launch on bogus stream", call("cuLaunchKernel", function("k_empty"), 1u, 1u, 1u, 1u, 1u, 1u, 0u, bogus(0x999), none, none));
    ask("kernelgetfunction bogus", call("cuKernelGetFunction", &f, bogus(0x1234)));
    ask("mempool alloc bogus", call("cuMemAllocFromPoolAsync", &p, Size{16}, bogus(0x1234), none));
    group = "bad image";
    const char zeros[256] = {};
    char header[256] = "\x7f" "ELF\2\1\1";
    ask("modload garbage", call("cuModuleLoadData", &m, "this is not an image at all, just some text padding padding padding padding padding"));
    ask("modload zeros", call("cuModuleLoadData", &m, zeros));
    ask("ELF header only then zeros", call("cuModuleLoadData", &m, header));
    group = "ctx";
    CUcontext primary = nullptr;
    must("cuCtxGetCurrent", &primary);
    call("cuCtxDestroy_v2", primary);
    ask("after cuCtxDestroy(primary): alloc", call("cuMemAlloc_v2", &p, Size{16}));
}

/// A fault of a kernel is the last thing that the process asks.
void fault() {
    CUdeviceptr nowhere = 0x10;
    void* a[1] = {&nowhere};
    must("cuLaunchKernel", function("k_store"), 1u, 1u, 1u, 1u, 1u, 1u, 0u, none, static_cast<void**>(a), none);
    group = "launch";
    ask("sync", call("cuCtxSynchronize"));
}

} // namespace

int main(int count, char** words) {
    if (count != 4) return 2;
    read(words[2], words[3]);
    int two = 2;
    Answers opened(two, words); // the library only
    before_initialisation();
    without_context();
    devices();
    entries();
    modules();
    launches();
    memory();
    streams();
    arrays();
    capture();
    bad_handles();
    fault();
    std::size_t left = 0;
    for (const auto& [question, rows] : recorded) left += rows.size();
    for (const auto& [question, rows] : differences)
        if (!rows.empty()) std::fprintf(stderr, "%s: listed as different, not asked\n", question.c_str()), ++wrong;
    std::printf("%d asked, %d differ for a reason, %d wrong, %zu recorded ones not asked\n", asked, differing, wrong, left);
    return wrong != 0;
}
