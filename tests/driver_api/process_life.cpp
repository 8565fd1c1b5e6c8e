// SPDX-License-Identifier: Apache-2.0
// The driver library in a process that ends, forks, unloads it or can have no more threads:
//   process_life LIBCUDA exit | leave | threads N | fork | unload
// A process of its own for each, because none of them can be taken back.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

const char* const text = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry first(.param .u64 to, .param .u32 turns) {
    .reg .b64 %a;
    .reg .b32 %v, %i, %n;
    .reg .pred %p;
    ld.param.u64 %a, [to];
    ld.param.u32 %n, [turns];
    mov.u32 %v, %ctaid.x;
    mad.lo.u32 %v, %v, 256, 0;
    mov.u32 %i, %tid.x;
    add.u32 %v, %v, %i;
    mad.wide.u32 %a, %v, 4, %a;
    mov.u32 %i, 0;
again:
    mad.lo.u32 %v, %v, 1664525, 1013904223;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra again;
    st.global.u32 [%a], %v;
    ret;
}
.visible .entry endless(.param .u64 to) {
    .reg .b64 %a;
    .reg .b32 %v;
    .reg .pred %p;
    ld.param.u64 %a, [to];
    st.volatile.global.u32 [%a], 1;
again:
    ld.volatile.global.u32 %v, [%a];
    setp.ne.u32 %p, %v, 0;
    @%p bra again;
    ret;
}
.visible .entry second(.param .u64 to) {
    .reg .b64 %a;
    .reg .b32 %i;
    ld.param.u64 %a, [to];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %a, %i, 4, %a;
    add.u32 %i, %i, 7;
    st.global.u32 [%a], %i;
    ret;
}
)";

constexpr unsigned blocks = 2048, threads = 256, turns = 1000;
constexpr int not_ready = 600, not_initialized = 3;

int failures = 0;

void check(bool fine, const char* what) {
    if (fine) return;
    std::fprintf(stderr, "process_life: wrong: %s\n", what);
    ++failures;
}
#define CHECK(condition) check(condition, #condition)

/// How many threads the process may still make: pthread_create() below.
int threads_left = 1 << 20;

void* library = nullptr;
template <class... Arguments> int call(const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    if (!entry) {
        std::fprintf(stderr, "process_life: no %s\n", name);
        std::_Exit(2);
    }
    return reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
}

void* context = nullptr;
void* module = nullptr;
std::uint64_t data = 0;

void start(const char* path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::fprintf(stderr, "process_life: %s\n", dlerror());
        std::_Exit(2);
    }
    CHECK(call("cuInit", 0u) == 0);
    CHECK(call("cuDevicePrimaryCtxRetain", &context, 0) == 0);
    CHECK(call("cuCtxSetCurrent", context) == 0);
    CHECK(call("cuModuleLoadData", &module, static_cast<const void*>(text)) == 0);
    CHECK(call("cuMemAlloc_v2", &data, std::size_t{blocks} * threads * 4) == 0);
}

void launch(const char* name, unsigned block_count, void* stream) {
    void* function = nullptr;
    CHECK(call("cuModuleGetFunction", &function, module, name) == 0);
    unsigned count = turns;
    void* parameters[] = {&data, &count};
    CHECK(call("cuLaunchKernel", function, block_count, 1u, 1u, threads, 1u, 1u, 0u, stream, &parameters[0],
               static_cast<void**>(nullptr)) == 0);
}

unsigned value_of_first(unsigned index) {
    for (unsigned i = 0; i < turns; ++i)
        index = index * 1664525u + 1013904223u;
    return index;
}

void check_first() {
    std::vector<unsigned> values(std::size_t{blocks} * threads);
    CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(values.data()), data, values.size() * 4) == 0);
    for (unsigned i : {0u, 1u, threads * blocks / 2 + 3, threads * blocks - 1})
        CHECK(values[i] == value_of_first(i));
}

/// Its destructor runs after the main thread's thread_locals and the library's function-local statics are gone.
struct AtExit {
    bool wanted = false;
    ~AtExit() {
        if (!wanted) return;
        // What was freed by then would be in use again.
        std::vector<void*> blocks_of_heap;
        for (std::size_t size = 8; size <= 256; size += 8)
            for (int i = 0; i < 16; ++i)
                blocks_of_heap.push_back(std::memset(std::malloc(size), 0x41, size));
        void* current = nullptr;
        CHECK(call("cuCtxGetCurrent", &current) == 0 && current == context);
        launch("first", blocks, nullptr);
        CHECK(call("cuStreamSynchronize", static_cast<void*>(nullptr)) == 0);
        check_first();
        launch("second", 1, reinterpret_cast<void*>(2)); // not compiled yet; the thread's own stream
        CHECK(call("cuCtxSynchronize") == 0);
        unsigned values[2] = {};
        CHECK(call("cuMemcpyDtoH_v2", static_cast<void*>(values), data, sizeof values) == 0);
        CHECK(values[1] == 8);
        void* entry = nullptr;
        CHECK(call("cuGetProcAddress_v2", "cuMemAlloc", &entry, 12000, std::uint64_t{0},
                   static_cast<int*>(nullptr)) == 0);
        CHECK(call("cuStreamBeginRecaptureToGraph") == 801);
        CHECK(call("cuMemFree_v2", data) == 0);
        if (failures) std::_Exit(1);
        std::puts("called in a static destructor");
        std::fflush(stdout);
    }
} at_exit;

