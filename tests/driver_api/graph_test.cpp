// SPDX-License-Identifier: Apache-2.0
// What graphs compute: each case builds one, or captures it, and looks at the memory that it leaves. What the driver says
// of wrong calls: graphs/.
#include "driver.h"

#include "runtime/shim/graph_types.h"
#include "runtime/shim/texture_types.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

using namespace ptarmigan::shim;

extern "C" {
CUresult cuGraphCreate(CUgraph*, unsigned);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphClone(CUgraph*, CUgraph);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode*, std::size_t*);
CUresult cuGraphNodeGetType(CUgraphNode, int*);
CUresult cuGraphNodeFindInClone(CUgraphNode*, CUgraphNode, CUgraph);
CUresult cuGraphDestroyNode(CUgraphNode);
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode*, const CUgraphNode*, std::size_t);
CUresult cuGraphAddEmptyNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t);
CUresult cuGraphAddKernelNode_v2(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_KERNEL_NODE_PARAMS*);
CUresult cuGraphAddMemcpyNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_MEMCPY3D*, CUcontext);
CUresult cuGraphAddMemsetNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_MEMSET_NODE_PARAMS*,
                              CUcontext);
CUresult cuGraphAddHostNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const CUDA_HOST_NODE_PARAMS*);
CUresult cuGraphAddChildGraphNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraph);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph*);
CUresult cuGraphAddEventRecordNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent);
CUresult cuGraphAddEventWaitNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUevent);
CUresult cuGraphAddMemAllocNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUDA_MEM_ALLOC_NODE_PARAMS*);
CUresult cuGraphAddMemFreeNode(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUdeviceptr);
CUresult cuGraphAddNode_v2(CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t,
                           CUgraphNodeParams*);
CUresult cuGraphAddNode_v3(CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, std::size_t,
                           CUgraphNodeParams*);
CUresult cuGraphNodeSetParams_v2(CUgraphNode, CUgraphNodeParams*);
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle*, CUgraph, CUcontext, unsigned, unsigned);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*);
CUresult cuGraphNodeSetEnabled(CUgraphExec, CUgraphNode, unsigned);
CUresult cuGraphDebugDotPrint(CUgraph, const char*, unsigned);
CUresult cuUserObjectCreate(CUuserObject*, void*, CUhostFn, unsigned, unsigned);
CUresult cuGraphRetainUserObject(CUgraph, CUuserObject, unsigned, unsigned);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuStreamIsCapturing(CUstream, int*);
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode, CUDA_MEMCPY3D*);
CUresult cuArrayCreate_v2(CUarray*, const CUDA_ARRAY_DESCRIPTOR*);
CUresult cuArrayDestroy(CUarray);
CUresult cuMemcpyHtoAAsync_v2(CUarray, std::size_t, const void*, std::size_t, CUstream);
CUresult cuMemcpyAtoH_v2(void*, CUarray, std::size_t, std::size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, std::size_t, CUstream);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, std::size_t, CUstream);
}

namespace {

/// The kernels, as a text or as machine code.
constexpr char texts[] = PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/graph_kernels.ptx",
               machine_code[] = PTARMIGAN_SOURCE_DIR "/tests/programs/cubin/graph_kernels.sm_90.cubin";

/// Everything that a case needs; what it makes goes with it.
struct Ground {
    CUcontext context = driver_test::context();
    CUmodule module = nullptr;
    CUstream stream = nullptr, second = nullptr;
    CUdeviceptr memory = 0;
    CUgraph graph = nullptr;

    explicit Ground(const std::string& file = texts) {
        REQUIRE(cuModuleLoad(&module, file.c_str()) == 0);
        REQUIRE(cuStreamCreate(&stream, 1) == 0);
        REQUIRE(cuStreamCreate(&second, 1) == 0);
        memory = driver_test::allocate(4096);
        REQUIRE(cuMemsetD8_v2(memory, 0, 4096) == 0);
        REQUIRE(cuGraphCreate(&graph, 0) == 0);
    }
    ~Ground() {
        cuStreamSynchronize(stream);
        cuStreamSynchronize(second);
        if (graph) cuGraphDestroy(graph);
        cuStreamDestroy_v2(stream);
        cuStreamDestroy_v2(second);
        cuMemFree_v2(memory);
        cuModuleUnload(module);
    }
    CUfunction function(const char* name) const {
        CUfunction found = nullptr;
        REQUIRE(cuModuleGetFunction(&found, module, name) == 0);
        return found;
    }
    template <class... Values> CUgraphNode kernel(const std::vector<CUgraphNode>& before, const char* name, Values... values) {
        return kernel_in(graph, before, name, values...);
    }
    template <class... Values>
    CUgraphNode kernel_in(CUgraph to, const std::vector<CUgraphNode>& before, const char* name, Values... values) {
        void* parameters[] = {&values..., nullptr};
        const CUDA_KERNEL_NODE_PARAMS node_parameters = parameters_of(name, parameters);
        CUgraphNode node = nullptr;
        REQUIRE(cuGraphAddKernelNode_v2(&node, to, before.data(), before.size(), &node_parameters) == 0);
        return node;
    }
    CUDA_KERNEL_NODE_PARAMS parameters_of(const char* name, void** parameters) const {
        CUDA_KERNEL_NODE_PARAMS p{};
        p.func = function(name);
        p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
        p.kernelParams = parameters;
        return p;
    }
    template <class... Values> void launch(CUstream in, const char* name, Values... values) const {
        void* parameters[] = {&values..., nullptr};
        REQUIRE(cuLaunchKernel(function(name), 1, 1, 1, 1, 1, 1, 0, in, parameters, nullptr) == 0);
    }
    CUgraphExec instance(CUgraph of = nullptr, unsigned long long flags = 0) const {
        CUgraphExec exec = nullptr;
        REQUIRE(cuGraphInstantiateWithFlags(&exec, of ? of : graph, flags) == 0);
        return exec;
    }
    void run(CUgraphExec exec) const {
        REQUIRE(cuGraphLaunch(exec, stream) == 0);
        REQUIRE(cuStreamSynchronize(stream) == 0);
    }
    unsigned word(std::size_t index) const {
        unsigned value = 0;
        REQUIRE(cuMemcpyDtoH_v2(&value, memory + 4 * index, 4) == 0);
        return value;
    }
    void set(std::size_t index, unsigned value) const { REQUIRE(cuMemcpyHtoD_v2(memory + 4 * index, &value, 4) == 0); }
    CUDA_MEMCPY3D copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const {
        CUDA_MEMCPY3D copy{};
        copy.srcMemoryType = copy.dstMemoryType = memory_device;
        copy.srcDevice = from, copy.dstDevice = to;
        copy.WidthInBytes = bytes, copy.Height = copy.Depth = 1;
        return copy;
    }
};

CUDA_MEM_ALLOC_NODE_PARAMS alloc_of(std::size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.poolProps.allocType = 1, alloc.poolProps.location = {1, 0}, alloc.bytesize = bytes;
    return alloc;
}

} // namespace

