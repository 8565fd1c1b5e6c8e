// SPDX-License-Identifier: Apache-2.0
// Questions about stream capture: what each call records, what is forbidden while somebody captures, forks and joins.
#include "questions.h"

#include <thread>

namespace graph_questions {
namespace {

CUgraphNode* const no_nodes = nullptr;
constexpr std::size_t none = 0;

void nothing(void*) {}
void called_back(CUstream, int, void*) {}

int begin(CUstream stream, int mode = 0) {
    return call("cuStreamBeginCapture_v2", stream, mode);
}
std::string status_of(CUstream stream) {
    int status = 77;
    const int result = call("cuStreamIsCapturing", stream, &status);
    return result ? "!" + number(result) : number(status);
}
/// Ends a capture: the code, and the graph's shape.
std::string end(CUstream stream) {
    CUgraph graph{};
    const int result = call("cuStreamEndCapture", stream, &graph);
    std::string text = number(result);
    if (graph || !result) text += " " + shape_of(graph);
    if (graph) must("cuGraphDestroy", graph);
    return text;
}
int launch(const Ground& ground, CUstream stream) {
    return call("cuLaunchKernel", ground.empty, 1u, 1u, 1u, 1u, 1u, 1u, 0u, stream, static_cast<void**>(nullptr), static_cast<void**>(nullptr));
}

struct Call {
    const char* name;
    std::function<int()> make;
};

/// Handles that calls use up or fill in.
struct Things {
    CUdeviceptr allocated[64]{}, async = 0;
    int next = 0;
    void* host = nullptr;
    CUstream stream{};
    CUevent event{};
    CUgraph graph{};
    CUgraphExec exec{};
    CUmodule module{};
    CUmemoryPool pool{};
    unsigned char pageable[4096]{};
    std::size_t size = 0, more = 0;
    int integer = 0;
    unsigned word = 0;
    unsigned long long wide = 0;
    CUlaunchAttributeValue value{};
    CUcontext context{};
    float time = 0;
};

std::vector<Call> calls_of(const Ground& g, Things& t) {
    void* const no_pointer = nullptr;
    return {
        {"cuMemAlloc", [&] { return call("cuMemAlloc_v2", &t.async, std::size_t{64}); }},
        {"cuMemFree", [&] { return call("cuMemFree_v2", t.allocated[t.next++]); }},
        {"cuMemAllocPitch", [&] { return call("cuMemAllocPitch_v2", &t.async, &t.size, std::size_t{64}, std::size_t{2}, 4u); }},
        {"cuMemAllocManaged", [&] { return call("cuMemAllocManaged", &t.async, std::size_t{64}, 1u); }},
        {"cuMemHostAlloc", [&] { return call("cuMemHostAlloc", &t.host, std::size_t{64}, 0u); }},
        {"cuMemHostGetDevicePointer", [&] { return call("cuMemHostGetDevicePointer_v2", &t.async, g.pinned, 0u); }},
        {"cuMemHostRegister", [&] { return call("cuMemHostRegister_v2", static_cast<void*>(t.pageable), std::size_t{64}, 0u); }},
        {"cuMemHostUnregister", [&] { return call("cuMemHostUnregister", static_cast<void*>(t.pageable)); }},
        {"cuMemGetInfo", [&] { return call("cuMemGetInfo_v2", &t.size, &t.more); }},
        {"cuMemGetAddressRange", [&] { return call("cuMemGetAddressRange_v2", &t.async, &t.size, g.memory); }},
        {"cuPointerGetAttribute", [&] { return call("cuPointerGetAttribute", static_cast<void*>(&t.wide), 2, g.memory); }},
        {"cuMemcpyHtoD", [&] { return call("cuMemcpyHtoD_v2", g.memory, static_cast<const void*>(t.pageable), std::size_t{64}); }},
        {"cuMemcpyDtoH", [&] { return call("cuMemcpyDtoH_v2", static_cast<void*>(t.pageable), g.memory, std::size_t{64}); }},
        {"cuMemcpyDtoD", [&] { return call("cuMemcpyDtoD_v2", g.memory, g.other_memory, std::size_t{64}); }},
        {"cuMemcpyHtoD of 0", [&] { return call("cuMemcpyHtoD_v2", g.memory, static_cast<const void*>(t.pageable), std::size_t{0}); }},
        {"cuMemsetD8", [&] { return call("cuMemsetD8_v2", g.memory, static_cast<unsigned char>(1), std::size_t{64}); }},
        {"cuStreamCreate", [&] { return call("cuStreamCreate", &t.stream, 1u); }},
        {"cuStreamDestroy", [&] { return call("cuStreamDestroy_v2", t.stream); }},
        {"cuStreamQuery of another", [&] { return call("cuStreamQuery", g.second); }},
        {"cuStreamSynchronize of another", [&] { return call("cuStreamSynchronize", g.second); }},
        {"cuStreamQuery of the default", [&] { return call("cuStreamQuery", CUstream{}); }},
        {"cuStreamSynchronize of the default", [&] { return call("cuStreamSynchronize", CUstream{}); }},
        {"cuCtxSynchronize", [&] { return call("cuCtxSynchronize"); }},
        {"cuEventCreate", [&] { return call("cuEventCreate", &t.event, 0u); }},
        {"cuEventQuery", [&] { return call("cuEventQuery", t.event); }},
        {"cuEventSynchronize", [&] { return call("cuEventSynchronize", t.event); }},
        {"cuEventElapsedTime", [&] { return call("cuEventElapsedTime", &t.time, t.event, t.event); }},
        {"cuEventRecord elsewhere", [&] { return call("cuEventRecord", t.event, g.second); }},
        {"cuEventRecord in the default stream", [&] { return call("cuEventRecord", t.event, CUstream{}); }},
        {"cuEventDestroy", [&] { return call("cuEventDestroy_v2", t.event); }},
        {"cuLaunchKernel in the default stream", [&] { return launch(g, nullptr); }},
        {"cuLaunchKernel per thread", [&] { return launch(g, reinterpret_cast<CUstream>(2)); }},
        {"cuLaunchKernel in another blocking stream", [&] { return launch(g, g.blocking); }},
        {"cuLaunchKernel elsewhere", [&] { return launch(g, g.second); }},
        {"cuMemcpyHtoDAsync elsewhere", [&] { return call("cuMemcpyHtoDAsync_v2", g.memory, static_cast<const void*>(t.pageable), std::size_t{64}, g.second); }},
        {"cuMemAllocAsync elsewhere", [&] { return call("cuMemAllocAsync", &t.async, std::size_t{64}, g.second); }},
        {"cuMemFreeAsync elsewhere", [&] { return call("cuMemFreeAsync", t.async, g.second); }},
        {"cuStreamAddCallback elsewhere", [&] { return call("cuStreamAddCallback", g.second, called_back, no_pointer, 0u); }},
        {"cuLaunchHostFunc elsewhere", [&] { return call("cuLaunchHostFunc", g.second, nothing, no_pointer); }},
        {"cuModuleLoadData", [&] { return call("cuModuleLoadData", &t.module, static_cast<const void*>(".version 7.0\n.target sm_70\n.address_size 64\n.entry k() { ret; }\n")); }},
        {"cuModuleGetFunction", [&] { CUfunction f{}; return call("cuModuleGetFunction", &f, g.module, "empty"); }},
        {"cuModuleUnload", [&] { return call("cuModuleUnload", t.module); }},
        {"cuFuncGetAttribute", [&] { return call("cuFuncGetAttribute", &t.integer, 0, g.add); }},
        {"cuFuncSetAttribute", [&] { return call("cuFuncSetAttribute", g.add, 8, 1024); }},
        {"cuOccupancyMaxActiveBlocksPerMultiprocessor", [&] { return call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &t.integer, g.add, 64, std::size_t{0}); }},
        {"cuCtxGetLimit", [&] { return call("cuCtxGetLimit", &t.size, 0); }},
        {"cuCtxSetLimit", [&] { return call("cuCtxSetLimit", 0, std::size_t{1024}); }},
        {"cuCtxGetCurrent", [&] { return call("cuCtxGetCurrent", &t.context); }},
        {"cuDeviceGetAttribute", [&] { return call("cuDeviceGetAttribute", &t.integer, 1, 0); }},
        {"cuMemPoolCreate", [&] { CUmemPoolProps p{}; p.allocType = 1, p.location = {1, 0}; return call("cuMemPoolCreate", &t.pool, &p); }},
        {"cuMemPoolTrimTo", [&] { return call("cuMemPoolTrimTo", t.pool, std::size_t{0}); }},
        {"cuMemPoolDestroy", [&] { return call("cuMemPoolDestroy", t.pool); }},
        {"cuGraphCreate", [&] { return call("cuGraphCreate", &t.graph, 0u); }},
        {"cuGraphInstantiate", [&] { return call("cuGraphInstantiateWithFlags", &t.exec, t.graph, 0ull); }},
        {"cuGraphUpload elsewhere", [&] { return call("cuGraphUpload", t.exec, g.second); }},
        {"cuGraphLaunch elsewhere", [&] { return call("cuGraphLaunch", t.exec, g.second); }},
        {"cuGraphLaunch in the default stream", [&] { return call("cuGraphLaunch", t.exec, CUstream{}); }},
        {"cuGraphExecDestroy", [&] { return call("cuGraphExecDestroy", t.exec); }},
        {"cuDeviceGraphMemTrim", [&] { return call("cuDeviceGraphMemTrim", 0); }},
        {"cuStreamGetPriority of it", [&] { return call("cuStreamGetPriority", g.stream, &t.integer); }},
        {"cuStreamGetFlags of it", [&] { return call("cuStreamGetFlags", g.stream, &t.word); }},
        {"cuStreamGetId of it", [&] { return call("cuStreamGetId", g.stream, &t.wide); }},
        {"cuStreamGetCtx of it", [&] { return call("cuStreamGetCtx", g.stream, &t.context); }},
        {"cuStreamGetAttribute of it", [&] { return call("cuStreamGetAttribute", g.stream, 8, &t.value); }},
        {"cuStreamSetAttribute of it", [&] { return call("cuStreamSetAttribute", g.stream, 8, &t.value); }},
        {"cuStreamQuery of it", [&] { return call("cuStreamQuery", g.stream); }},
        {"cuStreamSynchronize of it", [&] { return call("cuStreamSynchronize", g.stream); }},
        {"cuStreamAddCallback in it", [&] { return call("cuStreamAddCallback", g.stream, called_back, no_pointer, 0u); }},
        {"cuStreamAttachMemAsync in it", [&] { return call("cuStreamAttachMemAsync", g.stream, g.memory, std::size_t{0}, 4u); }},
        {"cuStreamBeginCapture of it", [&] { return begin(g.stream); }},
        {"cuStreamCopyAttributes to it", [&] { return call("cuStreamCopyAttributes", g.stream, g.second); }},
    };
}

/// Each call while `stream` captures, in a mode, by the same or another thread.
template <int mode, bool other_thread, bool is_blocking> void ask_calls(const Ground& given) {
    Ground ground = given;
    if (is_blocking) std::swap(ground.stream, ground.blocking); // and `blocking` does not block then
    Things things;
    for (CUdeviceptr& pointer : things.allocated) must("cuMemAlloc_v2", &pointer, std::size_t{64});
    must("cuStreamCreate", &things.stream, 1u);
    must("cuEventCreate", &things.event, 0u);
    must("cuEventRecord", things.event, ground.second);
    must("cuMemAllocAsync", &things.async, std::size_t{64}, ground.second);
    must("cuGraphCreate", &things.graph, 0u);
    must("cuGraphInstantiateWithFlags", &things.exec, things.graph, 0ull);
    CUmemPoolProps properties{};
    properties.allocType = 1, properties.location = {1, 0};
    must("cuMemPoolCreate", &things.pool, &properties);
    must("cuModuleLoadData", &things.module, static_cast<const void*>(".version 7.0\n.target sm_70\n.address_size 64\n.entry k() { ret; }\n"));
    must("cuCtxSynchronize");
    for (const Call& one : calls_of(ground, things)) {
        if (int result = begin(ground.stream, mode)) {
            ground.give(one.name, "begin " + number(result));
            continue;
        }
        int result = 0;
        if (other_thread)
            std::thread([&] {
                must("cuCtxSetCurrent", ground.context);
                result = one.make();
            }).join();
        else
            result = one.make();
        std::string answer = number(result) + ", capturing " + status_of(ground.stream);
        ground.give(one.name, answer + ", end " + end(ground.stream));
    }
}

void ask_records(const Ground& ground) {
    unsigned char pageable[256]{};
    void* const no_pointer = nullptr;
    CUdeviceptr pointer = 0;
    CUgraph inner = ground.graph();
    ground.kernel_node(inner);
    CUgraphExec exec{};
    must("cuGraphInstantiateWithFlags", &exec, inner, 0ull);
    CUstream s = ground.stream;
    const auto ask = [&](const char* what, auto make) {
        must("cuStreamBeginCapture_v2", s, 0);
        const int result = make();
        ground.give(what, number(result) + ", end " + end(s));
    };
    ask("nothing", [] { return 0; });
    ask("kernel", [&] { return launch(ground, s); });
    ask("two kernels", [&] { launch(ground, s); return launch(ground, s); });
    ask("kernel with a bad block", [&] { return call("cuLaunchKernel", ground.empty, 1u, 1u, 1u, 2000u, 1u, 1u, 0u, s, static_cast<void**>(nullptr), static_cast<void**>(nullptr)); });
    ask("cooperative kernel", [&] { return call("cuLaunchCooperativeKernel", ground.empty, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s, static_cast<void**>(nullptr)); });
    ask("copy from pageable", [&] { return call("cuMemcpyHtoDAsync_v2", ground.memory, static_cast<const void*>(pageable), std::size_t{64}, s); });
    ask("copy to pageable", [&] { return call("cuMemcpyDtoHAsync_v2", static_cast<void*>(pageable), ground.memory, std::size_t{64}, s); });
    ask("copy on the device", [&] { return call("cuMemcpyDtoDAsync_v2", ground.memory, ground.other_memory, std::size_t{64}, s); });
    ask("copy by addresses", [&] { return call("cuMemcpyAsync", ground.memory, reinterpret_cast<CUdeviceptr>(pageable), std::size_t{64}, s); });
    ask("copy of pageable to pageable", [&] { return call("cuMemcpyAsync", reinterpret_cast<CUdeviceptr>(pageable), reinterpret_cast<CUdeviceptr>(pageable + 128), std::size_t{64}, s); });
    ask("copy of 0", [&] { return call("cuMemcpyDtoDAsync_v2", ground.memory, ground.other_memory, std::size_t{0}, s); });
    ask("copy past the end", [&] { return call("cuMemcpyDtoDAsync_v2", ground.memory, ground.other_memory, std::size_t{1} << 24, s); });
    ask("fill of bytes", [&] { return call("cuMemsetD8Async", ground.memory, static_cast<unsigned char>(1), std::size_t{64}, s); });
    ask("fill of words", [&] { return call("cuMemsetD32Async", ground.memory, 1u, std::size_t{64}, s); });
    ask("fill of rows", [&] { return call("cuMemsetD2D8Async", ground.memory, std::size_t{128}, static_cast<unsigned char>(1), std::size_t{64}, std::size_t{2}, s); });
    ask("fill of 0", [&] { return call("cuMemsetD8Async", ground.memory, static_cast<unsigned char>(1), std::size_t{0}, s); });
    ask("host function", [&] { return call("cuLaunchHostFunc", s, nothing, no_pointer); });
    ask("event", [&] { launch(ground, s); return call("cuEventRecord", ground.event, s); });
    ask("event with flags 0", [&] { return call("cuEventRecordWithFlags", ground.event, s, 0u); });
    ask("external event", [&] { launch(ground, s); return call("cuEventRecordWithFlags", ground.event, s, 1u); });
    must("cuEventRecord", ground.event, ground.second);
    ask("wait for an event from outside", [&] { return call("cuStreamWaitEvent", s, ground.event, 0u); });
    ask("external wait", [&] { return call("cuStreamWaitEvent", s, ground.event, 1u); });
    ask("wait for an unrecorded event", [&] { CUevent e{}; call("cuEventCreate", &e, 0u); return call("cuStreamWaitEvent", s, e, 0u); });
    ask("graph", [&] { return call("cuGraphLaunch", exec, s); });
    ask("graph and kernel", [&] { call("cuGraphLaunch", exec, s); return launch(ground, s); });
    ask("alloc", [&] { return call("cuMemAllocAsync", &pointer, std::size_t{64}, s); });
    ask("alloc and free", [&] { call("cuMemAllocAsync", &pointer, std::size_t{64}, s); return call("cuMemFreeAsync", pointer, s); });
    ask("free of cuMemAlloc", [&] { return call("cuMemFreeAsync", ground.memory, s); });
    must("cuMemAllocAsync", &pointer, std::size_t{64}, ground.second);
    must("cuStreamSynchronize", ground.second);
    ask("free of an earlier cuMemAllocAsync", [&] { return call("cuMemFreeAsync", pointer, s); });
    ask("write value", [&] { return call("cuStreamWriteValue32_v2", s, ground.memory, 1u, 0u); });
    ask("wait value", [&] { return call("cuStreamWaitValue32_v2", s, ground.memory, 1u, 1u); });
    ask("batch", [&] { CUstreamBatchMemOpParams p[1]{}; p[0].value = {2, ground.memory, 7, 0, 0}; return call("cuStreamBatchMemOp_v2", s, 1u, p, 0u); });
    ask("prefetch", [&] { CUdeviceptr m = 0; call("cuMemAllocManaged", &m, std::size_t{64}, 1u); return call("cuMemPrefetchAsync", m, std::size_t{64}, 0, s); });
    const auto with_attribute = [&](unsigned id, auto fill) {
        CUlaunchAttribute attribute{};
        attribute.id = id;
        fill(attribute.value);
        CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, s, &attribute, 1};
        return call("cuLaunchKernelEx", &config, ground.empty, static_cast<void**>(nullptr), static_cast<void**>(nullptr));
    };
    ask("programmatic serialization", [&] { launch(ground, s); return with_attribute(6, [](CUlaunchAttributeValue& v) { v.cooperative = 1; }); });
    ask("programmatic serialization of the first", [&] { return with_attribute(6, [](CUlaunchAttributeValue& v) { v.cooperative = 1; }); });
    ask("programmatic serialization behind a fill", [&] { call("cuMemsetD8Async", ground.memory, static_cast<unsigned char>(1), std::size_t{64}, s); return with_attribute(6, [](CUlaunchAttributeValue& v) { v.cooperative = 1; }); });
    CUevent timeless{};
    must("cuEventCreate", &timeless, 2u);
    ask("programmatic event", [&] {
        const int result = with_attribute(7, [&](CUlaunchAttributeValue& v) { v.programmaticEvent = {timeless, 0, 0}; });
        must("cuStreamWaitEvent", ground.second, timeless, 0u);
        launch(ground, ground.second);
        must("cuEventRecord", ground.event, ground.second);
        must("cuStreamWaitEvent", s, ground.event, 0u);
        return result;
    });
    ask("launch completion event", [&] {
        const int result = with_attribute(12, [&](CUlaunchAttributeValue& v) { v.launchCompletionEvent = {timeless, 0}; });
        must("cuStreamWaitEvent", ground.second, timeless, 0u);
        launch(ground, ground.second);
        must("cuEventRecord", ground.event, ground.second);
        must("cuStreamWaitEvent", s, ground.event, 0u);
        return result;
    });
    ask("priority", [&] { return with_attribute(8, [](CUlaunchAttributeValue& v) { v.priority = -1; }); });
}

