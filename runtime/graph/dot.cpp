// SPDX-License-Identifier: Apache-2.0
// The driver's text, line by line (tests/driver_api/answers/graph_answers_h100.txt, "dot").
#include "runtime/graph/dot.h"

#include "runtime/graph/exec.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/graph_memory.h"
#include "runtime/module/module.h"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <unordered_map>

namespace ptarmigan::runtime {
namespace {

/// CUgraphDebugDot_flags.
enum DotFlags : unsigned {
    verbose = 1,
    kernel_params = 4,
    copy_params = 8,
    fill_params = 16,
    host_params = 32,
    event_params = 64,
    kernel_attributes = 512,
    handles = 1024,
    allocate_params = 2048,
    free_params = 4096,
    operation_params = 8192,
    topology = 16384,
};

std::string hex(std::uint64_t value) {
    return fmt::format("0x{:016X}", value);
}
std::string hex(const void* pointer) {
    return hex(reinterpret_cast<std::uintptr_t>(pointer));
}

/// Extents of a grid or a block.
std::string shape_of(const std::array<std::uint32_t, 3>& extents) {
    if (extents[1] == 1 && extents[2] == 1) return std::to_string(extents[0]);
    return fmt::format("\\{{{},{},{}\\}}", extents[0], extents[1], extents[2]);
}

class Printer {
public:
    Printer(std::string& out, unsigned flags) : out_(out), flags_(flags & verbose ? ~0u : flags) {}

    /// A graph, and behind it the graphs inside.
    void print(const Graph& graph) {
        out_ += fmt::format("subgraph cluster_{0} {{\nlabel=\"graph_{0}\" graph[style=\"dashed\"];\n", graph.id());
        std::unordered_map<const Node*, std::size_t> number, place;
        for (const auto& node : graph.nodes()) number.emplace(node.get(), number.size());
        const std::vector<Node*> order = pairing_order(graph);
        for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = order.size() - 1 - i;
        for (const auto& node : graph.nodes()) {
            id_ = std::to_string(number[node.get()]);
            label_ = has(topology) ? fmt::format("{} (topoId: {})", id_, place[node.get()]) : id_;
            out_ += fmt::format("\"graph_{}_node_{}\"[", graph.id(), id_);
            std::visit([&](const auto& work) { print_work(*node, work); }, node->work);
            out_ += "\"];\n\n";
        }
        for (const auto& node : graph.nodes())
            for (const Node::Link& link : node->after()) {
                out_ += fmt::format("\"graph_{0}_node_{1}\" -> \"graph_{0}_node_{2}\"", graph.id(), number[node.get()],
                                    number[link.node]);
                const auto& before = link.node->before();
                std::size_t edge = 0;
                while (before[edge].node != node.get()) ++edge;
                out_ += has(topology) ? fmt::format(" [headlabel={}];\n", edge) : ";\n";
            }
        out_ += "}\n";
        for (const auto& node : graph.nodes()) {
            if (const auto* child = std::get_if<ChildWorkOfGraph>(&node->work)) print(*child->graph);
            if (const auto* conditional = std::get_if<ConditionalWork>(&node->work))
                for (const auto& body : conditional->bodies) print(*body);
        }
    }

private:
    bool has(unsigned flag) const { return (flags_ & flag) != 0; }

    void print_work(const Node& node, const KernelWork& work) {
        const std::string& name = work.function->kernel().name();
        const LaunchConfig& config = work.config;
        const std::string shape = has(kernel_params) ? fmt::format("\\<\\<\\<{},{},{}\\>\\>\\>", shape_of(config.grid),
                                                                   shape_of(config.block), config.dynamic_shared)
                                                     : std::string();
        const void* function = work.library_kernel ? work.library_kernel : work.function;
        if (!has(kernel_attributes)) {
            out_ += fmt::format("style=\"bold\" shape=\"octagon\" label=\"{}\n{}\n", label_, name);
            if (has(handles)) out_ += fmt::format("node handle: {}\nfunc handle: {}\n", hex(&node), hex(function));
            out_ += shape;
            return;
        }
        out_ += fmt::format("style=\"bold\" shape=\"record\" label=\"{{KERNEL\n| {{ID | {} | {}{}}}\n", label_, name,
                            shape);
        if (has(handles))
            out_ += fmt::format("| {{{{node handle | func handle}} | {{{} | {}}}}}\n", hex(&node), hex(function));
        out_ +=
            "| {accessPolicyWindow | {base_ptr | num_bytes | hitRatio | hitProp | missProp} | {0x0000000000000000 | 0 "
            "| 0.000000 | N | N}}\n";
        constexpr unsigned priority_id = 8;
        const auto priority = work.attributes.find(priority_id);
        out_ += fmt::format("| {{cooperative | {}}}\n| {{priority | {}}}\n}}", config.cooperative ? 1 : 0,
                            priority == work.attributes.end() ? 0 : static_cast<std::int32_t>(priority->second[0]));
    }