TEST_CASE("graph: nodes run in the order of their edges, launch after launch") {
    Ground g;
    // 3 * (3 * 1 + 2) + 4 whatever the order in which they were made.
    CUgraphNode last = g.kernel({}, "mad3", g.memory, 4u), middle = g.kernel({}, "mad3", g.memory, 2u);
    const CUDA_MEMSET_NODE_PARAMS one{g.memory, 0, 1, 4, 1, 1};
    CUgraphNode first = nullptr;
    REQUIRE(cuGraphAddMemsetNode(&first, g.graph, nullptr, 0, &one, g.context) == 0);
    CUgraphNode from[] = {first, middle}, to[] = {middle, last};
    REQUIRE(cuGraphAddDependencies(g.graph, from, to, 2) == 0);
    static std::atomic<int> calls{0};
    calls = 0;
    const CUDA_HOST_NODE_PARAMS host{[](void* of) { calls += *static_cast<int*>(of); }, new int(3)};
    CUgraphNode called = nullptr, copied = nullptr;
    REQUIRE(cuGraphAddHostNode(&called, g.graph, &last, 1, &host) == 0);
    const CUDA_MEMCPY3D copy = g.copy(g.memory + 64, g.memory, 4);
    REQUIRE(cuGraphAddMemcpyNode(&copied, g.graph, &called, 1, &copy, g.context) == 0);
    CUgraphExec exec = g.instance();
    for (int i = 1; i <= 5; ++i) {
        g.set(16, 0);
        g.run(exec);
        CHECK(g.word(0) == 19);
        CHECK(g.word(16) == 19);
        CHECK(calls == 3 * i);
    }
    // Many at once: each behind the one before.
    for (int i = 0; i < 50; ++i) REQUIRE(cuGraphLaunch(exec, i % 2 ? g.stream : g.second) == 0);
    REQUIRE(cuStreamSynchronize(g.stream) == 0);
    REQUIRE(cuStreamSynchronize(g.second) == 0);
    CHECK(calls == 15 + 150);
    CHECK(cuGraphExecDestroy(exec) == 0);
    delete static_cast<int*>(host.userData);
}

TEST_CASE("graph: what capture records is what the streams would have done") {
    Ground g;
    CUevent fork = nullptr, join = nullptr;
    REQUIRE(cuEventCreate(&fork, 0) == 0);
    REQUIRE(cuEventCreate(&join, 0) == 0);
    const unsigned five = 5;
    for (int mode : {0, 1, 2}) {
        g.set(0, 0), g.set(1, 0), g.set(2, 0);
        CUgraph captured = nullptr;
        REQUIRE(cuStreamBeginCapture_v2(g.stream, mode) == 0);
        REQUIRE(cuMemsetD32Async(g.memory, 10, 2, g.stream) == 0);
        REQUIRE(cuEventRecord(fork, g.stream) == 0);
        REQUIRE(cuStreamWaitEvent(g.second, fork, 0) == 0);
        g.launch(g.stream, "mad3", g.memory, 1u);
        g.launch(g.second, "mad3", g.memory + 4, 2u);
        REQUIRE(cuMemcpyHtoDAsync_v2(g.memory + 8, &five, 4, g.second) == 0);
        REQUIRE(cuEventRecord(join, g.second) == 0);
        REQUIRE(cuStreamWaitEvent(g.stream, join, 0) == 0);
        g.launch(g.stream, "add", g.memory, 100u);
        g.launch(g.stream, "add", g.memory + 4, 100u);
        int status = 0;
        REQUIRE(cuStreamIsCapturing(g.second, &status) == 0);
        CHECK(status == 1);
        REQUIRE(cuStreamEndCapture(g.stream, &captured) == 0);
        REQUIRE(cuStreamIsCapturing(g.second, &status) == 0);
        CHECK(status == 0);
        CHECK(g.word(0) == 0); // nothing has run
        CUgraphExec exec = g.instance(captured);
        REQUIRE(cuGraphDestroy(captured) == 0);
        for (int i = 0; i < 3; ++i) {
            g.run(exec);
            CHECK(g.word(0) == 131);
            CHECK(g.word(1) == 132);
            CHECK(g.word(2) == 5);
        }
        REQUIRE(cuGraphExecDestroy(exec) == 0);
    }
    REQUIRE(cuEventDestroy_v2(fork) == 0);
    REQUIRE(cuEventDestroy_v2(join) == 0);
}

