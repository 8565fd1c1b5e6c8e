// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate: its address is fixed when the node is made, and each launch lends it to the program or
// to later nodes.
#pragma once

#include "runtime/base/status.h"
#include "runtime/memory/memory.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ptarmigan::runtime {

class Context;

/// What the memory of one instance takes of the device.
struct GraphFootprint {
    std::uint64_t exec_id = 0, bytes = 0;
};
/// A launch of an instance that has memory nodes: what it needs is reserved.
void reserve_graph_memory(const GraphFootprint& footprint);

/// Thread-safe. Kept by the nodes and instances that name it, and by itself while the program holds it.
class GraphMemory : public AllocationOwner, public std::enable_shared_from_this<GraphMemory> {
public:
    /// `device`: an ordinal, or any_device for the context's.
    static Status create(Context& context, MemoryKind kind, std::size_t size, std::shared_ptr<GraphMemory>& memory,
                         int device = any_device);
    GraphMemory(Context& context, DevicePointer pointer, std::size_t size)
        : context_(context), pointer_(pointer), size_(size) {}
    ~GraphMemory() override;
    /// The memory at `pointer` that a graph allocates; null if that is none.
    static std::shared_ptr<GraphMemory> find(DevicePointer pointer);

    Context& context() const { return context_; }
    DevicePointer pointer() const { return pointer_; }
    std::size_t size() const { return size_; }

    /// At a launch, in the order of launches: by its allocating and freeing nodes. take() is false if the program or an
    /// earlier launch still holds the memory.
    bool take(const GraphFootprint& footprint);
    bool is_held() const override;
    bool mark_free_pending() override;
    void free() override {}

    /// The graph whose node allocates it, and whether a node of that graph frees it; guarded by graph_mutex().
    std::uint64_t graph_id = 0;
    bool is_freed_in_graph = false;

private:
    Context& context_;
    const DevicePointer pointer_;
    const std::size_t size_;
};

/// CUgraphMem_attribute 0..3 of a device; invalid_value for others.
Status graph_memory_attribute(int attribute, std::uint64_t& value);
/// The marks of the largest use (1, 3) can be set to 0; nothing else.
Status set_graph_memory_attribute(int attribute, std::uint64_t value);
/// Gives back what is reserved and not used.
void trim_graph_memory();

} // namespace ptarmigan::runtime
