// SPDX-License-Identifier: Apache-2.0
// Copies and fills of addresses that are no memory, captured and as nodes: which call minds, the capture, the instance
// or the launch. Answers: capture_address_answers_h200.txt.
#include "processes.h"

#include "runtime/shim/graph_types.h"

#include <functional>
#include <sys/mman.h>
#include <vector>

using namespace answers;
using namespace ptarmigan::shim; // enumerators

namespace {

constexpr std::size_t mega = std::size_t{1} << 20, page = 2 * mega, bytes = 16;

/// A process's context and memory.
struct Ground {
    CUcontext context{};
    CUstream stream{}, blocking{};
    CUdeviceptr memory = 0, other = 0, managed = 0, freed = 0, reserved = 0;
    void *pinned = nullptr, *pageable = nullptr, *unmapped = nullptr;

    Ground() : context(start()) {
        must("cuStreamCreate", &stream, 1u);
        must("cuStreamCreate", &blocking, 0u);
        must("cuMemAlloc_v2", &memory, page);
        must("cuMemAlloc_v2", &other, page);
        must("cuMemAllocManaged", &managed, page, 1u);
        must("cuMemHostAlloc", &pinned, page, 0u);
        pageable = std::aligned_alloc(4096, page);
        std::memset(pageable, 1, page);
        unmapped = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        // Two pages, of which the first is mapped.
        must("cuMemAddressReserve", &reserved, 2 * page, page, CUdeviceptr{0}, 0ull);
        CUmemAllocationProp properties{};
        properties.type = 1, properties.location = {1, 0};
        CUmemGenericAllocationHandle handle{};
        must("cuMemCreate", &handle, page, &properties, 0ull);
        must("cuMemMap", reserved, page, std::size_t{0}, handle, 0ull);
        const CUmemAccessDesc access{{1, 0}, 3};
        must("cuMemSetAccess", reserved, page, &access, std::size_t{1});
        must("cuMemAlloc_v2", &freed, 64 * mega);
        must("cuMemFree_v2", freed);
    }
};

struct Address {
    const char* name;
    std::function<CUdeviceptr(const Ground&)> of;
    bool crashes_hosts = false; ///< a driver that takes it for the host's memory reads it, which ends the process
};

CUdeviceptr number_of(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}
void* pointer_of(CUdeviceptr address) {
    return reinterpret_cast<void*>(address);
}

const std::vector<Address> addresses = {
    {"memory", [](const Ground& g) { return g.memory; }},
    {"misaligned", [](const Ground& g) { return g.memory + 1; }},
    {"past the end", [](const Ground& g) { return g.reserved + page - 8; }},
    {"behind the end", [](const Ground& g) { return g.reserved + page; }, true},
    {"freed", [](const Ground& g) { return g.freed; }, true},
    {"null", [](const Ground&) { return CUdeviceptr{0}; }},
    {"0x80", [](const Ground&) { return CUdeviceptr{0x80}; }, true},
    {"0x81", [](const Ground&) { return CUdeviceptr{0x81}; }, true},
    {"0x2080", [](const Ground&) { return CUdeviceptr{0x2080}; }, true},
    {"0x14320", [](const Ground&) { return CUdeviceptr{0x14320}; }, true},
    {"0x2000000", [](const Ground&) { return CUdeviceptr{0x2000000}; }, true},
    {"beyond 2^49", [](const Ground&) { return (CUdeviceptr{1} << 49) + 0x1000; }, true},
    {"the last", [](const Ground&) { return ~CUdeviceptr{0} - 15; }, true},
    {"pinned", [](const Ground& g) { return number_of(g.pinned); }},
    {"managed", [](const Ground& g) { return g.managed; }},
    {"pageable", [](const Ground& g) { return number_of(g.pageable); }},
    {"no access", [](const Ground& g) { return number_of(g.unmapped); }, true},
};

std::vector<Address> addresses_for(bool host) {
    std::vector<Address> chosen;
    for (const Address& address : addresses)
        if (!host || !address.crashes_hosts) chosen.push_back(address);
    return chosen;
}

struct Operation {
    const char* name;
    std::function<int(const Ground&, CUdeviceptr, CUstream)> make;
    bool is_of_host = false; ///< the address may be the host's
};

CUDA_MEMCPY3D box(CUdeviceptr to, CUdeviceptr from, unsigned to_type = memory_device, unsigned from_type = memory_device) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = from_type, copy.dstMemoryType = to_type;
    copy.srcDevice = from, copy.dstDevice = to;
    copy.srcHost = pointer_of(from), copy.dstHost = pointer_of(to);
    copy.srcPitch = copy.dstPitch = 64;
    copy.WidthInBytes = bytes, copy.Height = copy.Depth = 1;
    return copy;
}
CUDA_MEMCPY2D rows(CUdeviceptr to, CUdeviceptr from) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = memory_device;
    copy.srcDevice = from, copy.dstDevice = to;
    copy.srcPitch = copy.dstPitch = 64;
    copy.WidthInBytes = bytes, copy.Height = 2;
    return copy;
}