TEST_CASE("graph: nodes of captured copies name their arrays") {
    Ground g;
    const CUDA_ARRAY_DESCRIPTOR shape{64, 0, 1, 1}; // bytes
    CUarray array = nullptr;
    REQUIRE(cuArrayCreate_v2(&array, &shape) == 0);
    const char out[64] = "what the array gets";
    CUgraph captured = nullptr;
    REQUIRE(cuStreamBeginCapture_v2(g.stream, 0) == 0);
    REQUIRE(cuMemcpyHtoAAsync_v2(array, 0, out, sizeof out, g.stream) == 0);
    REQUIRE(cuStreamEndCapture(g.stream, &captured) == 0);
    CUgraphNode node = nullptr;
    std::size_t count = 1;
    REQUIRE(cuGraphGetNodes(captured, &node, &count) == 0);
    CUDA_MEMCPY3D copy{};
    REQUIRE(cuGraphMemcpyNodeGetParams(node, &copy) == 0);
    CHECK(copy.dstMemoryType == memory_array);
    CHECK(copy.dstArray == array);
    CUgraphExec exec = g.instance(captured);
    g.run(exec);
    char in[64] = {};
    REQUIRE(cuMemcpyAtoH_v2(in, array, 0, sizeof in) == 0);
    CHECK(std::memcmp(in, out, sizeof in) == 0);
    REQUIRE(cuGraphExecDestroy(exec) == 0);
    REQUIRE(cuGraphDestroy(captured) == 0);
    REQUIRE(cuArrayDestroy(array) == 0);
}

TEST_CASE("graph: branches run at the same time") {
    Ground g;
    CUgraphNode start = nullptr;
    REQUIRE(cuGraphAddEmptyNode(&start, g.graph, nullptr, 0) == 0);
    CUgraphNode a = g.kernel({start}, "meet", g.memory, g.memory + 4);
    CUgraphNode b = g.kernel({start}, "meet", g.memory + 4, g.memory);
    g.kernel({a, b}, "add", g.memory, 6u);
    CUgraphExec exec = g.instance();
    for (int i = 0; i < 20; ++i) {
        g.set(0, 0), g.set(1, 0);
        g.run(exec);
        CHECK(g.word(0) == 7);
    }
    CHECK(cuGraphExecDestroy(exec) == 0);
}

TEST_CASE("graph: wide and deep graphs leave nothing out") {
    Ground g;
    // 40 layers of 10: each node waits for all of the layer before, and adds to a word of its own.
    std::vector<CUgraphNode> before;
    for (unsigned layer = 0; layer < 40; ++layer) {
        std::vector<CUgraphNode> nodes;
        for (unsigned i = 0; i < 10; ++i) nodes.push_back(g.kernel(before, "mad3", g.memory + 4 * i, layer + i));
        before = nodes;
    }
    unsigned expected[10]{};
    CUgraphExec exec = g.instance();
    for (int launch = 0; launch < 3; ++launch) {
        for (unsigned layer = 0; layer < 40; ++layer)
            for (unsigned i = 0; i < 10; ++i) expected[i] = expected[i] * 3 + layer + i;
        g.run(exec);
        for (unsigned i = 0; i < 10; ++i) CHECK(g.word(i) == expected[i]);
    }
    CHECK(cuGraphExecDestroy(exec) == 0);
}

