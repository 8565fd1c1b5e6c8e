// SPDX-License-Identifier: Apache-2.0
// Reserving and opening the windows.
#include "runtime/launch/cta_arena.h"

#include "runtime/base/page_size.h"
#include "runtime/base/tuning.h"

#include <sys/mman.h>

namespace ptarmigan::runtime {
namespace {

/// In front of and behind each window, for negative offsets and vector accesses that begin inside.
constexpr std::size_t guard = 64 << 10;

/// `size` bytes with a guard in front of and behind them, nothing accessible. Null if there is no room.
std::uint8_t* reserve_range(std::size_t size, std::size_t alignment) {
    const std::size_t whole = size + 2 * guard + alignment;
    void* memory = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::uint8_t*>(memory);
    if (alignment == 0) return begin + guard;
    const auto first = reinterpret_cast<std::uintptr_t>(begin) + guard;
    const std::size_t skipped = (alignment - first % alignment) % alignment; // given back, as what is left behind
    if (skipped != 0) munmap(begin, skipped);
    munmap(begin + skipped + size + 2 * guard, alignment - skipped);
    return begin + guard + skipped;
}

} // namespace

Window::~Window() {
    if (base_) munmap(base_ - guard, reserved_ + 2 * guard);
}

/// Nothing is accessible any more.
bool Window::close() {
    for (unsigned part = 0; part < parts_; ++part)
        if (accessible_ != 0 && mprotect(base_ + part * distance_, accessible_, PROT_NONE) != 0) return false;
    accessible_ = 0;
    return true;
}

bool Window::resize(std::size_t size, std::size_t reserve) {
    return resize(size, 1, 0, reserve);
}

bool Window::resize(std::size_t size, unsigned parts, std::size_t distance, std::size_t reserve) {
    const std::size_t wanted = round_up_to_pages(size), end = (parts - 1) * distance + wanted;
    const bool same_parts = parts == parts_ && distance == distance_;
    if (base_ && wanted == accessible_ && same_parts) return true;
    if (!base_ || end > reserved_) {
        if (base_) munmap(base_ - guard, reserved_ + 2 * guard);
        base_ = nullptr;
        accessible_ = 0;
        reserved_ = round_up_to_pages(reserve > end ? reserve : end);
        base_ = reserve_range(reserved_, alignment_);
        if (!base_) return false;
    }
    if (!same_parts && !close()) return false;
    parts_ = parts;
    distance_ = distance;
    for (unsigned part = 0; part < parts; ++part) {
        std::uint8_t* begin = base_ + part * distance;
        if (wanted > accessible_) {
            if (mprotect(begin + accessible_, wanted - accessible_, PROT_READ | PROT_WRITE) != 0) return false;
        } else if (wanted < accessible_) {
            mprotect(begin + wanted, accessible_ - wanted, PROT_NONE);
        }
    }
    accessible_ = wanted;
    return true;
}

bool CtaArena::prepare_own(const CtaNeeds& needs) {
    constexpr std::size_t local_reserve = std::size_t{64} << 20, interleaved_reserve = std::size_t{16} << 20,
                          frame_reserve = std::size_t{16} << 20;
    if (needs.local_stride >= abi::local_stride_limit ||
        !local.resize(needs.local_stride * needs.threads, local_reserve))
        return false;
    if (needs.interleaved && !interleaved.resize(needs.interleaved * needs.threads, interleaved_reserve)) return false;
    if (!frames.resize(needs.cta_frame + needs.frames, frame_reserve)) return false;
    context.local = local.data();
    context.local_stride = needs.local_stride;
    context.local_window_size = local.reserved();
    context.interleaved = interleaved.data();
    context.frames = frames.data() + needs.cta_frame;
    return true;
}

void CtaArena::point_at(const Window& window, const CtaNeeds& needs) {
    context.shared = window.data() + needs.shared_start;
    context.shared_window_size = window.reserved() - needs.shared_start;
}

bool CtaArena::prepare(const CtaNeeds& needs) {
    if (!shared.resize(needs.shared_end(), tuning::shared_window) || !prepare_own(needs)) return false;
    point_at(shared, needs);
    return true;
}

bool CtaArena::prepare(const CtaNeeds& needs, CtaArena& first, std::uint32_t rank, std::uint32_t cluster_size) {
    constexpr std::size_t distance = std::size_t{1} << abi::cluster_rank_bit;
    if (rank == 0 && !shared.resize(needs.shared_end(), cluster_size, distance, tuning::shared_window)) return false;
    if (!prepare_own(needs)) return false;
    point_at(first.shared, needs);
    return true;
}

} // namespace ptarmigan::runtime