    static const char* memory_type(const CopyBox::End& end) {
        if (end.array) return "ARRAY (ARRAY)";
        switch (end.side) {
        case Side::host: return "HOST (HOST)";
        case Side::device: return "DEVICE (DEVICE)";
        case Side::unified: return "UNIFIED (UNIFIED)";
        }
        return "";
    }
    static std::string end_text(const CopyBox::End& end) {
        const void* none = nullptr;
        return fmt::format("{} | {} | {} | {} | {} | {} | {} | {} | {} | 0", memory_type(end), hex(end.array.get()),
                           hex(end.side == Side::host ? end.base : none),
                           hex(end.side != Side::host && !end.array ? end.base : none), end.x_bytes, end.y, end.z,
                           end.array ? 0 : end.pitch, end.array ? 0 : end.height);
    }
    void print_work(const Node& node, const CopyWork& work) {
        const CopyBox& box = work.box;
        if (!has(copy_params)) {
            const auto letter = [](const CopyBox::End& end) {
                return end.array ? 'A' : end.side == Side::host ? 'H' : end.side == Side::device ? 'D' : 'U';
            };
            const std::size_t bytes = box.width_bytes * box.height * box.depth;
            out_ += fmt::format("style=\"solid\" shape=\"trapezium\"label=\"{}\nMEMCPY\n", label_);
            print_handle(node);
            out_ += fmt::format("({}to{},{})\n", letter(box.source), letter(box.destination), bytes);
            return;
        }
        const char* words = "MemoryType | Array | Host | Device | XInBytes | Y | Z | Pitch | Height | LOD";
        out_ += "style=\"solid\" shape=\"record\" label=\"{\nMEMCPY\n" + ids(node) +
                fmt::format("| {{{{src | dst}} | {{ {0} | {0}}} | {{{1} | {2}}}}}\n", words, end_text(box.source),
                            end_text(box.destination)) +
                fmt::format("| {{Extent | {{WidthInBytes | Height | Depth}} | {{{} | {} | {}}}}}\n}}", box.width_bytes,
                            box.height, box.depth);
    }
    void print_work(const Node& node, const FillWork& work) {
        if (!has(fill_params)) {
            out_ += fmt::format("style=\"solid\" shape=\"invtrapezium\"label=\"{}\nMEMSET\n", label_);
            print_handle(node);
            out_ += fmt::format("({},{})\n", work.value, work.width * work.element_size * work.height);
            return;
        }
        const bool with_handle = has(handles);
        out_ += fmt::format(
            "style=\"solid\" style=\"solid\" shape=\"record\" label=\"{{MEMSET\n| {{{{ID{} | dptr | pitch | value "
            "| elementSize | width | height}} | {{{}{} | {} | {} | {} | {} | {} | {}}}}}}}",
            with_handle ? " | node handle" : "", label_, with_handle ? " | " + hex(&node) : "", hex(work.to),
            work.pitch, work.value, work.element_size, work.width, work.height);
    }
    void print_work(const Node& node, const HostWork& work) {
        plain(node, "HOST");
        if (has(host_params))
            out_ += fmt::format("fn: {}\nuserData: {}\n", hex(reinterpret_cast<std::uintptr_t>(work.function)),
                                hex(work.data));
    }
    void print_work(const Node& node, const EventRecordWork& work) {
        plain(node, "EVENT_RECORD");
        if (has(event_params)) out_ += fmt::format("event: {}\n", hex(work.event.get()));
    }
    void print_work(const Node& node, const EventWaitWork& work) {
        plain(node, "EVENT_WAIT");
        if (has(event_params)) out_ += fmt::format("event: {}\n", hex(work.event.get()));
    }
    void print_work(const Node& node, const ChildWorkOfGraph& work) {
        plain(node, fmt::format("graph_{}", work.graph->id()));
    }
    void print_work(const Node& node, const std::monostate&) { plain(node, "EMPTY"); }
    void print_work(const Node& node, const AllocateWork& work) {
        if (!has(allocate_params)) return plain(node, "MEM_ALLOC");
        out_ += "style=\"solid\" shape=\"record\" label=\"{\nMEM_ALLOC\n" + ids(node) +
                "| {{{poolProps | {allocType | handleTypes | {location | {type | id}}} | {PINNED | NONE | DEVICE | " +
                fmt::format("{}}}}}}}}}\n| {{{{bytesize | dptr}} | {{{} | {}}}}}\n}}", work.place.id,
                            work.memory->size(), hex(work.memory->pointer()));
    }
    void print_work(const Node& node, const FreeWork& work) {
        if (!has(free_params)) return plain(node, "MEM_FREE");
        out_ += "style=\"solid\" shape=\"record\" label=\"{\nMEM_FREE\n" + ids(node) +
                fmt::format("| {{{{dptr}} | {{{}}}}}\n}}", hex(work.memory->pointer()));
    }
    void print_work(const Node& node, const MemoryOperationsWork& work) {
        if (!has(operation_params)) return plain(node, "BATCH_MEM_OP");
        const bool with_handle = has(handles);
        out_ +=
            fmt::format("style=\"solid\" shape=\"record\" label=\"{{\nBATCH_MEM_OP\n| {{{{ID{} | count | flags }} | "
                        "{{{}{} | {} | {} }}}}\n",
                        with_handle ? " | node handle" : "", label_, with_handle ? " | " + hex(&node) : "",
                        work.steps.size(), hex(std::uint64_t{0}));
        for (std::size_t i = 0; i < work.steps.size(); ++i) {
            const ValueStep& step = work.steps[i];
            constexpr const char* until[] = {"GEQ", "EQ", "AND", "NOR"};
            const bool writes = step.kind == ValueStep::Kind::write;
            const std::string name = step.kind == ValueStep::Kind::barrier
                                         ? std::string("BARRIER")
                                         : fmt::format("{}_VALUE_{}", writes ? "WRITE" : "WAIT", step.bytes * 8);
            out_ +=
                fmt::format("| {{{{{{paramArray[{}] | {{op | addr | val | flags }}}}}}\n| {{{} | {} | {} | {}}}}}\n", i,
                            name, hex(step.address), hex(step.value),
                            step.kind == ValueStep::Kind::wait ? until[static_cast<unsigned>(step.until)] : "DEFAULT");
        }
        out_ += "}";
    }
    void print_work(const Node& node, const SemaphoreSignalWork&) { plain(node, "EXT_SEMAS_SIGNAL"); }
    void print_work(const Node& node, const SemaphoreWaitWork&) { plain(node, "EXT_SEMAS_WAIT"); }
    void print_work(const Node& node, const ConditionalWork& work) {
        constexpr const char* kinds[] = {"IF", "WHILE", "SWITCH"};
        out_ += fmt::format("style=\"bold\" shape=\"record\" label=\"{{\nCONDITIONAL\n| {{ID | {}}}\n", label_);
        if (has(handles))
            out_ += fmt::format("| {{node handle| {}}}\n| {{Conditional Handle|{}}}\n", hex(&node), work.value->handle);
        out_ += fmt::format("| {{Conditional Type| {}}}\n", kinds[static_cast<unsigned>(work.kind)]);
        for (std::size_t i = 0; i < work.bodies.size(); ++i) {
            const std::string name = work.kind == ConditionalWork::Kind::if_nonzero      ? (i == 0 ? "True" : "False")
                                     : work.kind == ConditionalWork::Kind::while_nonzero ? "Body"
                                                                                         : std::to_string(i);
            out_ += fmt::format("| {{{}|graph_{}}}\n", name, work.bodies[i]->id());
        }
        out_ += "}\n";
    }

    void plain(const Node& node, const std::string& name) {
        out_ += fmt::format("style=\"solid\" shape=\"rectangle\" label=\"{}\n{}\n", label_, name);
        print_handle(node);
    }
    void print_handle(const Node& node) {
        if (has(handles)) out_ += fmt::format("node handle: {}\n", hex(&node));
    }
    std::string ids(const Node& node) const {
        return has(handles) ? fmt::format("| {{{{ID | node handle}} | {{{} | {}}}}}\n", label_, hex(&node))
                            : fmt::format("| {{{{ID}} | {{{}}}}}\n", label_);
    }

    std::string& out_;
    const unsigned flags_;
    std::string id_, label_;
};

} // namespace

Status print_dot(const Graph& graph, const char* path, unsigned flags) {
    std::ofstream out(path);
    if (!out) return Status::operating_system;
    std::string text = "digraph dot {\n";
    Printer(text, flags).print(graph);
    text += "}\n";
    out << text;
    return out.flush() ? Status::success : Status::operating_system;
}

} // namespace ptarmigan::runtime