void ask_forks(const Ground& ground) {
    CUstream s = ground.stream, t = ground.second;
    CUevent e = ground.event, f = ground.second_event;
    const auto fork = [&] {
        must("cuEventRecord", e, s);
        return call("cuStreamWaitEvent", t, e, 0u);
    };
    const auto join = [&] {
        int result = call("cuEventRecord", f, t);
        return result ? result : call("cuStreamWaitEvent", s, f, 0u);
    };
    begin(s);
    launch(ground, s);
    ground.give("fork", fork());
    ground.give("fork: the other captures", status_of(t));
    launch(ground, t), launch(ground, s);
    ground.give("join", join());
    launch(ground, s);
    ground.give("fork and join: end", end(s));
    ground.give("fork and join: the other", status_of(t));
    begin(s), fork(), launch(ground, t);
    ground.give("unjoined: end", end(s));
    ground.give("unjoined: both", status_of(s) + status_of(t));
    begin(s), fork();
    ground.give("a fork without work: end", end(s));
    begin(s), launch(ground, s), fork();
    ground.give("a fork behind work without work: end", end(s));
    begin(s), fork(), launch(ground, t), join(), launch(ground, t);
    ground.give("work behind the join: end", end(s));
    begin(s), fork();
    ground.give("end in the forked stream", end(t));
    ground.give("end in the forked stream: both", status_of(s) + status_of(t));
    ground.give("end in the first then", end(s));
    begin(s), fork();
    ground.give("begin in the forked stream", begin(t));
    ground.give("query the event", call("cuEventQuery", e));
    ground.give("query the event: captures", status_of(s));
    ground.give("end", end(s));
    begin(s), must("cuEventRecord", e, s);
    ground.give("synchronize the event", call("cuEventSynchronize", e));
    ground.give("synchronize: end", end(s));
    ground.give("query it after the end", call("cuEventQuery", e));
    ground.give("synchronize it after the end", call("cuEventSynchronize", e));
    ground.give("wait for it after the end", call("cuStreamWaitEvent", t, e, 0u));
    float time = 0;
    ground.give("elapsed after the end", call("cuEventElapsedTime", &time, e, e));
    begin(s);
    ground.give("wait for it in a new capture", call("cuStreamWaitEvent", s, e, 0u));
    ground.give("that: end", end(s));
    must("cuEventRecord", e, t);
    ground.give("recorded anew: query", call("cuEventQuery", e) == 907);
    // Two captures.
    begin(s), begin(t);
    must("cuEventRecord", e, s);
    ground.give("two captures: wait", call("cuStreamWaitEvent", t, e, 0u));
    ground.give("two captures: both", status_of(s) + status_of(t));
    ground.give("two captures: end", end(s) + " | " + end(t));
    // Isolation.
    must("cuEventRecord", e, t);
    begin(s);
    ground.give("wait for uncaptured work", call("cuStreamWaitEvent", s, e, 0u));
    ground.give("wait for uncaptured work: end", end(s));
    begin(s), must("cuEventRecord", e, s);
    ground.give("the default stream waits", call("cuStreamWaitEvent", CUstream{}, e, 0u));
    ground.give("the default stream waits: end", end(s));
    begin(s), must("cuEventRecord", e, s);
    ground.give("the thread's stream waits", call("cuStreamWaitEvent", reinterpret_cast<CUstream>(2), e, 0u));
    ground.give("the thread's stream captures", status_of(reinterpret_cast<CUstream>(2)));
    ground.give("the thread's stream waits: end", end(s));
    // Threads.
    for (int mode : {0, 1, 2}) {
        begin(s, mode);
        std::string answer;
        std::thread([&] {
            must("cuCtxSetCurrent", ground.context);
            answer = end(s);
        }).join();
        ground.give("end by another thread in mode " + number(mode), answer + ", then " + status_of(s));
        if (status_of(s) != "0") ground.give("and by this one, mode " + number(mode), end(s));
    }
    // Life of streams and events.
    CUstream u{};
    CUevent g{};
    must("cuStreamCreate", &u, 1u);
    begin(u);
    ground.give("destroy a capturing stream", call("cuStreamDestroy_v2", u));
    must("cuStreamCreate", &u, 1u);
    must("cuEventCreate", &g, 0u);
    begin(s), must("cuEventRecord", g, s), must("cuStreamWaitEvent", u, g, 0u);
    launch(ground, u);
    ground.give("destroy a forked stream", call("cuStreamDestroy_v2", u));
    ground.give("destroy a forked stream: first", status_of(s));
    ground.give("destroy a forked stream: end", end(s));
    begin(s), must("cuEventRecord", g, s);
    ground.give("destroy a captured event", call("cuEventDestroy_v2", g));
    ground.give("destroy a captured event: end", end(s));
    // Starting and ending.
    ground.give("begin in the default stream", begin(nullptr));
    ground.give("begin in stream 1", begin(reinterpret_cast<CUstream>(1)));
    ground.give("begin per thread", begin(reinterpret_cast<CUstream>(2)));
    ground.give("end per thread", end(reinterpret_cast<CUstream>(2)));
    ground.give("begin with mode 3", begin(s, 3));
    ground.give("begin with mode -1", begin(s, -1));
    ground.give("begin v1", call("cuStreamBeginCapture", s));
    ground.give("end to null", call("cuStreamEndCapture", s, static_cast<CUgraph*>(nullptr)));
    ground.give("end to null: captures", status_of(s));
    if (status_of(s) != "0") end(s);
    ground.give("end what did not begin", end(s));
    ground.give("end the default stream", end(nullptr));
    ground.give("status to null", call("cuStreamIsCapturing", s, static_cast<int*>(nullptr)));
    ground.give("status of the default stream", status_of(nullptr));
    begin(ground.blocking);
    ground.give("status of the default stream while a blocking one captures", status_of(nullptr));
    ground.give("then", status_of(ground.blocking));
    end(ground.blocking);
    // Modes of threads.
    for (int mode : {0, 1, 2, 3, -1}) {
        int exchanged = mode;
        const int result = call("cuThreadExchangeStreamCaptureMode", &exchanged);
        ground.give("exchange with " + number(mode), number(result) + " " + number(exchanged));
    }
    int first_mode = 0;
    must("cuThreadExchangeStreamCaptureMode", &first_mode);
    for (int thread_mode : {0, 1, 2})
        for (int capture_mode : {0, 1, 2})
            for (bool other : {false, true}) {
                int result = 0;
                begin(s, capture_mode);
                const auto allocate = [&] {
                    int mode = thread_mode;
                    must("cuThreadExchangeStreamCaptureMode", &mode);
                    CUdeviceptr pointer = 0;
                    result = call("cuMemAlloc_v2", &pointer, std::size_t{64});
                    must("cuThreadExchangeStreamCaptureMode", &mode);
                };
                if (other)
                    std::thread([&] {
                        must("cuCtxSetCurrent", ground.context);
                        allocate();
                    }).join();
                else
                    allocate();
                ground.give("cuMemAlloc in thread mode " + number(thread_mode) + " while " + (other ? "another thread" : "this thread") + " captures in mode " + number(capture_mode),
                            number(result) + ", end " + end(s));
            }
}

