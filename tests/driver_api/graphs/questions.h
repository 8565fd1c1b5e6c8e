// SPDX-License-Identifier: Apache-2.0
// What the groups of questions about graphs share: each runs in a process of its own, since a driver may crash at a
// question or be left in a state that others would see.
#pragma once

#include "../answers/answers.h"

#include "runtime/shim/graph_types.h"

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace graph_questions {

using answers::call;
using answers::must;
using namespace ptarmigan::shim; // enumerators

/// Prepared for each group: a current context, kernels, memory, streams and events.
struct Ground {
    CUcontext context{};
    CUmodule module{};
    CUfunction empty{}, add{}, add2{}, store{}; ///< (), (u64 address, u32 value), (u64, u32, u32), (u64 address, u32 value)
    CUdeviceptr memory{}, other_memory{};       ///< of 1 MiB
    void* pinned = nullptr;
    CUstream stream{}, second{}, blocking{}; ///< the first two do not block
    CUevent event{}, second_event{};

    void (*print)(const std::string& question, const std::string& answer) = nullptr;
    void give(const std::string& question, const std::string& answer) const { print(question, answer); }
    void give(const std::string& question, long long answer) const { print(question, std::to_string(answer)); }
    /// A result, and what `detail` says after the call.
    template <class Detail> void give(const std::string& question, int result, const Detail& detail) const {
        print(question, std::to_string(result) + detail());
    }

    /// Parameters of a node that runs empty(), or add(memory, value).
    CUDA_KERNEL_NODE_PARAMS empty_kernel() const;
    CUDA_KERNEL_NODE_PARAMS add_kernel(unsigned& value) const; ///< `value` is read when the node is made
    CUDA_MEMCPY3D copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const;
    CUDA_MEMSET_NODE_PARAMS fill(CUdeviceptr to, unsigned value, std::size_t width) const;
    CUgraph graph() const;
    CUgraphNode empty_node(CUgraph graph, const std::vector<CUgraphNode>& dependencies = {}) const;
    CUgraphNode kernel_node(CUgraph graph, const std::vector<CUgraphNode>& dependencies = {}) const;
    mutable void* parameters[3];
};

/// Names for handles that questions use, in place of their numbers.
class Names {
public:
    void name(const void* handle, const std::string& name) { names_.push_back({handle, name}); }
    std::string of(const void* handle) const;
    template <class T> std::string of(T* const* handles, std::size_t count) const {
        std::string text;
        for (std::size_t i = 0; i < count; ++i) text += (i ? " " : "") + of(static_cast<const void*>(handles[i]));
        return text;
    }

private:
    std::vector<std::pair<const void*, std::string>> names_;
};

std::string number(long long value);
/// The results of calls made one after the other.
template <class... Calls> std::string in_turn(Calls... calls) {
    std::string text;
    ((text += number(calls())), ...);
    return text;
}
/// The types of the nodes of a graph in the order of cuGraphGetNodes, and its edges as pairs of their indices.
std::string shape_of(CUgraph graph);

struct Group {
    const char* name;
    void (*ask)(const Ground&);
};
extern const std::vector<Group> structure_groups, parameter_groups, execution_groups, memory_groups, capture_groups;

} // namespace graph_questions