const std::vector<Operation> stream_operations = {
    {"cuMemsetD8Async", [](const Ground&, CUdeviceptr at, CUstream s) { return call("cuMemsetD8Async", at, static_cast<unsigned char>(3), bytes, s); }},
    {"cuMemsetD16Async", [](const Ground&, CUdeviceptr at, CUstream s) { return call("cuMemsetD16Async", at, static_cast<unsigned short>(3), bytes / 2, s); }},
    {"cuMemsetD32Async", [](const Ground&, CUdeviceptr at, CUstream s) { return call("cuMemsetD32Async", at, 3u, bytes / 4, s); }},
    {"cuMemsetD2D8Async, a row", [](const Ground&, CUdeviceptr at, CUstream s) { return call("cuMemsetD2D8Async", at, std::size_t{64}, static_cast<unsigned char>(3), bytes, std::size_t{1}, s); }},
    {"cuMemsetD2D32Async, two rows", [](const Ground&, CUdeviceptr at, CUstream s) { return call("cuMemsetD2D32Async", at, std::size_t{64}, 3u, bytes / 4, std::size_t{2}, s); }},
    {"cuMemcpyDtoDAsync to", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyDtoDAsync_v2", at, g.other, bytes, s); }},
    {"cuMemcpyDtoDAsync from", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyDtoDAsync_v2", g.other, at, bytes, s); }},
    {"cuMemcpyHtoDAsync to", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyHtoDAsync_v2", at, static_cast<const void*>(g.pinned), bytes, s); }},
    {"cuMemcpyHtoDAsync to, from pageable", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyHtoDAsync_v2", at, static_cast<const void*>(g.pageable), bytes, s); }},
    {"cuMemcpyHtoDAsync from", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyHtoDAsync_v2", g.other, static_cast<const void*>(pointer_of(at)), bytes, s); }, true},
    {"cuMemcpyDtoHAsync to", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyDtoHAsync_v2", pointer_of(at), g.other, bytes, s); }, true},
    {"cuMemcpyDtoHAsync from", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyDtoHAsync_v2", g.pinned, at, bytes, s); }},
    {"cuMemcpyAsync to", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyAsync", at, g.other, bytes, s); }, true},
    {"cuMemcpyAsync from", [](const Ground& g, CUdeviceptr at, CUstream s) { return call("cuMemcpyAsync", g.other, at, bytes, s); }, true},
    {"cuMemcpy2DAsync to", [](const Ground& g, CUdeviceptr at, CUstream s) { const auto c = rows(at, g.other); return call("cuMemcpy2DAsync_v2", &c, s); }},
    {"cuMemcpy2DAsync from", [](const Ground& g, CUdeviceptr at, CUstream s) { const auto c = rows(g.other, at); return call("cuMemcpy2DAsync_v2", &c, s); }},
    {"cuMemcpy3DAsync to", [](const Ground& g, CUdeviceptr at, CUstream s) { const auto c = box(at, g.other); return call("cuMemcpy3DAsync_v2", &c, s); }},
    {"cuMemcpy3DAsync from", [](const Ground& g, CUdeviceptr at, CUstream s) { const auto c = box(g.other, at); return call("cuMemcpy3DAsync_v2", &c, s); }},
};

/// Ends with the answer of the call that makes or changes a node; `exec`: the instance, where there is one already.
struct NodeOperation {
    const char* name;
    std::function<int(const Ground&, CUgraph, CUdeviceptr, CUgraphExec& exec)> make;
    bool is_of_host = false;
};

CUgraphNode* const no_nodes = nullptr;
constexpr std::size_t none = 0;

int add_fill(const Ground& g, CUgraph graph, CUdeviceptr at, unsigned element, std::size_t height = 1) {
    CUgraphNode node{};
    const CUDA_MEMSET_NODE_PARAMS fill{at, 64, 3, element, bytes / element, height};
    return call("cuGraphAddMemsetNode", &node, graph, no_nodes, none, &fill, g.context);
}
int add_copy(const Ground& g, CUgraph graph, const CUDA_MEMCPY3D& copy) {
    CUgraphNode node{};
    return call("cuGraphAddMemcpyNode", &node, graph, no_nodes, none, &copy, g.context);
}
CUgraphNode good_fill(const Ground& g, CUgraph graph) {
    CUgraphNode node{};
    const CUDA_MEMSET_NODE_PARAMS fill{g.memory, 64, 3, 4, bytes / 4, 1};
    must("cuGraphAddMemsetNode", &node, graph, no_nodes, none, &fill, g.context);
    return node;
}
CUgraphNode good_copy(const Ground& g, CUgraph graph) {
    CUgraphNode node{};
    const CUDA_MEMCPY3D copy = box(g.memory, g.other);
    must("cuGraphAddMemcpyNode", &node, graph, no_nodes, none, &copy, g.context);
    return node;
}

const std::vector<NodeOperation> node_operations = {
    {"fill node of bytes", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_fill(g, graph, at, 1); }},
    {"fill node of words", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_fill(g, graph, at, 4); }},
    {"fill node of two rows", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_fill(g, graph, at, 4, 2); }},
    {"generic fill node", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) {
         CUgraphNode node{};
         CUgraphNodeParams parameters{};
         parameters.type = 2;
         parameters.memset = {at, 64, 3, 4, bytes / 4, 1, g.context};
         return call("cuGraphAddNode_v2", &node, graph, no_nodes, static_cast<const void*>(nullptr), none, &parameters);
     }},
    {"fill node set", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) {
         const CUDA_MEMSET_NODE_PARAMS fill{at, 64, 3, 4, bytes / 4, 1};
         return call("cuGraphMemsetNodeSetParams", good_fill(g, graph), &fill);
     }},
    {"fill of an instance set", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec& exec) {
         CUgraphNode node = good_fill(g, graph);
         must("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
         const CUDA_MEMSET_NODE_PARAMS fill{at, 64, 3, 4, bytes / 4, 1};
         return call("cuGraphExecMemsetNodeSetParams", exec, node, &fill, g.context);
     }},
    {"copy node to", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_copy(g, graph, box(at, g.other)); }},
    {"copy node from", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_copy(g, graph, box(g.other, at)); }},
    {"copy node to, by address", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_copy(g, graph, box(at, g.other, memory_unified, memory_unified)); }, true},
    {"copy node from, by address", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_copy(g, graph, box(g.other, at, memory_unified, memory_unified)); }, true},
    {"copy node to host", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_copy(g, graph, box(at, g.other, memory_host)); }, true},
    {"copy node from host", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) { return add_copy(g, graph, box(g.other, at, memory_device, memory_host)); }, true},
    {"copy node set", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec&) {
         const CUDA_MEMCPY3D copy = box(at, g.other);
         return call("cuGraphMemcpyNodeSetParams", good_copy(g, graph), &copy);
     }},
    {"copy of an instance set", [](const Ground& g, CUgraph graph, CUdeviceptr at, CUgraphExec& exec) {
         CUgraphNode node = good_copy(g, graph);
         must("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
         const CUDA_MEMCPY3D copy = box(at, g.other);
         return call("cuGraphExecMemcpyNodeSetParams", exec, node, &copy, g.context);
     }},
};

