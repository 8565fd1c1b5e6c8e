// SPDX-License-Identifier: Apache-2.0
// Questions about memory nodes and the memory that graphs have.
#include "questions.h"

namespace graph_questions {
namespace {

CUgraphNode* const no_nodes = nullptr;
constexpr std::size_t none = 0;

CUDA_MEM_ALLOC_NODE_PARAMS alloc_of(std::size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.poolProps.allocType = 1, alloc.poolProps.location = {1, 0}, alloc.bytesize = bytes;
    return alloc;
}

std::string mebibytes(unsigned long long bytes) {
    if (bytes && bytes % (1 << 20) == 0) return number(static_cast<long long>(bytes >> 20)) + "M";
    return number(static_cast<long long>(bytes));
}

std::string attributes() {
    std::string text;
    for (int id = 0; id < 4; ++id) {
        unsigned long long value = 0;
        const int result = call("cuDeviceGetGraphMemAttribute", 0, id, static_cast<void*>(&value));
        text += (id ? " " : "") + (result ? "!" + number(result) : mebibytes(value));
    }
    return text; // used, used high, reserved, reserved high
}

void ask_nodes(const Ground& ground) {
    CUgraph graph = ground.graph(), other = ground.graph();
    CUgraphNode node{}, freed{};
    const auto add = [&](const char* what, auto change) {
        CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(4096);
        change(p);
        p.dptr = 0;
        const int result = call("cuGraphAddMemAllocNode", &node, graph, no_nodes, none, &p);
        ground.give(std::string("alloc: ") + what, number(result) + (p.dptr ? " pointer" : " null"));
        return p.dptr;
    };
    using P = CUDA_MEM_ALLOC_NODE_PARAMS;
    P managed{};
    add("0 bytes", [](P& p) { p.bytesize = 0; });
    add("type 0", [](P& p) { p.poolProps.allocType = 0; });
    add("host", [](P& p) { p.poolProps.location = {2, 0}; });
    add("managed", [](P& p) { p.poolProps.allocType = 2; });
    ground.give("get managed", call("cuGraphMemAllocNodeGetParams", node, &managed), [&] { return " " + number(managed.poolProps.allocType) + " " + number(managed.poolProps.location.type); });
    add("managed, host", [](P& p) { p.poolProps.allocType = 2, p.poolProps.location = {2, 0}; });
    add("managed, numa 0", [](P& p) { p.poolProps.allocType = 2, p.poolProps.location = {3, 0}; });
    add("managed, nowhere", [](P& p) { p.poolProps.allocType = 2, p.poolProps.location = {0, 0}; });
    add("type 3", [](P& p) { p.poolProps.allocType = 3; });
    add("numa 0", [](P& p) { p.poolProps.location = {3, 0}; });
    add("device 7", [](P& p) { p.poolProps.location = {1, 7}; });
    add("handle type 1", [](P& p) { p.poolProps.handleTypes = 1; });
    add("2^50 bytes", [](P& p) { p.bytesize = std::size_t{1} << 50; });
    CUmemAccessDesc access{{1, 0}, 3};
    add("access", [&](P& p) { p.accessDescs = &access, p.accessDescCount = 1; });
    ground.give("alloc: null", call("cuGraphAddMemAllocNode", &node, graph, no_nodes, none, static_cast<P*>(nullptr)));
    const CUdeviceptr pointer = add("good", [](P&) {});
    P got{};
    ground.give("get", call("cuGraphMemAllocNodeGetParams", node, &got), [&] { return std::string() + (got.dptr == pointer ? " same" : " other") + " " + number(static_cast<long long>(got.bytesize)) + " " + number(got.poolProps.location.type); });
    ground.give("get to null", call("cuGraphMemAllocNodeGetParams", node, static_cast<P*>(nullptr)));
    unsigned long long value = 0;
    ground.give("pointer attribute: memory type", call("cuPointerGetAttribute", static_cast<void*>(&value), 2, pointer));
    ground.give("pointer attribute: mapped", call("cuPointerGetAttribute", static_cast<void*>(&value), 13, pointer), [&] { return std::string() + " " + number(static_cast<long long>(value)); });
    ground.give("free: null", call("cuGraphAddMemFreeNode", &freed, graph, no_nodes, none, CUdeviceptr{0}));
    ground.give("free: of cuMemAlloc", call("cuGraphAddMemFreeNode", &freed, graph, no_nodes, none, ground.memory));
    ground.give("free: interior", call("cuGraphAddMemFreeNode", &freed, graph, &node, std::size_t{1}, pointer + 512));
    ground.give("free: without the edge", call("cuGraphAddMemFreeNode", &freed, graph, no_nodes, none, pointer));
    ground.give("free", call("cuGraphAddMemFreeNode", &freed, graph, &node, std::size_t{1}, pointer));
    CUdeviceptr found = 0;
    ground.give("get free", call("cuGraphMemFreeNodeGetParams", freed, &found), [&] { return std::string() + (found == pointer ? " same" : " other"); });
    ground.give("free: again", call("cuGraphAddMemFreeNode", &freed, graph, &node, std::size_t{1}, pointer));
    ground.give("free: in another graph", call("cuGraphAddMemFreeNode", &freed, other, no_nodes, none, pointer));
    ground.give("clone", [&] { CUgraph clone{}; return call("cuGraphClone", &clone, graph); }());
    CUgraph parent = ground.graph();
    ground.give("as a child", call("cuGraphAddChildGraphNode", &freed, parent, no_nodes, none, graph));
    ground.give("destroy the node", call("cuGraphDestroyNode", node));
    ground.give("an edge more", [&] { CUgraphNode a = ground.empty_node(graph); return call("cuGraphAddDependencies", graph, &a, &node, std::size_t{1}); }());
    ground.give("cuMemFree of it", call("cuMemFree_v2", pointer));
    CUgraphExec exec{}, second{};
    ground.give("instantiate", call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
    ground.give("instantiate twice", call("cuGraphInstantiateWithFlags", &second, graph, 0ull));
    ground.give("destroy the graph", call("cuGraphDestroy", graph));
}

void ask_life(const Ground& ground) {
    ground.give("attributes at first", attributes());
    CUgraph graph = ground.graph();
    CUgraphNode alloc{}, use{};
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(std::size_t{3} << 20);
    must("cuGraphAddMemAllocNode", &alloc, graph, no_nodes, none, &p);
    CUDA_MEMSET_NODE_PARAMS fill = ground.fill(p.dptr, 0x5a5a5a5a, 1024);
    must("cuGraphAddMemsetNode", &use, graph, &alloc, std::size_t{1}, &fill, ground.context);
    ground.give("attributes with a node", attributes());
    CUgraphExec exec{};
    must("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
    ground.give("attributes instantiated", attributes());
    ground.give("upload", call("cuGraphUpload", exec, ground.stream));
    must("cuStreamSynchronize", ground.stream);
    ground.give("attributes uploaded", attributes());
    ground.give("launch", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("attributes launched", attributes());
    unsigned word = 0;
    must("cuMemcpyDtoH_v2", static_cast<void*>(&word), p.dptr, std::size_t{4});
    ground.give("what it wrote", word);
    ground.give("launch again without a free", call("cuGraphLaunch", exec, ground.stream));
    ground.give("free it", number(call("cuMemFree_v2", p.dptr)));
    ground.give("attributes freed", attributes());
    ground.give("free it again", number(call("cuMemFree_v2", p.dptr)));
    ground.give("launch again", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("free in stream order", in_turn([&] { return call("cuMemFreeAsync", p.dptr, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("attributes freed in stream order", attributes());
    ground.give("launch, destroy exec", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }, [&] { return call("cuGraphExecDestroy", exec); }));
    ground.give("attributes then", attributes());
    ground.give("free then", number(call("cuMemFree_v2", p.dptr)));
    ground.give("attributes after the free", attributes());
    ground.give("trim", call("cuDeviceGraphMemTrim", 0));
    ground.give("attributes trimmed", attributes());
    unsigned long long zero = 0, one = 1;
    for (int id = 0; id < 5; ++id) {
        ground.give("set " + number(id) + " to 0", call("cuDeviceSetGraphMemAttribute", 0, id, static_cast<void*>(&zero)));
        ground.give("set " + number(id) + " to 1", call("cuDeviceSetGraphMemAttribute", 0, id, static_cast<void*>(&one)));
    }
    ground.give("attributes set", attributes());
    ground.give("get 4", call("cuDeviceGetGraphMemAttribute", 0, 4, static_cast<void*>(&zero)));
    ground.give("get of device 7", call("cuDeviceGetGraphMemAttribute", 7, 0, static_cast<void*>(&zero)));
    ground.give("get to null", call("cuDeviceGetGraphMemAttribute", 0, 0, static_cast<void*>(nullptr)));
    ground.give("trim device 7", call("cuDeviceGraphMemTrim", 7));
    // Freed in the graph.
    CUgraph closed = ground.graph();
    p = alloc_of(std::size_t{3} << 20);
    must("cuGraphAddMemAllocNode", &alloc, closed, no_nodes, none, &p);
    must("cuGraphAddMemFreeNode", &use, closed, &alloc, std::size_t{1}, p.dptr);
    must("cuGraphInstantiateWithFlags", &exec, closed, 0ull);
    ground.give("closed: launch", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("closed: attributes", attributes());
    ground.give("closed: free", call("cuMemFree_v2", p.dptr));
    must("cuGraphExecDestroy", exec);
    ground.give("closed: attributes then", attributes());
    must("cuDeviceGraphMemTrim", 0);
    ground.give("closed: attributes trimmed", attributes());
    // Freed by relaunching.
    CUgraph again = ground.graph();
    p = alloc_of(1000);
    must("cuGraphAddMemAllocNode", &alloc, again, no_nodes, none, &p);
    must("cuGraphInstantiateWithFlags", &exec, again, 1ull);
    ground.give("auto free: launches", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("auto free: attributes", attributes());
    ground.give("auto free: free, launch", in_turn([&] { return call("cuMemFreeAsync", p.dptr, ground.stream); }, [&] { return call("cuGraphLaunch", exec, ground.stream); }));
    must("cuStreamSynchronize", ground.stream);
    // Freed by another graph.
    CUgraph freeing = ground.graph();
    ground.give("another graph frees", call("cuGraphAddMemFreeNode", &use, freeing, no_nodes, none, p.dptr));
    CUgraphExec second{};
    must("cuGraphInstantiateWithFlags", &second, freeing, 0ull);
    ground.give("it launches", in_turn([&] { return call("cuGraphLaunch", second, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("it launches again", in_turn([&] { return call("cuGraphLaunch", second, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("update of a graph with memory", [&] { CUgraphExecUpdateResultInfo info{}; const int r = call("cuGraphExecUpdate_v2", exec, again, &info); return r * 100 + info.result; }());
    // What several instances reserve.
    const auto footprint = [&](const std::string& what, std::vector<std::size_t> sizes, bool freed, bool side_by_side) {
        must("cuDeviceGraphMemTrim", 0);
        unsigned long long none_left = 0;
        must("cuDeviceSetGraphMemAttribute", 0, 1, static_cast<void*>(&none_left));
        must("cuDeviceSetGraphMemAttribute", 0, 3, static_cast<void*>(&none_left));
        const std::string before = attributes();
        CUgraph made = ground.graph();
        CUgraphNode last{}, free_node{};
        std::vector<CUdeviceptr> pointers;
        for (std::size_t size : sizes) {
            CUDA_MEM_ALLOC_NODE_PARAMS each = alloc_of(size);
            CUgraphNode behind = last;
            must("cuGraphAddMemAllocNode", &last, made, &behind, std::size_t{behind && !side_by_side ? 1u : 0u}, &each);
            pointers.push_back(each.dptr);
            if (!freed) continue;
            must("cuGraphAddMemFreeNode", &free_node, made, &last, std::size_t{1}, each.dptr);
            last = free_node;
        }
        CUgraphExec of{};
        must("cuGraphInstantiateWithFlags", &of, made, 0ull);
        std::string answer = before + " | launch " + number(call("cuGraphLaunch", of, ground.stream));
        must("cuStreamSynchronize", ground.stream);
        answer += " " + attributes();
        if (!freed) {
            for (CUdeviceptr pointer : pointers) must("cuMemFreeAsync", pointer, ground.stream);
            must("cuStreamSynchronize", ground.stream);
            answer += " | freed " + attributes();
        }
        must("cuGraphExecDestroy", of);
        answer += " | destroyed " + attributes();
        must("cuGraphDestroy", made);
        must("cuDeviceGraphMemTrim", 0);
        answer += " | trimmed " + attributes();
        ground.give(what, answer);
    };
    constexpr std::size_t mebi = 1 << 20;
    for (bool freed : {false, true})
        for (bool side_by_side : {false, true}) {
            const std::string how = std::string(freed ? "freed in the graph" : "kept") + (side_by_side ? ", side by side" : ", in a row");
            footprint("one of 1K, " + how, {1024}, freed, side_by_side);
            footprint("one of 20M, " + how, {20 * mebi}, freed, side_by_side);
            footprint("one of 40M, " + how, {40 * mebi}, freed, side_by_side);
            footprint("two of 20M, " + how, {20 * mebi, 20 * mebi}, freed, side_by_side);
            footprint("three of 16M, " + how, {16 * mebi, 16 * mebi, 16 * mebi}, freed, side_by_side);
            footprint("three of 64M, " + how, {64 * mebi, 64 * mebi, 64 * mebi}, freed, side_by_side);
            footprint("five of 3M, " + how, {3 * mebi, 3 * mebi, 3 * mebi, 3 * mebi, 3 * mebi}, freed, side_by_side);
        }
    // Two instances that hold memory at the same time, and not.
    for (bool at_once : {false, true}) {
        must("cuDeviceGraphMemTrim", 0);
        std::string answer = attributes();
        CUgraphExec execs[2]{};
        CUdeviceptr pointers[2]{};
        for (int i : {0, 1}) {
            CUgraph one = ground.graph();
            CUgraphNode node{};
            CUDA_MEM_ALLOC_NODE_PARAMS each = alloc_of(40 * mebi);
            must("cuGraphAddMemAllocNode", &node, one, no_nodes, none, &each);
            pointers[i] = each.dptr;
            must("cuGraphInstantiateWithFlags", &execs[i], one, 0ull);
            must("cuGraphLaunch", execs[i], ground.stream);
            if (!at_once) must("cuMemFreeAsync", each.dptr, ground.stream);
        }
        must("cuStreamSynchronize", ground.stream);
        answer += " | launched " + attributes();
        if (at_once) for (CUdeviceptr pointer : pointers) must("cuMemFreeAsync", pointer, ground.stream);
        must("cuStreamSynchronize", ground.stream);
        must("cuDeviceGraphMemTrim", 0);
        answer += " | freed, trimmed " + attributes();
        must("cuGraphExecDestroy", execs[0]);
        must("cuDeviceGraphMemTrim", 0);
        answer += " | one destroyed, trimmed " + attributes();
        ground.give(std::string("two instances ") + (at_once ? "at once" : "in a row"), answer);
        must("cuGraphExecDestroy", execs[1]);
    }
}

} // namespace

const std::vector<Group> memory_groups = {{"memory nodes", ask_nodes}, {"memory life", ask_life}};

} // namespace graph_questions
