// SPDX-License-Identifier: Apache-2.0
// Questions about graphs as such: nodes, edges, their order, clones, children.
#include "questions.h"

#include <atomic>
#include <mutex>
#include <unistd.h>

namespace graph_questions {
namespace {

constexpr CUgraphNode no_node = nullptr;
CUgraphNode* const no_nodes = nullptr;

void ask_order(const Ground& ground) {
    CUgraph graph = ground.graph();
    Names names;
    std::vector<CUgraphNode> nodes;
    const auto add = [&](const char* name, std::initializer_list<int> dependencies) {
        std::vector<CUgraphNode> before;
        for (int index : dependencies) before.push_back(nodes[static_cast<std::size_t>(index)]);
        nodes.push_back(ground.empty_node(graph, before));
        names.name(nodes.back(), name);
    };
    add("a", {});
    add("b", {0});
    add("c", {0});
    add("d", {2, 1});
    add("e", {});
    add("f", {4, 3, 0});
    const auto list = [&](const char* what) {
        std::size_t count = 0;
        must("cuGraphGetNodes", graph, no_nodes, &count);
        std::vector<CUgraphNode> found(count + 2);
        must("cuGraphGetNodes", graph, found.data(), &count);
        ground.give(std::string(what) + ": nodes", names.of(found.data(), count));
        count = 20, found.resize(20);
        must("cuGraphGetRootNodes", graph, found.data(), &count);
        ground.give(std::string(what) + ": roots", names.of(found.data(), count));
        std::size_t edges = 20;
        std::vector<CUgraphNode> from(20), to(20);
        must("cuGraphGetEdges", graph, from.data(), to.data(), &edges);
        std::string text;
        for (std::size_t i = 0; i < edges; ++i) text += (i ? " " : "") + names.of(from[i]) + names.of(to[i]);
        ground.give(std::string(what) + ": edges", text);
        for (CUgraphNode node : nodes) {
            if (!node) continue;
            std::size_t before = 20, after = 20;
            must("cuGraphNodeGetDependencies", node, from.data(), &before);
            must("cuGraphNodeGetDependentNodes", node, to.data(), &after);
            ground.give(std::string(what) + ": around " + names.of(node), names.of(from.data(), before) + " | " + names.of(to.data(), after));
        }
    };
    list("made");
    CUgraphNode from[] = {nodes[4], nodes[1]}, to[] = {nodes[3], nodes[5]};
    ground.give("add e>d, b>f", call("cuGraphAddDependencies", graph, from, to, std::size_t{2}));
    list("two edges more");
    ground.give("remove b>f", call("cuGraphRemoveDependencies", graph, from + 1, to + 1, std::size_t{1}));
    ground.give("remove b>f again", call("cuGraphRemoveDependencies", graph, from + 1, to + 1, std::size_t{1}));
    ground.give("add b>f", call("cuGraphAddDependencies", graph, from + 1, to + 1, std::size_t{1}));
    list("an edge anew");
    ground.give("destroy c", call("cuGraphDestroyNode", nodes[2]));
    nodes[2] = nullptr;
    list("without c");
    CUgraph clone{};
    must("cuGraphClone", &clone, graph);
    ground.give("shape of the clone", shape_of(clone));
    ground.give("shape of the graph", shape_of(graph));
    for (CUgraphNode node : nodes) {
        if (!node) continue;
        CUgraphNode twin{};
        const int result = call("cuGraphNodeFindInClone", &twin, node, clone);
        ground.give("find " + names.of(node) + " in the clone", number(result) + (twin && twin != node ? " another" : ""));
        std::size_t before = 0;
        if (twin) must("cuGraphNodeGetDependencies", twin, no_nodes, &before);
        ground.give("dependencies of that of " + names.of(node), static_cast<long long>(before));
    }
    CUgraphNode twin{};
    ground.give("find in the graph itself", call("cuGraphNodeFindInClone", &twin, nodes[0], graph));
    CUgraph other = ground.graph();
    ground.give("find in an unrelated graph", call("cuGraphNodeFindInClone", &twin, nodes[0], other));
    CUgraphNode late = ground.empty_node(graph);
    ground.give("find what came later", call("cuGraphNodeFindInClone", &twin, late, clone));
    must("cuGraphNodeFindInClone", &twin, nodes[0], clone);
    must("cuGraphDestroyNode", twin);
    ground.give("find what the clone lost", call("cuGraphNodeFindInClone", &twin, nodes[0], clone));
    CUgraph second{};
    must("cuGraphClone", &second, clone);
    ground.give("find in a clone of the clone", call("cuGraphNodeFindInClone", &twin, nodes[1], second));
    ground.give("find null node", call("cuGraphNodeFindInClone", &twin, no_node, clone));
    ground.give("find in null graph", call("cuGraphNodeFindInClone", &twin, nodes[0], CUgraph{}));
    ground.give("find with no place", call("cuGraphNodeFindInClone", no_nodes, nodes[1], clone));
    ground.give("destroy the graph", call("cuGraphDestroy", graph));
    ground.give("shape of the clone then", shape_of(clone));
}

void ask_queries(const Ground& ground) {
    ground.give("create with null", call("cuGraphCreate", static_cast<CUgraph*>(nullptr), 0u));
    CUgraph graph{};
    ground.give("create with flag 1", call("cuGraphCreate", &graph, 1u));
    graph = ground.graph();
    std::size_t count = 7;
    ground.give("nodes of an empty graph", call("cuGraphGetNodes", graph, no_nodes, &count));
    ground.give("their number", static_cast<long long>(count));
    CUgraphNode a = ground.empty_node(graph), b = ground.empty_node(graph, {a}), c = ground.empty_node(graph, {b});
    Names names;
    names.name(a, "a"), names.name(b, "b"), names.name(c, "c"), names.name(&names, "old");
    const auto old = reinterpret_cast<CUgraphNode>(&names);
    const auto ask = [&](const char* what, auto query) {
        for (std::size_t room : {0, 1, 2, 3, 5}) {
            CUgraphNode found[12] = {old, old, old, old, old, old, old, old, old, old, old, old}; // edges: both ends
            std::size_t size = room;
            const int result = query(found, &size);
            ground.give(std::string(what) + " with room for " + number(static_cast<long long>(room)),
                        number(result) + " " + number(static_cast<long long>(size)) + ": " + names.of(found, 12));
        }
        ground.give(std::string(what) + " without a count", query(no_nodes, nullptr));
    };
    ask("nodes", [&](CUgraphNode* found, std::size_t* size) { return call("cuGraphGetNodes", graph, found, size); });
    ask("roots", [&](CUgraphNode* found, std::size_t* size) { return call("cuGraphGetRootNodes", graph, found, size); });
    ask("dependencies of c", [&](CUgraphNode* found, std::size_t* size) { return call("cuGraphNodeGetDependencies", c, found, size); });
    ask("dependents of a", [&](CUgraphNode* found, std::size_t* size) { return call("cuGraphNodeGetDependentNodes", a, found, size); });
    ask("edges", [&](CUgraphNode* found, std::size_t* size) { return call("cuGraphGetEdges", graph, found, found + 6, size); });
    ground.give("nodes of null", call("cuGraphGetNodes", CUgraph{}, no_nodes, &count));
    ground.give("roots of null", call("cuGraphGetRootNodes", CUgraph{}, no_nodes, &count));
    ground.give("edges of null", call("cuGraphGetEdges", CUgraph{}, no_nodes, no_nodes, &count));
    ground.give("dependencies of null", call("cuGraphNodeGetDependencies", no_node, no_nodes, &count));
    ground.give("dependents of null", call("cuGraphNodeGetDependentNodes", no_node, no_nodes, &count));
    int type = 0;
    ground.give("type of null", call("cuGraphNodeGetType", no_node, &type));
    ground.give("type to null", call("cuGraphNodeGetType", a, static_cast<int*>(nullptr)));
    ground.give("destroy null", call("cuGraphDestroy", CUgraph{}));
    ground.give("destroy null node", call("cuGraphDestroyNode", no_node));
    ground.give("destroy null exec", call("cuGraphExecDestroy", CUgraphExec{}));
    ground.give("clone null", call("cuGraphClone", &graph, CUgraph{}));
    ground.give("clone to null", call("cuGraphClone", static_cast<CUgraph*>(nullptr), graph));
}

void ask_dependencies(const Ground& ground) {
    CUgraph graph = ground.graph(), other = ground.graph();
    CUgraphNode a = ground.empty_node(graph), b = ground.empty_node(graph), c = ground.empty_node(graph, {b});
    CUgraphNode foreign = ground.empty_node(other), made{};
    const auto add_node = [&](const char* what, std::vector<CUgraphNode> before, std::size_t count) {
        made = nullptr;
        const int result = call("cuGraphAddEmptyNode", &made, graph, before.empty() ? no_nodes : before.data(), count);
        ground.give(std::string("a node behind ") + what, number(result) + (made ? " made" : "") + " " + shape_of(graph));
    };
    add_node("a twice", {a, a}, 2);
    add_node("a foreign node", {foreign}, 1);
    add_node("null", {nullptr}, 1);
    add_node("a, null", {a, nullptr}, 2);
    add_node("no array of 1", {}, 1);
    add_node("0 of an array", {a}, 0);
    ground.give("a node of null graph", call("cuGraphAddEmptyNode", &made, CUgraph{}, no_nodes, std::size_t{0}));
    ground.give("a node to null", call("cuGraphAddEmptyNode", no_nodes, graph, no_nodes, std::size_t{0}));
    const auto link = [&](const char* what, std::vector<CUgraphNode> from, std::vector<CUgraphNode> to, std::size_t count) {
        const int result = call("cuGraphAddDependencies", graph, from.empty() ? no_nodes : from.data(), to.empty() ? no_nodes : to.data(), count);
        ground.give(std::string("link ") + what, number(result) + " " + shape_of(graph));
    };
    link("nothing", {}, {}, 0);
    link("no arrays", {}, {}, 1);
    link("from only", {a}, {}, 1);
    link("a a", {a}, {a}, 1);
    link("a foreign", {a}, {foreign}, 1);
    link("foreign a", {foreign}, {a}, 1);
    link("null a", {nullptr}, {a}, 1);
    link("a b", {a}, {b}, 1);
    link("a b again", {a}, {b}, 1);
    link("c a, a circle", {c}, {a}, 1);
    link("a c and a circle", {a, c}, {c, a}, 2);
    link("a c twice at once", {a, a}, {c, c}, 2);
    ground.give("link in null graph", call("cuGraphAddDependencies", CUgraph{}, &a, &b, std::size_t{1}));
    CUgraphExec exec{};
    ground.give("instantiate that", call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
    const auto cut = [&](const char* what, std::vector<CUgraphNode> from, std::vector<CUgraphNode> to, std::size_t count) {
        const int result = call("cuGraphRemoveDependencies", graph, from.empty() ? no_nodes : from.data(), to.empty() ? no_nodes : to.data(), count);
        ground.give(std::string("cut ") + what, number(result) + " " + shape_of(graph));
    };
    cut("nothing", {}, {}, 0);
    cut("no arrays", {}, {}, 1);
    cut("b a", {b}, {a}, 1);
    cut("foreign a", {foreign}, {a}, 1);
    cut("null a", {nullptr}, {a}, 1);
    cut("a b and b a", {a, b}, {b, a}, 2);
    cut("a b", {a}, {b}, 1);
}

void ask_edge_data(const Ground& ground) {
    const auto edge = [](int from, int to, int type, int reserved = 0) {
        CUgraphEdgeData data{};
        data.from_port = static_cast<unsigned char>(from), data.to_port = static_cast<unsigned char>(to);
        data.type = static_cast<unsigned char>(type), data.reserved[2] = static_cast<unsigned char>(reserved);
        return data;
    };
    struct Form { const char* name; int from, to, type, reserved; };
    for (const Form& form : {Form{"0,0,0", 0, 0, 0, 0}, {"1,0,1", 1, 0, 1, 0}, {"2,0,1", 2, 0, 1, 0}, {"1,0,0", 1, 0, 0, 0},
                             {"2,0,0", 2, 0, 0, 0}, {"0,0,1", 0, 0, 1, 0}, {"3,0,1", 3, 0, 1, 0}, {"1,1,1", 1, 1, 1, 0},
                             {"0,1,0", 0, 1, 0, 0}, {"1,0,2", 1, 0, 2, 0}, {"0,0,0 reserved 1", 0, 0, 0, 1}}) {
        const CUgraphEdgeData data = edge(form.from, form.to, form.type, form.reserved);
        for (int kinds = 0; kinds < 4; ++kinds) {
            CUgraph graph = ground.graph();
            CUgraphNode a = kinds & 1 ? ground.empty_node(graph) : ground.kernel_node(graph);
            CUgraphNode b = kinds & 2 ? ground.empty_node(graph) : ground.kernel_node(graph);
            int result = call("cuGraphAddDependencies_v2", graph, &a, &b, &data, std::size_t{1});
            const std::string question = std::string("edge ") + form.name + (kinds & 1 ? " from empty" : " from kernel") + (kinds & 2 ? " to empty" : " to kernel");
            std::string answer = number(result) + " " + shape_of(graph);
            if (!result) {
                CUgraphExec exec{};
                answer += " instantiate " + number(call("cuGraphInstantiateWithFlags", &exec, graph, 0ull));
                if (exec) answer += " launch " + in_turn([&] { return call("cuGraphLaunch", exec, ground.stream); }, [&] { return call("cuStreamSynchronize", ground.stream); });
            }
            ground.give(question, answer);
        }
    }
    CUgraph graph = ground.graph();
    CUgraphNode a = ground.kernel_node(graph), b = ground.kernel_node(graph), found[4]{};
    const CUgraphEdgeData programmatic = edge(1, 0, 1), plain{};
    must("cuGraphAddDependencies_v2", graph, &a, &b, &programmatic, std::size_t{1});
    std::size_t count = 4;
    ground.give("edges without data", call("cuGraphGetEdges", graph, found, found + 2, &count));
    count = 0;
    ground.give("number of edges without data", call("cuGraphGetEdges", graph, no_nodes, no_nodes, &count));
    count = 4;
    ground.give("edges v2 without data", call("cuGraphGetEdges_v2", graph, found, found + 2, static_cast<CUgraphEdgeData*>(nullptr), &count));
    count = 4;
    ground.give("dependencies without data", call("cuGraphNodeGetDependencies", b, found, &count));
    count = 4;
    ground.give("dependents v2 without data", call("cuGraphNodeGetDependentNodes_v2", a, found, static_cast<CUgraphEdgeData*>(nullptr), &count));
    ground.give("the same edge with other data", call("cuGraphAddDependencies_v2", graph, &a, &b, &plain, std::size_t{1}), [&] { return std::string() + " " + shape_of(graph); });
    ground.give("cut without data", call("cuGraphRemoveDependencies", graph, &a, &b, std::size_t{1}), [&] { return std::string() + " " + shape_of(graph); });
    ground.give("cut with other data", call("cuGraphRemoveDependencies_v2", graph, &a, &b, &plain, std::size_t{1}), [&] { return std::string() + " " + shape_of(graph); });
    ground.give("cut with its data", call("cuGraphRemoveDependencies_v2", graph, &a, &b, &programmatic, std::size_t{1}), [&] { return std::string() + " " + shape_of(graph); });
    CUgraphNodeParams parameters{};
    parameters.type = 0, parameters.kernel = ground.empty_kernel();
    CUgraphNode c{};
    ground.give("add a node with such an edge", call("cuGraphAddNode_v2", &c, graph, &a, &programmatic, std::size_t{1}, &parameters), [&] { return std::string() + " " + shape_of(graph); });
    CUgraph clone{};
    must("cuGraphClone", &clone, graph);
    ground.give("clone", shape_of(clone));
}

void ask_children(const Ground& ground) {
    CUgraph graph = ground.graph(), child = ground.graph();
    CUgraphNode k = ground.kernel_node(child), node{}, second{};
    ground.give("add null", call("cuGraphAddChildGraphNode", &node, graph, no_nodes, std::size_t{0}, CUgraph{}));
    ground.give("add", call("cuGraphAddChildGraphNode", &node, graph, no_nodes, std::size_t{0}, child));
    CUgraph held{}, again{};
    ground.give("get", call("cuGraphChildGraphNodeGetGraph", node, &held));
    ground.give("it is another", held != child && held);
    must("cuGraphChildGraphNodeGetGraph", node, &again);
    ground.give("and the same each time", held == again);
    ground.give("get to null", call("cuGraphChildGraphNodeGetGraph", node, static_cast<CUgraph*>(nullptr)));
    ground.give("get of a kernel", call("cuGraphChildGraphNodeGetGraph", k, &held));
    must("cuGraphChildGraphNodeGetGraph", node, &held);
    CUgraphNode twin{};
    ground.give("find in the child", call("cuGraphNodeFindInClone", &twin, k, held));
    ground.give("add to the child", call("cuGraphAddEmptyNode", &twin, held, no_nodes, std::size_t{0}));
    ground.give("shape of the child", shape_of(held) + " of what it was made of " + shape_of(child));
    ground.give("destroy the child", call("cuGraphDestroy", held));
    ground.give("instantiate the child", [&] { CUgraphExec exec{}; return call("cuGraphInstantiateWithFlags", &exec, held, 0ull); }());
    ground.give("destroy what it was made of", call("cuGraphDestroy", child));
    ground.give("an empty child", [&] { CUgraph empty = ground.graph(); return call("cuGraphAddChildGraphNode", &second, graph, no_nodes, std::size_t{0}, empty); }());
    CUgraph top = ground.graph();
    ground.give("a child with children", call("cuGraphAddChildGraphNode", &second, top, no_nodes, std::size_t{0}, graph));
    ground.give("its child into the graph", call("cuGraphAddChildGraphNode", &second, graph, no_nodes, std::size_t{0}, held));
    ground.give("shapes", shape_of(top) + shape_of(graph));
    CUgraphExec exec{};
    ground.give("instantiate", call("cuGraphInstantiateWithFlags", &exec, top, 0ull));
    ground.give("launch", call("cuGraphLaunch", exec, ground.stream));
    ground.give("wait", call("cuStreamSynchronize", ground.stream));
    CUgraphNodeParams move{};
    move.type = 4;
    CUgraph moved = ground.graph();
    ground.kernel_node(moved);
    move.graph.graph = moved, move.graph.ownership = 1;
    ground.give("move", call("cuGraphAddNode_v2", &node, graph, no_nodes, static_cast<CUgraphEdgeData*>(nullptr), std::size_t{0}, &move));
    held = nullptr;
    must("cuGraphChildGraphNodeGetGraph", node, &held);
    ground.give("moved: the same", held == moved);
    ground.give("destroy the moved one", call("cuGraphDestroy", moved));
    ground.give("instantiate the moved one", call("cuGraphInstantiateWithFlags", &exec, moved, 0ull));
    ground.give("move it again", call("cuGraphAddNode_v2", &node, top, no_nodes, static_cast<CUgraphEdgeData*>(nullptr), std::size_t{0}, &move));
    move.graph.ownership = 0;
    ground.give("clone it into another", call("cuGraphAddNode_v2", &node, top, no_nodes, static_cast<CUgraphEdgeData*>(nullptr), std::size_t{0}, &move));
    move.graph.ownership = 2;
    ground.give("ownership 2", call("cuGraphAddNode_v2", &node, top, no_nodes, static_cast<CUgraphEdgeData*>(nullptr), std::size_t{0}, &move));
}

struct Log {
    std::mutex mutex;
    std::vector<int> calls;
};
Log destroyed;
void note_destroyed(void* which) {
    std::lock_guard lock(destroyed.mutex);
    destroyed.calls.push_back(static_cast<int>(reinterpret_cast<std::uintptr_t>(which)));
}
/// Who was destroyed since the last call. Destructors are called by a thread of the driver's, some time later: an object that is
/// released behind the others tells when it has come as far, however busy the machine is.
std::string take_destroyed() {
    static std::atomic<bool> is_fence_called;
    is_fence_called = false;
    CUuserObject fence{};
    CUhostFn note = [](void*) { is_fence_called = true; };
    must("cuUserObjectCreate", &fence, static_cast<void*>(nullptr), note, 1u, 1u);
    must("cuUserObjectRelease", fence, 1u);
    while (!is_fence_called) usleep(100);
    usleep(20000); // those that are called beside it
    std::lock_guard lock(destroyed.mutex);
    std::string text;
    for (int which : destroyed.calls) text += (text.empty() ? "" : " ") + number(which);
    destroyed.calls.clear();
    return text;
}

void ask_user_objects(const Ground& ground) {
    CUuserObject object{};
    CUhostFn function = note_destroyed, none = nullptr;
    const auto value = [](std::uintptr_t number) { return reinterpret_cast<void*>(number); };
    ground.give("create with flags 0", call("cuUserObjectCreate", &object, value(1), function, 1u, 0u));
    ground.give("create with flags 2", call("cuUserObjectCreate", &object, value(1), function, 1u, 2u));
    ground.give("create with flags 3", call("cuUserObjectCreate", &object, value(1), function, 1u, 3u));
    ground.give("create with 0 references", call("cuUserObjectCreate", &object, value(1), function, 0u, 1u));
    ground.give("create with 2^31 references", call("cuUserObjectCreate", &object, value(1), function, 0x80000000u, 1u));
    ground.give("create without a function", call("cuUserObjectCreate", &object, value(1), none, 1u, 1u));
    ground.give("create to null", call("cuUserObjectCreate", static_cast<CUuserObject*>(nullptr), value(1), function, 1u, 1u));
    ground.give("create null pointer", call("cuUserObjectCreate", &object, value(0), function, 1u, 1u));
    ground.give("release it", call("cuUserObjectRelease", object, 1u), [&] { return std::string() + " destroyed " + take_destroyed(); });
    must("cuUserObjectCreate", &object, value(2), function, 3u, 1u);
    ground.give("retain null", call("cuUserObjectRetain", CUuserObject{}, 1u));
    ground.give("release null", call("cuUserObjectRelease", CUuserObject{}, 1u));
    ground.give("retain 0", call("cuUserObjectRetain", object, 0u));
    ground.give("release 0", call("cuUserObjectRelease", object, 0u));
    ground.give("retain 2^31", call("cuUserObjectRetain", object, 0x80000000u));
    ground.give("retain 2", call("cuUserObjectRetain", object, 2u));
    ground.give("release 4 of 5", call("cuUserObjectRelease", object, 4u), [&] { return std::string() + " destroyed " + take_destroyed(); });
    ground.give("release the last", call("cuUserObjectRelease", object, 1u), [&] { return std::string() + " destroyed " + take_destroyed(); });

    CUgraph graph = ground.graph();
    ground.kernel_node(graph);
    must("cuUserObjectCreate", &object, value(3), function, 4u, 1u);
    ground.give("graph retains null", call("cuGraphRetainUserObject", graph, CUuserObject{}, 1u, 0u));
    ground.give("null graph retains", call("cuGraphRetainUserObject", CUgraph{}, object, 1u, 0u));
    ground.give("graph retains 0", call("cuGraphRetainUserObject", graph, object, 0u, 0u));
    ground.give("graph retains with flags 2", call("cuGraphRetainUserObject", graph, object, 1u, 2u));
    ground.give("graph retains by moving 2", call("cuGraphRetainUserObject", graph, object, 2u, 1u));
    ground.give("graph retains 1 more", call("cuGraphRetainUserObject", graph, object, 1u, 0u));
    ground.give("graph releases 5", call("cuGraphReleaseUserObject", graph, object, 5u));
    ground.give("graph releases 1", call("cuGraphReleaseUserObject", graph, object, 1u));
    ground.give("graph releases 0", call("cuGraphReleaseUserObject", graph, object, 0u));
    ground.give("own 2 released", call("cuUserObjectRelease", object, 2u), [&] { return std::string() + " destroyed " + take_destroyed(); });
    CUgraph clone{};
    must("cuGraphClone", &clone, graph);
    ground.give("graph destroyed", call("cuGraphDestroy", graph), [&] { return std::string() + " destroyed " + take_destroyed(); });
    CUgraphExec exec{};
    must("cuGraphInstantiateWithFlags", &exec, clone, 0ull);
    ground.give("clone destroyed", call("cuGraphDestroy", clone), [&] { return std::string() + " destroyed " + take_destroyed(); });
    must("cuGraphLaunch", exec, ground.stream);
    must("cuStreamSynchronize", ground.stream);
    ground.give("launched", "destroyed " + take_destroyed());
    ground.give("exec destroyed", call("cuGraphExecDestroy", exec), [&] { return std::string() + " destroyed " + take_destroyed(); });

    graph = ground.graph();
    must("cuUserObjectCreate", &object, value(4), function, 1u, 1u);
    must("cuGraphRetainUserObject", graph, object, 1u, 1u);
    CUgraph parent = ground.graph();
    CUgraphNode node{};
    must("cuGraphAddChildGraphNode", &node, parent, no_nodes, std::size_t{0}, graph);
    ground.give("child's origin destroyed", call("cuGraphDestroy", graph), [&] { return std::string() + " destroyed " + take_destroyed(); });
    ground.give("node destroyed", call("cuGraphDestroyNode", node), [&] { return std::string() + " destroyed " + take_destroyed(); });
    ground.give("parent destroyed", call("cuGraphDestroy", parent), [&] { return std::string() + " destroyed " + take_destroyed(); });
}

} // namespace

const std::vector<Group> structure_groups = {
    {"order", ask_order},         {"queries", ask_queries},   {"dependencies", ask_dependencies},
    {"edge data", ask_edge_data}, {"children", ask_children}, {"user objects", ask_user_objects},
};

} // namespace graph_questions