std::string types_of(CUgraph graph) {
    CUgraphNode nodes[8]{};
    std::size_t count = 8;
    if (int result = call("cuGraphGetNodes", graph, static_cast<CUgraphNode*>(nodes), &count)) return "!" + number(result);
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) {
        int type = -1;
        must("cuGraphNodeGetType", nodes[i], &type);
        text += number(type);
    }
    return text + "]";
}

/// Appends what the waits say; true if the context is in order.
bool waits(const Ground& g, CUstream stream, std::string& text) {
    text += ", wait " + number(call("cuStreamSynchronize", stream));
    const int after = call("cuMemsetD8_v2", g.memory, static_cast<unsigned char>(0), bytes);
    if (after) text += ", then " + number(after);
    return after == 0;
}

bool run_graph(const Ground& g, CUgraph graph, CUgraphExec exec, CUstream stream, std::string& text) {
    text += " " + types_of(graph);
    if (!exec) {
        const int result = call("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
        text += ", instance " + number(result);
        if (result) return true;
    }
    text += ", launch " + number(call("cuGraphLaunch", exec, stream));
    return waits(g, stream, text);
}

struct Case {
    std::string question;
    /// The answer; false: the process is of no use for others.
    std::function<bool(const Ground&, std::string& answer)> ask;
};

/// A graph with one fill that was captured.
CUgraph captured_fill(const Ground& g, CUdeviceptr at) {
    CUgraph graph{};
    must("cuStreamBeginCapture_v2", g.stream, 0);
    must("cuMemsetD32Async", at, 3u, bytes / 4, g.stream);
    must("cuStreamEndCapture", g.stream, &graph);
    return graph;
}
CUgraph captured_copy(const Ground& g, CUdeviceptr to, CUdeviceptr from) {
    CUgraph graph{};
    must("cuStreamBeginCapture_v2", g.stream, 0);
    must("cuMemcpyDtoDAsync_v2", to, from, bytes, g.stream);
    must("cuStreamEndCapture", g.stream, &graph);
    return graph;
}

/// Memory that goes before the instance is made or launched, and what becomes of a captured fill of no memory.
void add_lives(std::vector<Case>& cases) {
    struct Making {
        const char* name;
        CUgraph (*make)(const Ground&, CUdeviceptr);
    };
    const auto node_graph = [](auto add) {
        CUgraph graph{};
        must("cuGraphCreate", &graph, 0u);
        static_cast<void>(add(graph));
        return graph;
    };
    static const auto made = node_graph;
    constexpr Making makings[] = {
        {"captured fill", [](const Ground& g, CUdeviceptr at) { return captured_fill(g, at); }},
        {"captured copy to", [](const Ground& g, CUdeviceptr at) { return captured_copy(g, at, g.other); }},
        {"captured copy from", [](const Ground& g, CUdeviceptr at) { return captured_copy(g, g.other, at); }},
        {"fill node", [](const Ground& g, CUdeviceptr at) { return made([&](CUgraph graph) { return add_fill(g, graph, at, 4); }); }},
        {"copy node to", [](const Ground& g, CUdeviceptr at) { return made([&](CUgraph graph) { return add_copy(g, graph, box(at, g.other)); }); }},
        {"copy node from", [](const Ground& g, CUdeviceptr at) { return made([&](CUgraph graph) { return add_copy(g, graph, box(g.other, at)); }); }},
    };
    for (const Making& making : makings)
        for (const bool instance_first : {false, true})
            cases.push_back({std::string("freed before the ") + (instance_first ? "launch: " : "instance: ") + making.name, [=](const Ground& g, std::string& text) {
                 CUdeviceptr memory = 0;
                 must("cuMemAlloc_v2", &memory, 64 * mega);
                 CUgraph graph = making.make(g, memory);
                 CUgraphExec exec{};
                 if (instance_first) must("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
                 must("cuMemFree_v2", memory);
                 const bool in_order = run_graph(g, graph, exec, g.stream, text);
                 // 700 or 719, as the engine finds it.
                 if (!in_order) text.replace(text.find(", wait"), std::string::npos, ", wait: a fault");
                 return in_order;
             }});
    cases.push_back({"captured fill of 0x80: its parameters", [](const Ground& g, std::string& text) {
                         CUgraph graph = captured_fill(g, 0x80);
                         CUgraphNode node{};
                         std::size_t count = 1;
                         must("cuGraphGetNodes", graph, &node, &count);
                         CUDA_MEMSET_NODE_PARAMS fill{};
                         text = number(call("cuGraphMemsetNodeGetParams", node, &fill));
                         text += " " + number(static_cast<long long>(fill.dst)) + " " + number(static_cast<long long>(fill.width));
                         text += ", set again " + number(call("cuGraphMemsetNodeSetParams", node, static_cast<const CUDA_MEMSET_NODE_PARAMS*>(&fill)));
                         fill.dst = g.memory;
                         text += ", set to memory " + number(call("cuGraphMemsetNodeSetParams", node, static_cast<const CUDA_MEMSET_NODE_PARAMS*>(&fill)));
                         return run_graph(g, graph, nullptr, g.stream, text);
                     }});
    cases.push_back({"captured fill of 0x80: instance with parameters", [](const Ground& g, std::string& text) {
                         CUgraph graph = captured_fill(g, 0x80);
                         CUgraphExec exec{};
                         CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
                         text = number(call("cuGraphInstantiateWithParams", &exec, graph, &parameters));
                         text += std::string(", result ") + number(parameters.result_out) + ", " + (parameters.hErrNode_out ? "a" : "no") + " node";
                         return true;
                     }});
    cases.push_back({"captured fill of 0x80: update of an instance", [](const Ground& g, std::string& text) {
                         CUgraph good = captured_fill(g, g.memory), graph = captured_fill(g, 0x80);
                         CUgraphExec exec{};
                         must("cuGraphInstantiateWithFlags", &exec, good, 0ull);
                         CUgraphExecUpdateResultInfo info{};
                         text = number(call("cuGraphExecUpdate_v2", exec, graph, &info));
                         text += " " + number(info.result) + " " + (info.errorNode ? "a" : "no") + " node";
                         return run_graph(g, good, exec, g.stream, text);
                     }});
    cases.push_back({"captured fill of 0x80: as a child", [](const Ground& g, std::string& text) {
                         CUgraph child = captured_fill(g, 0x80), graph{};
                         CUgraphNode node{};
                         must("cuGraphCreate", &graph, 0u);
                         text = number(call("cuGraphAddChildGraphNode", &node, graph, no_nodes, none, child));
                         return run_graph(g, graph, nullptr, g.stream, text);
                     }});
    cases.push_back({"captured fill of 0x80: a clone", [](const Ground& g, std::string& text) {
                         CUgraph graph = captured_fill(g, 0x80), clone{};
                         text = number(call("cuGraphClone", &clone, graph));
                         return run_graph(g, clone, nullptr, g.stream, text);
                     }});
    cases.push_back({"captured fill of 0x80: printed", [](const Ground& g, std::string& text) {
                         CUgraph graph = captured_fill(g, 0x80);
                         text = number(call("cuGraphDebugDotPrint", graph, "/dev/null", 1u));
                         return run_graph(g, graph, nullptr, g.stream, text);
                     }});
    cases.push_back({"captured fill of no rows of 0x80", [](const Ground& g, std::string& text) {
                         must("cuStreamBeginCapture_v2", g.stream, 0);
                         for (const std::size_t height : {std::size_t{0}, std::size_t{1}, std::size_t{2}})
                             for (const std::size_t pitch : {std::size_t{0}, std::size_t{8}, std::size_t{16}, std::size_t{18}})
                                 text += " " + number(call("cuMemsetD2D32Async", CUdeviceptr{0x80}, pitch, 3u, bytes / 4, height, g.stream));
                         text += ", width 0: " + number(call("cuMemsetD32Async", CUdeviceptr{0x80}, 3u, std::size_t{0}, g.stream));
                         text += ", misaligned width 0: " + number(call("cuMemsetD32Async", CUdeviceptr{0x81}, 3u, std::size_t{0}, g.stream));
                         text += ", of 2^62 words: " + number(call("cuMemsetD32Async", CUdeviceptr{0x80}, 3u, std::size_t{1} << 62, g.stream));
                         text += ", around: " + number(call("cuMemsetD32Async", ~CUdeviceptr{0} - 7, 3u, bytes, g.stream));
                         CUgraph graph{};
                         must("cuStreamEndCapture", g.stream, &graph);
                         std::size_t count = 0;
                         must("cuGraphGetNodes", graph, static_cast<CUgraphNode*>(nullptr), &count);
                         text += ", nodes " + number(static_cast<long long>(count));
                         return true;
                     }});
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    const auto captured = [&](const std::string& how, int mode, CUstream Ground::*stream, std::size_t operations) {
        for (std::size_t i = 0; i < operations; ++i)
            for (const Address& address : addresses_for(stream_operations[i].is_of_host))
                cases.push_back({how + stream_operations[i].name + ": " + address.name, [=, operation = stream_operations[i]](const Ground& g, std::string& text) {
                     must("cuStreamBeginCapture_v2", g.*stream, mode);
                     text = number(operation.make(g, address.of(g), g.*stream));
                     int status = 77;
                     must("cuStreamIsCapturing", g.*stream, &status);
                     CUgraph graph{};
                     const int end = call("cuStreamEndCapture", g.*stream, &graph);
                     text += ", capturing " + number(status) + ", end " + number(end);
                     return !graph || run_graph(g, graph, nullptr, g.*stream, text);
                 }});
    };
    captured("captured: ", 0, &Ground::stream, stream_operations.size());
    captured("captured relaxed: ", 2, &Ground::stream, 1);
    captured("captured in a blocking stream: ", 1, &Ground::blocking, 1);
    for (const NodeOperation& operation : node_operations)
        for (const Address& address : addresses_for(operation.is_of_host))
            cases.push_back({operation.name + std::string(": ") + address.name, [=](const Ground& g, std::string& text) {
                 CUgraph graph{};
                 CUgraphExec exec{};
                 must("cuGraphCreate", &graph, 0u);
                 text = number(operation.make(g, graph, address.of(g), exec));
                 return run_graph(g, graph, exec, g.stream, text);
             }});
    for (const Operation& operation : stream_operations)
        for (const Address& address : addresses_for(operation.is_of_host))
            cases.push_back({std::string("at once: ") + operation.name + ": " + address.name, [=](const Ground& g, std::string& text) {
                 text = number(operation.make(g, address.of(g), g.stream));
                 return waits(g, g.stream, text);
             }});
    add_lives(cases);
    return cases;
}

} // namespace

int main(int count, char** words) {
    Answers all(count, words);
    const std::vector<Case> cases = all_cases();
    // How many have been answered: seen by parent and children.
    auto* const answered = static_cast<std::size_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    while (*answered < cases.size()) {
        const std::size_t first = *answered;
        in_process(all, "a process", [&](const Told& told) {
            const Ground ground;
            for (std::size_t i = first; i < cases.size(); ++i) {
                std::string answer;
                const bool in_order = cases[i].ask(ground, answer);
                told.give(cases[i].question, answer);
                *answered = i + 1;
                if (!in_order) break;
            }
        });
        if (*answered == first) ++*answered; // it died
    }
    return all.finish();
}