TEST_CASE("graph: graphs inside graphs, and their clones") {
    Ground g;
    CUgraph child = nullptr, held = nullptr, clone = nullptr;
    REQUIRE(cuGraphCreate(&child, 0) == 0);
    CUgraphNode inner = g.kernel_in(child, {}, "mad3", g.memory, 1u);
    g.kernel_in(child, {inner}, "mad3", g.memory, 2u);
    CUgraphNode first = nullptr, second = nullptr;
    REQUIRE(cuGraphAddChildGraphNode(&first, g.graph, nullptr, 0, child) == 0);
    CUgraphNode between = g.kernel({first}, "add", g.memory, 10u);
    REQUIRE(cuGraphAddChildGraphNode(&second, g.graph, &between, 1, child) == 0);
    REQUIRE(cuGraphDestroy(child) == 0); // the nodes have their own
    REQUIRE(cuGraphChildGraphNodeGetGraph(second, &held) == 0);
    g.kernel_in(held, {}, "add", g.memory + 4, 7u);
    REQUIRE(cuGraphClone(&clone, g.graph) == 0);
    CUgraphExec exec = g.instance(clone);
    g.set(0, 1);
    g.run(exec);
    // 1 -> 4 -> 14 -> 24 -> 73 -> 221
    CHECK(g.word(0) == 221);
    CHECK(g.word(1) == 7);
    // A node inside is changed in the instance.
    CUgraphNode twin = nullptr, deep[3]{};
    CUgraph in_clone = nullptr;
    REQUIRE(cuGraphNodeFindInClone(&twin, second, clone) == 0);
    REQUIRE(cuGraphChildGraphNodeGetGraph(twin, &in_clone) == 0);
    std::size_t count = 3;
    REQUIRE(cuGraphGetNodes(in_clone, deep, &count) == 0);
    REQUIRE(count == 3);
    CUdeviceptr where = g.memory + 4;
    unsigned value = 50;
    void* parameters[] = {&where, &value};
    const CUDA_KERNEL_NODE_PARAMS changed = g.parameters_of("add", parameters);
    REQUIRE(cuGraphExecKernelNodeSetParams_v2(exec, deep[2], &changed) == 0);
    g.set(1, 0);
    g.run(exec);
    CHECK(g.word(1) == 50);
    CHECK(cuGraphExecDestroy(exec) == 0);
    CHECK(cuGraphDestroy(clone) == 0);
}

TEST_CASE("graph: events of graphs order streams") {
    Ground g;
    CUevent started = nullptr, done = nullptr;
    REQUIRE(cuEventCreate(&started, 0) == 0);
    REQUIRE(cuEventCreate(&done, 0) == 0);
    CUgraphNode wait = nullptr, record = nullptr;
    REQUIRE(cuGraphAddEventWaitNode(&wait, g.graph, nullptr, 0, started) == 0);
    CUgraphNode work = g.kernel({wait}, "mad3", g.memory, 5u);
    REQUIRE(cuGraphAddEventRecordNode(&record, g.graph, &work, 1, done) == 0);
    CUgraphExec exec = g.instance();
    for (int i = 0; i < 20; ++i) {
        g.set(0, 0);
        static std::atomic<bool> go{false};
        go = false;
        REQUIRE(cuLaunchHostFunc(g.second, [](void*) { while (!go) std::this_thread::yield(); }, nullptr) == 0);
        g.launch(g.second, "add", g.memory, 2u);
        REQUIRE(cuEventRecord(started, g.second) == 0);
        REQUIRE(cuGraphLaunch(exec, g.stream) == 0);
        CHECK(cuEventQuery(done) == 600);
        REQUIRE(cuStreamWaitEvent(g.second, done, 0) == 0);
        g.launch(g.second, "add", g.memory, 100u);
        go = true;
        REQUIRE(cuStreamSynchronize(g.second) == 0);
        CHECK(g.word(0) == 111);
        CHECK(cuEventQuery(done) == 0);
        float time = -1;
        CHECK(cuEventElapsedTime_v2(&time, started, done) == 0);
        CHECK(time >= 0);
    }
    CHECK(cuGraphExecDestroy(exec) == 0);
    CHECK(cuEventDestroy_v2(started) == 0);
    CHECK(cuEventDestroy_v2(done) == 0);
}

TEST_CASE("graph: launches that were made keep what they run when the instance changes") {
    Ground g;
    CUgraphNode node = g.kernel({}, "mad3", g.memory, 1u);
    CUgraphExec exec = g.instance();
    static std::atomic<bool> go{false};
    go = false;
    REQUIRE(cuLaunchHostFunc(g.stream, [](void*) { while (!go) std::this_thread::yield(); }, nullptr) == 0);
    unsigned expected = 0;
    for (unsigned i = 2; i < 30; ++i) {
        REQUIRE(cuGraphLaunch(exec, g.stream) == 0);
        expected = expected * 3 + (i - 1);
        void* parameters[] = {&g.memory, &i};
        const CUDA_KERNEL_NODE_PARAMS changed = g.parameters_of("mad3", parameters);
        REQUIRE(cuGraphExecKernelNodeSetParams_v2(exec, node, &changed) == 0);
    }
    REQUIRE(cuGraphNodeSetEnabled(exec, node, 0) == 0);
    REQUIRE(cuGraphLaunch(exec, g.stream) == 0);
    CHECK(cuGraphExecDestroy(exec) == 0);
    go = true;
    REQUIRE(cuStreamSynchronize(g.stream) == 0);
    CHECK(g.word(0) == expected);
}

TEST_CASE("graph: an instance becomes another graph of the same shape") {
    Ground g;
    CUgraph other = nullptr;
    REQUIRE(cuGraphCreate(&other, 0) == 0);
    CUgraphNode a = g.kernel({}, "add", g.memory, 1u);
    g.kernel({a}, "mad3", g.memory, 1u);
    CUgraphNode b = g.kernel_in(other, {}, "add", g.memory, 10u);
    CUgraphNode c = g.kernel_in(other, {b}, "mad3", g.memory, 5u);
    CUgraphExec exec = g.instance();
    g.run(exec);
    CHECK(g.word(0) == 4);
    CUgraphExecUpdateResultInfo info{};
    REQUIRE(cuGraphExecUpdate_v2(exec, other, &info) == 0);
    g.run(exec);
    CHECK(g.word(0) == 47);
    REQUIRE(cuGraphNodeSetEnabled(exec, c, 0) == 0); // a node of the new graph
    g.run(exec);
    CHECK(g.word(0) == 57);
    REQUIRE(cuGraphDestroyNode(c) == 0);
    CHECK(cuGraphExecUpdate_v2(exec, other, &info) == 910);
    CHECK(info.result == 2);
    g.run(exec); // as it was
    CHECK(g.word(0) == 67);
    CHECK(cuGraphExecDestroy(exec) == 0);
    CHECK(cuGraphDestroy(other) == 0);
}