void ask_information(const Ground& ground) {
    CUstream s = ground.stream, t = ground.second;
    const CUgraphNode* before = nullptr;
    const CUgraphEdgeData* data = nullptr;
    std::size_t count = 77;
    int status = 77;
    unsigned long long id = 77, first = 0;
    CUgraph graph{};
    const auto info = [&](const std::string& what, CUstream stream) {
        before = nullptr, data = nullptr, count = 77, status = 77, id = 77, graph = nullptr;
        const int result = call("cuStreamGetCaptureInfo_v3", stream, &status, &id, &graph, &before, &data, &count);
        std::string answer = number(result) + " status " + number(status);
        if (!result && status == 1) {
            answer += " " + shape_of(graph) + " before";
            std::size_t nodes = 20;
            CUgraphNode all[20]{};
            must("cuGraphGetNodes", graph, static_cast<CUgraphNode*>(all), &nodes);
            for (std::size_t i = 0; i < count && i < 20; ++i)
                for (std::size_t n = 0; n < nodes; ++n)
                    if (all[n] == before[i]) answer += " " + number(static_cast<long long>(n));
            answer += data ? " data" : " no data";
        } else {
            answer += (id == 77 ? " id untouched" : " id " + number(static_cast<long long>(id))) + (count == 77 ? " count untouched" : " count " + number(static_cast<long long>(count)));
        }
        ground.give(what, answer);
    };
    info("outside", s);
    info("the default stream outside", nullptr);
    begin(s);
    info("begun", s);
    first = id;
    launch(ground, s);
    info("a kernel", s);
    must("cuEventRecord", ground.event, s);
    launch(ground, s);
    must("cuStreamWaitEvent", t, ground.event, 0u);
    info("forked", t);
    ground.give("the same sequence", id == first);
    launch(ground, t);
    must("cuEventRecord", ground.second_event, t);
    must("cuStreamWaitEvent", s, ground.second_event, 0u);
    info("joined", s);
    CUgraphNode all[20]{};
    std::size_t nodes = 20;
    must("cuGraphGetNodes", graph, static_cast<CUgraphNode*>(all), &nodes);
    CUgraph other = ground.graph();
    CUgraphNode foreign = ground.empty_node(other), own{};
    CUgraphEdgeData* const no_data = nullptr;
    const auto update = [&](const char* what, CUstream stream, CUgraphNode* list, std::size_t size, unsigned flags) {
        ground.give(std::string("update: ") + what, call("cuStreamUpdateCaptureDependencies", stream, list, size, flags));
        if (stream == s) info(std::string("update: then, ") + what, s);
    };
    update("add the first", s, all, 1, 0);
    update("set the first", s, all, 1, 1);
    update("add it again", s, all, 1, 0);
    update("set a twice", s, std::vector<CUgraphNode>{all[0], all[0]}.data(), 2, 1);
    update("add a foreign node", s, &foreign, 1, 0);
    update("add null", s, std::vector<CUgraphNode>{nullptr}.data(), 1, 0);
    update("no array of 1", s, nullptr, 1, 0);
    update("flags 2", s, all, 1, 2);
    update("another stream's", ground.blocking, all, 1, 0);
    must("cuGraphAddEmptyNode", &own, graph, static_cast<const CUgraphNode*>(all), std::size_t{1});
    update("set an own node", s, &own, 1, 1);
    CUgraphEdgeData programmatic{1, 0, 1, {}};
    ground.give("update: with data", call("cuStreamUpdateCaptureDependencies_v2", s, static_cast<CUgraphNode*>(all), &programmatic, std::size_t{1}, 0u));
    info("update: then, with data", s);
    ground.give("info v2 with such data", call("cuStreamGetCaptureInfo_v2", s, &status, &id, &graph, &before, &count));
    ground.give("info v3 without a place for data", call("cuStreamGetCaptureInfo_v3", s, &status, &id, &graph, &before, static_cast<const CUgraphEdgeData**>(nullptr), &count));
    ground.give("info v3 without places", call("cuStreamGetCaptureInfo_v3", s, &status, static_cast<unsigned long long*>(nullptr), static_cast<CUgraph*>(nullptr), static_cast<const CUgraphNode**>(nullptr), static_cast<const CUgraphEdgeData**>(nullptr), static_cast<std::size_t*>(nullptr)));
    ground.give("info v3 to null", call("cuStreamGetCaptureInfo_v3", s, static_cast<int*>(nullptr), &id, &graph, &before, &data, &count));
    ground.give("info v1", call("cuStreamGetCaptureInfo", s, &status, &id), [&] { return std::string() + " " + number(status); });
    update("set nothing", s, nullptr, 0, 1);
    ground.give("destroy the graph that is captured", call("cuGraphDestroy", graph));
    ground.give("instantiate the graph that is captured", [&] { CUgraphExec exec{}; return call("cuGraphInstantiateWithFlags", &exec, graph, 0ull); }());
    ground.give("end", end(s));
    // Forked streams that are joined by an update of dependencies.
    begin(s);
    must("cuEventRecord", ground.event, s), must("cuStreamWaitEvent", t, ground.event, 0u);
    launch(ground, t);
    info("to join by hand", t);
    CUgraphNode last = count == 1 ? before[0] : nullptr;
    ground.give("join by hand", call("cuStreamUpdateCaptureDependencies", s, &last, std::size_t{1}, 0u));
    ground.give("joined by hand: end", end(s));
    // Invalidated.
    begin(s);
    (void)call("cuStreamSynchronize", s);
    info("invalidated", s);
    ground.give("invalidated: update", call("cuStreamUpdateCaptureDependencies", s, static_cast<CUgraphNode*>(nullptr), std::size_t{0}, 1u));
    ground.give("invalidated: launch", launch(ground, s));
    ground.give("invalidated: record", call("cuEventRecord", ground.event, s));
    ground.give("invalidated: begin", begin(s));
    ground.give("invalidated: query", call("cuStreamQuery", s));
    ground.give("invalidated: alloc", [&] { CUdeviceptr p = 0; return call("cuMemAlloc_v2", &p, std::size_t{64}); }());
    ground.give("invalidated: end", end(s));
    // Into a graph that exists.
    CUgraph target = ground.graph();
    CUgraphNode a = ground.empty_node(target), b = ground.empty_node(target);
    const auto into = [&](const char* what, CUgraph to, const CUgraphNode* list, std::size_t size, int mode) {
        const int result = call("cuStreamBeginCaptureToGraph", s, to, list, static_cast<const CUgraphEdgeData*>(nullptr), size, mode);
        std::string answer = number(result);
        if (!result) {
            launch(ground, s);
            CUgraph ended{};
            const int end_result = call("cuStreamEndCapture", s, &ended);
            answer += " end " + number(end_result) + (ended == to ? " same " : " other ") + shape_of(to);
        }
        ground.give(std::string("into a graph: ") + what, answer);
    };
    into("behind nothing", target, nullptr, 0, 0);
    into("behind b", target, &b, 1, 2);
    into("behind b twice", target, std::vector<CUgraphNode>{b, b}.data(), 2, 0);
    into("behind a foreign node", target, &foreign, 1, 0);
    into("behind null", target, std::vector<CUgraphNode>{nullptr}.data(), 1, 0);
    into("no array of 1", target, nullptr, 1, 0);
    into("null", nullptr, nullptr, 0, 0);
    into("mode 5", target, nullptr, 0, 5);
    ground.give("into a graph: again at once", [&] {
        must("cuStreamBeginCaptureToGraph", s, target, static_cast<const CUgraphNode*>(&a), static_cast<const CUgraphEdgeData*>(nullptr), std::size_t{1}, 0);
        return call("cuStreamBeginCaptureToGraph", t, target, static_cast<const CUgraphNode*>(nullptr), static_cast<const CUgraphEdgeData*>(nullptr), none, 0);
    }());
    info("into a graph: information", s);
    ground.give("into a graph: invalidated", call("cuStreamQuery", s));
    CUgraph ended{};
    const int result = call("cuStreamEndCapture", s, &ended);
    ground.give("into a graph: invalidated, end", number(result) + (ended ? " graph " : " null ") + shape_of(target));
    if (status_of(t) != "0") ground.give("into a graph: the second's end", end(t));
    (void)no_nodes, (void)no_data;
}

} // namespace

const std::vector<Group> capture_groups = {
    {"capture records", ask_records},
    {"forks", ask_forks},
    {"capture information", ask_information},
    {"calls, global", ask_calls<0, false, false>},
    {"calls, global, another thread", ask_calls<0, true, false>},
    {"calls, thread local", ask_calls<1, false, false>},
    {"calls, thread local, another thread", ask_calls<1, true, false>},
    {"calls, relaxed", ask_calls<2, false, false>},
    {"calls, relaxed, another thread", ask_calls<2, true, false>},
    {"calls, global, blocking", ask_calls<0, false, true>},
    {"calls, relaxed, blocking", ask_calls<2, false, true>},
};

} // namespace graph_questions
