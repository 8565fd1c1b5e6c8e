// SPDX-License-Identifier: Apache-2.0
// Questions about instantiated graphs: flags, updates as a whole and of single nodes, what is enabled, what is printed.
#include "questions.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace graph_questions {
namespace {

CUgraphNode* const no_nodes = nullptr;
constexpr std::size_t none = 0;

void nothing(void*) {}
void something(void*) {}

CUgraphExec instance(CUgraph graph) {
    CUgraphExec exec{};
    must("cuGraphInstantiateWithFlags", &exec, graph, 0ull);
    return exec;
}

void ask_instantiation(const Ground& ground) {
    CUgraph graph = ground.graph(), empty = ground.graph(), hosts = ground.graph();
    ground.kernel_node(graph);
    CUgraphNode node{};
    CUDA_HOST_NODE_PARAMS host{nothing, nullptr};
    must("cuGraphAddHostNode", &node, hosts, no_nodes, none, &host);
    CUgraphExec exec{};
    for (unsigned long long flags = 0; flags <= 16; ++flags) {
        exec = nullptr;
        const int result = call("cuGraphInstantiateWithFlags", &exec, graph, flags);
        unsigned long long read = 99;
        std::string answer = number(result);
        if (!result) {
            must("cuGraphExecGetFlags", exec, &read);
            answer += " flags " + number(static_cast<long long>(read)) + " launch " + number(call("cuGraphLaunch", exec, ground.stream));
        }
        CUDA_GRAPH_INSTANTIATE_PARAMS p{flags, ground.stream, nullptr, 77};
        exec = nullptr;
        const int second = call("cuGraphInstantiateWithParams", &exec, graph, &p);
        answer += "; with params " + number(second) + " result " + number(p.result_out);
        if (!second) {
            must("cuGraphExecGetFlags", exec, &read);
            answer += " flags " + number(static_cast<long long>(read));
        }
        ground.give("flags " + number(static_cast<long long>(flags)), answer);
    }
    must("cuStreamSynchronize", ground.stream);
    CUDA_GRAPH_INSTANTIATE_PARAMS p{4, nullptr, nullptr, 77};
    ground.give("device launch of an empty graph", call("cuGraphInstantiateWithParams", &exec, empty, &p), [&] { return std::string() + " " + number(p.result_out); });
    p = {4, nullptr, nullptr, 77};
    ground.give("device launch of a host node", call("cuGraphInstantiateWithParams", &exec, hosts, &p), [&] { return std::string() + " " + number(p.result_out) + (p.hErrNode_out == node ? " node" : ""); });
    CUgraph nested = ground.graph();
    must("cuGraphAddChildGraphNode", &node, nested, no_nodes, none, hosts);
    p = {4, nullptr, nullptr, 77};
    ground.give("device launch of a host node inside", call("cuGraphInstantiateWithParams", &exec, nested, &p), [&] { return std::string() + " " + number(p.result_out) + (p.hErrNode_out == node ? " node" : p.hErrNode_out ? " other node" : ""); });
    ground.give("an empty graph", call("cuGraphInstantiateWithFlags", &exec, empty, 0ull));
    ground.give("launch it", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    ground.give("null graph", call("cuGraphInstantiateWithFlags", &exec, CUgraph{}, 0ull));
    ground.give("to null", call("cuGraphInstantiateWithFlags", static_cast<CUgraphExec*>(nullptr), graph, 0ull));
    ground.give("null params", call("cuGraphInstantiateWithParams", &exec, graph, static_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(nullptr)));
    char log[32] = "untouched";
    ground.give("v2", call("cuGraphInstantiate_v2", &exec, graph, &node, static_cast<char*>(log), sizeof log), [&] { return std::string() + " " + log; });
    ground.give("v2 without a log", call("cuGraphInstantiate_v2", &exec, graph, no_nodes, static_cast<char*>(nullptr), std::size_t{0}));
    unsigned long long flags = 0;
    ground.give("flags of null", call("cuGraphExecGetFlags", CUgraphExec{}, &flags));
    ground.give("flags to null", call("cuGraphExecGetFlags", exec, static_cast<unsigned long long*>(nullptr)));
    ground.give("upload", call("cuGraphUpload", exec, ground.stream));
    ground.give("upload null", call("cuGraphUpload", CUgraphExec{}, ground.stream));
    ground.give("launch null", call("cuGraphLaunch", CUgraphExec{}, ground.stream));
    ground.give("launch in the default stream", call("cuGraphLaunch", exec, CUstream{}));
    ground.give("launch per thread", call("cuGraphLaunch", exec, reinterpret_cast<CUstream>(2)));
    ground.give("destroy while it runs", call("cuGraphExecDestroy", exec));
    exec = instance(graph);
    ground.give("destroy the graph", call("cuGraphDestroy", graph));
    ground.give("launch then", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    CUcontext other{};
    if (!call("cuCtxCreate_v4", &other, static_cast<void*>(nullptr), 0u, 0)) {
        CUstream foreign{};
        must("cuStreamCreate", &foreign, 1u);
        ground.give("launch in another context's stream", call("cuGraphLaunch", exec, foreign));
        CUgraph made{};
        ground.give("make a graph there", call("cuGraphCreate", &made, 0u));
        must("cuCtxSetCurrent", ground.context);
    }
    must("cuCtxSetCurrent", CUcontext{});
    ground.give("without a context: create", call("cuGraphCreate", &graph, 0u));
    ground.give("without a context: empty node", call("cuGraphAddEmptyNode", &node, graph, no_nodes, none));
    const CUDA_KERNEL_NODE_PARAMS kernel = ground.empty_kernel();
    ground.give("without a context: kernel node", call("cuGraphAddKernelNode_v2", &node, graph, no_nodes, none, &kernel));
    ground.give("without a context: instantiate", call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
    ground.give("without a context: launch", call("cuGraphLaunch", exec, ground.stream));
    ground.give("without a context: begin capture", call("cuStreamBeginCapture_v2", ground.stream, 0));
    ground.give("without a context: end capture", call("cuStreamEndCapture", ground.stream, &graph));
    CUuserObject object{};
    ground.give("without a context: user object", call("cuUserObjectCreate", &object, static_cast<void*>(nullptr), CUhostFn{nothing}, 1u, 1u));
    ground.give("without a context: mode", [] { int mode = 1; return call("cuThreadExchangeStreamCaptureMode", &mode); }());
}

/// A graph of one node of each updatable kind: k > c > f > h.
struct Chain {
    CUgraph graph;
    CUgraphNode kernel, copy, fill, host;
};
Chain chain(const Ground& ground, unsigned value = 1, unsigned filled = 1, CUhostFn function = nothing) {
    Chain made{ground.graph(), nullptr, nullptr, nullptr, nullptr};
    const CUDA_KERNEL_NODE_PARAMS kernel = ground.add_kernel(value);
    must("cuGraphAddKernelNode_v2", &made.kernel, made.graph, no_nodes, none, &kernel);
    const CUDA_MEMCPY3D copy = ground.copy(ground.other_memory, ground.memory, 64);
    must("cuGraphAddMemcpyNode", &made.copy, made.graph, &made.kernel, std::size_t{1}, &copy, ground.context);
    const CUDA_MEMSET_NODE_PARAMS fill = ground.fill(ground.memory + 64, filled, 4);
    must("cuGraphAddMemsetNode", &made.fill, made.graph, &made.copy, std::size_t{1}, &fill, ground.context);
    CUDA_HOST_NODE_PARAMS host{function, nullptr};
    must("cuGraphAddHostNode", &made.host, made.graph, &made.fill, std::size_t{1}, &host);
    return made;
}

void ask_updates(const Ground& ground) {
    const Chain base = chain(ground);
    CUgraphExec exec = instance(base.graph);
    const auto update = [&](const std::string& what, CUgraphExec of, CUgraph with, const Names& names) {
        CUgraphExecUpdateResultInfo info{77, nullptr, nullptr};
        const int result = call("cuGraphExecUpdate_v2", of, with, &info);
        ground.give(what, number(result) + " " + number(info.result) + " node " + names.of(info.errorNode) + " from " + names.of(info.errorFromNode));
    };
    const auto names_of = [](const Chain& c) {
        Names names;
        names.name(c.kernel, "kernel"), names.name(c.copy, "copy"), names.name(c.fill, "fill"), names.name(c.host, "host");
        return names;
    };
    const auto changed = [&](const char* what, auto change) {
        Chain c = chain(ground);
        Names names = names_of(c);
        change(c, names);
        update(what, exec, c.graph, names);
    };
    changed("nothing", [](Chain&, Names&) {});
    update("the graph itself", exec, base.graph, names_of(base));
    changed("values", [&](Chain& c, Names& n) { c = chain(ground, 9, 9, something), n = names_of(c); });
    changed("grid", [&](Chain& c, Names&) {
        CUDA_KERNEL_NODE_PARAMS p{};
        must("cuGraphKernelNodeGetParams_v2", c.kernel, &p);
        p.gridDimX = 4;
        must("cuGraphKernelNodeSetParams_v2", c.kernel, &p);
    });
    changed("function of the same module", [&](Chain& c, Names&) {
        unsigned value = 1;
        CUDA_KERNEL_NODE_PARAMS p = ground.add_kernel(value);
        p.func = ground.store;
        must("cuGraphKernelNodeSetParams_v2", c.kernel, &p);
    });
    changed("a node more", [&](Chain& c, Names& n) { n.name(ground.empty_node(c.graph, {c.host}), "new"); });
    changed("a root more", [&](Chain& c, Names& n) { n.name(ground.empty_node(c.graph), "new"); });
    changed("a node less", [&](Chain& c, Names&) { must("cuGraphDestroyNode", c.host); });
    changed("an edge less", [&](Chain& c, Names&) { must("cuGraphRemoveDependencies", c.graph, &c.fill, &c.host, std::size_t{1}); });
    changed("an edge more", [&](Chain& c, Names&) { must("cuGraphAddDependencies", c.graph, &c.kernel, &c.fill, std::size_t{1}); });
    changed("an edge moved", [&](Chain& c, Names&) {
        must("cuGraphRemoveDependencies", c.graph, &c.fill, &c.host, std::size_t{1});
        must("cuGraphAddDependencies", c.graph, &c.copy, &c.host, std::size_t{1});
    });
    changed("host becomes empty", [&](Chain& c, Names& n) {
        must("cuGraphDestroyNode", c.host);
        n.name(ground.empty_node(c.graph, {c.fill}), "new");
    });
    changed("host becomes a kernel", [&](Chain& c, Names& n) {
        must("cuGraphDestroyNode", c.host);
        n.name(ground.kernel_node(c.graph, {c.fill}), "new");
    });
    const auto copied = [&](const char* what, auto change) {
        changed(what, [&](Chain& c, Names&) {
            CUDA_MEMCPY3D p = ground.copy(ground.other_memory, ground.memory, 64);
            change(p);
            must("cuGraphMemcpyNodeSetParams", c.copy, &p);
        });
    };
    copied("copy: other places", [&](CUDA_MEMCPY3D& p) { p.srcDevice += 128, p.dstDevice += 256; });
    copied("copy: other size", [](CUDA_MEMCPY3D& p) { p.WidthInBytes = 32; });
    copied("copy: two rows", [](CUDA_MEMCPY3D& p) { p.Height = 2, p.srcPitch = p.dstPitch = 64; });
    copied("copy: from pinned", [&](CUDA_MEMCPY3D& p) { p.srcMemoryType = memory_host, p.srcHost = ground.pinned; });
    copied("copy: unified", [&](CUDA_MEMCPY3D& p) { p.srcMemoryType = memory_unified; });
    copied("copy: unified from pinned", [&](CUDA_MEMCPY3D& p) { p.srcMemoryType = memory_unified, p.srcDevice = reinterpret_cast<CUdeviceptr>(ground.pinned); });
    const auto filled = [&](const char* what, auto change) {
        changed(what, [&](Chain& c, Names&) {
            CUDA_MEMSET_NODE_PARAMS p = ground.fill(ground.memory + 64, 1, 4);
            change(p);
            must("cuGraphMemsetNodeSetParams", c.fill, &p);
        });
    };
    filled("fill: other place and value", [](CUDA_MEMSET_NODE_PARAMS& p) { p.dst += 64, p.value = 7; });
    filled("fill: width", [](CUDA_MEMSET_NODE_PARAMS& p) { p.width = 8; });
    filled("fill: element", [](CUDA_MEMSET_NODE_PARAMS& p) { p.elementSize = 1; });
    filled("fill: two rows", [](CUDA_MEMSET_NODE_PARAMS& p) { p.height = 2, p.pitch = 64; });
    changed("attribute: cooperative", [&](Chain& c, Names&) {
        CUlaunchAttributeValue value{};
        value.cooperative = 1;
        must("cuGraphKernelNodeSetAttribute", c.kernel, 2, &value);
    });
    changed("attribute: priority", [&](Chain& c, Names&) {
        CUlaunchAttributeValue value{};
        value.priority = -2;
        must("cuGraphKernelNodeSetAttribute", c.kernel, 8, &value);
    });
    changed("after all", [](Chain&, Names&) {});
    ground.give("launch", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    // Nodes in another order, edges in another order.
    {
        CUgraph first = ground.graph(), second = ground.graph(), third = ground.graph();
        CUgraphNode a = ground.kernel_node(first), b = ground.empty_node(first), c = ground.empty_node(first, {a, b});
        CUgraphExec of = instance(first);
        Names names;
        CUgraphNode x = ground.empty_node(second), y = ground.kernel_node(second), z = ground.empty_node(second, {y, x});
        names.name(x, "empty"), names.name(y, "kernel"), names.name(z, "join");
        update("nodes in another order", of, second, names);
        x = ground.kernel_node(third), y = ground.empty_node(third), z = ground.empty_node(third, {y, x});
        names.name(y, "empty"), names.name(x, "kernel"), names.name(z, "join");
        update("edges in another order", of, third, names);
        (void)c;
    }
    // Children.
    {
        CUgraph inner = ground.graph(), first = ground.graph(), second = ground.graph(), third = ground.graph();
        CUgraphNode node{};
        ground.kernel_node(inner);
        must("cuGraphAddChildGraphNode", &node, first, no_nodes, none, inner);
        CUgraphExec of = instance(first);
        Names names;
        must("cuGraphAddChildGraphNode", &node, second, no_nodes, none, inner);
        names.name(node, "child");
        update("an equal child", of, second, names);
        CUgraphNode more = ground.empty_node(inner);
        must("cuGraphAddChildGraphNode", &node, third, no_nodes, none, inner);
        names.name(node, "child"), names.name(more, "origin's");
        update("a child with a node more", of, third, names);
    }
    // Events.
    {
        CUgraph first = ground.graph(), second = ground.graph();
        CUgraphNode node{};
        must("cuGraphAddEventRecordNode", &node, first, no_nodes, none, ground.event);
        must("cuGraphAddEventRecordNode", &node, second, no_nodes, none, ground.second_event);
        update("another event", instance(first), second, Names());
    }
    ground.give("null exec", call("cuGraphExecUpdate_v2", CUgraphExec{}, base.graph, static_cast<CUgraphExecUpdateResultInfo*>(nullptr)));
    ground.give("null info", call("cuGraphExecUpdate_v2", exec, base.graph, static_cast<CUgraphExecUpdateResultInfo*>(nullptr)));
    CUgraphExecUpdateResultInfo info{};
    ground.give("null graph", call("cuGraphExecUpdate_v2", exec, CUgraph{}, &info), [&] { return std::string() + " " + number(info.result); });
    CUgraphNode node{};
    int result = 77;
    ground.give("v1", call("cuGraphExecUpdate", exec, base.graph, &node, &result), [&] { return std::string() + " " + number(result); });
    must("cuGraphDestroyNode", base.host);
    ground.give("v1 of a changed graph", call("cuGraphExecUpdate", exec, base.graph, &node, &result), [&] { return std::string() + " " + number(result); });
}

void ask_single_updates(const Ground& ground) {
    const Chain base = chain(ground), other = chain(ground);
    CUgraphExec exec = instance(base.graph);
    unsigned value = 3;
    const auto kernel = [&](const char* what, CUgraphNode node, auto change) {
        CUDA_KERNEL_NODE_PARAMS p = ground.add_kernel(value);
        change(p);
        ground.give(std::string("kernel: ") + what, call("cuGraphExecKernelNodeSetParams_v2", exec, node, &p));
    };
    using K = CUDA_KERNEL_NODE_PARAMS;
    kernel("value", base.kernel, [](K&) {});
    kernel("grid", base.kernel, [](K& p) { p.gridDimX = 2; });
    kernel("grid 0", base.kernel, [](K& p) { p.gridDimX = 0; });
    kernel("block 2048", base.kernel, [](K& p) { p.blockDimX = 2048; });
    kernel("another function", base.kernel, [&](K& p) { p.func = ground.store; });
    kernel("no function", base.kernel, [](K& p) { p.func = nullptr; });
    kernel("no parameters", base.kernel, [](K& p) { p.kernelParams = nullptr; });
    kernel("of a copy node", base.copy, [](K&) {});
    kernel("of another graph's node", other.kernel, [](K&) {});
    kernel("of null", nullptr, [](K&) {});
    CUgraph clone{};
    must("cuGraphClone", &clone, base.graph);
    CUgraphNode twin{};
    must("cuGraphNodeFindInClone", &twin, base.kernel, clone);
    kernel("of a clone's node", twin, [](K&) {});
    ground.give("kernel: null", call("cuGraphExecKernelNodeSetParams_v2", exec, base.kernel, static_cast<K*>(nullptr)));
    const auto copy = [&](const char* what, auto change) {
        CUDA_MEMCPY3D p = ground.copy(ground.other_memory, ground.memory, 64);
        change(p);
        ground.give(std::string("copy: ") + what, call("cuGraphExecMemcpyNodeSetParams", exec, base.copy, &p, ground.context));
    };
    using C = CUDA_MEMCPY3D;
    copy("places", [](C& p) { p.srcDevice += 64, p.dstDevice += 64; });
    copy("size", [](C& p) { p.WidthInBytes = 128; });
    copy("two rows", [](C& p) { p.Height = 2, p.srcPitch = p.dstPitch = 64; });
    copy("from pinned", [&](C& p) { p.srcMemoryType = memory_host, p.srcHost = ground.pinned; });
    copy("unified", [&](C& p) { p.srcMemoryType = memory_unified; });
    copy("past the end", [](C& p) { p.WidthInBytes = 1 << 24; });
    copy("nothing", [](C& p) { p.WidthInBytes = 0; });
    const auto fill = [&](const char* what, auto change) {
        CUDA_MEMSET_NODE_PARAMS p = ground.fill(ground.memory + 64, 1, 4);
        change(p);
        ground.give(std::string("fill: ") + what, call("cuGraphExecMemsetNodeSetParams", exec, base.fill, &p, ground.context));
    };
    using F = CUDA_MEMSET_NODE_PARAMS;
    fill("value", [](F& p) { p.value = 9; });
    fill("width", [](F& p) { p.width = 8; });
    fill("element", [](F& p) { p.elementSize = 1; });
    fill("two rows", [](F& p) { p.height = 2, p.pitch = 64; });
    fill("place", [](F& p) { p.dst += 64; });
    fill("element 3", [](F& p) { p.elementSize = 3; });
    CUDA_HOST_NODE_PARAMS host{something, nullptr};
    ground.give("host", call("cuGraphExecHostNodeSetParams", exec, base.host, &host));
    host.fn = nullptr;
    ground.give("host null", call("cuGraphExecHostNodeSetParams", exec, base.host, &host));
    ground.give("event of a host node", call("cuGraphExecEventRecordNodeSetEvent", exec, base.host, ground.event));
    ground.give("launch", in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); }));
    CUgraph inner = ground.graph(), outer = ground.graph(), changed = ground.graph();
    ground.kernel_node(inner);
    CUgraphNode node{};
    must("cuGraphAddChildGraphNode", &node, outer, no_nodes, none, inner);
    CUgraphExec of = instance(outer);
    ground.give("child: equal", call("cuGraphExecChildGraphNodeSetParams", of, node, inner));
    ground.kernel_node(changed), ground.empty_node(changed);
    ground.give("child: changed", call("cuGraphExecChildGraphNodeSetParams", of, node, changed));
    ground.give("child: null", call("cuGraphExecChildGraphNodeSetParams", of, node, CUgraph{}));
    CUgraphNodeParams p{};
    p.type = 0, p.kernel = ground.add_kernel(value);
    ground.give("generic kernel", call("cuGraphExecNodeSetParams", exec, base.kernel, &p));
    ground.give("generic kernel to a fill", call("cuGraphExecNodeSetParams", exec, base.fill, &p));
    p.type = 5;
    ground.give("generic type changed", call("cuGraphExecNodeSetParams", exec, base.kernel, &p));
    must("cuGraphDestroyNode", base.host);
    host.fn = something;
    ground.give("host node destroyed meanwhile", call("cuGraphExecHostNodeSetParams", exec, base.host, &host));
}

void ask_enabled(const Ground& ground) {
    const Chain base = chain(ground);
    CUgraphExec exec = instance(base.graph);
    const auto ask = [&](const char* what, CUgraphNode node) {
        unsigned enabled = 77;
        int result = call("cuGraphNodeGetEnabled", exec, node, &enabled);
        std::string answer = number(result) + " " + number(enabled);
        result = call("cuGraphNodeSetEnabled", exec, node, 0u);
        enabled = 77;
        const int then = call("cuGraphNodeGetEnabled", exec, node, &enabled);
        answer += ", set 0: " + number(result) + " then " + number(then) + " " + number(enabled);
        answer += ", set 2: " + number(call("cuGraphNodeSetEnabled", exec, node, 2u));
        must("cuGraphNodeGetEnabled", exec, base.kernel, &enabled);
        answer += ", set 1: " + number(call("cuGraphNodeSetEnabled", exec, node, 1u));
        ground.give(what, answer);
    };
    ask("kernel", base.kernel);
    ask("copy", base.copy);
    ask("fill", base.fill);
    ask("host", base.host);
    ask("null", nullptr);
    ground.give("null exec", call("cuGraphNodeSetEnabled", CUgraphExec{}, base.kernel, 0u));
    ground.give("get to null", call("cuGraphNodeGetEnabled", exec, base.kernel, static_cast<unsigned*>(nullptr)));
    must("cuMemsetD8_v2", ground.memory, static_cast<unsigned char>(0), std::size_t{256});
    must("cuGraphNodeSetEnabled", exec, base.kernel, 0u);
    must("cuGraphNodeSetEnabled", exec, base.copy, 0u);
    unsigned value = 5, found = 0;
    const CUDA_KERNEL_NODE_PARAMS p = ground.add_kernel(value);
    ground.give("set what is disabled", call("cuGraphExecKernelNodeSetParams_v2", exec, base.kernel, &p));
    must("cuGraphLaunch", exec, ground.stream);
    must("cuStreamSynchronize", ground.stream);
    must("cuMemcpyDtoH_v2", static_cast<void*>(&found), ground.memory, std::size_t{4});
    ground.give("disabled", found);
    CUgraphExecUpdateResultInfo info{};
    ground.give("update", call("cuGraphExecUpdate_v2", exec, base.graph, &info));
    unsigned enabled = 77;
    must("cuGraphNodeGetEnabled", exec, base.kernel, &enabled);
    ground.give("enabled after an update", enabled);
    must("cuGraphNodeSetEnabled", exec, base.kernel, 1u);
    must("cuGraphLaunch", exec, ground.stream);
    must("cuStreamSynchronize", ground.stream);
    must("cuMemcpyDtoH_v2", static_cast<void*>(&found), ground.memory, std::size_t{4});
    ground.give("enabled", found);
}

/// The text with handles and addresses as "0x*", and numbers of graphs as "G".
std::string plain(const std::string& line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line.compare(i, 2, "0x") == 0) {
            text += "0x*";
            i += 2;
            while (i < line.size() && std::isxdigit(static_cast<unsigned char>(line[i]))) ++i;
            --i;
        } else if (line.compare(i, 6, "graph_") == 0) {
            text += "graph_G";
            i += 6;
            while (i < line.size() && std::isdigit(static_cast<unsigned char>(line[i]))) ++i;
            --i;
        } else {
            text += line[i];
        }
    }
    return text;
}