TEST_CASE("graph: memory of graphs is there from its node on, and lent to the program") {
    Ground g;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = alloc_of(1 << 20);
    constexpr int pinned = 1, managed = 2, is_managed = 8;
    alloc.poolProps.allocType = GENERATE(int{pinned}, int{managed});
    CUgraphNode made = nullptr, copied = nullptr;
    REQUIRE(cuGraphAddMemAllocNode(&made, g.graph, nullptr, 0, &alloc) == 0);
    REQUIRE(alloc.dptr != 0);
    const CUDA_MEMSET_NODE_PARAMS fill{alloc.dptr, 0, 77, 4, 1 << 18, 1};
    CUgraphNode filled = nullptr;
    REQUIRE(cuGraphAddMemsetNode(&filled, g.graph, &made, 1, &fill, g.context) == 0);
    CUgraphNode added = g.kernel({filled}, "add", alloc.dptr + 400, 3u);
    const CUDA_MEMCPY3D copy = g.copy(g.memory, alloc.dptr + 400, 4);
    REQUIRE(cuGraphAddMemcpyNode(&copied, g.graph, &added, 1, &copy, g.context) == 0);
    CUgraphExec exec = g.instance();
    CUgraphExec second = nullptr;
    CHECK(cuGraphInstantiateWithFlags(&second, g.graph, 0) != 0); // memory is of one instance
    g.run(exec);
    CHECK(g.word(0) == 80);
    unsigned value = 0;
    REQUIRE(cuPointerGetAttribute(&value, is_managed, alloc.dptr) == 0);
    CHECK(value == (alloc.poolProps.allocType == managed));
    REQUIRE(cuMemcpyDtoH_v2(&value, alloc.dptr, 4) == 0);
    CHECK(value == 77);
    CHECK(cuGraphLaunch(exec, g.stream) == 1); // it is still held
    REQUIRE(cuMemFreeAsync(alloc.dptr, g.stream) == 0);
    CHECK(cuMemFreeAsync(alloc.dptr, g.stream) == 1);
    g.run(exec);
    REQUIRE(cuMemFree_v2(alloc.dptr) == 0);
    CHECK(cuMemFree_v2(alloc.dptr) == 1);
    CHECK(cuGraphExecDestroy(exec) == 0);
    exec = g.instance(nullptr, 1); // frees what is held
    g.run(exec);
    g.run(exec);
    CHECK(g.word(0) == 80);
    CHECK(cuGraphExecDestroy(exec) == 0);
    cuGraphDestroy(g.graph);
    g.graph = nullptr;
    CHECK(cuMemcpyDtoH_v2(&value, alloc.dptr, 4) == 0); // the program holds it still
    CHECK(cuMemFree_v2(alloc.dptr) == 0);
    CHECK(cuMemcpyDtoH_v2(&value, alloc.dptr, 4) == 1); // and nobody any more
}

TEST_CASE("graph: allocations that streams make while they capture") {
    Ground g;
    CUdeviceptr pointer = 0;
    CUgraph captured = nullptr;
    REQUIRE(cuStreamBeginCapture_v2(g.stream, 0) == 0);
    REQUIRE(cuMemAllocAsync(&pointer, 4096, g.stream) == 0);
    REQUIRE(cuMemsetD32Async(pointer, 9, 1024, g.stream) == 0);
    g.launch(g.stream, "mad3", pointer, 4u);
    g.launch(g.stream, "add", g.memory, 1u);
    REQUIRE(cuMemFreeAsync(pointer, g.stream) == 0);
    REQUIRE(cuStreamEndCapture(g.stream, &captured) == 0);
    CUgraphExec exec = g.instance(captured);
    for (unsigned i = 1; i < 5; ++i) {
        g.run(exec);
        CHECK(g.word(0) == i);
    }
    CHECK(cuMemFree_v2(pointer) == 1);
    CHECK(cuGraphExecDestroy(exec) == 0);
    CHECK(cuGraphDestroy(captured) == 0);
}

