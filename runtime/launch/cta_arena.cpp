// SPDX-License-Identifier: Apache-2.0
// Reserving and opening the windows.
#include "runtime/launch/cta_arena.h"

#include "runtime/tuning.h"

#include <sys/mman.h>
#include <unistd.h>

namespace ptarmigan::runtime {
namespace {

std::size_t page_size() {
    static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

std::size_t to_pages(std::size_t bytes) {
    return (bytes + page_size() - 1) / page_size() * page_size();
}

/// In front of and behind each window, for negative offsets and vector accesses that begin inside.
constexpr std::size_t guard = 64 << 10;

} // namespace

Window::~Window() {
    if (base_)
        munmap(base_ - guard, reserved_ + 2 * guard);
}

bool Window::resize(std::size_t size, std::size_t reserve) {
    const std::size_t wanted = to_pages(size);
    if (base_ && wanted == accessible_)
        return true;
    if (!base_ || wanted > reserved_) {
        if (base_)
            munmap(base_ - guard, reserved_ + 2 * guard);
        base_ = nullptr;
        accessible_ = 0;
        reserved_ = to_pages(reserve > wanted ? reserve : wanted);
        void *memory = mmap(nullptr, reserved_ + 2 * guard, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return false;
        base_ = static_cast<std::uint8_t *>(memory) + guard;
    }
    if (wanted > accessible_) {
        if (mprotect(base_ + accessible_, wanted - accessible_, PROT_READ | PROT_WRITE) != 0)
            return false;
    } else if (wanted < accessible_) {
        mprotect(base_ + wanted, accessible_ - wanted, PROT_NONE);
    }
    accessible_ = wanted;
    return true;
}

bool CtaArena::prepare(const CtaNeeds &needs) {
    constexpr std::size_t local_reserve = std::size_t{64} << 20,
                          frame_reserve = std::size_t{16} << 20;
    if (!shared.resize(needs.shared, tuning::shared_window))
        return false;
    if (!local.resize(needs.local_stride * needs.threads, local_reserve))
        return false;
    if (!frames.resize(needs.cta_frame + needs.frames, frame_reserve))
        return false;
    context.shared = shared.data();
    context.shared_window_size = shared.reserved();
    context.local = local.data();
    context.local_stride = needs.local_stride;
    context.local_window_size = local.reserved();
    context.frames = frames.data() + needs.cta_frame;
    return true;
}

} // namespace ptarmigan::runtime
