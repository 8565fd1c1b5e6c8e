// SPDX-License-Identifier: Apache-2.0
// Memory that one CTA uses while it runs: its shared window, local memory, frames. Reused CTA after
// CTA and launch after launch; what a CTA may not touch is inaccessible, so that it faults.
#pragma once

#include "runtime/base/tuning.h"
#include "translator/kernel_abi.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime {

/// A reserved range of which a first part is accessible.
class Window {
public:
    /// Begins at a multiple of `alignment`, a power of two and at least a page, or 0: wherever there is room.
    explicit Window(std::size_t alignment = 0) : alignment_(alignment) {}
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    /// Makes exactly `size` bytes (rounded up to pages) accessible. Reserves `reserve` bytes at
    /// first, and anew when `size` passes that. Contents are kept as far as both sizes reach. False
    /// if there is no memory.
    bool resize(std::size_t size, std::size_t reserve);
    /// The same for `parts` parts that begin `distance` bytes apart.
    bool resize(std::size_t size, unsigned parts, std::size_t distance, std::size_t reserve);
    std::uint8_t* data() const { return base_; }
    std::size_t reserved() const { return reserved_; }

private:
    std::uint8_t* base_ = nullptr;
    bool close();
    std::size_t reserved_ = 0, accessible_ = 0; ///< accessible: of each part
    std::size_t distance_ = 0;
    unsigned parts_ = 1;
    std::size_t alignment_;
};

/// What a kernel needs per CTA.
struct CtaNeeds {
    std::size_t shared = 0;       ///< static + dynamic
    std::size_t shared_start = 0; ///< of it in its window: the lower half of the first byte's generic address
    std::size_t local_stride = 0; ///< per thread, multiple of 64
    std::size_t interleaved = 0;  ///< bytes of interleaved local memory per thread
    std::size_t threads = 0;      ///< rounded up to whole steps
    std::size_t cta_frame = 0, frames = 0;

    /// Bytes of the window to be accessible.
    std::size_t shared_end() const { return shared == 0 ? 0 : shared_start + shared; }
};

/// Not thread-safe: used by one worker at a time.
struct CtaArena {
    /// Aligned so that the lower half of a generic address says where it lies in the window: machine code of sm_90
    /// takes it for the shared address, wherever the pointer comes from.
    Window shared{tuning::shared_window};
    Window local, interleaved, frames;
    abi::CtaContext context{};

private:
    bool prepare_own(const CtaNeeds& needs);
    void point_at(const Window& shared_window, const CtaNeeds& needs);

public:
    /// Sizes the windows and points `context` at them. False if there is no memory.
    bool prepare(const CtaNeeds& needs);
    /// The same for a CTA of a cluster, whose shared memory is in the window of `first`, the CTA of rank 0.
    bool prepare(const CtaNeeds& needs, CtaArena& first, std::uint32_t rank, std::uint32_t cluster_size);
};

} // namespace ptarmigan::runtime