TEST_CASE("graph: conditional nodes ask what kernels have set") {
    Ground g(GENERATE(as<std::string>(), texts, machine_code));
    CUgraphConditionalHandle loop = 0, choice = 0;
    REQUIRE(cuGraphConditionalHandleCreate(&loop, g.graph, g.context, 1, 1) == 0);
    REQUIRE(cuGraphConditionalHandleCreate(&choice, g.graph, g.context, 7, 1) == 0);
    CUgraphNodeParams p{};
    p.type = 13, p.conditional = {loop, 1, 1, nullptr, g.context};
    CUgraphNode repeated = nullptr, chosen = nullptr;
    REQUIRE(cuGraphAddNode_v2(&repeated, g.graph, nullptr, nullptr, 0, &p) == 0);
    CUgraph body = p.conditional.phGraph_out[0];
    CUgraphNode added = g.kernel_in(body, {}, "mad3", g.memory + 4, 1u);
    g.kernel_in(body, {added}, "count_down", g.memory, loop);
    CUgraphNode set = g.kernel({repeated}, "count_down", g.memory + 8, choice);
    p = {}, p.type = 13, p.conditional = {choice, 2, 3, nullptr, g.context};
    REQUIRE(cuGraphAddNode_v2(&chosen, g.graph, &set, nullptr, 1, &p) == 0);
    for (unsigned i = 0; i < 3; ++i) g.kernel_in(p.conditional.phGraph_out[i], {}, "add", g.memory + 12 + 4 * i, 1u);
    CUgraphExec exec = g.instance();
    for (unsigned i = 0; i < 5; ++i) {
        g.set(0, 6), g.set(1, 0), g.set(2, i + 1);
        for (std::size_t k = 3; k < 6; ++k) g.set(k, 0);
        g.run(exec);
        CHECK(g.word(0) == 0);
        CHECK(g.word(1) == (729 - 1) / 2); // six rounds
        for (unsigned k = 0; k < 3; ++k) CHECK(g.word(3 + k) == (k == i));
    }
    CHECK(cuGraphExecDestroy(exec) == 0);
}

TEST_CASE("graph: kernels launch graphs") {
    Ground g(GENERATE(as<std::string>(), texts, machine_code));
    constexpr unsigned long long device_launch = 4;
    CUgraphNode first = g.kernel({}, "add", g.memory + 8, 2u);
    g.kernel({first}, "again", g.memory);
    CUgraphExec exec = g.instance(nullptr, device_launch);
    g.set(0, 50);
    g.run(exec);
    CHECK(g.word(0) == 0);
    CHECK(g.word(1) == 0); // what cudaGraphLaunch returned
    CHECK(g.word(2) == 100);
    CUgraph outer = nullptr;
    REQUIRE(cuGraphCreate(&outer, 0) == 0);
    CUgraph other = nullptr;
    REQUIRE(cuGraphCreate(&other, 0) == 0);
    g.kernel_in(other, {}, "add", g.memory + 40, 5u);
    CUgraphExec small = g.instance(other, device_launch);
    g.kernel_in(outer, {}, "launch_other", g.memory, reinterpret_cast<CUdeviceptr>(small));
    CUgraphExec launching = g.instance(outer, device_launch);
    g.set(0, 99);
    g.run(launching);
    CHECK(g.word(0) == 0);
    CHECK(g.word(10) == 5);
    g.launch(g.stream, "launch_other", g.memory, reinterpret_cast<CUdeviceptr>(small)); // of no graph
    REQUIRE(cuStreamSynchronize(g.stream) == 0);
    CHECK(g.word(0) != 0);
    CHECK(g.word(10) == 5);
    for (CUgraphExec one : {exec, small, launching}) CHECK(cuGraphExecDestroy(one) == 0);
    CHECK(cuGraphDestroy(outer) == 0);
    CHECK(cuGraphDestroy(other) == 0);
}

TEST_CASE("graph: handles that are none, or none any more, are no crash") {
    Ground g;
    CUgraphNode node = g.kernel({}, "add", g.memory, 1u), made = nullptr;
    CUgraphExec exec = g.instance();
    CUgraph graph = nullptr, child = nullptr;
    int type = 0;
    std::size_t count = 0;
    long junk = 0;
    for (std::uintptr_t value : {std::uintptr_t{0}, std::uintptr_t{0x1234}, reinterpret_cast<std::uintptr_t>(&junk),
                                 reinterpret_cast<std::uintptr_t>(g.stream), reinterpret_cast<std::uintptr_t>(node)}) {
        const auto as_graph = reinterpret_cast<CUgraph>(value);
        const auto as_exec = reinterpret_cast<CUgraphExec>(value);
        CHECK(cuGraphDestroy(as_graph) == 1);
        CHECK(cuGraphClone(&graph, as_graph) == 1);
        CHECK(cuGraphGetNodes(as_graph, nullptr, &count) == 1);
        CHECK(cuGraphAddEmptyNode(&made, as_graph, nullptr, 0) == 1);
        CHECK(cuGraphInstantiateWithFlags(&exec, as_graph, 0) == 1);
        CHECK(cuGraphDebugDotPrint(as_graph, "/dev/null", 0) == 1);
        CHECK(cuGraphAddChildGraphNode(&made, g.graph, nullptr, 0, as_graph) == 1);
        CHECK(cuGraphLaunch(as_exec, g.stream) == 1);
        CHECK(cuGraphExecDestroy(as_exec) == 1);
        if (value == reinterpret_cast<std::uintptr_t>(node)) continue;
        const auto as_node = reinterpret_cast<CUgraphNode>(value);
        CHECK(cuGraphNodeGetType(as_node, &type) == 1);
        CHECK(cuGraphDestroyNode(as_node) == 1);
        CHECK(cuGraphAddEmptyNode(&made, g.graph, &as_node, 1) == 1);
        CHECK(cuGraphNodeSetEnabled(exec, as_node, 0) == 1);
    }
    CHECK(cuGraphAddChildGraphNode(&made, g.graph, nullptr, 0, g.graph) == 1); // the driver crashes
    // A circle through children: a graph into the graph that its node holds.
    CUgraphNode holder = nullptr;
    CUgraph inner = nullptr;
    REQUIRE(cuGraphCreate(&inner, 0) == 0);
    REQUIRE(cuGraphAddChildGraphNode(&holder, g.graph, nullptr, 0, inner) == 0);
    REQUIRE(cuGraphChildGraphNodeGetGraph(holder, &child) == 0);
    CHECK(cuGraphDestroy(child) == 1); // of its node
    CHECK(cuGraphAddChildGraphNode(&made, child, nullptr, 0, g.graph) == 0); // a clone: no circle
    CUgraphExec nested = g.instance();
    g.run(nested);
    CHECK(cuGraphExecDestroy(nested) == 0);
    // Destroyed things.
    CHECK(cuGraphDestroyNode(node) == 0);
    CHECK(cuGraphDestroyNode(node) == 1);
    CHECK(cuGraphNodeGetType(node, &type) == 1);
    CHECK(cuGraphExecDestroy(exec) == 0);
    CHECK(cuGraphLaunch(exec, g.stream) == 1);
    CHECK(cuGraphDestroy(inner) == 0);
    CHECK(cuGraphDestroy(inner) == 1);
    CUgraph gone = g.graph;
    CHECK(cuGraphDestroy(gone) == 0);
    g.graph = nullptr;
    CHECK(cuGraphAddEmptyNode(&made, gone, nullptr, 0) == 1);
    CHECK(cuGraphGetNodes(child, nullptr, &count) == 1);
}

