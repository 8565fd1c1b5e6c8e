// SPDX-License-Identifier: Apache-2.0
// Tensor maps that threads change while copies use them. Copies read maps through a proxy of their own (PTX manual
// 9.7.9.25.5): what threads write to one is there for the copies of a CTA once it has been released
// (fence.proxy.tensormap::generic.release, tensormap.cp_fenceproxy) and the CTA has acquired it
// (fence.proxy.tensormap::generic.acquire, 9.7.13.4). Kept for copies that are late, so that a missing fence shows.
#pragma once

#include "runtime/copy_engine/tensor_map.h"
#include "translator/kernel_abi.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace ptarmigan::runtime {

/// The maps that tensormap.replace and tensormap.cp_fenceproxy of one grid have changed in global memory. Thread-safe;
/// its mutex is a leaf, and no map's memory is touched under it. Who else writes to them is not known: a map that is
/// not as it was left counts as released. Scopes are not looked at, and a release is one of all changes of the grid.
class MapHistory {
public:
    /// The map at `address` was `before` and is `now`.
    void changed(std::uint64_t address, const TensorMap& before, const TensorMap& now);
    void release(std::uint64_t address);
    void release_all();
    /// The map at `address`, which is `now`, for who acquires it.
    TensorMap acquired(std::uint64_t address, const TensorMap& now);
    /// For a CTA that has neither acquired nor used it before.
    TensorMap first_seen(std::uint64_t address, const TensorMap& now);

private:
    struct Entry {
        TensorMap first;    ///< before the grid changed it
        TensorMap released; ///< as it was when it was released last; not used if all of it is
        TensorMap left;     ///< as the last change left it
        bool is_released = false;
    };
    Entry* find(std::uint64_t address, const TensorMap& now);
    void forget_old();

    std::mutex mutex_; ///< guards what follows
    std::map<std::uint64_t, Entry> entries_;
    std::uint64_t outside_writes_ = 0; ///< when `entries_` were made
};

/// Which maps the CTAs of one worker see: what each one has acquired or used. Not thread-safe.
class MapViews {
public:
    /// What a copy of the CTA finds at `address`. Faults if nothing is there.
    TensorMap see(const abi::CtaContext& cta, std::uint64_t address);
    void acquire(const abi::CtaContext& cta, std::uint64_t address);
    bool empty() const { return views_.empty(); }
    void forget(const abi::CtaContext* cta); ///< null: all

private:
    void forget_old();

    std::map<std::pair<const abi::CtaContext*, std::uint64_t>, TensorMap> views_; ///< by CTA and address
    std::uint64_t outside_writes_ = 0;                                            ///< when `views_` were made
};

/// Of the grid that a CTA belongs to; defined by who makes grids (launch/grid.cpp).
MapHistory& map_history(const abi::CtaContext& cta);

} // namespace ptarmigan::runtime
