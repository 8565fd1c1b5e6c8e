// SPDX-License-Identifier: Apache-2.0
// Tarjan's strongly connected components: a component is complete when those that it calls are.
#include "translator/analysis/build/call_frames.h"

#include "translator/analysis/graph/function_graph.h"

#include <algorithm>

namespace ptarmigan::translator {
namespace {

class Components {
public:
    explicit Components(const std::map<ptx::FunctionId, CallFrame>& frames) : frames_(frames) {}

    FrameDepth depth_of(ptx::FunctionId entry) {
        visit(entry);
        result_.bytes = nodes_.at(entry).depth;
        return result_;
    }

private:
    struct Node {
        unsigned index = 0, low = 0;
        bool is_open = true;
        std::uint64_t depth = 0; ///< of its component and what that calls, once it is complete
    };

    void visit(ptx::FunctionId id) {
        Node& node = nodes_[id]; // references into a map stay
        node.index = node.low = unsigned(nodes_.size());
        open_.push_back(id);
        for (ptx::FunctionId callee : frames_.at(id).callees) {
            auto found = nodes_.find(callee);
            if (found == nodes_.end()) {
                visit(callee);
                node.low = std::min(node.low, nodes_.at(callee).low);
            } else if (found->second.is_open) {
                node.low = std::min(node.low, found->second.index);
            }
        }
        if (node.low == node.index) complete(id);
    }

    void complete(ptx::FunctionId root) {
        const auto first = std::find(open_.begin(), open_.end(), root);
        const std::vector<ptx::FunctionId> members(first, open_.end());
        open_.erase(first, open_.end());
        for (ptx::FunctionId member : members) nodes_.at(member).is_open = false;
        const auto& own_callees = frames_.at(root).callees;
        const bool recursive =
            members.size() > 1 || std::find(own_callees.begin(), own_callees.end(), root) != own_callees.end();
        std::uint64_t largest = 0, deepest_callee = 0;
        for (ptx::FunctionId member : members) {
            const CallFrame& frame = frames_.at(member);
            largest = std::max(largest, frame.bytes);
            if (recursive) result_.scale = std::max(result_.scale, scale_of(frame));
            // 0 for the component's own, which are not known yet
            for (ptx::FunctionId callee : frame.callees)
                deepest_callee = std::max(deepest_callee, nodes_.at(callee).depth);
        }
        result_.recursive = result_.recursive || recursive;
        for (ptx::FunctionId member : members) nodes_.at(member).depth = largest + deepest_callee;
    }

    static std::uint32_t scale_of(const CallFrame& frame) {
        constexpr std::uint64_t smallest_level = 16; // the return address at least
        const std::uint64_t there = std::max(smallest_level, frame.own_bytes);
        return static_cast<std::uint32_t>(std::min<std::uint64_t>((frame.bytes + there - 1) / there, UINT32_MAX));
    }

    const std::map<ptx::FunctionId, CallFrame>& frames_;
    std::map<ptx::FunctionId, Node> nodes_;
    std::vector<ptx::FunctionId> open_;
    FrameDepth result_;
};

} // namespace

std::uint64_t argument_block_bytes(const FunctionGraph& graph) {
    return graph.is_entry ? 0 : (graph.argument_bytes + 15) / 16 * 16;
}

std::uint64_t frame_bytes(const FunctionGraph& graph) {
    return argument_block_bytes(graph) + (graph.local_bytes + 15) / 16 * 16;
}

FrameDepth frame_depth(const std::map<ptx::FunctionId, CallFrame>& frames, ptx::FunctionId entry) {
    return Components(frames).depth_of(entry);
}

} // namespace ptarmigan::translator