TEST_CASE("graph: memory that went meanwhile ends in a fault of the context, not of the process", "[.][graph_fault]") {
    Ground g;
    const CUdeviceptr gone = driver_test::allocate(std::size_t{8} << 20);
    const CUDA_MEMSET_NODE_PARAMS fill{gone, 0, 1, 4, 4, 1};
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddMemsetNode(&node, g.graph, nullptr, 0, &fill, g.context) == 0);
    CUgraphExec exec = g.instance();
    REQUIRE(cuMemFree_v2(gone) == 0);
    REQUIRE(cuGraphLaunch(exec, g.stream) == 0);
    CHECK(cuStreamSynchronize(g.stream) == 700);
}

TEST_CASE("graph: threads build, launch and destroy graphs beside each other") {
    Ground g;
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned t = 0; t < 6; ++t)
        threads.emplace_back([&, t] {
            const auto must = [&](CUresult result) { wrong += result != 0; };
            must(cuCtxSetCurrent(g.context));
            CUstream stream = nullptr;
            must(cuStreamCreate(&stream, 1));
            CUfunction add = nullptr;
            must(cuModuleGetFunction(&add, g.module, "add"));
            CUdeviceptr where = g.memory + 64 * t;
            for (unsigned round = 0; round < 30; ++round) {
                CUgraph captured = nullptr;
                CUgraphExec exec = nullptr;
                must(cuStreamBeginCapture_v2(stream, 1));
                unsigned one = 1;
                void* parameters[] = {&where, &one};
                for (int i = 0; i < 3; ++i) must(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
                must(cuStreamEndCapture(stream, &captured));
                must(cuGraphInstantiateWithFlags(&exec, captured, 0));
                must(cuGraphLaunch(exec, stream));
                must(cuGraphLaunch(exec, stream));
                must(cuGraphExecDestroy(exec));
                must(cuGraphDestroy(captured));
            }
            must(cuStreamSynchronize(stream));
            must(cuStreamDestroy_v2(stream));
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    for (unsigned t = 0; t < 6; ++t) CHECK(g.word(16 * t) == 180);
}

TEST_CASE("graph: a kernel node of 13.4 names its function's context or none") {
    Ground g;
    CUcontext other = nullptr;
    REQUIRE(cuCtxCreate_v4(&other, nullptr, 0, 0) == 0);
    CUcontext popped = nullptr;
    REQUIRE(cuCtxPopCurrent_v2(&popped) == 0);
    CUdeviceptr where = g.memory;
    unsigned value = 5;
    void* parameters[] = {&where, &value};
    CUgraphNodeParams given{};
    given.type = 0;
    given.kernel = g.parameters_of("add", parameters);
    CUgraphNode node = nullptr;
    given.kernel.ctx = other;
    CHECK(cuGraphAddNode_v3(&node, g.graph, nullptr, nullptr, 0, &given) == 201);
    CHECK(cuGraphAddNode_v2(&node, g.graph, nullptr, nullptr, 0, &given) == 0); // ignored before
    given.kernel.ctx = g.context;
    CHECK(cuGraphAddNode_v3(&node, g.graph, &node, nullptr, 1, &given) == 0);
    given.kernel.ctx = nullptr;
    value = 6;
    CHECK(cuGraphNodeSetParams_v2(node, &given) == 0);
    given.kernel.ctx = other;
    value = 7;
    CHECK(cuGraphNodeSetParams_v2(node, &given) == 201);
    CHECK(cuGraphNodeSetParams_v2(node, nullptr) == 1);
    CUgraphExec exec = g.instance();
    g.run(exec);
    CHECK(g.word(0) == 11);
    CHECK(cuGraphExecDestroy(exec) == 0);
    CHECK(cuCtxDestroy_v2(other) == 0);
}

namespace {

/// A graph that adds `amount` to the word at `where` as its condition says: switches between words by a default value.
CUgraph make_switch(Ground& g, unsigned choice, unsigned kind) {
    CUgraph graph = nullptr;
    CUgraphConditionalHandle handle = 0;
    REQUIRE(cuGraphCreate(&graph, 0) == 0);
    REQUIRE(cuGraphConditionalHandleCreate(&handle, graph, g.context, choice, 1) == 0);
    CUgraphNodeParams p{};
    p.type = 13, p.conditional = {handle, static_cast<int>(kind), kind == 2 ? 3u : 1u, nullptr, g.context};
    CUgraphNode node = nullptr;
    REQUIRE(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &p) == 0);
    for (unsigned i = 0; i < (kind == 2 ? 3u : 1u); ++i)
        g.kernel_in(p.conditional.phGraph_out[i], {}, "add", g.memory + 4 * i, 1u);
    return graph;
}

} // namespace

TEST_CASE("graph: each launch begins with the conditions' defaults, also behind one that runs") {
    Ground g;
    CUgraphConditionalHandle loop = 0;
    REQUIRE(cuGraphConditionalHandleCreate(&loop, g.graph, g.context, 1, 1) == 0);
    CUgraphNodeParams p{};
    p.type = 13, p.conditional = {loop, 1, 1, nullptr, g.context};
    CUgraphNode repeated = nullptr;
    REQUIRE(cuGraphAddNode_v2(&repeated, g.graph, nullptr, nullptr, 0, &p) == 0);
    CUgraphNode added = g.kernel_in(p.conditional.phGraph_out[0], {}, "add", g.memory + 4, 1u);
    g.kernel_in(p.conditional.phGraph_out[0], {added}, "count_down", g.memory, loop);
    CUDA_MEMSET_NODE_PARAMS five{};
    five.dst = g.memory, five.elementSize = 4, five.value = 5, five.width = 1, five.height = 1;
    CUgraphNode filled = nullptr;
    REQUIRE(cuGraphAddMemsetNode(&filled, g.graph, nullptr, 0, &five, g.context) == 0);
    REQUIRE(cuGraphAddDependencies(g.graph, &filled, &repeated, 1) == 0);
    CUgraphExec exec = g.instance();
    g.set(1, 0);
    for (int i = 0; i < 50; ++i) REQUIRE(cuGraphLaunch(exec, g.stream) == 0);
    REQUIRE(cuStreamSynchronize(g.stream) == 0);
    CHECK(g.word(1) == 250);
    CHECK(cuGraphExecDestroy(exec) == 0);
}

TEST_CASE("graph: an update brings the other graph's conditions") {
    Ground g;
    constexpr unsigned if_nonzero = 0, select = 2;
    CUgraph first = make_switch(g, 0, select), second = make_switch(g, 2, select), other = make_switch(g, 1, if_nonzero);
    CUgraphExec exec = g.instance(first);
    CUgraphExecUpdateResultInfo info{};
    g.run(exec);
    REQUIRE(cuGraphExecUpdate_v2(exec, second, &info) == 0);
    REQUIRE(cuGraphDestroy(second) == 0);
    g.run(exec);
    g.run(exec);
    CHECK(g.word(0) == 1);
    CHECK(g.word(1) == 0);
    CHECK(g.word(2) == 2);
    CHECK(cuGraphExecUpdate_v2(exec, other, &info) == 910); // another kind of node
    CHECK(cuGraphExecDestroy(exec) == 0);
    CHECK(cuGraphDestroy(first) == 0);
    CHECK(cuGraphDestroy(other) == 0);
}

TEST_CASE("graph: a graph that a kernel launches is itself, and not twice at once") {
    Ground g;
    constexpr unsigned long long device_launch = 4;
    CUgraph inner = nullptr;
    REQUIRE(cuGraphCreate(&inner, 0) == 0);
    CUgraphNode self = g.kernel_in(inner, {}, "launch_other", g.memory + 4, CUdeviceptr{0});
    g.kernel_in(inner, {self}, "again", g.memory + 16); // ends by launching itself, not what launched it
    CUgraphExec called = g.instance(inner, device_launch);
    CUdeviceptr where = g.memory + 4, handle = reinterpret_cast<CUdeviceptr>(called);
    void* parameters[] = {&where, &handle};
    const CUDA_KERNEL_NODE_PARAMS own = g.parameters_of("launch_other", parameters);
    REQUIRE(cuGraphExecKernelNodeSetParams_v2(called, self, &own) == 0);
    g.kernel({}, "launch_other", g.memory, handle);
    g.kernel({}, "add", g.memory + 8, 1u);
    CUgraphExec caller = g.instance(nullptr, device_launch);
    g.set(0, 99), g.set(1, 0), g.set(2, 0), g.set(4, 30), g.set(5, 99);
    g.run(caller);
    CHECK(g.word(0) == 0); // launched
    CHECK(g.word(1) == 1); // refused: it runs
    CHECK(g.word(2) == 1); // once
    CHECK(g.word(4) == 0);
    CHECK(g.word(5) == 0);
    g.set(0, 99), g.set(4, 3);
    g.run(caller); // and again
    CHECK(g.word(0) == 0);
    CHECK(g.word(2) == 2);
    CHECK(g.word(4) == 0);
    CHECK(cuGraphExecDestroy(caller) == 0);
    CHECK(cuGraphExecDestroy(called) == 0);
    CHECK(cuGraphDestroy(inner) == 0);
}
