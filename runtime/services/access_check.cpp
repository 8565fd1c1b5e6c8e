// SPDX-License-Identifier: Apache-2.0
#include "runtime/services/access_check.h"

#include "runtime/code/fault.h"
#include "runtime/context/context.h"
#include "runtime/launch/child_work.h"
#include "runtime/launch/worker.h"
#include "runtime/memory/address_space.h"

#include <bit>

namespace ptarmigan::runtime {
namespace {

/// Where a thread's last access was allowed. Memory that a program frees while the grid runs may stay in it.
struct Reach {
    std::uint64_t grid_id = 0;
    std::uintptr_t begin = 0, end = 0;
    bool writable = false;

    bool covers(std::uint64_t grid, std::uintptr_t address, std::size_t bytes, bool is_write) const {
        return grid_id == grid && address >= begin && address < end && bytes <= end - address &&
               (writable || !is_write);
    }
};

bool lies_in(std::uintptr_t address, std::size_t bytes, const void* begin, std::size_t size) {
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(begin);
    return offset < size && bytes <= size - offset;
}

/// What is neither an allocation's nor the host program's.
bool is_of_launch(const abi::CtaContext& cta, Grid& grid, std::uintptr_t address, std::size_t bytes) {
    return lies_in(address, bytes, cta.shared, cta.shared_window_size) ||
           lies_in(address, bytes, cta.local, cta.local_window_size) ||
           lies_in(address, bytes, cta.params, cta.launch->params_size) ||
           lies_in(address, bytes, &grid.workspace, sizeof grid.workspace) ||
           child_work_of(grid).has_buffer(reinterpret_cast<const void*>(address), bytes);
}

bool may_access(const abi::CtaContext& cta, Grid& grid, std::uintptr_t address, std::size_t bytes, bool is_write,
                Reach& reach) {
    const AddressSpace& space = AddressSpace::get();
    const int device = grid.context->device();
    const unsigned wanted = is_write ? 3 : 1; // CUmemAccess_flags
    if (const std::optional<Allocation> found = space.find(address)) {
        const unsigned access = found->is_reached_by(device) ? found->access_of(device) : 0;
        if ((access & wanted) == wanted && bytes <= found->end() - address) {
            reach = {cta.launch->grid_id, found->base, found->end(), access == 3};
            return true;
        }
        const KnownRange known = space.range(address, bytes, device); // maps side by side
        return known.whole && known.reached && (known.access & wanted) == wanted;
    }
    return is_of_launch(cta, grid, address, bytes);
}

} // namespace

void check_access(abi::CtaContext* cta, std::uint32_t step, const std::uint64_t* addresses, std::uint64_t lanes,
                  std::uint32_t bytes, std::uint32_t is_write, std::uint32_t line) {
    thread_local Reach reach;
    const Worker& worker = *static_cast<Worker*>(cta->worker);
    for (std::uint64_t left = lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const auto address = static_cast<std::uintptr_t>(addresses[lane]);
        if (reach.covers(cta->launch->grid_id, address, bytes, is_write != 0)) continue;
        if (may_access(*cta, worker.grid(), address, bytes, is_write != 0, reach)) continue;
        FaultRecord record;
        record.fault = abi::Fault::illegal_address;
        record.cta = cta;
        record.step = step;
        record.lanes = std::uint64_t{1} << lane;
        record.line = line;
        record.address = address;
        record.has_address = true;
        record.is_write = is_write != 0;
        record.rule = AddressSpace::get().in_reservation(address)
                          ? "outside of every allocation that the device reaches (PTARMIGAN_CHECK=memory)"
                          : "the host's memory, neither pinned nor managed nor registered (PTARMIGAN_CHECK=memory)";
        raise_fault(record);
    }
}

} // namespace ptarmigan::runtime