void ask_dot(const Ground& ground) {
    Chain base = chain(ground);
    CUgraphNode last = base.host, node{};
    must("cuGraphAddEventRecordNode", &node, base.graph, &last, std::size_t{1}, ground.event);
    last = node;
    must("cuGraphAddEventWaitNode", &node, base.graph, &last, std::size_t{1}, ground.event);
    last = ground.empty_node(base.graph, {node});
    CUgraph inner = ground.graph();
    ground.kernel_node(inner);
    must("cuGraphAddChildGraphNode", &node, base.graph, &last, std::size_t{1}, inner);
    last = node;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
    alloc.poolProps.allocType = 1, alloc.poolProps.location = {1, 0}, alloc.bytesize = 4096;
    must("cuGraphAddMemAllocNode", &node, base.graph, &last, std::size_t{1}, &alloc);
    last = node;
    must("cuGraphAddMemFreeNode", &node, base.graph, &last, std::size_t{1}, alloc.dptr);
    CUgraph small = ground.graph();
    CUgraphNode a = ground.kernel_node(small), b = ground.kernel_node(small);
    CUgraphEdgeData data{1, 0, 1, {}};
    must("cuGraphAddDependencies_v2", small, &a, &b, &data, std::size_t{1});
    std::string path = std::filesystem::temp_directory_path() / "dotXXXXXX";
    const int file = mkstemp(path.data());
    if (file >= 0) close(file);
    for (unsigned flags : {0u, 1u, 2u, 4u, 8u, 16u, 32u, 64u, 512u, 1024u, 2048u, 4096u, 16384u})
        for (CUgraph graph : {base.graph, small}) {
            if (graph == small && flags > 1 && flags != 16384) continue;
            const std::string of = "flags " + number(flags) + (graph == small ? " small" : "");
            ground.give(of, call("cuGraphDebugDotPrint", graph, path.c_str(), flags));
            std::ifstream lines(path);
            int at = 0;
            for (std::string line; std::getline(lines, line);) {
                for (char& letter : line)
                    if (letter == '\t') letter = ' ';
                ground.give(of + " line " + number(++at), plain(line));
            }
        }
    {
        CUgraph shaped = ground.graph();
        CUDA_KERNEL_NODE_PARAMS p = ground.empty_kernel();
        p.gridDimX = 2, p.gridDimY = 3, p.gridDimZ = 4, p.blockDimX = 5, p.blockDimY = 6, p.blockDimZ = 7, p.sharedMemBytes = 8;
        must("cuGraphAddKernelNode_v2", &node, shaped, no_nodes, none, &p);
        CUgraphConditionalHandle handle{};
        must("cuGraphConditionalHandleCreate", &handle, shaped, ground.context, 1u, 1u);
        CUgraphNodeParams c{};
        c.type = 13, c.conditional = {handle, 0, 1, nullptr, ground.context};
        must("cuGraphAddNode_v2", &node, shaped, no_nodes, static_cast<CUgraphEdgeData*>(nullptr), none, &c);
        CUstreamBatchMemOpParams operation{};
        operation.value = {2, ground.memory, 7, 0, 0};
        const CUDA_BATCH_MEM_OP_NODE_PARAMS batch{ground.context, 1, &operation, 0};
        must("cuGraphAddBatchMemOpNode", &node, shaped, no_nodes, none, &batch);
        for (unsigned flags : {0u, 4u, 8192u, 32768u, 1u}) {
            const std::string of = "flags " + number(flags) + " shaped";
            ground.give(of, call("cuGraphDebugDotPrint", shaped, path.c_str(), flags));
            std::ifstream lines(path);
            int at = 0;
            for (std::string line; std::getline(lines, line);) {
                for (char& letter : line)
                    if (letter == '\t') letter = ' ';
                ground.give(of + " line " + number(++at), plain(line));
            }
        }
    }
    ground.give("no path", call("cuGraphDebugDotPrint", small, static_cast<const char*>(nullptr), 0u));
    ground.give("no graph", call("cuGraphDebugDotPrint", CUgraph{}, path.c_str(), 0u));
    ground.give("no folder", call("cuGraphDebugDotPrint", small, "/nonexistent/file", 0u));
    ground.give("flags 65536", call("cuGraphDebugDotPrint", small, path.c_str(), 65536u));
    if (const char* keep = std::getenv("KEEP_DOT"))
        (void)call("cuGraphDebugDotPrint", base.graph, keep, 1u);
    unlink(path.c_str());
}

/// What the driver says where a handle is gone. It crashes at others, or takes them.
template <int question> void ask_stale(const Ground& ground) {
    CUgraph graph = ground.graph();
    CUgraphNode node = ground.empty_node(graph);
    CUgraphExec exec = instance(graph);
    switch (question) {
    case 1: must("cuGraphDestroy", graph); ground.give("destroy twice", call("cuGraphDestroy", graph)); break;
    case 2: must("cuGraphExecDestroy", exec); ground.give("launch what is destroyed", call("cuGraphLaunch", exec, ground.stream)); break;
    case 3: must("cuGraphDestroy", graph); ground.give("add to what is destroyed", call("cuGraphAddEmptyNode", &node, graph, no_nodes, none)); break;
    default: break;
    }
}

} // namespace

const std::vector<Group> execution_groups = {
    {"instantiation", ask_instantiation}, {"updates", ask_updates}, {"single updates", ask_single_updates}, {"enabled", ask_enabled}, {"dot", ask_dot},
    {"stale 1", ask_stale<1>}, {"stale 2", ask_stale<2>}, {"stale 3", ask_stale<3>},
};

} // namespace graph_questions