void run_exit() {
    at_exit.wanted = true;
    launch("first", blocks, nullptr);
    CHECK(call("cuCtxSynchronize") == 0);
    CHECK(call("cuStreamBeginRecaptureToGraph") == 801);
}

/// A return from main() while a kernel spins for ever, and one of its module is queued behind it: no exit handler waits
/// for them, that of libcudart least of all, which unloads the module. It is registered before the driver is there.
void unload_at_exit() {
    if (!module || failures) return;
    void* function = nullptr;
    CHECK(call("cuModuleGetFunction", &function, module, "endless") == 0);
    CHECK(call("cuModuleUnload", module) == 0);
    CHECK(call("cuDevicePrimaryCtxRelease_v2", 0) == 0);
    CHECK(call("cuModuleGetFunction", &function, module, "endless") != 0);
    if (failures) std::_Exit(1);
    std::puts("left while a kernel ran");
    std::fflush(stdout);
}

/// A stream beside the kernel `endless`, which runs.
void* stream_beside_endless() {
    unsigned value = 0;
    void* other = nullptr;
    CHECK(call("cuStreamCreate", &other, 1u) == 0);
    while (value != 1)
        check(call("cuMemcpyDtoHAsync_v2", static_cast<void*>(&value), data, sizeof value, other) == 0 &&
                  call("cuStreamSynchronize", other) == 0,
              "a copy beside the kernel");
    return other;
}

void run_leave() {
    launch("endless", 2, nullptr);
    launch("first", 1, nullptr);
    stream_beside_endless();
}

void run_with_threads(int count) {
    threads_left = count;
    void *stream = nullptr, *other = nullptr, *event = nullptr;
    CHECK(call("cuStreamCreate", &stream, 1u) == 0);
    CHECK(call("cuStreamCreate", &other, 1u) == 0);
    CHECK(call("cuEventCreate", &event, 0u) == 0);
    static int called = 0;
    const auto host_function = +[](void* of) { ++*static_cast<int*>(of); };
    for (int round = 0; round < 2; ++round) {
        launch("first", blocks, stream);
        CHECK(call("cuEventRecord", event, stream) == 0);
        CHECK(call("cuStreamWaitEvent", other, event, 0u) == 0);
        CHECK(call("cuLaunchHostFunc", other, host_function, static_cast<void*>(&called)) == 0);
        if (round == 0)
            CHECK(call("cuStreamSynchronize", other) == 0);
        else
            while (call("cuStreamQuery", other) == not_ready)
                usleep(100);
        CHECK(called == round + 1);
        check_first();
    }
    CHECK(call("cuCtxSynchronize") == 0);
}

/// A child is refused all, whatever runs in its parent, and ends as usual.
void run_fork() {
    launch("endless", 1, nullptr);
    void* other = stream_beside_endless();
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); // a hang is a failure too
        CHECK(call("cuMemAlloc_v2", &data, std::size_t{4096}) == not_initialized);
        CHECK(call("cuCtxSynchronize") == not_initialized);
        CHECK(call("cuStreamSynchronize", static_cast<void*>(nullptr)) == not_initialized);
        CHECK(call("cuModuleUnload", module) == not_initialized);
        CHECK(call("cuInit", 0u) == not_initialized);
        std::exit(failures != 0);
    }
    const unsigned zero = 0;
    CHECK(call("cuMemcpyHtoDAsync_v2", data, static_cast<const void*>(&zero), sizeof zero, other) == 0);
    CHECK(call("cuCtxSynchronize") == 0);
    launch("first", blocks, nullptr);
    CHECK(call("cuCtxSynchronize") == 0);
    check_first();
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/// Its threads and handlers must find their code afterwards.
void run_unload() {
    void* stream = nullptr;
    CHECK(call("cuStreamCreate", &stream, 1u) == 0);
    launch("first", blocks, stream);
    launch("first", blocks, stream);
    CHECK(dlclose(library) == 0);
    usleep(300'000);
}

} // namespace

/// In the program, so that every library finds this one first.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    if (__atomic_fetch_sub(&threads_left, 1, __ATOMIC_RELAXED) <= 0) return EAGAIN;
    return create(thread, attributes, body, argument);
}

int main(int count, char** words) {
    if (count < 3) return 2;
    const std::string mode = words[2];
    if (mode == "leave") std::atexit(unload_at_exit);
    start(words[1]);
    if (mode == "leave") run_leave();
    if (mode == "exit") run_exit();
    if (mode == "threads" && count > 3) run_with_threads(std::atoi(words[3]));
    if (mode == "fork") run_fork();
    if (mode == "unload") run_unload();
    return failures != 0;
}
