// SPDX-License-Identifier: Apache-2.0
// What the nodes of graphs do, by type: plain values, copied when a graph is cloned or instantiated.
#pragma once

#include "runtime/launch/launch.h"
#include "runtime/memory/external_objects.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/stream_values.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

namespace ptarmigan::runtime {

class Context;
class Event;
class Function;
class Graph;
class GraphMemory;
class ConditionalValue;
class Module;

/// CUgraphNodeType.
enum class NodeType : std::uint8_t {
    kernel = 0,
    copy = 1,
    fill = 2,
    host = 3,
    child = 4,
    empty = 5,
    event_wait = 6,
    event_record = 7,
    semaphore_signal = 8,
    semaphore_wait = 9,
    allocate = 10,
    free = 11,
    memory_operations = 12,
    conditional = 13,
};

/// CUlaunchAttributeValue, as given.
using LaunchAttribute = std::array<std::uint64_t, 8>;

/// A launch. The parameters are copied when the node gets them.
struct KernelWork {
    std::shared_ptr<Module> module; ///< keeps the function
    Function* function = nullptr;
    const void* library_kernel = nullptr; ///< the CUkernel that it was named by; null: a CUfunction
    LaunchConfig config;
    std::vector<std::uint8_t> parameters;           ///< in the kernel's layout
    std::map<unsigned, LaunchAttribute> attributes; ///< that were set, by CUlaunchAttributeID
    bool packed = false;                            ///< the parameters were given as one block
    /// To the parameters, and how large they are, for who asks for them as they were given.
    mutable std::vector<void*> pointers;
    mutable std::size_t size = 0;
    Context& context() const; ///< of `function`
};

/// A copy between the ends of `box`, which were checked when the node got them.
struct CopyWork {
    CopyBox box;
    Context* context = nullptr;
    std::array<unsigned, 2> memory_types{};      ///< of source and destination, as given
    std::array<std::shared_ptr<void>, 2> arrays; ///< that they lie in; null: none
};

/// `height` rows of `width` elements of 1, 2 or 4 bytes each get `value`; `pitch`: from row to row, in bytes.
struct FillWork {
    DevicePointer to = 0;
    std::size_t pitch = 0, width = 0, height = 1;
    unsigned element_size = 1;
    std::uint32_t value = 0;
    Context* context = nullptr;
};

/// A call of the program's function on a thread of the runtime's; it may not call the driver.
struct HostWork {
    void (*function)(void*) = nullptr;
    void* data = nullptr;
};

/// A graph as one node.
struct ChildWorkOfGraph {
    std::shared_ptr<Graph> graph; ///< the node's own
};

/// Events of the program, which may destroy them before the graph.
struct EventRecordWork {
    std::shared_ptr<Event> event;
};
struct EventWaitWork {
    std::shared_ptr<Event> event;
};

/// Memory that has its address from the node's making on and is there from AllocateWork to FreeWork of it.
struct AllocateWork {
    std::shared_ptr<GraphMemory> memory;
    MemoryPlace place;
    int allocation_type = 0;
    std::vector<std::array<int, 3>> access; ///< CUmemAccessDesc
};
struct FreeWork {
    std::shared_ptr<GraphMemory> memory;
};

/// cuStreamBatchMemOp.
struct MemoryOperationsWork {
    Context* context = nullptr;
    std::vector<ValueStep> steps;
    mutable std::vector<std::array<std::uint64_t, 6>> given; ///< CUstreamBatchMemOpParams, for who asks for them
};

/// Semaphores and the values to signal, or to wait for.
struct SemaphoreWork {
    std::vector<std::pair<std::shared_ptr<ExternalSemaphore>, std::uint64_t>> semaphores;
    /// As given, for who asks for them: handles, and CUDA_EXTERNAL_SEMAPHORE_PARAMS.
    mutable std::vector<void*> handles;
    mutable std::vector<std::array<std::uint8_t, 144>> parameters;
};
struct SemaphoreSignalWork : SemaphoreWork {};
struct SemaphoreWaitWork : SemaphoreWork {};

/// Bodies that `value` chooses when the node's turn comes (and again after each round of while_nonzero). The node owns
/// them.
struct ConditionalWork {
    enum class Kind : std::uint8_t { if_nonzero, while_nonzero, select };
    std::shared_ptr<ConditionalValue> value;
    Kind kind = Kind::if_nonzero;
    std::vector<std::shared_ptr<Graph>> bodies;
    Context* context = nullptr;
    mutable std::vector<void*> handles; ///< of the bodies, for who made the node
};

/// By NodeType.
using NodeWork = std::variant<KernelWork, CopyWork, FillWork, HostWork, ChildWorkOfGraph, std::monostate, EventWaitWork,
                              EventRecordWork, SemaphoreSignalWork, SemaphoreWaitWork, AllocateWork, FreeWork,
                              MemoryOperationsWork, ConditionalWork>;

/// The variant's alternatives stand in NodeType's order.
inline NodeType type_of(const NodeWork& work) {
    return static_cast<NodeType>(work.index());
}

} // namespace ptarmigan::runtime
