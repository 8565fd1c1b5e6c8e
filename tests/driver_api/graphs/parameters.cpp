// SPDX-License-Identifier: Apache-2.0
// Questions about the parameters of nodes of each type: what is taken, what is given back.
#include "questions.h"

#include <cstring>

namespace graph_questions {
namespace {

CUgraphNode* const no_nodes = nullptr;
constexpr std::size_t none = 0;

void nothing(void*) {}

std::string words_of(const CUDA_KERNEL_NODE_PARAMS& p, const Ground& ground) {
    return "grid " + number(p.gridDimX) + " " + number(p.gridDimY) + " " + number(p.gridDimZ) + " block " + number(p.blockDimX) + " " +
           number(p.blockDimY) + " " + number(p.blockDimZ) + " shared " + number(p.sharedMemBytes) + (p.func == ground.add ? " add" : p.func ? " func" : " no func") +
           (p.kern ? " kern" : " no kern") + (p.ctx == ground.context ? " ctx" : p.ctx ? " other ctx" : " no ctx") + (p.kernelParams ? " params" : " no params") +
           (p.extra ? " extra" : " no extra");
}

void ask_kernels(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node{};
    unsigned value = 5;
    const CUDA_KERNEL_NODE_PARAMS good = ground.add_kernel(value);
    const auto add = [&](const char* what, auto change) {
        CUDA_KERNEL_NODE_PARAMS p = good;
        change(p);
        ground.give(std::string("add kernel: ") + what, call("cuGraphAddKernelNode_v2", &node, graph, no_nodes, none, &p));
    };
    using P = CUDA_KERNEL_NODE_PARAMS;
    add("no function", [](P& p) { p.func = nullptr; });
    add("grid 0", [](P& p) { p.gridDimY = 0; });
    add("grid y 65536", [](P& p) { p.gridDimY = 65536; });
    add("block 0", [](P& p) { p.blockDimX = 0; });
    add("block 2048", [](P& p) { p.blockDimX = 2048; });
    add("block 32 64", [](P& p) { p.blockDimX = 32, p.blockDimY = 64; });
    add("shared 48K + 1", [](P& p) { p.sharedMemBytes = 49153; });
    add("shared 1M", [](P& p) { p.sharedMemBytes = 1 << 20; });
    add("no parameters", [](P& p) { p.kernelParams = nullptr; });
    add("ctx", [&](P& p) { p.ctx = ground.context; });
    void* extra[] = {nullptr};
    add("parameters and extra", [&](P& p) { p.extra = extra; });
    add("extra of nothing", [&](P& p) { p.kernelParams = nullptr, p.extra = extra; });
    struct { CUdeviceptr p; unsigned v; } packed{ground.memory, 7};
    std::size_t size = 12;
    void* buffer[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &size, nullptr};
    add("extra", [&](P& p) { p.kernelParams = nullptr, p.extra = buffer; });
    CUDA_KERNEL_NODE_PARAMS got{};
    if (!call("cuGraphKernelNodeGetParams_v2", node, &got)) {
        ground.give("get of extra", words_of(got, ground));
        if (got.kernelParams) ground.give("value of extra", *static_cast<unsigned*>(got.kernelParams[1]));
    }
    ground.give("add kernel: null", call("cuGraphAddKernelNode_v2", &node, graph, no_nodes, none, static_cast<P*>(nullptr)));
    ground.give("add kernel: null node", call("cuGraphAddKernelNode_v2", no_nodes, graph, no_nodes, none, &good));
    ground.give("add kernel: null graph", call("cuGraphAddKernelNode_v2", &node, CUgraph{}, no_nodes, none, &good));
    add("good", [](P& p) { p.gridDimX = 3, p.blockDimY = 2, p.sharedMemBytes = 100; });
    value = 99; // copied before
    must("cuGraphKernelNodeGetParams_v2", node, &got);
    ground.give("get", words_of(got, ground));
    ground.give("get: value", *static_cast<unsigned*>(got.kernelParams[1]));
    ground.give("get: own memory", got.kernelParams != good.kernelParams && got.kernelParams[1] != &value);
    CUDA_KERNEL_NODE_PARAMS_v1 old{};
    ground.give("get v1", call("cuGraphKernelNodeGetParams", node, &old));
    ground.give("get v1: func", old.func == ground.add);
    ground.give("get null", call("cuGraphKernelNodeGetParams_v2", CUgraphNode{}, &got));
    ground.give("get to null", call("cuGraphKernelNodeGetParams_v2", node, static_cast<P*>(nullptr)));
    CUgraphNode empty = ground.empty_node(graph);
    ground.give("get of an empty node", call("cuGraphKernelNodeGetParams_v2", empty, &got));
    const auto set = [&](const char* what, auto change) {
        CUDA_KERNEL_NODE_PARAMS p = good;
        change(p);
        ground.give(std::string("set kernel: ") + what, call("cuGraphKernelNodeSetParams_v2", node, &p));
    };
    set("another function", [&](P& p) { p.func = ground.store; });
    set("a function of three", [&](P& p) { p.func = ground.add2, p.kernelParams = nullptr; });
    set("empty()", [&](P& p) { p.func = ground.empty, p.kernelParams = nullptr; });
    set("empty() with parameters", [&](P& p) { p.func = ground.empty; });
    set("grid 0", [](P& p) { p.gridDimX = 0; });
    set("no function", [](P& p) { p.func = nullptr; });
    set("no parameters", [](P& p) { p.kernelParams = nullptr; });
    set("good", [](P&) {});
    ground.give("set null", call("cuGraphKernelNodeSetParams_v2", node, static_cast<P*>(nullptr)));
    ground.give("set of an empty node", call("cuGraphKernelNodeSetParams_v2", empty, &good));
}

void ask_attributes(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node = ground.kernel_node(graph), second = ground.kernel_node(graph), empty = ground.empty_node(graph);
    const auto bytes = [](const CUlaunchAttributeValue& value) {
        std::string text;
        for (int i = 0; i < 32; ++i) text += (i && i % 4 == 0 ? " " : "") + number(static_cast<unsigned char>(value.pad[i]));
        return text;
    };
    for (int id = 0; id <= 17; ++id) {
        CUlaunchAttributeValue value{};
        const int result = call("cuGraphKernelNodeGetAttribute", node, id, &value);
        ground.give("attribute " + number(id), number(result) + (result ? "" : ": " + bytes(value)));
    }
    const auto set = [&](const char* what, int id, auto fill) {
        CUlaunchAttributeValue value{}, read{};
        fill(value);
        const int result = call("cuGraphKernelNodeSetAttribute", node, id, &value);
        const int second = call("cuGraphKernelNodeGetAttribute", node, id, &read);
        ground.give(std::string("set ") + what, number(result) + ", then " + number(second) + ": " + bytes(read));
    };
    using V = CUlaunchAttributeValue;
    set("cooperative 1", launch_cooperative, [](V& v) { v.cooperative = 1; });
    set("cooperative 2", launch_cooperative, [](V& v) { v.cooperative = 2; });
    set("cooperative 0", launch_cooperative, [](V& v) { v.cooperative = 0; });
    set("priority -3", launch_priority, [](V& v) { v.priority = -3; });
    set("priority -30", launch_priority, [](V& v) { v.priority = -30; });
    set("priority 5", launch_priority, [](V& v) { v.priority = 5; });
    set("cluster 1 1 1", launch_cluster_dimension, [](V& v) { v.clusterDim = {1, 1, 1}; });
    set("cluster 2 1 1", launch_cluster_dimension, [](V& v) { v.clusterDim = {2, 1, 1}; });
    set("cluster 0 0 0", launch_cluster_dimension, [](V& v) { v.clusterDim = {0, 0, 0}; });
    set("cluster scheduling 1", launch_cluster_scheduling, [](V& v) { v.cooperative = 1; });
    set("domain 1", launch_mem_sync_domain, [](V& v) { v.memSyncDomain = 1; });
    set("domain 2", launch_mem_sync_domain, [](V& v) { v.memSyncDomain = 2; });
    set("domain map 1 0", launch_mem_sync_domain_map, [](V& v) { v.memSyncDomainMap = {1, 0}; });
    set("carveout 50", launch_shared_carveout, [](V& v) { v.cooperative = 50; });
    set("carveout 101", launch_shared_carveout, [](V& v) { v.cooperative = 101; });
    set("window", launch_access_policy_window, [&](V& v) { v.accessPolicyWindow = {reinterpret_cast<void*>(0x1000), 64, 0.5f, 2, 1}; });
    set("window ratio 2", launch_access_policy_window, [&](V& v) { v.accessPolicyWindow = {reinterpret_cast<void*>(0x1000), 64, 2.f, 2, 1}; });
    set("serialization 1", launch_programmatic_serialization, [](V& v) { v.cooperative = 1; });
    set("synchronization policy 1", launch_synchronization_policy, [](V& v) { v.syncPolicy = 1; });
    set("ignore", launch_ignore, [](V&) {});
    set("17", 17, [](V&) {});
    CUlaunchAttributeValue value{};
    ground.give("of an empty node", call("cuGraphKernelNodeGetAttribute", empty, 2, &value));
    ground.give("of null", call("cuGraphKernelNodeGetAttribute", CUgraphNode{}, 2, &value));
    ground.give("copy", call("cuGraphKernelNodeCopyAttributes", second, node));
    must("cuGraphKernelNodeGetAttribute", second, 8, &value);
    ground.give("copied priority", value.priority);
    ground.give("copy from an empty node", call("cuGraphKernelNodeCopyAttributes", second, empty));
    ground.give("copy from null", call("cuGraphKernelNodeCopyAttributes", second, CUgraphNode{}));
    ground.give("copy to itself", call("cuGraphKernelNodeCopyAttributes", second, second));
}

void ask_copies(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node{};
    unsigned char pageable[256]{};
    using P = CUDA_MEMCPY3D;
    const auto add = [&](const char* what, auto change) {
        P p = ground.copy(ground.memory, ground.other_memory, 64);
        change(p);
        ground.give(std::string("copy: ") + what, call("cuGraphAddMemcpyNode", &node, graph, no_nodes, none, &p, ground.context));
    };
    add("plain", [](P&) {});
    add("to itself", [&](P& p) { p.dstDevice = p.srcDevice; });
    add("width 0", [](P& p) { p.WidthInBytes = 0; });
    add("height 0", [](P& p) { p.Height = 0; });
    add("depth 0", [](P& p) { p.Depth = 0; });
    add("2 rows", [](P& p) { p.Height = 2; });
    add("2 rows of pitch 32", [](P& p) { p.Height = 2, p.srcPitch = p.dstPitch = 32; });
    add("2 rows of pitch 128", [](P& p) { p.Height = 2, p.srcPitch = p.dstPitch = 128; });
    add("2 slices of height 0", [](P& p) { p.Depth = 2, p.srcPitch = p.dstPitch = 128; });
    add("null source", [](P& p) { p.srcDevice = 0; });
    add("past the end", [](P& p) { p.WidthInBytes = (1 << 20) + 1; });
    add("source 0x1234", [](P& p) { p.srcDevice = 0x1234; });
    add("memory type 0", [](P& p) { p.srcMemoryType = 0; });
    add("memory type 5", [](P& p) { p.srcMemoryType = 5; });
    add("from pageable", [&](P& p) { p.srcMemoryType = memory_host, p.srcHost = pageable; });
    add("to pageable", [&](P& p) { p.dstMemoryType = memory_host, p.dstHost = pageable; });
    add("pageable to pageable", [&](P& p) { p.srcMemoryType = p.dstMemoryType = memory_host, p.srcHost = pageable, p.dstHost = pageable + 64; });
    add("from pinned", [&](P& p) { p.srcMemoryType = memory_host, p.srcHost = ground.pinned; });
    add("from null host", [&](P& p) { p.srcMemoryType = memory_host, p.srcHost = nullptr; });
    add("unified pinned", [&](P& p) { p.srcMemoryType = memory_unified, p.srcDevice = reinterpret_cast<CUdeviceptr>(ground.pinned); });
    add("unified pageable", [&](P& p) { p.srcMemoryType = memory_unified, p.srcDevice = reinterpret_cast<CUdeviceptr>(pageable); });
    add("null array", [&](P& p) { p.srcMemoryType = memory_array; });
    add("level 1", [&](P& p) { p.srcLOD = 1; });
    const P good = ground.copy(ground.memory, ground.other_memory, 64);
    ground.give("copy: no context", call("cuGraphAddMemcpyNode", &node, graph, no_nodes, none, &good, CUcontext{}));
    ground.give("copy: null", call("cuGraphAddMemcpyNode", &node, graph, no_nodes, none, static_cast<P*>(nullptr), ground.context));
    ground.give("copy: null node", call("cuGraphAddMemcpyNode", no_nodes, graph, no_nodes, none, &good, ground.context));
    add("with a pitch", [](P& p) { p.srcPitch = 64; });
    P got{};
    must("cuGraphMemcpyNodeGetParams", node, &got);
    ground.give("get", number(static_cast<long long>(got.WidthInBytes)) + " " + number(static_cast<long long>(got.Height)) + " " + number(static_cast<long long>(got.Depth)) + " pitches " +
                           number(static_cast<long long>(got.srcPitch)) + " " + number(static_cast<long long>(got.dstPitch)) + " types " + number(got.srcMemoryType) + " " + number(got.dstMemoryType) +
                           (got.srcDevice == ground.other_memory ? " source" : ""));
    ground.give("get to null", call("cuGraphMemcpyNodeGetParams", node, static_cast<P*>(nullptr)));
    ground.give("get of null", call("cuGraphMemcpyNodeGetParams", CUgraphNode{}, &got));
    P bad = good;
    bad.WidthInBytes = 1 << 24;
    ground.give("set past the end", call("cuGraphMemcpyNodeSetParams", node, &bad));
    bad = good, bad.WidthInBytes = 0;
    ground.give("set width 0", call("cuGraphMemcpyNodeSetParams", node, &bad));
    bad = good, bad.srcMemoryType = memory_host, bad.srcHost = ground.pinned;
    ground.give("set from pinned", call("cuGraphMemcpyNodeSetParams", node, &bad));
    ground.give("set null", call("cuGraphMemcpyNodeSetParams", node, static_cast<P*>(nullptr)));
}

void ask_fills(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node{};
    using P = CUDA_MEMSET_NODE_PARAMS;
    const auto add = [&](const char* what, auto change) {
        P p = ground.fill(ground.memory, 0x01020304, 16);
        change(p);
        ground.give(std::string("fill: ") + what, call("cuGraphAddMemsetNode", &node, graph, no_nodes, none, &p, ground.context));
    };
    add("plain", [](P&) {});
    add("element 1", [](P& p) { p.elementSize = 1; });
    add("element 2 of a larger value", [](P& p) { p.elementSize = 2; });
    add("element 3", [](P& p) { p.elementSize = 3; });
    add("element 0", [](P& p) { p.elementSize = 0; });
    add("element 8", [](P& p) { p.elementSize = 8; });
    add("width 0", [](P& p) { p.width = 0; });
    add("height 0", [](P& p) { p.height = 0; });
    add("2 rows of pitch 0", [](P& p) { p.height = 2; });
    add("2 rows of pitch 32", [](P& p) { p.height = 2, p.pitch = 32; });
    add("2 rows of pitch 66", [](P& p) { p.height = 2, p.pitch = 66; });
    add("2 rows of pitch 128", [](P& p) { p.height = 2, p.pitch = 128; });
    add("misaligned", [](P& p) { p.dst += 2; });
    add("null", [](P& p) { p.dst = 0; });
    add("0x1234", [](P& p) { p.dst = 0x1234; });
    add("past the end", [](P& p) { p.width = (1 << 18) + 1; });
    add("of pinned", [&](P& p) { p.dst = reinterpret_cast<CUdeviceptr>(ground.pinned); });
    P good = ground.fill(ground.memory, 0x01020304, 16), got{};
    ground.give("fill: no context", call("cuGraphAddMemsetNode", &node, graph, no_nodes, none, &good, CUcontext{}));
    ground.give("fill: no parameters", call("cuGraphAddMemsetNode", &node, graph, no_nodes, none, static_cast<P*>(nullptr), ground.context));
    good.pitch = 77;
    must("cuGraphAddMemsetNode", &node, graph, no_nodes, none, &good, ground.context);
    must("cuGraphMemsetNodeGetParams", node, &got);
    ground.give("get", number(static_cast<long long>(got.pitch)) + " " + number(got.value) + " " + number(got.elementSize) + " " + number(static_cast<long long>(got.width)) + " " + number(static_cast<long long>(got.height)));
    good.elementSize = 1, good.value = 0x123;
    must("cuGraphMemsetNodeSetParams", node, &good);
    must("cuGraphMemsetNodeGetParams", node, &got);
    ground.give("get of a byte", got.value);
    good.elementSize = 5;
    ground.give("set element 5", call("cuGraphMemsetNodeSetParams", node, &good));
}

void ask_hosts_and_events(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node{};
    CUDA_HOST_NODE_PARAMS host{nothing, &node}, got{};
    ground.give("host", call("cuGraphAddHostNode", &node, graph, no_nodes, none, &host));
    ground.give("host get", call("cuGraphHostNodeGetParams", node, &got), [&] { return std::string() + (got.fn == nothing && got.userData == &node ? " same" : " other"); });
    host.fn = nullptr;
    ground.give("host set null", call("cuGraphHostNodeSetParams", node, &host));
    ground.give("host null", call("cuGraphAddHostNode", &node, graph, no_nodes, none, &host));
    ground.give("host without parameters", call("cuGraphAddHostNode", &node, graph, no_nodes, none, static_cast<CUDA_HOST_NODE_PARAMS*>(nullptr)));
    CUevent event{}, timeless{}, shared{};
    must("cuEventCreate", &timeless, 2u);
    ground.give("record null", call("cuGraphAddEventRecordNode", &node, graph, no_nodes, none, CUevent{}));
    ground.give("wait for null", call("cuGraphAddEventWaitNode", &node, graph, no_nodes, none, CUevent{}));
    ground.give("record timeless", call("cuGraphAddEventRecordNode", &node, graph, no_nodes, none, timeless));
    ground.give("record", call("cuGraphAddEventRecordNode", &node, graph, no_nodes, none, ground.event));
    ground.give("get", call("cuGraphEventRecordNodeGetEvent", node, &event), [&] { return std::string() + (event == ground.event ? " same" : " other"); });
    ground.give("get as a wait", call("cuGraphEventWaitNodeGetEvent", node, &event));
    ground.give("get to null", call("cuGraphEventRecordNodeGetEvent", node, static_cast<CUevent*>(nullptr)));
    ground.give("set", call("cuGraphEventRecordNodeSetEvent", node, ground.second_event));
    ground.give("set null", call("cuGraphEventRecordNodeSetEvent", node, CUevent{}));
    ground.give("wait", call("cuGraphAddEventWaitNode", &node, graph, &node, std::size_t{1}, ground.event));
    ground.give("get wait", call("cuGraphEventWaitNodeGetEvent", node, &event), [&] { return std::string() + (event == ground.event ? " same" : " other"); });
    ground.give("set wait", call("cuGraphEventWaitNodeSetEvent", node, ground.second_event));
    (void)shared;
}

void ask_generic(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node{};
    CUgraphEdgeData* const no_data = nullptr;
    const auto add = [&](const char* what, auto fill) {
        CUgraphNodeParams p{};
        fill(p);
        node = nullptr;
        const int result = call("cuGraphAddNode_v2", &node, graph, no_nodes, no_data, none, &p);
        int type = -1;
        if (node) must("cuGraphNodeGetType", node, &type);
        ground.give(std::string("add ") + what, number(result) + (node ? " type " + number(type) : ""));
    };
    using P = CUgraphNodeParams;
    add("kernel", [&](P& p) { p.type = 0, p.kernel = ground.empty_kernel(); });
    add("memcpy", [&](P& p) { p.type = 1, p.memcpy.copyParams = ground.copy(ground.memory, ground.other_memory, 64), p.memcpy.copyCtx = ground.context; });
    add("memcpy without context", [&](P& p) { p.type = 1, p.memcpy.copyParams = ground.copy(ground.memory, ground.other_memory, 64); });
    add("memcpy flags 1", [&](P& p) { p.type = 1, p.memcpy.copyParams = ground.copy(ground.memory, ground.other_memory, 64), p.memcpy.flags = 1; });
    add("memcpy reserved 1", [&](P& p) { p.type = 1, p.memcpy.copyParams = ground.copy(ground.memory, ground.other_memory, 64), p.memcpy.reserved = 1; });
    add("memset", [&](P& p) { p.type = 2, p.memset = {ground.memory, 0, 1, 4, 16, 1, ground.context}; });
    add("memset without context", [&](P& p) { p.type = 2, p.memset = {ground.memory, 0, 1, 4, 16, 1, nullptr}; });
    add("host", [&](P& p) { p.type = 3, p.host = {nothing, nullptr}; });
    CUgraph child = ground.graph();
    add("child", [&](P& p) { p.type = 4, p.graph.graph = child; });
    add("empty", [&](P& p) { p.type = 5; });
    add("wait event", [&](P& p) { p.type = 6, p.event.event = ground.event; });
    add("record event", [&](P& p) { p.type = 7, p.event.event = ground.event; });
    add("type 14", [&](P& p) { p.type = 14; });
    add("type -1", [&](P& p) { p.type = -1; });
    add("empty with reserved0", [&](P& p) { p.type = 5, p.reserved0[1] = 1; });
    add("empty with reserved1", [&](P& p) { p.type = 5, p.reserved1[7] = 1; });
    add("empty with reserved2", [&](P& p) { p.type = 5, p.reserved2 = 1; });
    add("kernel with the rest", [&](P& p) { p.type = 0, p.kernel = ground.empty_kernel(), p.reserved1[20] = 1; });
    ground.give("add null", call("cuGraphAddNode_v2", &node, graph, no_nodes, no_data, none, static_cast<P*>(nullptr)));
    CUgraphNode kernel = ground.kernel_node(graph), empty = ground.empty_node(graph);
    P p{};
    p.type = 0, p.kernel = ground.empty_kernel(), p.kernel.gridDimX = 9;
    ground.give("set kernel", call("cuGraphNodeSetParams", kernel, &p));
    CUDA_KERNEL_NODE_PARAMS got{};
    must("cuGraphKernelNodeGetParams_v2", kernel, &got);
    ground.give("grid then", got.gridDimX);
    p.type = 5;
    ground.give("set kernel as empty", call("cuGraphNodeSetParams", kernel, &p));
    ground.give("set empty", call("cuGraphNodeSetParams", empty, &p));
    ground.give("set null", call("cuGraphNodeSetParams", kernel, static_cast<P*>(nullptr)));
    p = {}, p.type = 0, p.kernel = ground.empty_kernel(), p.reserved2 = 1;
    ground.give("set with reserved2", call("cuGraphNodeSetParams", kernel, &p));
}

void ask_batches(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node{};
    CUstreamBatchMemOpParams operations[2]{};
    operations[0].value = {2, ground.memory, 7, 0, 0}; // write 32 bits
    operations[1].value = {1, ground.memory, 7, 1, 0}; // wait until it is 7
    CUDA_BATCH_MEM_OP_NODE_PARAMS p{ground.context, 2, operations, 0}, got{};
    const auto add = [&](const char* what) {
        ground.give(std::string("batch: ") + what, call("cuGraphAddBatchMemOpNode", &node, graph, no_nodes, none, &p));
    };
    add("write and wait");
    must("cuGraphBatchMemOpNodeGetParams", node, &got);
    ground.give("get", number(got.count) + (got.paramArray != operations ? " own " : " given ") + number(got.paramArray[1].value.operation) + " " + number(got.flags) + (got.ctx == ground.context ? " ctx" : " no ctx"));
    CUgraphExec exec{};
    ground.give("instantiate", call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
    ground.give("launch", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    p.count = 0;
    add("none");
    p.count = 257;
    p.count = 2, p.flags = 1;
    add("flags 1");
    p.flags = 0, p.ctx = nullptr;
    add("no context");
    p.ctx = ground.context, p.paramArray = nullptr;
    add("no operations");
    p.paramArray = operations, operations[0].value.operation = 77;
    add("operation 77");
    operations[0].value = {2, ground.memory + 2, 7, 0, 0};
    add("misaligned");
    operations[0].value = {2, 0x1000, 7, 0, 0};
    add("unknown memory");
    operations[0].value = {4, ground.memory, 7, 0, 0};
    add("wait 64");
    operations[0].value = {5, ground.memory, 7, 0, 0};
    add("write 64");
    operations[0].barrier = {6, 0};
    add("memory barrier");
    operations[0].barrier = {3, 0};
    add("flush");
    operations[0].value = {1, ground.memory, 7, 9, 0};
    add("wait flags 9");
}

void ask_conditionals(const Ground& ground) {
    CUgraph graph = ground.graph(), other = ground.graph();
    CUgraphConditionalHandle handle{};
    const auto make = [&](CUgraph of, CUcontext context, unsigned value, unsigned flags) { return call("cuGraphConditionalHandleCreate", &handle, of, context, value, flags); };
    ground.give("handle of null", make(nullptr, ground.context, 0, 0));
    ground.give("handle without context", make(graph, nullptr, 0, 0));
    ground.give("handle with flags 2", make(graph, ground.context, 0, 2));
    ground.give("handle to null", call("cuGraphConditionalHandleCreate", static_cast<CUgraphConditionalHandle*>(nullptr), graph, ground.context, 0u, 0u));
    CUgraph body[8]{};
    CUgraphNode node{};
    CUgraphEdgeData* const no_data = nullptr;
    const auto add = [&](const char* what, CUgraph to, CUgraphConditionalHandle with, int type, unsigned size, CUcontext context) {
        CUgraphNodeParams p{};
        p.type = 13, p.conditional = {with, type, size, nullptr, context};
        const int result = call("cuGraphAddNode_v2", &node, to, no_nodes, no_data, none, &p);
        std::string answer = number(result);
        if (!result && p.conditional.phGraph_out)
            for (unsigned i = 0; i < size; ++i) body[i] = p.conditional.phGraph_out[i], answer += body[i] ? " body" : " null";
        else if (!result) answer += " no bodies";
        ground.give(std::string("node ") + what, answer);
    };
    must("cuGraphConditionalHandleCreate", &handle, graph, ground.context, 1u, 1u);
    add("if of size 0", graph, handle, 0, 0, ground.context);
    add("if of size 3", graph, handle, 0, 3, ground.context);
    add("type 3", graph, handle, 3, 1, ground.context);
    add("while of size 2", graph, handle, 1, 2, ground.context);
    add("switch of size 0", graph, handle, 2, 0, ground.context);
    add("if in another graph", other, handle, 0, 1, ground.context);
    add("if without context", graph, handle, 0, 1, nullptr);
    const CUgraphConditionalHandle first = handle;
    make(graph, ground.context, 1, 1);
    add("if", graph, handle, 0, 1, ground.context);
    add("if with a used handle", graph, handle, 0, 1, ground.context);
    add("if with handle 0x1234", graph, 0x1234, 0, 1, ground.context);
    CUgraph if_body = body[0];
    ground.give("shape of a body", shape_of(if_body));
    CUDA_HOST_NODE_PARAMS host{nothing, nullptr};
    CUgraphNode inside{};
    const CUDA_MEMCPY3D copy = ground.copy(ground.memory + 512, ground.memory, 64);
    const CUDA_MEMSET_NODE_PARAMS fill = ground.fill(ground.memory, 5, 1);
    ground.give("body: kernel", [&] { const auto k = ground.empty_kernel(); return call("cuGraphAddKernelNode_v2", &inside, if_body, no_nodes, none, &k); }());
    ground.give("body: copy", call("cuGraphAddMemcpyNode", &inside, if_body, no_nodes, none, &copy, ground.context));
    ground.give("body: fill", call("cuGraphAddMemsetNode", &inside, if_body, no_nodes, none, &fill, ground.context));
    ground.give("body: empty", call("cuGraphAddEmptyNode", &inside, if_body, no_nodes, none));
    ground.give("body: child", call("cuGraphAddChildGraphNode", &inside, if_body, no_nodes, none, other));
    ground.give("body: event", call("cuGraphAddEventRecordNode", &inside, if_body, no_nodes, none, ground.event));
    if (inside) ground.give("body: shape", shape_of(if_body));
    ground.give("body: host", call("cuGraphAddHostNode", &inside, if_body, no_nodes, none, &host));
    ground.give("body: shape then", shape_of(if_body));
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.poolProps.allocType = 1, alloc.poolProps.location = {1, 0}, alloc.bytesize = 64;
    ground.give("body: alloc", call("cuGraphAddMemAllocNode", &inside, if_body, no_nodes, none, &alloc));
    ground.give("destroy a body", call("cuGraphDestroy", if_body));
    CUgraphExec exec{};
    ground.give("instantiate a body", call("cuGraphInstantiateWithFlags", &exec, if_body, 0ull));
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    const int result = call("cuGraphInstantiateWithParams", &exec, graph, &params);
    ground.give("instantiate with an unused handle", number(result) + " " + number(params.result_out) + (params.hErrNode_out ? " node" : ""));
    ground.give("clone", call("cuGraphClone", &other, graph));
    CUgraph parent = ground.graph();
    ground.give("as a child", call("cuGraphAddChildGraphNode", &inside, parent, no_nodes, none, graph));
    (void)first;
    // What is instantiated with nodes of other kinds inside.
    for (int kind : {3, 7, 6, 10, 12, 13}) {
        CUgraph g = ground.graph();
        must("cuGraphConditionalHandleCreate", &handle, g, ground.context, 1u, 1u);
        CUgraphNodeParams p{};
        p.type = 13, p.conditional = {handle, 0, 1, nullptr, ground.context};
        must("cuGraphAddNode_v2", &node, g, no_nodes, no_data, none, &p);
        CUgraph in = p.conditional.phGraph_out[0];
        p = {}, p.type = kind;
        CUstreamBatchMemOpParams operation{};
        operation.value = {2, ground.memory, 7, 0, 0};
        if (kind == 3) p.host = {nothing, nullptr};
        if (kind == 7 || kind == 6) p.event.event = ground.event;
        if (kind == 10) p.alloc = alloc;
        if (kind == 12) p.memOp = {ground.context, 1, &operation, 0};
        if (kind == 13) {
            must("cuGraphConditionalHandleCreate", &handle, g, ground.context, 1u, 1u);
            p.conditional = {handle, 0, 1, nullptr, ground.context};
        }
        const int added = call("cuGraphAddNode_v2", &inside, in, no_nodes, no_data, none, &p);
        CUDA_GRAPH_INSTANTIATE_PARAMS with{};
        const int made = call("cuGraphInstantiateWithParams", &exec, g, &with);
        ground.give("a body with type " + number(kind), number(added) + " instantiate " + number(made) + " " + number(with.result_out) + (with.hErrNode_out ? with.hErrNode_out == inside ? " node inside" : with.hErrNode_out == node ? " node" : " another" : ""));
    }
    // What runs, by default values.
    for (int type : {0, 2})
        for (unsigned size : {1u, 2u, 3u})
            for (unsigned value : {0u, 1u, 2u, 7u}) {
                if (type == 0 && size == 3) continue;
                CUgraph g = ground.graph();
                must("cuGraphConditionalHandleCreate", &handle, g, ground.context, value, 1u);
                CUgraphNodeParams p{};
                p.type = 13, p.conditional = {handle, type, size, nullptr, ground.context};
                must("cuGraphAddNode_v2", &node, g, no_nodes, no_data, none, &p);
                for (unsigned i = 0; i < size; ++i) {
                    const CUDA_MEMSET_NODE_PARAMS mark = ground.fill(ground.memory + 4 * i, 1, 1);
                    must("cuGraphAddMemsetNode", &inside, p.conditional.phGraph_out[i], no_nodes, none, &mark, ground.context);
                }
                must("cuMemsetD8_v2", ground.memory, static_cast<unsigned char>(0), std::size_t{64});
                must("cuCtxSynchronize");
                std::string answer = number(call("cuGraphInstantiateWithFlags", &exec, g, 0ull));
                answer += in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); });
                unsigned marks[3]{};
                must("cuMemcpyDtoH_v2", static_cast<void*>(marks), ground.memory, std::size_t{12});
                answer += ": " + number(marks[0]) + number(marks[1]) + number(marks[2]);
                CUgraphExec twice{};
                answer += " a second instance " + number(call("cuGraphInstantiateWithFlags", &twice, g, 0ull));
                ground.give(std::string(type ? "switch" : "if") + " of " + number(size) + " at " + number(value), answer);
            }
    // Without a default.
    CUgraph g = ground.graph();
    must("cuGraphConditionalHandleCreate", &handle, g, ground.context, 1u, 0u);
    CUgraphNodeParams p{};
    p.type = 13, p.conditional = {handle, 0, 2, nullptr, ground.context};
    must("cuGraphAddNode_v2", &node, g, no_nodes, no_data, none, &p);
    ground.give("type", [&] { int type = 0; must("cuGraphNodeGetType", node, &type); return type; }());
    ground.give("set params of it", call("cuGraphNodeSetParams", node, &p));
    ground.give("destroy the node", call("cuGraphDestroyNode", node));
    ground.give("instantiate then", call("cuGraphInstantiateWithFlags", &exec, g, 0ull));
}

} // namespace

const std::vector<Group> parameter_groups = {
    {"kernels", ask_kernels}, {"attributes", ask_attributes}, {"copies", ask_copies}, {"fills", ask_fills}, {"hosts and events", ask_hosts_and_events},
    {"generic", ask_generic}, {"batches", ask_batches},       {"conditionals", ask_conditionals},
};

} // namespace graph_questions
